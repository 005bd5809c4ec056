"""Does a thing that was shown long ago reach the answer?

    attention    y_T = Σ_j w_Tj v_j          from row j to row T: 1 step, however far
    LSTM         h_t = f(x_t, h_{t−1})       T − j steps, each through the same few numbers

Measured: how much of the gradient of the answer's loss arrives i rows before it; how many answers are right where a key
is asked for exactly i rows after it was shown; and how many where more and more pairs have to be kept at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

import torch
from torch import nn

from ..nn.stacks import Decoder
from ..nn.style import Style
from ..train.fitting import fit
from ..train.optimiser import AdamW
from ..train.schedule import Schedule
from .distance_drawing import draw_recall
from .pairs import HELD_OUT, VALUES, AtDistance, Held, Recaller, count
from .record import Cell, Experiment, Outcome, Scale, Table, Tell
from .recurrent import Recurrent

DIM = 32
SEEDS = 3
STEPS, RATE = 400, 3e-3
LEARNED = 0.9  # the share of right answers from which a task counts as learned
OPEN = 3.0  # a forget gate that keeps σ(3) = 95 % of each number from row to row

Task = AtDistance | Held
TASKS: dict[str, tuple[Callable[..., Task], tuple[int, ...]]] = {
    "distance": (AtDistance, (1, 4, 8, 16, 32, 64)),
    "pairs": (Held, (1, 2, 4, 8, 16)),
}
"""What is trained on: a task, and the points of its curve."""

CORES: dict[str, Callable[[int], nn.Module]] = {
    "attention": lambda dim: Decoder(dim, depth=1, heads=1, style=Style(hidden=2 * dim - 2)),  # as large as an LSTM
    "LSTM": Recurrent,
    "LSTM, open gate": partial(Recurrent, bias=OPEN),
}


def beginning(kind: str, seed: int) -> Recaller:
    """A model with one of the cores, before training; those of one seed have the same embeddings."""
    torch.manual_seed(seed)
    model = Recaller(nn.Identity(), DIM)
    model.core = CORES[kind](DIM)
    return model


def right(kind: str, task: Task, steps: int, seed: int) -> float:
    """The share of right answers after training."""
    history = fit(beginning(kind, seed), task, Schedule(steps, RATE), optimiser=AdamW(decay=0.0), seed=seed)
    return history.last["right"]


def gradient(model: Recaller, distance: int) -> list[float]:
    """‖∂ loss(answer) / ∂ x_{T−i}‖ for i = 1, …, distance: the mean over sequences that ask in their last row T."""
    batch = AtDistance(distance).sequences(HELD_OUT, 64)
    x = model.rows(batch).detach().requires_grad_()
    loss = nn.functional.cross_entropy(model.read(x)[:, -1], batch["answers"][:, -1], reduction="sum")
    (slope,) = torch.autograd.grad(loss, x)
    return [float(length) for length in slope.norm(dim=2).mean(dim=0).flip(0)[1:]]


# -- all of it -------------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Look at the gradients before training; then train every core on every task."""
    small = scale.share < 0.1  # two points of each curve, and one seed
    seeds = range(scale.seed, scale.seed + (1 if small else SEEDS))
    points = [(curve, at) for curve, (_, sizes) in TASKS.items() for at in (sizes[::2][:2] if small else sizes)]
    series: dict[str, Any] = {"gradient": {kind: gradients(kind, seeds) for kind in CORES}}
    for done, (curve, at, kind) in enumerate((*point, kind) for point in points for kind in CORES):
        tell(f"{curve} {at}, {kind}", done / len(points) / len(CORES))
        task = TASKS[curve][0]
        shares = [right(kind, task(at, seed=seed), scale.steps(STEPS), seed) for seed in seeds]
        series.setdefault(curve, {}).setdefault(kind, {})[str(at)] = shares
    return outcome_of(series)


def gradients(kind: str, seeds: range) -> list[float]:
    """The gradient at each distance before training, the mean over seeds."""
    farthest = TASKS["distance"][1][-1]
    return [mean(seen) for seen in zip(*(gradient(beginning(kind, seed), farthest) for seed in seeds), strict=True)]


