"""Claims about vision transformers: who reads whom, and what the answer is read from."""

from __future__ import annotations

from ...experiments.store import outcome
from ..plots import bars
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "K4",
    "A",
    "Relevance has a direction: a boat needs the water to be understood, the water needs the boat less.",
    Verdict.ILLUSTRATION,
    needs=("torch", "sklearn"),
)
def boat_and_water() -> Measurements:
    """lift(a → b) = mean over i in a of Σ_{j in b} w_ij / (share of b); 1 by chance."""
    numbers = outcome("direction").numbers
    there, back = numbers["hull → ground: after"], numbers["ground → hull: after"]
    told = f"{there:.2f} against {back:.2f} times chance; {numbers['seeds']:.0f} seeds"
    yield Measured(
        there / back, "how much more a hull reads the ground than the ground the hull", at_least=1.5, detail=told
    )
    before = numbers["hull → ground: before"] / numbers["ground → hull: before"]
    yield Measured(before, "the same before training", at_least=0.9, at_most=1.1)
    for name, low, high in (("hull → ground", 0.2, None), ("ground → hull", None, 0.02)):
        lost = numbers[f"{name}: right"] - numbers[f"{name}: right without"]
        yield Measured(lost, f"right names of the readers lost without {name}", at_least=low, at_most=high)


@claim(
    "T4",
    "D",
    "A vision transformer needs a class token to read its answer from.",
    Verdict.WRONG,
    needs=("torch", "sklearn"),
)
def class_token_or_mean() -> Measurements:
    """Right answers from y_class, and from mean_i y_i, with everything else the same."""
    numbers = outcome("pooling").numbers
    token, mean = numbers["class, best"], numbers["mean, best"]
    told = (
        f"class token {100 * token:.1f} %, mean {100 * mean:.1f} %, seeds apart by {100 * numbers['spread']:.1f} points"
    )
    yield Measured(mean, "held-out digits told right from the mean of the patches", at_least=0.9, detail=told)
    yield Measured(token, "held-out digits told right from a class token", at_least=0.9)
    yield Measured(abs(token - mean), "difference of the two at their best rates", at_most=0.04)
    told = "Held-out digits told right. Nothing lies between the two that another seed would not do as well."
    yield Figure(bars({"class token": token, "mean of patches": mean}, {"mean of patches"}, most=1), told)
