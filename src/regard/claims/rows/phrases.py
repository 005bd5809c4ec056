"""Claims about matrices that are learned: what they make a word read, and that NumPy and PyTorch learn the same."""

from __future__ import annotations

from ...experiments.store import outcome
from ..record import Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "P5",
    "AC",
    "Before training the weights of “cat” mean nothing; after it, in wider vectors, it reads the word that decides.",
    Verdict.HOLDS,
    needs=("torch",),
)
def learned_to_read() -> Measurements:
    """w_ij on the word j that decides what follows, i at “cat”; and the right answers with and without that weight."""
    numbers = outcome("phrases").numbers
    after, seeds = numbers["after: weight, cat"], f"mean of {numbers['seeds']:.0f} seeds, on phrases never learned from"
    yield Measured(after, "weight of “cat” on the deciding word after training", at_least=0.7, detail=seeds)
    lift = numbers["before: weight, cat"] / numbers["share"]
    yield Measured(lift, "the same before training, in equal shares", at_least=0.9, at_most=1.1)
    full, cut, other = (
        numbers[f"{name}: right, cat"] for name in ("after", "without the deciding word", "without one other word")
    )
    yield Measured(full, "right answers after training", at_least=0.9)
    yield Measured(cut, "right answers without that weight, where a guess has 1/3", at_most=0.45)
    yield Measured(full - other, "what is lost without the weight of another word", at_most=0.05)
    alike = numbers["equal weights: right, cat"]
    yield Measured(alike, "right answers of readers trained with equal weights, at best 2/3", at_most=0.7)
    yield Measured(
        numbers["three most"], "of the text's three phrases, those where it reads that word most", at_least=3
    )


@claim(
    "I3",
    "A",
    "W_Q, W_K and W_V start at random and are learned end to end, in NumPy alone as in PyTorch.",
    Verdict.HOLDS,
    needs=("torch",),
)
def learned_twice() -> Measurements:
    """max_t |L_t(NumPy) − L_t(PyTorch)| / L_t, over all steps of descent and all seeds."""
    numbers = outcome("toy").numbers
    seen = f"{numbers['steps']:.0f} steps, {numbers['seeds']:.0f} seeds, float64"
    yield Measured(numbers["gap"], "largest difference of the two losses, relative", at_most=1e-9, detail=seen)
    yield Measured(numbers["matrices"], "largest difference of the matrices at the end, relative", at_most=1e-9)
    for name in ("numpy", "torch"):
        fall = numbers[f"{name}: loss after"] / numbers["chance"]
        yield Measured(fall, f"loss on new parties in shares of that by chance, {name}", at_most=0.05)
