"""Masks that reach the wrong pairs because of their shape, and rows that they leave empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..._arrays import library
from ..problem import Array, Problem
from ..steps import State, Step, Steps, Weigh
from .registry import makes


@dataclass(frozen=True)
class UpperLeft(Weigh):
    """Queries count from 0, though they are the last rows of the keys."""

    def start(self, problem: Problem) -> int | None:
        return 0


@dataclass(frozen=True)
class OnQueries(Weigh):
    """Padding hides rows of the result, and no key."""

    def admitted(self, problem: Problem) -> Array:
        if library(problem.mask).all(problem.mask):
            return problem.mask
        if not is_padding(problem) or problem.queries != problem.keys:
            raise ValueError("a padding mask over as many queries as keys is needed")
        return _transposed(problem.mask)


@dataclass(frozen=True)
class Transposed(Weigh):
    """The given mask with queries and keys exchanged."""

    def admitted(self, problem: Problem) -> Array:
        if library(problem.mask).all(problem.mask):
            return problem.mask
        if is_padding(problem) or problem.queries != problem.keys:
            raise ValueError("a mask of pairs over as many queries as keys is needed")
        return _transposed(problem.mask)


@dataclass(frozen=True)
class ByAccident(Weigh):
    """A (batch, n) padding mask that broadcasts as (n, n): text b hides keys from query b of every text."""

    def admitted(self, problem: Problem) -> Array:
        mask: Array = problem.mask
        xp = library(mask)
        if xp.all(mask):
            return mask
        if not is_padding(problem) or problem.batch != problem.queries:
            raise ValueError("a padding mask over as many texts as queries is needed")
        return xp.broadcast_to(mask[None, :, 0], mask.shape)


@dataclass(frozen=True)
class OfAnotherText(Weigh):
    """Heads are folded into the batch, and the mask is repeated in another order than they are."""

    heads_first: bool = False

    def admitted(self, problem: Problem) -> Array:
        mask: Array = problem.mask
        batch, heads = problem.batch, problem.heads
        rows = [
            (h * batch + b) // heads if self.heads_first else (b * heads + h) % batch
            for b in range(batch)
            for h in range(heads)
        ]
        return library(mask).stack([mask[row] for row in rows]).reshape(batch, heads, *mask.shape[1:])


@dataclass(frozen=True)
class OfAnotherTextHeadsFirst(OfAnotherText):
    """The same, where heads come before texts."""

    heads_first: bool = True


def is_padding(problem: Problem) -> bool:
    """Whether the mask says the same of a key in every row."""
    mask = problem.mask
    return mask is not None and bool(library(mask).all(mask == mask[:, :1]))


def _transposed(mask: Array) -> Array:
    return library(mask).matrix_transpose(mask)


def _weighing(kind: type[Weigh], reads: Callable[[Weigh], bool]) -> Callable[[Steps], Steps | None]:
    """A mutant of chains whose formula has such a mask, and is still weighed as it should be."""

    def mutant(steps: Steps) -> Steps | None:
        right = steps.weigh
        if type(right) is not Weigh or not reads(right):
            return None
        return replace(steps, weigh=kind(right.formula))

    return mutant


def _reads_given(weigh: Weigh) -> bool:
    return "mask" in weigh.formula.ranks


def _reads_place(weigh: Weigh) -> bool:
    return weigh.formula.uses("i")


makes("mask in the wrong corner")(_weighing(UpperLeft, _reads_place))
makes("padding on queries")(_weighing(OnQueries, _reads_given))
makes("query and key exchanged")(_weighing(Transposed, _reads_given))
makes("mask of another text")(_weighing(OfAnotherText, _reads_given))
makes("mask of another text")(_weighing(OfAnotherTextHeadsFirst, _reads_given))
makes("mask broadcast by accident", silent=True)(_weighing(ByAccident, _reads_given))


@dataclass(frozen=True)
class EmptyRowsNaN:
    """0 / 0 in rows that the mask leaves empty."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        w = weighed.weights
        xp = library(w)
        empty = xp.all(w == 0, axis=-1, keepdims=True)
        return replace(weighed, weights=xp.where(empty, xp.asarray(float("nan"), dtype=w.dtype), w))


@makes("empty rows are NaN", silent=True)
def empty_rows_are_nan(steps: Steps) -> Steps:
    """softmax over −∞ alone."""
    return replace(steps, weigh=EmptyRowsNaN(steps.weigh))
