"""The smallest set of mistakes that predicts what the target returned.

    observation   a problem, and what came out
    hypothesis    a chain of steps: a right one (a base), with the mutants of none, one, two or three bugs
    explanation   a hypothesis that predicts every observation

Chains share their beginnings, so a step runs once for all hypotheses that agree up to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..algebra.errors import RegardError
from ..algebra.mistakes import MISTAKES
from .mutants import VISIBLE, Mutant
from .problem import Array, Problem
from .steps import State, Step, Steps

FIRST = ("inverted mask", "strict mask", "shifted mask", "query and key exchanged")  # others may take the mask away
FORMULAS = (mistake.name for mistake in MISTAKES if mistake.name in VISIBLE)  # others may take the formula away
NAMES = tuple(dict.fromkeys((*FIRST, *FORMULAS, *VISIBLE)))
"""The order in which several mistakes are made in one chain."""

ENOUGH = 0.5  # at least this share of the entries must be predicted: rows that a mask leaves empty are not


@dataclass(frozen=True, eq=False)
class Observation:
    """What the target returned for a problem, and how exactly that can be told."""

    problem: Problem
    y: Array
    tolerance: float

    def agrees(self, y: Array) -> bool:
        """Whether a prediction is what came out; entries that it leaves open (NaN) may be anything."""
        if y.shape != self.y.shape:
            return False
        told = ~np.isnan(y)
        size = float(np.abs(y[told]).max(initial=0.0))
        if told.mean() < ENOUGH or not np.isfinite(size):
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            return bool(np.abs(y - self.y)[told].max() <= self.tolerance * max(1.0, size))


@dataclass(frozen=True)
class Explanation:
    """A chain that predicts every observation, and the bugs by which it differs from a right one."""

    steps: Steps
    base: Steps
    bugs: tuple[str, ...] = ()


class Search:
    """Hypotheses over one set of observations; what was computed for one serves the others."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.observations = observations
        self._states: dict[tuple[int, tuple[Step, ...]], State | None] = {}

    def explains(self, steps: Steps) -> bool:
        """Whether the chain predicts every observation."""
        return all(self._predicted(steps, number) for number in range(len(self.observations)))

    def first(self, bases: Sequence[Steps], bugs: int, names: Sequence[str] = NAMES) -> Explanation | None:
        """The first hypothesis with so many of these bugs that explains everything."""
        for base in bases:
            for made, steps in variants(base, bugs, names):
                if self.explains(steps):
                    return Explanation(steps, base, made)
        return None

    def others(self, found: Explanation) -> tuple[str, ...]:
        """Further single bugs that are the same function on these observations."""
        same = [names[0] for names, steps in variants(found.base, 1) if self.explains(steps)]
        return tuple(dict.fromkeys(name for name in same if name not in found.bugs))

    def state(self, steps: Steps, number: int = 0) -> State | None:
        """Where the chain ends for one observation; None where shapes do not let it be run."""
        return self._state(tuple(steps), number)

    def _predicted(self, steps: Steps, number: int) -> bool:
        state = self.state(steps, number)
        return state is not None and self.observations[number].agrees(np.asarray(state.y))

    def _state(self, steps: tuple[Step, ...], number: int) -> State | None:
        if not steps:
            return State(self.observations[number].problem)
        key = number, steps
        if key not in self._states:
            self._states[key] = _after(steps[-1], self._state(steps[:-1], number))
        return self._states[key]


def variants(base: Steps, bugs: int, names: Sequence[str] = NAMES) -> Iterator[tuple[tuple[str, ...], Steps]]:
    """The base with every choice of so many bugs made in it, each in every form it is met in."""
    for chosen in combinations(names, bugs):
        for steps in _made([base], chosen):
            yield chosen, steps


def _made(chains: Iterable[Steps], names: Sequence[str]) -> Iterator[Steps]:
    if not names:
        yield from chains
        return
    for chain in chains:
        yield from _made((made for mutant in VISIBLE[names[0]] if (made := _changed(chain, mutant))), names[1:])


def _changed(chain: Steps, mutant: Mutant) -> Steps | None:
    made = mutant(chain)
    return None if made is None or made == chain else made


def _after(step: Step, state: State | None) -> State | None:
    """The next state; None where shapes do not let the step be done. Rows without a weight are left open (NaN)."""
    if state is None:
        return None
    try:
        with np.errstate(all="ignore"):
            made = step(state)
    except (RegardError, ValueError, IndexError, KeyError, ZeroDivisionError, TypeError):
        return None
    return _open(made) if made.weights is not None and state.weights is None else made


def _open(state: State) -> State:
    w = np.asarray(state.weights)
    empty = ~(w != 0).any(axis=-1, keepdims=True)
    return replace(state, weights=np.where(empty, np.nan, w)) if empty.any() else state
