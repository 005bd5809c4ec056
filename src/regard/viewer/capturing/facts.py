"""What is known of a tensor while a module writes its attention out, and how a step changes it.

    q kᵀ  →  · scale  →  + bias  →  masked  →  softmax  →  dropout  →  · v
    Scores  Scores      Scores     Scores     Weights     Weights

A tensor that a step makes of nothing known has no fact. Facts go with their tensors: they are held by weak references.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import torch

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One step of a score: "times", "over", "plus", "admit" with an operand, or a function of regard's by name."""

    name: str
    operand: Any = None  # a number, or a tensor that broadcasts to the scores
    lead: Shape = ()  # the leading axes of the scores then


@dataclass(frozen=True)
class Scores:
    """Scores (…, queries, keys), made of q (…, queries, d) and k (…, keys, d)."""

    q: torch.Tensor
    k: torch.Tensor
    lead: Shape
    steps: tuple[Step, ...] = ()

    def then(self, name: str, operand: Any = None, lead: Shape = ()) -> Scores:
        """The scores after one more step."""
        return replace(self, steps=(*self.steps, Step(name, operand, lead)))


@dataclass(frozen=True)
class Weights:
    """Weights, as softmax gives them along the axis of keys, −1 or −2; their scores where those are known."""

    scores: Scores | None
    axis: int = -1
    clean: torch.Tensor | None = None  # the weights before dropout
    token: object = None  # of the softmax that they come from


@dataclass(frozen=True)
class Features:
    """Entries of vectors, as projections give them: a softmax of these is no attention."""


Fact = Scores | Weights | Features


class Facts:
    """Facts by tensor."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Fact]] = {}

    def of(self, tensor: Any) -> Fact | None:
        """What is known of a tensor."""
        entry = self._known.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def note(self, tensor: Any, fact: Fact | None) -> None:
        """Keep a fact of a tensor, or none."""
        if fact is None or not isinstance(tensor, torch.Tensor):
            self._known.pop(id(tensor), None)
            return
        key = id(tensor)
        known = self._known

        def gone(reference: Any) -> None:
            if key in known and known[key][0] is reference:
                del known[key]

        known[key] = (ref(tensor, gone), fact)


# -- steps ------------------------------------------------------------------------------------------------------


def arithmetic(name: str, fact: Scores, other: Any, swapped: bool, shape: Shape) -> Scores | None:
    """Scores after +, −, · or / with a number or a tensor; swapped: the scores stand second."""
    lead = shape[:-2]
    number = _number(other)
    operand = other if number is None else number
    if number is None and not (isinstance(other, torch.Tensor) and _broadcasts(other, shape)):
        return None
    if name == "mul":
        return fact.then("times", operand, lead)
    if name == "add":
        return fact.then("plus", operand, lead)
    if name == "sub":
        return fact.then("times", -1.0).then("plus", operand, lead) if swapped else fact.then("plus", -operand, lead)
    if name == "div" and not swapped:
        return fact.then("over", number) if number else fact.then("times", 1.0 / operand, lead)
    return None


def masked(fact: Scores, left_out: torch.Tensor, fill: Any, shape: Shape) -> Scores | None:
    """Scores with a fill so low that no weight is left there."""
    number = _number(fill)
    if number is None or number > -1e3 or not _broadcasts(left_out, shape):
        return None
    truths = ~left_out if left_out.dtype == torch.bool else left_out == 0
    return fact.then("admit" if number == -math.inf else "admit finite", truths, shape[:-2])


def reshaped(fact: Fact, before: Shape, after: Shape) -> Fact | None:
    """The fact of the same numbers in another shape: the last two axes of scores and weights stay."""
    if isinstance(fact, Features):
        return fact
    return fact if len(after) >= 2 and before[-2:] == after[-2:] else None


def transposed(fact: Fact, order: list[int]) -> Fact | None:
    """The fact after a permutation of axes: weights may have their last two exchanged."""
    last = len(order) - 1
    if isinstance(fact, Features):
        return fact
    if order == [*range(last - 1), last, last - 1] and isinstance(fact, Weights):
        clean = None if fact.clean is None else fact.clean.transpose(-1, -2)
        return replace(fact, axis=-3 - fact.axis, clean=clean)
    return fact if order == list(range(last + 1)) else None


def _number(value: Any) -> float | None:
    """A number, also one that stands in a tensor of its own."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    alone = isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_meta and value.dtype != torch.bool
    return float(value.detach()) if alone else None


def _broadcasts(tensor: torch.Tensor, shape: Shape) -> bool:
    try:
        return tuple(torch.broadcast_shapes(tuple(tensor.shape), shape)) == shape
    except RuntimeError:
        return False
