"""Rotary positions on the wrong vectors or with two ways to pair features, and keys kept for later calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._arrays import library
from ..problem import Array
from ..steps import State, Step, Steps, Turn, joined
from .registry import makes


def _turning(change: Callable[[Turn], Step]) -> Callable[[Steps], Steps | None]:
    """A mutant of chains that turn queries and keys."""
    return lambda steps: replace(steps, place=change(steps.place)) if isinstance(steps.place, Turn) else None


@dataclass(frozen=True)
class TurnAll:
    """Values are turned with the keys."""

    turn: Turn

    def __call__(self, state: State) -> State:
        return replace(self.turn(state), v=self.turn.rotary.turn(state.v))


@dataclass(frozen=True)
class TurnKeys:
    """Queries stay as they are."""

    turn: Turn

    def __call__(self, state: State) -> State:
        return replace(self.turn(state), q=state.q)


@dataclass(frozen=True)
class TurnQueries:
    """Keys stay as they are."""

    turn: Turn

    def __call__(self, state: State) -> State:
        return replace(self.turn(state), k=state.k)


@dataclass(frozen=True)
class TurnApart:
    """Keys are paired the other way than queries."""

    turn: Turn

    def __call__(self, state: State) -> State:
        return replace(self.turn(state), k=self.turn.rotary.other.turn(state.k))


@dataclass(frozen=True)
class TurnMixed:
    """Angles laid out for one way of pairing features, rotation done by the other."""

    turn: Turn

    def __call__(self, state: State) -> State:
        p = state.problem
        return replace(state, q=self._turned(state.q, p.first), k=self._turned(state.k, 0))

    def _turned(self, x: Array, start: int) -> Array:
        rotary, xp = self.turn.rotary, library(x)
        width = int(x.shape[-1])
        frequencies = np.asarray(rotary.frequencies(width))
        halves = rotary.pairs == "halves"
        laid = np.repeat(frequencies, 2) if halves else np.tile(frequencies, 2)
        angles = (start + np.arange(x.shape[-2]))[:, None] * laid
        cos, sin = (xp.asarray(f(angles), dtype=x.dtype) for f in (np.cos, np.sin))
        return x * cos + _quarter_turn(x, halves) * sin


def _quarter_turn(x: Array, halves: bool) -> Array:
    """(a, b) → (−b, a) of every pair."""
    xp, width = library(x), int(x.shape[-1])
    if halves:
        return xp.concat([-x[..., width // 2 :], x[..., : width // 2]], axis=-1)
    return xp.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)


for _name, _change in (
    ("values rotated", TurnAll),
    ("keys rotated alone", TurnKeys),
    ("queries rotated alone", TurnQueries),
    ("pairs of two kinds", TurnApart),
    ("pairs of two kinds", TurnMixed),
):
    makes(_name)(_turning(_change))


@dataclass(frozen=True)
class TurnFrom:
    """New queries and keys stand at the wrong place behind kept keys: moved along, or counted from 0 again."""

    turn: Turn
    moved: int | None  # None: from 0 again

    def __call__(self, state: State) -> State:
        rotary, first = self.turn.rotary, state.problem.first
        if not first:
            return self.turn(state)
        at = 0 if self.moved is None else first + self.moved
        old, new = state.k[..., :first, :], state.k[..., first:, :]
        k = library(state.k).concat([rotary.turn(old), rotary.turn(new, at)], axis=-2)
        return replace(state, q=rotary.turn(state.q, at), k=k)


def _from_zero(turn: Turn) -> Step:
    return TurnFrom(turn, None)


def _one_too_far(turn: Turn) -> Step:
    return TurnFrom(turn, 1)


def _one_too_few(turn: Turn) -> Step:
    return TurnFrom(turn, -1)


makes("positions not moved on", silent=True)(_turning(_from_zero))
makes("position off by one after prefill", silent=True)(_turning(_one_too_far))
makes("position off by one after prefill", silent=True)(_turning(_one_too_few))


def on_heads(state: State) -> State:
    """Kept keys join as further heads."""
    return joined(state, axis=1)


def on_width(state: State) -> State:
    """Kept keys join as further features."""
    return joined(state, axis=-1)


makes("cache on the wrong axis", silent=True)(lambda steps: replace(steps, remember=on_heads))
makes("cache on the wrong axis", silent=True)(lambda steps: replace(steps, remember=on_width))