def outcome_of(series: dict[str, Any]) -> Outcome:
    """The answer, made of what was measured."""
    numbers = {"chance": 1 / VALUES, **{f"parameters, {kind}": float(count(CORES[kind](DIM))) for kind in CORES}}
    for kind, slope in series["gradient"].items():
        numbers[f"gradient left, {kind}"] = slope[-1] / slope[0]
        for curve in TASKS:
            shares = {int(at): mean(seeds) for at, seeds in series[curve][kind].items()}
            numbers |= {f"{curve} {at}, {kind}": share for at, share in shares.items()}
            numbers |= {f"last {curve}, {kind}": shares[max(shares)], f"reach of {curve}, {kind}": reach(shares)}
    return Outcome(answer(numbers, series), table_of(numbers, series), numbers, series)


def reach(shares: dict[int, float]) -> float:
    """The point of a curve up to which all was learned; 0 where not even the first was."""
    failed = [at for at, share in shares.items() if share < LEARNED]
    return float(max((at for at in shares if at < min(failed, default=at + 1)), default=0))


def table_of(numbers: dict[str, float], series: dict[str, Any]) -> Table:
    """For each distance: steps on the way, what arrives of the gradient, right answers; then those by pairs."""
    rows: list[tuple[Cell, ...]] = []
    for at in map(int, series["distance"]["attention"]):
        left = [f"{slope[at - 1] / slope[0]:.1g}" for slope in series["gradient"].values()]
        rows.append((f"{at} row{'s' * (at > 1)} later", "1", str(at), *left, *percents("distance", at, numbers)))
    pairs = list(map(int, series["pairs"]["attention"]))
    rows += [
        (f"one of {at} pairs" if at > 1 else "the only pair", *"-----", *percents("pairs", at, numbers)) for at in pairs
    ]
    heads = [f"{what}, {kind}" for what in ("gradient", "right") for kind in CORES]
    return Table(("asked for", "path, attention", "path, LSTM", *heads), tuple(rows))


def percents(curve: str, at: int, numbers: dict[str, float]) -> list[str]:
    """Right answers of every core."""
    return [f"{numbers[f'{curve} {at}, {kind}']:.0%}" for kind in CORES]


def answer(numbers: dict[str, float], series: dict[str, Any]) -> str:
    """In words."""
    far, many = (list(series[curve]["LSTM"])[-1] for curve in TASKS)
    gone, kept, one = (
        {kind: numbers[f"{key}, {kind}"] for kind in CORES} for key in ("last distance", "last pairs", "pairs 1")
    )
    alone, best = min(one["LSTM"], one["LSTM, open gate"]), max(kept["LSTM"], kept["LSTM, open gate"])
    return (
        f"Asked for {far} rows after it was shown, and never sooner, a key is known in {gone['attention']:.0%} by "
        f"attention, {gone['LSTM']:.0%} by an LSTM, {gone['LSTM, open gate']:.0%} by one whose gate starts open "
        f"(chance {numbers['chance']:.0%}): {lost(gone)}. Where nearer keys are asked for as well, both LSTMs keep "
        f"one pair in at least {alone:.0%}: distance alone {'is no obstacle' if alone >= LEARNED else 'is one'}. "
        f"Of {many} pairs they know {best:.0%} at most, attention {kept['attention']:.0%}."
    )


def lost(gone: dict[str, float]) -> str:
    """What became of the key on the longer path."""
    if gone["attention"] < LEARNED:
        return "not even the short path learned it"
    worst, best = sorted((gone["LSTM"], gone["LSTM, open gate"]))
    if best < LEARNED:
        return "the long path loses it"
    return "an open gate keeps it" if worst < LEARNED else "neither loses it"


EXPERIMENT = Experiment(
    "recall",
    "Does what was shown long ago still reach the answer?",
    ("L2",),
    minutes=3.0,
    run=run,
    draw=draw_recall,
    size=(13.0, 4.8),
)
