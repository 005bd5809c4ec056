"""From suspicions to findings: each with its texts, its lines in the source, and the smallest input that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .catalogue import CATALOGUE
from .examples import of_one, smallest, weights_of
from .laws import UNKNOWN, Examination, Suspicion, Verdict
from .matching import Match
from .mutants import MUTANTS
from .problem import Problem
from .report import Example, Finding
from .sandbox.limits import Stopped
from .search import Observation, Search
from .source import suspicious
from .trying import Trial

WHY = {
    "time": "never returns",
    "memory": "allocates without bound",
    "crash": "crashes",
    "printing": "prints without end",
    "exit": "ends the process",
}
"""Names of what a target that had to be stopped did."""

ADVICE = {
    "time": "Call it by hand with small arrays, and see where it stays.",
    "memory": "Look for an array that grows with every call, or a shape that multiplies two sizes.",
    "crash": "Call it by hand with small arrays; a crash comes from compiled code that it calls.",
    "printing": "Take the print out of the loop.",
    "exit": "Return a value, or raise an error, where it ends the process.",
}
"""What to do about them."""

CONSEQUENCES = {
    "maximum over queries": {"gradient wrong", "gradient cut", "no maximum subtracted", "one maximum for all rows"},
    "no total": {"no maximum subtracted", "one maximum for all rows"},
    "scores as weights": {"no maximum subtracted", "one maximum for all rows"},
    "strict mask": {"empty rows are NaN"},
    "inverted mask": {"empty rows are NaN"},
    "no maximum subtracted": {"one maximum for all rows"},
    "batch size baked in": {"batch elements see each other"},
    "key not transposed": {"length baked in", "batch size baked in"},
    "heads split without transpose": {"length baked in", "batch size baked in"},
    "heads attend to heads": {"length baked in", "batch size baked in"},
    "inputs changed in place": {"gradient cut"},
    "root of the length": {UNKNOWN},
}
"""What follows from a mistake is not named beside it."""


# -- suspicions ----------------------------------------------------------------------------------------------------


def of_match(match: Match | None, problem: Problem) -> list[Suspicion]:
    """The mistakes by which the chain that predicts the target differs from the right one."""
    names = () if match is None else match.explanation.bugs
    return [Suspicion(name, _measured(name, match, problem), "error") for name in names if match is not None]


def _measured(name: str, match: Match, problem: Problem) -> str:
    """What this mistake alone makes of the formula, or by how much it moves the outputs."""
    base = match.explanation.base
    if match.fitted is not None and name == match.fitted.family.bug:
        (_, (number, *_)), *_ = match.fitted.numbers
        return f"your scores are {number:.4g} × q·k" if name == "wrong scale" else f"hidden pairs get {number:.4g}"
    for mutant in MUTANTS[name]:
        wrong = mutant(base)
        if wrong is None or wrong == base:
            continue
        if wrong.formula is not None and wrong.formula != base.formula:
            return f"{wrong.formula!r}, where {base.formula!r} is meant"
        search = Search([Observation(problem, np.empty(0), 0.0)])
        right, mine = search.state(base), search.state(wrong)
        if right is not None and mine is not None and right.y.shape == mine.y.shape:
            return f"this alone moves outputs by up to {np.nanmax(np.abs(mine.y - right.y), initial=0.0):.2g}"
    return ""


def of_size(trial: Trial, named: frozenset[str]) -> list[Suspicion]:
    """A target that works at one size alone."""
    what, _, number = trial.only.partition(" ")
    if what == "length":
        return [Suspicion("length baked in", f"it works with {number} positions alone")]
    if what == "batch":
        return [Suspicion("batch size baked in", f"it works with {number} texts alone")]
    if what == "square" and "key not transposed" not in named:
        return [Suspicion("key not transposed", "it works only with as many positions as features")]
    return []


def imprecise(match: Match, seen: Observation) -> Suspicion:
    """A target that is right but for the error of half precision."""
    state = Search([seen]).state(match.steps)
    error = 0.0 if state is None else float(abs(state.y - seen.y).max())
    return Suspicion("low precision inside", f"the largest error is {error:.1g}, as of half precision")


def distinct(suspicions: Iterable[Suspicion]) -> list[Suspicion]:
    """Each mistake once, by its first evidence, without what follows from another."""
    first = list({one.name: one for one in reversed(list(suspicions))}.values())[::-1]
    follow = {name for one in first for name in CONSEQUENCES.get(one.name, ())}
    return [one for one in first if one.name not in follow]


# -- findings ------------------------------------------------------------------------------------------------------


def found(exam: Examination, suspicions: Sequence[Suspicion]) -> list[Finding]:
    """The suspicions with all that the catalogue says of them."""
    alone = len(exam.named) <= 1
    return [_finding(exam, one, alone) for one in suspicions]


def _finding(exam: Examination, one: Suspicion, alone: bool) -> Finding:
    bug = CATALOGUE.get(one.name)
    if bug is None:
        return (
            unknown(one.evidence, one.severity, one.example) if one.name == UNKNOWN else plain(one.name, one.evidence)
        )
    description = exam.description
    return Finding(
        bug.name,
        one.severity or bug.severity,
        bug.wrong,
        bug.hides,
        bug.advice,
        bug.mended(exam.subject.reading.language),
        bug.seen,
        evidence=one.evidence,
        also=_also(exam, one.name) if alone else (),
        lines=suspicious(description.source, description.line, bug.near),
        example=one.example or _example(exam, one.name, alone),
    )


def _also(exam: Examination, name: str) -> tuple[str, ...]:
    """Other mistakes that are the same function here."""
    match = exam.match
    if match is None or match.explanation.bugs != (name,) or match.fitted is not None:
        return ()
    seen = exam.subject.observed(exam.subject.reading.problem(0))
    return () if seen is None else Search([seen]).others(match.explanation)


def _example(exam: Examination, name: str, alone: bool) -> Example | None:
    """Of one mistake alone what the target itself returns; of several, what each would do by itself."""
    if name not in exam.named:
        return None
    try:
        own = smallest(exam.subject, exam.right) if alone and not exam.subject.random else None
        if own is not None and own.shown == "weights":
            return own
        shown = weights_of(exam.subject, exam.right, exam.model) if alone and exam.model is not None else None
        return shown or own or of_one(exam.subject, exam.right, name)
    except Stopped:
        return None


def stopped(stop: Stopped) -> Finding:
    """A target that had to be stopped before anything else could be said of it."""
    return plain(WHY[stop.why], stop.text, ADVICE[stop.why])


def plain(name: str, wrong: str, advice: str = "") -> Finding:
    """A finding that the catalogue does not hold."""
    return Finding(name, "error", wrong, "", advice, "", None)


def unmatched(exam: Examination, verdicts: Sequence[Verdict]) -> list[Finding]:
    """What to say when nothing in the catalogue predicts the target."""
    if exam.match is not None or exam.subject.random:
        return []
    problem = exam.subject.reading.problem(0)
    y, right = exam.subject.y(problem), exam.predicted(exam.right, problem)
    differ = ""
    if y is not None and right is not None and y.shape == right.shape:
        if not exam.differs(y, right):
            return []
        differ = f"outputs differ by up to {abs(y - right).max():.2g}; "
    broken = ", ".join(one.law for one in verdicts if one.holds is False)
    laws = f"laws that it breaks: {broken}" if broken else "it breaks none of the laws that were tried"
    wrong = f"It does not compute {exam.right.formula!r}, nor any formula or mistake that is known here."
    return [unknown(differ + laws, "error", smallest(exam.subject, exam.right), wrong)]


def unknown(evidence: str, severity: str = "", example: Example | None = None, wrong: str = "") -> Finding:
    """A difference that no mistake of the catalogue explains."""
    return Finding(
        UNKNOWN,
        severity or "error",
        wrong or "What it returns there is neither right nor any mistake that is known here.",
        "",
        "Look at the laws that it breaks and at the example; say formula=… if it should compute something else.",
        "",
        None,
        evidence=evidence,
        example=example,
    )
