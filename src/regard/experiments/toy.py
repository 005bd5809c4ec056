"""The same lesson twice: W_Q, W_K and W_V learned with NumPy alone, and with PyTorch.

gap = max_t |L_t(NumPy) − L_t(PyTorch)| / L_t(NumPy)

NumPy descends by the derivative of the algebra, PyTorch by its own. Neither knows of the other; each draws its parties
from the same seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..train.toy.numpy_lesson import learn
from ..train.toy.record import Learned, apart
from ..train.toy.torch_lesson import learn_with_torch
from .picture import COLOURS
from .record import Experiment, Outcome, Scale, Table, Tell

STEPS, SEEDS = 400, 3
AGREED = 1e-6


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both lessons for every seed."""
    steps, pairs = scale.steps(STEPS), []
    seeds = range(scale.seed * SEEDS, scale.seed * SEEDS + scale.steps(SEEDS, 1))
    for at, seed in enumerate(seeds):
        tell(f"seed {seed}, NumPy", at / len(seeds))
        ours = learn(steps=steps, seed=seed)
        tell(f"seed {seed}, PyTorch", (at + 0.5) / len(seeds))
        pairs.append((ours, learn_with_torch(steps=steps, seed=seed)))
    return outcome(pairs)


def matrix_gap(ours: Learned, theirs: Learned) -> float:
    """The largest difference of an entry of the three matrices at the end, relative to the largest entry."""
    pairs = list(zip(ours.after, theirs.after, strict=True))
    return float(max(np.abs(one - other).max() for one, other in pairs) / max(np.abs(one).max() for one, _ in pairs))


def outcome(pairs: list[tuple[Learned, Learned]]) -> Outcome:
    """The worst gaps over seeds, and what was learned."""
    chance = pairs[0][0].task.chance
    numbers = {"chance": chance, "seeds": float(len(pairs)), "steps": float(len(pairs[0][0].losses))}
    numbers["gap"] = max(apart(*pair) for pair in pairs)
    numbers["matrices"] = max(matrix_gap(*pair) for pair in pairs)
    for name, which in (("numpy", 0), ("torch", 1)):
        reached = [(pair[which].reached(pair[which].before), pair[which].reached()) for pair in pairs]
        for when, found in zip(("before", "after"), zip(*reached, strict=True), strict=True):
            numbers[f"{name}: loss {when}"] = float(np.mean([one.loss for one in found]))
            numbers[f"{name}: found {when}"] = float(np.mean([one.found for one in found]))
    ours, theirs = pairs[0]
    series = {"numpy": ours.losses.tolist(), "torch": theirs.losses.tolist()}
    return Outcome(says(numbers), _table(numbers), numbers, series)


def _table(numbers: dict[str, float]) -> Table:
    columns = ("learned with", "loss before", "loss after", "partner found before, %", "partner found after, %")
    rows = []
    for name, shown in (("numpy", "NumPy alone"), ("torch", "PyTorch")):
        losses = [f"{numbers[f'{name}: loss {when}']:.4f}" for when in ("before", "after")]
        found = [f"{100 * numbers[f'{name}: found {when}']:.1f}" for when in ("before", "after")]
        rows.append((shown, *losses, *found))
    return Table(columns, tuple(rows))


def says(numbers: dict[str, float]) -> str:
    """The answer."""
    same = "the same curve" if numbers["gap"] < AGREED else "not the same curve"
    able = numbers["numpy: loss after"] < 0.1 * numbers["chance"]
    learned = "learn whom to ask" if able else "have not learned whom to ask"
    return (
        f"Over {numbers['steps']:.0f} steps the two losses differ by {numbers['gap']:.0e} of their size at most, the "
        f"matrices at the end by {numbers['matrices']:.0e}: {same}. They {learned}: on new parties "
        f"{100 * numbers['numpy: found before']:.0f} % of the guests read the right one most before, "
        f"{100 * numbers['numpy: found after']:.0f} % after."
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Both curves, one upon the other; and what lies between them."""
    losses, gaps = figure.subplots(1, 2, width_ratios=(1.25, 1))
    ours, theirs = (np.array(outcome.series[name]) for name in ("numpy", "torch"))
    chance = outcome.numbers["chance"]
    losses.semilogy(ours, color=COLOURS[0], lw=7, alpha=0.35, label="NumPy alone")
    losses.semilogy(theirs, color=COLOURS[1], lw=1.6, label="PyTorch")
    losses.axhline(chance, color="#555555", ls=":", lw=1.2)
    losses.text(len(ours), chance * 1.12, "all guests read alike", ha="right", color="#555555", fontsize=10)
    losses.set(xlabel="step", ylabel="loss, squared distance of colours", title="One lesson, learned twice")
    losses.legend(loc="lower left", fontsize=12)
    between = np.maximum(np.abs(ours - theirs) / ours, 1e-17)
    gaps.semilogy(between, color=COLOURS[3], lw=1.6)
    gaps.axhline(2.0**-52, color="#555555", ls=":", lw=1.2)
    gaps.text(len(ours), 1e-13, "dotted: one rounding of float64", ha="right", color="#555555", fontsize=10)
    gaps.set(
        xlabel="step",
        ylabel="difference, relative to the loss",
        title="What lies between the curves",
        ylim=(1e-17, 1e-4),
    )


EXPERIMENT = Experiment(
    "toy",
    "Do NumPy and PyTorch learn the same three matrices?",
    ("I3",),
    0.2,
    run,
    draw,
)
