"""Arithmetic that is right on paper: overflow, underflow, half precision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..._arrays import library
from ..problem import Array
from ..steps import State, Step, Steps, Weigh
from .registry import makes
from .weights import one_total


@makes("no maximum subtracted", silent=True)
def bare_exponentials(steps: Steps) -> Steps | None:
    """exp(s) / Σ exp(s): ∞ / ∞ for large scores."""
    return one_total(steps, (-1,))


@dataclass(frozen=True)
class OneMaximum:
    """exp(s − max of everything) / Σ: rows far below the maximum are 0 / 0."""

    weigh: Weigh

    def __call__(self, state: State) -> State:
        s = self.weigh.scores(state)
        xp = library(s)
        with xp.quiet():
            e = xp.exp(s - xp.max(s)) * xp.astype(self.weigh(state).weights > 0, s.dtype)
            return replace(state, weights=e / xp.sum(e, axis=-1, keepdims=True))


@makes("one maximum for all rows", silent=True)
def one_maximum(steps: Steps) -> Steps | None:
    """s.max() without an axis."""
    return replace(steps, weigh=OneMaximum(steps.weigh)) if isinstance(steps.weigh, Weigh) else None


@dataclass(frozen=True)
class InHalf:
    """Queries, keys and values are rounded to half precision on their way."""

    step: Step

    def __call__(self, state: State) -> State:
        made = self.step(state)
        return replace(made, q=_rounded(made.q), k=_rounded(made.k), v=_rounded(made.v))


def _rounded(x: Array) -> Any:
    xp = library(x)
    return xp.astype(xp.astype(x, xp.float16), x.dtype)


@makes("low precision inside", silent=True)
def in_half(steps: Steps) -> Steps:
    """A cast to half that nobody asked for."""
    return replace(steps, project=InHalf(steps.project))
