"""What does √d_k do?

    s = q·k        for entries of spread 1 the spread of s is √d_k: d_k products of variance 1 are added
    w = softmax(s / √d_k)    or    softmax(s)        ∂w/∂s = diag(w) − w wᵀ

Measured before training: the spread of the scores, the entropy of the weights over ln N, the length of ∂w/∂s. Then the
same model is trained on the same questions with √d_k and without, from weights that give q and k entries of spread 1,
and once more from small ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from ..algebra.mistakes import mistakes_of
from ..attention import Attention
from ..nn.initial import SPREAD
from ..nn.stacks import Decoder
from ..nn.style import Style
from ..train.fitting import fit
from ..train.optimiser import AdamW
from ..train.schedule import Schedule
from .distance_drawing import draw_scale
from .pairs import VALUES, Held, Recaller, random
from .record import Cell, Experiment, Outcome, Scale, Table, Tell

WAYS = {"with √d": Attention(), "without": mistakes_of(Attention())["no root of d"]}

WIDTHS = (1, 4, 16, 64, 256, 1024)  # d_k before training
TRAINED = (4, 64, 256)
KEYS_READ = 64  # N before training
DIM, PAIRS, ROWS = 64, 32, 33
SEEDS, STEPS, RATE = 3, 200, 1e-2
NOTED = 1.2  # times the steps; less is within what seeds differ by
HALF = math.log(VALUES) / 2  # half of what guessing costs, in nats


# -- before training -------------------------------------------------------------------------------------------


def weights_of(formula: Attention, width: int, seed: int, texts: int = 32) -> tuple[Tensor, Tensor]:
    """Scores q·k and weights of queries and keys whose entries have spread 1, (texts, N, N)."""
    q, k = torch.randn(2, texts, KEYS_READ, width, generator=random(seed, width), dtype=torch.float64)
    return q @ k.mT, formula.weights(q, k)


def entropy(w: Tensor) -> Tensor:
    """−Σ_j w_j ln w_j of each row."""
    return torch.special.entr(w).sum(dim=-1)


def slope(w: Tensor) -> Tensor:
    """‖∂w/∂s‖ of each row: ‖diag(w) − w wᵀ‖² = Σ w² − 2 Σ w³ + (Σ w²)²."""
    squares = w.square().sum(dim=-1)
    return (squares - 2 * w.pow(3).sum(dim=-1) + squares.square()).clamp_min(0).sqrt()


def looked_at(formula: Attention, width: int, seed: int) -> dict[str, float]:
    """The spread of q·k, and what the formula makes of it."""
    scores, w = weights_of(formula, width, seed)
    found = {
        "spread": scores.std(),
        "entropy": entropy(w).mean() / math.log(KEYS_READ),
        "keys read": entropy(w).exp().median(),
        "slope": slope(w).mean(),
        "median slope": slope(w).median(),
    }
    return {name: float(value) for name, value in found.items()}


LOOKED = ("spread", "entropy", "keys read", "median slope")  # what stands in the table


# -- training --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """How a model begins.

    width:  d_k
    spread: of the entries of W_q and W_k: 1/√DIM gives q and k entries of spread 1
    """

    width: int
    spread: float = 1 / math.sqrt(DIM)

    @property
    def name(self) -> str:
        """As in the table."""
        return f"d_k = {self.width}" + (", small weights" if self.spread == SPREAD else "")


STARTS = (*map(Start, TRAINED), Start(TRAINED[-1], SPREAD))


def beginning(formula: Attention, start: Start, seed: int) -> Recaller:
    """One block with one head, before training; with √d_k and without it has the same numbers."""
    torch.manual_seed(seed)
    core = Decoder(DIM, depth=1, heads=1, attention=formula, width=start.width, style=Style(hidden=2 * DIM))
    for part in (core.blocks[0].attention.query, core.blocks[0].attention.key):
        nn.init.normal_(part.weight, std=start.spread)
    return Recaller(core, DIM)


def learned(formula: Attention, start: Start, steps: int, seed: int) -> dict[str, Any]:
    """The loss of each step, and on held-out sequences at the end."""
    task = Held(PAIRS, ROWS, seed)
    history = fit(beginning(formula, start, seed), task, Schedule(steps, RATE), optimiser=AdamW(decay=0.0), seed=seed)
    return {"losses": history.losses, **history.last}


def until_half(losses: list[float]) -> float:
    """The first step from which the mean of five losses is at most half of what guessing costs; all of them if none."""
    means = [mean(losses[at : at + 5]) for at in range(max(1, len(losses) - 4))]
    return float(next((at + 1 for at, loss in enumerate(means) if loss <= HALF), len(losses)))


# -- all of it -------------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Look at weights before training; then train every start both ways."""
    seeds = range(scale.seed, scale.seed + (1 if scale.share < 0.1 else SEEDS))
    before = {way: {str(d): looked_at(formula, d, scale.seed) for d in WIDTHS} for way, formula in WAYS.items()}
    series: dict[str, Any] = {"before": before, "training": {}}
    trainings = [(start, way, seed) for start in STARTS for way in WAYS for seed in seeds]
    for done, (start, way, seed) in enumerate(trainings):
        tell(f"{start.name}, {way}", done / len(trainings))
        found = learned(WAYS[way], start, scale.steps(STEPS), seed)
        series["training"].setdefault(start.name, {}).setdefault(way, []).append(found)
    return outcome_of(series)


