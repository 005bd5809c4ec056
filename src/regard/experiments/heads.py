"""Does a second notion of relevance need a second head?

    y = W_o [ softmax(q_1 k_1ᵀ / √w) v_1, …, softmax(q_H k_Hᵀ / √w) v_H ]        w = D / H: for any H as many parameters

Each row fetches the values of two partners. A head that reads one of them, or both alike, cannot say which is whose:
on average it is right in (1 + 1/V) / 2. Trained: attention alone, and attention with a feed-forward behind it.
Checked: heads side by side, one product for all, are what a loop over the heads gives.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.attention import SelfAttention
from ..nn.attention import heads as in_heads
from ..nn.norms import LayerNorm
from ..nn.stacks import Encoder
from ..nn.style import Style
from ..train.fitting import fit
from ..train.optimiser import AdamW
from ..train.schedule import Schedule
from .distance_drawing import draw_heads
from .pairs import HELD_OUT, count
from .partners import VALUES, Matcher, Partners
from .record import Cell, Experiment, Outcome, Scale, Table, Tell

DIM = 64
HEADS = (1, 2, 4, 8)
SEEDS, STEPS, RATE = 3, 300, 1e-2
CEILING = (1 + 1 / VALUES) / 2  # of a head that reads one partner, or both alike
LEARNED = 0.9

CORES: dict[str, Callable[[int], nn.Module]] = {
    "attention alone": lambda heads: nn.Sequential(LayerNorm(DIM), SelfAttention(DIM, heads)),
    "with feed-forward": lambda heads: Encoder(DIM, depth=1, heads=heads, style=Style(hidden=2 * DIM)),
}


def beginning(kind: str, heads: int, seed: int) -> Matcher:
    """A model before training."""
    torch.manual_seed(seed)
    return Matcher(CORES[kind](heads), DIM)


def learned(kind: str, heads: int, steps: int, seed: int) -> dict[str, Any]:
    """Measures at the end, the loss of each step, and what the heads of attention alone read."""
    model = beginning(kind, heads, seed)
    history = fit(model, Partners(seed), Schedule(steps, RATE), optimiser=AdamW(decay=0.0), seed=seed)
    read = {"read": reading(model, seed)} if kind == "attention alone" else {}
    return {**history.last, "losses": history.losses, **read}


def reading(model: Matcher, seed: int) -> list[list[float]]:
    """How much each head reads of the first partner, of the second, and of all other rows."""
    batch = Partners(seed).sequences(HELD_OUT, 64)
    norm, layer = model.core
    x = norm(model.rows(batch))
    w = layer.attention.weights(in_heads(layer.query(x), layer.width), in_heads(layer.key(x), layer.width))
    of_partners = w.detach().gather(3, batch["places"][:, None].expand(-1, w.shape[1], -1, -1)).mean(dim=(0, 2))
    return [[*map(float, row), 1 - float(row.sum())] for row in of_partners]


def looped(layer: SelfAttention, x: Tensor) -> Tensor:
    """The layer head by head: each with its own rows of W_q, W_k, W_v and its own columns of W_o."""
    y = layer.out.bias.expand_as(x)
    for rows in torch.arange(layer.heads * layer.width).split(layer.width):
        q, k, v = (x @ part.weight[rows].T + part.bias[rows] for part in (layer.query, layer.key, layer.value))
        y = y + layer.attention(q, k, v) @ layer.out.weight[:, rows].T
    return y


def difference(seed: int = 0) -> float:
    """Largest |heads at once − heads in a loop|, in float64."""
    torch.manual_seed(seed)
    layer, x = SelfAttention(60, 12).double(), torch.randn(3, 37, 60, dtype=torch.float64)
    return float((layer(x) - looped(layer, x)).detach().abs().max())


# -- all of it -------------------------------------------------------------------------------------------------


def run(scale: Scale, tell: Tell) -> Outcome:
    """Train every number of heads, alone and with a feed-forward."""
    small = scale.share < 0.1
    seeds = range(scale.seed, scale.seed + (1 if small else SEEDS))
    series: dict[str, Any] = {kind: {} for kind in CORES}
    trainings = [(kind, heads, seed) for kind in CORES for heads in HEADS[: 2 if small else None] for seed in seeds]
    for done, (kind, heads, seed) in enumerate(trainings):
        tell(f"{kind}, {heads} heads", done / len(trainings))
        series[kind].setdefault(str(heads), []).append(learned(kind, heads, scale.steps(STEPS), seed))
    return outcome_of(series | {"difference": difference()})


def outcome_of(series: dict[str, Any]) -> Outcome:
    """The answer, made of what was measured."""
    numbers = {"ceiling": CEILING, "chance": 1 / VALUES, "difference": series["difference"]}
    rows: list[tuple[Cell, ...]] = []
    for kind in CORES:
        for heads, seeds in series[kind].items():
            found = {what: mean(one[what] for one in seeds) for what in ("right", "both", "loss")}
            found |= {
                "parameters": float(count(CORES[kind](int(heads)))),
                "steps": mean(until(one["losses"]) for one in seeds),
            }
            numbers |= {f"{what}, {heads} heads, {kind}": value for what, value in found.items()}
            least, of = min(one["right"] for one in seeds), mean(one["right"] >= LEARNED for one in seeds)
            numbers |= {f"least right, {heads} heads, {kind}": least, f"learned, {heads} heads, {kind}": of}
            shown = (f"{found['right']:.1%}", f"{found['both']:.1%}", f"{of:.0%}", f"{found['steps']:.0f}")
            rows.append((kind, int(heads), int(found["parameters"]), *shown))
    columns = (
        "model",
        "heads",
        "parameters",
        "right answers",
        "both right",
        "trainings that learned it",
        "steps to loss ½",
    )
    return Outcome(answer(numbers), Table(columns, tuple(rows)), numbers, series)


def until(losses: list[float], least: float = 0.5) -> float:
    """The first step whose loss is at most `least`; all of them if none."""
    return float(next((at + 1 for at, loss in enumerate(losses) if loss <= least), len(losses)))


def answer(numbers: dict[str, float]) -> str:
    """In words."""
    one, two = (numbers[f"right, {heads} heads, attention alone"] for heads in (1, 2))
    needs = "two notions need two heads" if one < LEARNED <= two else "the second head makes no difference of kind"
    single, double = (numbers[f"learned, {heads} heads, with feed-forward"] for heads in (1, 2))
    return (
        f"Attention alone is right in {one:.0%} with one head (reading one partner, or both alike, gives "
        f"{numbers['ceiling']:.0%}) and in {two:.0%} with two, with as many parameters: {needs}. With a feed-forward "
        f"behind it one head learns it in {single:.0%} of the trainings, two in {double:.0%}. "
        f"All heads at once differ from a loop over them by {numbers['difference']:.0e}."
    )


EXPERIMENT = Experiment(
    "heads",
    "Does a second notion of relevance need a second head?",
    ("T2",),
    minutes=1.0,
    run=run,
    draw=draw_heads,
    size=(13.0, 4.8),
)
