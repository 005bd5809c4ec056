"""The smallest input on which the target and the right implementation part, as two matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .mutants import MUTANTS
from .problem import Array, Problem
from .report import Example
from .search import Observation, Search
from .steps import State, Steps
from .subject import Subject

LENGTHS = (2, 3, 4, 5)  # one position alone shows little
APART = 1e-3
SHOWN = 12  # columns


def smallest(subject: Subject, right: Steps) -> Example | None:
    """Yours is what the target itself returned."""
    for problem in _problems(subject):
        y, state = subject.y(problem, "looking for the smallest example"), _state(right, problem)
        if y is None or state is None or state.y.shape != y.shape:
            continue
        if (found := _compared(subject, problem, y, np.asarray(state.y))) is not None:
            return found
    return None


def paired(subject: Subject, problem: Problem, right: Steps | None) -> Example | None:
    """What the target returns for one problem beside what is right; rows that read nothing are zeros."""
    shown = _seen(problem) if problem.form == "vectors" and problem["v"].shape[-1] == problem.keys else problem
    y, state = subject.y(shown, "a small example"), _state(right, shown)
    if y is None or state is None or state.y.shape != y.shape:
        return None
    return _compared(subject, shown, y, np.nan_to_num(np.asarray(state.y)))


def of_one(subject: Subject, base: Steps, name: str) -> Example | None:
    """Yours is what this mistake alone would return."""
    for mutant in MUTANTS.get(name, ()):
        wrong = mutant(base)
        if wrong is not None and (shown := weights_of(subject, base, wrong)) is not None:
            return _alone(shown)
        for problem in _problems(subject) if wrong is not None else ():
            mine, right = _state(wrong, problem), _state(base, problem)
            if mine is None or right is None or mine.y.shape != right.y.shape:
                continue
            if (found := _compared(subject, problem, np.asarray(mine.y), np.asarray(right.y))) is not None:
                return _alone(found)
    return None


def _alone(example: Example) -> Example:
    return replace(example, where=", ".join(filter(None, (example.where, "this mistake alone"))))


def weights_of(subject: Subject, base: Steps, wrong: Steps) -> Example | None:
    """The weights of the chain that predicts the target beside the right ones, where inputs hide them."""
    for problem in _problems(subject):
        mine, right = _state(wrong, problem), _state(base, problem)
        if mine is None or right is None or mine.weights is None or mine.weights.shape != right.weights.shape:
            continue
        found = _matrix(np.asarray(mine.weights), np.asarray(right.weights))
        if found is not None:
            yours, expected, where = found
            return Example(_given(subject, problem), "weights", yours, expected, where)
    return None


def _state(steps: Steps | None, problem: Problem) -> State | None:
    if steps is None:
        return None
    state = Search([Observation(problem, np.empty(0), 0.0)]).state(steps)
    return None if state is None or state.y is None else state


def _problems(subject: Subject) -> Iterator[Problem]:
    """From one position of one head on; numbers with one digit, values that show the weights where they may."""
    reading = subject.reading
    for n in LENGTHS:
        if reading.form == "inputs":
            if n <= reading.sizes.queries:
                yield _rounded(reading.problem(51, queries=n, keys=n, batch=1))
                yield _rounded(reading.problem(51, queries=n, keys=n))
            continue
        for heads, batch in _counts(reading.layout.has("h"), reading.layout.has("b")):
            sizes = {"queries": n, "keys": n, "heads": heads, "groups": heads, "batch": batch}
            yield from (_seen(_rounded(reading.problem(51, width=w, value_width=n, **sizes))) for w in (1, 2, n))
            yield _rounded(reading.problem(51, **sizes))


def _counts(heads: bool, batch: bool) -> list[tuple[int, int]]:
    counts = [(1, 1)]
    if heads:
        counts.append((2, 1))
    if batch:
        counts.append((1, 2))
    return counts


def _rounded(problem: Problem) -> Problem:
    made = {id(value): np.round(value, 1) for value in problem.arrays.values()}
    return problem.but(**{name: made[id(value)] for name, value in problem.arrays.items()})


def _seen(problem: Problem) -> Problem:
    """With the identity for values, outputs are weights."""
    eye = np.broadcast_to(np.eye(problem.keys), problem["v"].shape)
    return problem.but(v=np.array(eye))


def _compared(subject: Subject, problem: Problem, y: Array, right: Array) -> Example | None:
    found = _matrix(y, right)
    if found is None:
        return None
    yours, expected, where = found
    return Example(_given(subject, problem), "weights" if _shows_weights(problem) else "output", yours, expected, where)


def _shows_weights(problem: Problem) -> bool:
    if problem.form != "vectors":
        return False
    v = problem["v"]
    return bool(v.shape[-1] == v.shape[-2] and (v == np.eye(v.shape[-1])).all())


def _matrix(yours: Array, right: Array) -> tuple[Array, Array, str] | None:
    """The first matrix of a stack that differs, and where it is."""
    told = ~np.isnan(right)
    with np.errstate(invalid="ignore"):
        apart = told & ~(np.abs(yours - right) <= APART * (1 + np.abs(right)))
    if not apart.any():
        return None
    lead = yours.shape[:-2]
    place = next(index for index in np.ndindex(*lead) if apart[index].any())
    names = ("batch", "head")[: len(place)] if yours.ndim == 4 else ("batch",)[: len(place)]
    where = ", ".join(f"{name} {at}" for name, at, size in zip(names, place, lead, strict=False) if size > 1)
    return yours[place][:, :SHOWN], right[place][:, :SHOWN], where


def _given(subject: Subject, problem: Problem) -> dict[str, Any]:
    call = subject.reading.call(problem)
    return {a.name: np.asarray(a.value) for a in call.arguments if not a.plain and np.ndim(a.value) >= 1}
