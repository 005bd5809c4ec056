"""Hidden pairs stay hidden, however low the admitted scores are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...algebra.masks import given
from ..problem import Problem
from ..steps import Steps, Turn
from ..subject import Subject
from .base import Examination, Suspicion, Verdict
from .chains import masked

LAW = "hidden pairs stay hidden"
FILLS = (60.0, 300.0, 2e4)  # how far below 0 admitted scores are put to see whether a hidden pair shines through
LEAK = 100  # times the tolerance: scores of thousands are rounded coarsely, a leak is no matter of rounding


def given_mask(exam: Examination, subject: Subject) -> Verdict:
    """A pair that the call's own mask hides is not read."""
    problem = subject.reading.problem(35)
    admitted = np.zeros((problem.batch, problem.queries, problem.keys), dtype=bool)
    admitted[..., 0] = True
    chain = None if exam.model is None else masked(exam.model, given("mask"))
    return _leaking(exam, subject, replace(problem, mask=admitted), chain)


def own_mask(exam: Examination) -> Verdict:
    """A pair that the formula's own mask hides is not read."""
    model = exam.model
    if model is None or model.formula is None or model.formula.mask is None:
        return Verdict(LAW, None, "it has no mask of its own")
    return _leaking(exam, exam.subject, exam.subject.reading.problem(36), model)


def _leaking(exam: Examination, subject: Subject, problem: Problem, chain: Steps | None) -> Verdict:
    """Key 0 alone has scores far below 0: where it alone is admitted, a hidden pair with a finite score wins."""
    if chain is None or subject.random or isinstance(chain.place, Turn):
        return Verdict(LAW, None, "the scores cannot be set")
    for fill in FILLS:
        low = _lowered(problem, fill)
        y = None if low is None else subject.y(low, "admitted scores far below 0")
        expected = None if low is None else exam.predicted(chain, low)
        if low is None or y is None or expected is None:
            return Verdict(LAW, None, "the scores cannot be set")
        if exam.differs(y, expected, times=LEAK):
            evidence = (
                f"where the admitted score is −{fill:.0f}, hidden pairs are read: their score is no lower than that"
            )
            return Verdict(LAW, False, evidence, (Suspicion("finite mask value", evidence),))
    return Verdict(LAW, True, f"admitted scores of −{FILLS[-1]:.0f}: hidden pairs are not read")


def _lowered(problem: Problem, fill: float) -> Problem | None:
    """s_i0 = −fill, and 0 for the other keys."""
    if problem.form == "vectors":
        q, k = np.zeros_like(problem["q"]), np.zeros_like(problem["k"])
        size = (fill * q.shape[-1] ** 0.5) ** 0.5
        q[..., 0], k[..., 0, 0] = size, -size
        return problem.but(q=q, k=k)
    if not {"wq", "wk"} <= set(problem.arrays) or problem["context"] is not problem["x"]:
        return None
    return _lowered_inputs(problem, fill)


def _lowered_inputs(problem: Problem, fill: float) -> Problem:
    """The same through the matrices: feature 0 of x makes every query, feature 1 the first key."""
    x, wq, wk = np.array(problem["x"]), np.zeros_like(problem["wq"]), np.zeros_like(problem["wk"])
    width = wq.shape[1] // problem.heads
    size = (fill * width**0.5) ** 0.5
    x[..., 0], x[..., 1] = 1.0, 0.0
    x[:, 0, 1] = -1.0
    wq[0, ::width], wk[1, ::width] = size, size
    zeros = {name: np.zeros_like(problem[name]) for name in ("bq", "bk") if name in problem.arrays}
    return problem.but(x=x, context=x, memory=x, wq=wq, wk=wk, **zeros)
