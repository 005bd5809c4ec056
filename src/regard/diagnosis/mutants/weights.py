"""What else is done to scores and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..._arrays import library
from ...algebra.weights import each
from ...attention import Attention
from ..problem import Array
from ..steps import State, Step, Steps, Weigh
from .registry import makes


def _total(w: Array, axes: tuple[int, ...]) -> Array:
    return library(w).sum(w, axis=axes, keepdims=True)


@dataclass(frozen=True)
class OneTotal:
    """exp(s) divided by one total over several axes."""

    weigh: Weigh
    axes: tuple[int, ...]

    def __call__(self, state: State) -> State:
        w = self.weigh(state).weights
        with library(w).quiet():
            return replace(state, weights=w / _total(w, self.axes))


def one_total(steps: Steps, axes: tuple[int, ...]) -> Steps | None:
    """ψ(s) over one total for all of these axes, without a running maximum."""
    formula = steps.formula
    if formula is None or formula.weight.over is None:
        return None
    bare = Attention(score=formula.score, weight=each(formula.weight.psi), mask=formula.mask)
    return replace(steps, weigh=OneTotal(Weigh(bare), axes))


@makes("softmax over all pairs")
def over_a_matrix(steps: Steps) -> Steps | None:
    """All queries of a head share one total."""
    return one_total(steps, (-2, -1))


@makes("softmax over all pairs")
def over_everything(steps: Steps) -> Steps | None:
    """All queries of all heads and texts share one total."""
    return one_total(steps, (0, 1, 2, 3))


@dataclass(frozen=True)
class NotDivided:
    """exp(s − max_j s), and no division: the largest weight of every row is 1."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        w = weighed.weights
        return replace(weighed, weights=w / library(w).max(w, axis=-1, keepdims=True))


@makes("no total")
def not_divided(steps: Steps) -> Steps | None:
    """The maximum is subtracted, and the total forgotten."""
    formula = steps.formula
    return None if formula is None or formula.weight.over is None else replace(steps, weigh=NotDivided(steps.weigh))


@dataclass(frozen=True)
class RowsByColumns:
    """exp(s − max over keys) over a total that runs elsewhere: the maximum does not cancel."""

    weigh: Step
    axes: tuple[int, ...] = (-2,)

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        w = weighed.weights
        e = w / library(w).max(w, axis=-1, keepdims=True)
        return replace(weighed, weights=e / _total(e, self.axes))


@makes("softmax over queries")
def rows_by_columns(steps: Steps) -> Steps | None:
    """The maximum of each row is subtracted, and the total of each column divides."""
    formula = steps.formula
    return None if formula is None or formula.weight.over is None else replace(steps, weigh=RowsByColumns(steps.weigh))


@makes("softmax over all pairs")
def rows_by_everything(steps: Steps) -> Steps | None:
    """The maximum of each row is subtracted, and one total divides all."""
    formula = steps.formula
    if formula is None or formula.weight.over is None:
        return None
    return replace(steps, weigh=RowsByColumns(steps.weigh, (-2, -1)))


@dataclass(frozen=True)
class Twice:
    """softmax of the softmax: rows are nearly uniform."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        e = library(weighed.weights).exp(weighed.weights)
        return replace(weighed, weights=e / _total(e, (-1,)))


@makes("softmax twice")
def softmax_twice(steps: Steps) -> Steps:
    """exp(w) / Σ exp(w)."""
    return replace(steps, weigh=Twice(steps.weigh))


@dataclass(frozen=True)
class Logarithm:
    """log w in place of w."""

    weigh: Step

    def __call__(self, state: State) -> State:
        weighed = self.weigh(state)
        xp = library(weighed.weights)
        with xp.quiet():
            return replace(weighed, weights=xp.log(weighed.weights))


@makes("logarithm of the weights")
def log_softmax(steps: Steps) -> Steps:
    """log_softmax where softmax is meant."""
    return replace(steps, weigh=Logarithm(steps.weigh))


@dataclass(frozen=True)
class ColumnMaximum:
    """exp(s − max over queries) / Σ over keys: the maximum does not cancel."""

    weigh: Weigh

    def __call__(self, state: State) -> State:
        s = self.weigh.scores(state)
        xp = library(s)
        admitted = self._admitted(state, xp)
        e = xp.where(admitted, xp.exp(s - xp.max(s, axis=-2, keepdims=True)), xp.asarray(0.0, dtype=s.dtype))
        return replace(state, weights=e / _total(e, (-1,)))

    def _admitted(self, state: State, xp: Any) -> Array:
        truths = Attention(score=0 * self.weigh.formula.score, weight=each(1), mask=self.weigh.formula.mask)
        return Weigh(truths)(state).weights > 0


@makes("maximum over queries")
def maximum_over_queries(steps: Steps) -> Steps | None:
    """max(axis=0) with sum(axis=−1)."""
    return replace(steps, weigh=ColumnMaximum(steps.weigh)) if isinstance(steps.weigh, Weigh) else None


def mix_transposed(state: State) -> State:
    """y_j = Σ_i w_ij v_i."""
    return replace(state, y=library(state.weights).matrix_transpose(state.weights) @ state.v)


@makes("weights transposed")
def weights_transposed(steps: Steps) -> Steps:
    """wᵀ v in place of w v."""
    return replace(steps, mix=mix_transposed)
