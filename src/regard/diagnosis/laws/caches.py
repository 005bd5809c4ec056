"""The law of caches: a text in pieces, with keys and values kept, gives what the whole text gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..calling import Decode, Outcome
from ..mutants import MUTANTS
from ..problem import Problem
from ..reading import Reading
from ..search import Observation, Search
from ..signature import Parameter
from ..steps import Steps
from .base import UNKNOWN, Examination, Suspicion, Verdict

PIECES = ((3, 4, 5), (2, 5))
SIZES_DIFFER = re.compile(r"size|shape|dimension|concat|cat\(|must match|broadcast|mismatch", re.IGNORECASE)
CACHED = ("cache", "use_cache", "start")
LAW = "pieces with a cache are the whole"


def in_pieces(exam: Examination) -> Iterator[Verdict]:
    """Tried where the target takes a cache, or says where a piece begins."""
    asked = [one for one in exam.description.parameters if one.role in CACHED]
    if asked and exam.subject.reading.shared | exam.vectors:
        yield _tried(exam, asked)


def _tried(exam: Examination, asked: list[Parameter]) -> Verdict:
    reading = _with(exam.subject.reading, asked)
    problem = reading.problem(41)
    whole = exam.subject.observed(problem, "the whole text")
    if whole is None or exam.subject.random:
        return Verdict(LAW, None, "the whole text failed")
    for ends in PIECES:
        outcomes = _decoded(exam, reading, problem, asked, ends)
        verdict = _compared(exam, reading, problem, whole, outcomes, ends)
        if verdict is not None:
            return verdict
    return Verdict(LAW, True, f"pieces {' and '.join(map(_lengths, PIECES))}: right")


def _with(reading: Reading, asked: list[Parameter]) -> Reading:
    """The reading with a cache asked for."""
    taken = (*reading.taken, *(one for one in asked if one not in reading.taken))
    said = {one.role: {"cache": None, "use_cache": True, "start": 0}[one.role] for one in asked}
    return replace(reading, taken=taken).but(**said)


def _decoded(
    exam: Examination, reading: Reading, problem: Problem, asked: list[Parameter], ends: tuple[int, ...]
) -> list[Outcome]:
    call = reading.call(problem, "the call in pieces, with a cache")
    names = {one.role: one.name for one in asked}
    sliced = frozenset(one.name for one in reading.taken if one.role in ("q", "k", "v", "x"))
    axis = reading.layout.axes.index("n")
    job = Decode(call, axis, sliced, ends, names.get("cache", ""), names.get("start", ""))
    found: list[Outcome] = exam.subject.runner.ask(job)
    return found


def _compared(
    exam: Examination,
    reading: Reading,
    problem: Problem,
    whole: Observation,
    outcomes: list[Outcome],
    ends: tuple[int, ...],
) -> Verdict | None:
    """What went wrong in the first piece that differs; None where none does."""
    for (first, last), outcome in zip(zip((0, *ends), ends, strict=False), outcomes, strict=False):
        if outcome.error:
            return _failed(outcome, first)
        piece = _part(problem, first, last)
        y = next((made for _, raw in outcome.arrays if (made := reading.canonical(raw, piece)) is not None), None)
        if y is None:
            return Verdict(LAW, None, "a piece has another shape")
        if exam.differs(y, whole.y[..., first:last, :], times=2):
            return _explained(exam, piece, y, ends, first) if first else Verdict(LAW, None, "the first piece differs")
    return None


def _failed(outcome: Outcome, first: int) -> Verdict:
    if not first:
        return Verdict(LAW, None, f"the call fails with a cache: {outcome.kind}: {outcome.error[:100]}")
    evidence = f"the call after the first {first} positions fails: {outcome.kind}: {outcome.error[:140]}"
    name = "cache on the wrong axis" if SIZES_DIFFER.search(outcome.error) else UNKNOWN
    return Verdict(LAW, False, evidence, (Suspicion(name, evidence),))


def _part(problem: Problem, first: int, last: int) -> Problem:
    """The rows of one piece as queries, with all keys up to its end."""
    if problem.form == "vectors":
        cut = {
            "q": problem["q"][..., first:last, :],
            "k": problem["k"][..., :last, :],
            "v": problem["v"][..., :last, :],
        }
    else:
        cut = {"x": problem["x"][:, first:last], "context": problem["x"][:, :last], "memory": problem["x"][:, :last]}
    return problem.but(**cut)


def _explained(exam: Examination, piece: Problem, y: np.ndarray, ends: tuple[int, ...], first: int) -> Verdict:
    alone = exam.predicted(exam.model or exam.right, _alone(piece))
    if alone is not None and alone.shape == y.shape and not exam.differs(y, alone):
        return Verdict(LAW, None, "what was kept is not used", remarks=("a cache is taken and not used",))
    evidence = f"in pieces of {_lengths(ends)}, the output from position {first} on is not that of the whole text"
    search = Search([Observation(piece, y, exam.subject.tolerance * 2)])
    for name, steps in _hypotheses(exam):
        if search.explains(steps):
            return Verdict(LAW, False, evidence, (Suspicion(name, evidence, "error"),))
    name = "cache on the wrong axis" if exam.model is not None and np.isfinite(y).all() else UNKNOWN
    return Verdict(LAW, False, evidence, (Suspicion(name, evidence),))


def _alone(piece: Problem) -> Problem:
    """The piece as a text of its own."""
    n = piece.queries
    if piece.form == "vectors":
        return piece.but(k=piece["k"][..., -n:, :], v=piece["v"][..., -n:, :])
    return piece.but(context=piece["x"], memory=piece["x"])


def _hypotheses(exam: Examination) -> Iterator[tuple[str, Steps]]:
    names = ("positions not moved on", "position off by one after prefill", "mask in the wrong corner")
    for name in names:
        for mutant in MUTANTS[name]:
            made = None if exam.model is None else mutant(exam.model)
            if made is not None:
                yield name, made


def _lengths(ends: tuple[int, ...]) -> str:
    return " + ".join(str(last - first) for first, last in zip((0, *ends), ends, strict=False))