def outcome_of(series: dict[str, Any]) -> Outcome:
    """The answer, made of what was measured."""
    numbers = {
        f"{what}, d_k = {d}, {way}": value
        for way, widths in series["before"].items() for d, found in widths.items() for what, value in found.items()
    }  # fmt: skip
    for start, ways in series["training"].items():
        for way, seeds in ways.items():
            numbers[f"loss, {start}, {way}"] = mean(one["loss"] for one in seeds)
            numbers[f"right, {start}, {way}"] = mean(one["right"] for one in seeds)
            numbers[f"half, {start}, {way}"] = mean(until_half(one["losses"]) for one in seeds)
        numbers[f"slowed, {start}"] = numbers[f"half, {start}, without"] / numbers[f"half, {start}, with √d"]
    return Outcome(answer(numbers), table_of(numbers), numbers, series)


def table_of(numbers: dict[str, float]) -> Table:
    """A row for each start and way; what is seen before training belongs to entries of spread 1."""
    rows: list[tuple[Cell, ...]] = []
    for start in STARTS:
        for way in WAYS:
            seen: tuple[Cell, ...] = ("-",) * 4
            if start.spread != SPREAD:
                found = {what: numbers[f"{what}, d_k = {start.width}, {way}"] for what in LOOKED}
                seen = tuple(f"{found[what]:.2g}" for what in LOOKED)
            ended = [numbers[f"{what}, {start.name}, {way}"] for what in ("half", "loss", "right")]
            rows.append((start.name, way, *seen, f"{ended[0]:.0f}", f"{ended[1]:.2f}", f"{ended[2]:.0%}"))
    shown = ("spread of q·k", "entropy / ln N", "keys read", "‖∂w/∂s‖")
    return Table(("model", "√d_k", *shown, "steps to half the loss", "loss", "right"), tuple(rows))


def answer(numbers: dict[str, float]) -> str:
    """In words."""
    few, some, many = (f"d_k = {width}" for width in TRAINED)

    def without(what: str, start: str) -> str:
        return f"{numbers[f'{what}, {start}, without']:.2g}"

    def kept(start: str) -> str:
        return f"{numbers[f'median slope, {start}, without'] / numbers[f'median slope, {start}, with √d']:.2g}"

    return (
        f"q·k spreads by {without('spread', few)} at {few} and {without('spread', some)} at {some}. Without √d_k the "
        f"entropy of the weights is {without('entropy', few)} and {without('entropy', some)} of ln N, and the gradient "
        f"of the median row {kept(some)} times what it is with √d_k at {some}, {kept(many)} times at {many}. "
        f"In training its lack {', '.join(cost(numbers, start.name) for start in STARTS)}."
    )


def cost(numbers: dict[str, float], start: str) -> str:
    """What the lack of √d_k does to a training: in steps to half of the loss, and in right answers at the end."""
    slowed, (right, bare) = numbers[f"slowed, {start}"], (numbers[f"right, {start}, {way}"] for way in WAYS)
    said = "is not seen" if slowed < NOTED else f"costs {slowed:.1f} times the steps"
    return f"{said} at {start} ({bare:.0%} right in the end, {right:.0%} with it)"


EXPERIMENT = Experiment(
    "scale",
    "What does √d_k do, and when is its lack seen?",
    ("N3", "N8"),
    minutes=1.0,
    run=run,
    draw=draw_scale,
    size=(12.5, 7.6),
)
