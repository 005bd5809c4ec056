"""Laws of arithmetic: large scores, rows far apart, precision, gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..libraries import LIBRARIES
from ..problem import Array, Problem
from .base import Examination, Suspicion, Verdict

LARGE = {"float64": 900.0, "float32": 150.0}  # scores beyond these overflow exp
APART = {"float64": 800.0, "float32": 120.0}  # rows so far below others underflow
STEP = {"float64": 1e-5, "float32": 1e-2}
DIRECTIONS = 3
COARSE = 100  # times the tolerance: large scores are rounded coarsely
SHORTER, JUMP = 0.3, 0.1  # a second, shorter step, and how far the two slopes may be apart


def large_scores(exam: Examination) -> Verdict:
    """Scores of some hundreds give the largest one's value, not NaN."""
    law = "large scores"
    reading = exam.subject.reading
    problem = reading.problem(21)
    reach = _reach(exam, problem)
    if not reach:
        return Verdict(law, None, "the scores are not known")
    ordinary = exam.subject.y(problem, "ordinary scores")
    if exam.model is None and (ordinary is None or not np.isfinite(ordinary).all()):
        return Verdict(law, None, "ordinary scores give no numbers either")
    sharp = _spread(problem, LARGE[reading.dtype] / reach)
    outcome = exam.subject.outcome(sharp, "large scores")
    y = reading.read(outcome, sharp)
    if y is None:
        return _raised(law, LARGE[reading.dtype], outcome.kind, outcome.error)
    expected = exam.expected(sharp)
    told = np.ones_like(y, dtype=bool) if expected is None else np.isfinite(expected)
    if np.isfinite(y[told]).all():
        known = exam.model is not None and expected is not None and not exam.subject.random
        if known and exam.differs(y, expected, times=COARSE):
            evidence = f"with scores up to {LARGE[reading.dtype]:.0f} the output is wrong"
            return Verdict(law, False, evidence, (Suspicion("no maximum subtracted", evidence),))
        return _far_apart(exam, law, problem, reach)
    if _row_of_largest(exam, sharp, y):
        return _underflow(law, LARGE[reading.dtype])
    evidence = (
        f"with scores up to {LARGE[reading.dtype]:.0f}, {np.mean(~np.isfinite(y[told])):.0%} of the output is NaN or ∞"
    )
    return Verdict(law, False, evidence, (Suspicion("no maximum subtracted", evidence),))


def _raised(law: str, size: float, kind: str, error: str) -> Verdict:
    evidence = f"with scores up to {size:.0f} it fails: {kind}: {error[:100]}"
    return Verdict(law, False, evidence, (Suspicion("no maximum subtracted", evidence),))


def _far_apart(exam: Examination, law: str, problem: Problem, reach: float) -> Verdict:
    """One query with large scores beside others with small ones; or one with all its scores far below."""
    reading = exam.subject.reading
    name = "q" if exam.vectors else "x"
    factor = np.ones(problem.queries)
    factor[0] = 4 * APART[reading.dtype] / reach
    apart = problem.but(**{name: problem[name] * factor[:, None]})
    if not exam.vectors and problem["context"] is problem["x"]:
        apart = apart.but(context=apart["x"], memory=apart["x"])
    y = exam.subject.y(apart, "rows far apart")
    expected = exam.expected(apart)
    told = np.ones_like(y, dtype=bool) if expected is None else np.isfinite(expected)
    if y is None or np.isfinite(y[told]).all():
        return Verdict(law, True, f"scores up to {LARGE[reading.dtype]:.0f}: every output is a number")
    return _underflow(law, 4 * APART[reading.dtype])


def _underflow(law: str, size: float) -> Verdict:
    evidence = f"where one query has scores of {size:.0f}, the rows of others are NaN"
    return Verdict(law, False, evidence, (Suspicion("one maximum for all rows", evidence),))


def _row_of_largest(exam: Examination, problem: Problem, y: Array) -> bool:
    """Whether the row with the largest score of all is finite: then its maximum was subtracted."""
    scores = _products(exam, problem)
    if scores is None:
        return False
    batch, head, query, _ = np.unravel_index(np.argmax(scores), scores.shape)
    row = y[batch, head, query] if exam.vectors else y[batch, query]
    return bool(np.isfinite(row).all())


def _reach(exam: Examination, problem: Problem) -> float:
    """The largest score of the problem, in the formula that was found."""
    scores = _products(exam, problem)
    return 0.0 if scores is None else max(float(scores.max()), 0.0)


def _products(exam: Examination, problem: Problem) -> Array | None:
    """q·k / √d of every pair."""
    state = exam.state(exam.model or exam.right, problem)
    if state is None or state.q is None or state.q.shape[-1] != state.k.shape[-1]:
        return None
    return np.asarray(state.q) @ np.swapaxes(np.asarray(state.k), -1, -2) / np.sqrt(state.q.shape[-1])


def _spread(problem: Problem, factor: float) -> Problem:
    if problem.form == "vectors":
        return problem.but(q=problem["q"] * factor)
    if "wq" in problem.arrays:
        scaled = {"wq": problem["wq"] * factor}
        return problem.but(**scaled, **({"bq": problem["bq"] * factor} if "bq" in problem.arrays else {}))
    return problem.but(x=problem["x"] * factor)


def gradients(exam: Examination) -> Verdict:
    """The gradient of Σ y·dy is that of finite differences of the target itself."""
    law = "gradients are those of the values"
    reading, subject = exam.subject.reading, exam.subject
    if not LIBRARIES[reading.language].differentiable:
        return Verdict(law, None, f"{LIBRARIES[reading.language].title} has none")
    if subject.random or subject.loose:
        return Verdict(law, None, "the output is random" if subject.random else "the output is rough")
    problem = reading.problem(23)
    y = subject.y(problem, "gradients")
    if y is None or not np.isfinite(y).all():
        return Verdict(law, None, "some outputs are no numbers")
    names = [one.name for one in reading.taken if one.role in ("q", "k", "v", "x", "context")]
    raw = subject.outcome(problem).at(reading.output)
    dy = np.random.default_rng(24).normal(size=() if raw is None else raw.shape)
    outcome = subject.outcome(problem, "gradients", dy=dy, wrt=tuple(names))
    if outcome.error:
        return _no_graph(law, outcome.kind, outcome.error)
    wrong = {name: found for name in names if (found := _wrong(exam, problem, name, dy, outcome.gradients.get(name)))}
    if not wrong:
        return Verdict(law, True, f"of {', '.join(names)}, along {DIRECTIONS} directions each")
    return _named(law, wrong, names)


def _no_graph(law: str, kind: str, error: str) -> Verdict:
    evidence = f"asking for gradients fails: {kind}: {error[:160]}"
    return Verdict(law, False, evidence, (Suspicion("gradient cut", evidence),))


def _named(law: str, wrong: dict[str, str], names: list[str]) -> Verdict:
    evidence = "; ".join(f"{name}: {what}" for name, what in wrong.items())
    lost = [name for name, what in wrong.items() if what.startswith("none")]
    partly = len(lost) < len(wrong)
    name = "gradient wrong" if partly and not lost and len(names) > 1 else "gradient cut"
    return Verdict(law, False, evidence, (Suspicion(name, evidence),))


def _wrong(exam: Examination, problem: Problem, name: str, dy: Array, gradient: Array | None) -> str:
    """What is wrong with the gradient of one argument; nothing where it agrees."""
    slopes = [_slope(exam, problem, name, dy, seed) for seed in range(DIRECTIONS)]
    shorter = [_slope(exam, problem, name, dy, seed, SHORTER)[0] for seed in range(DIRECTIONS)]
    if any(abs(a - b) > JUMP * max(1.0, abs(a)) for (a, _), b in zip(slopes, shorter, strict=True)):
        return ""  # a jump or a bend lies between: finite differences say nothing there
    measured = np.array([slope for slope, _ in slopes])
    largest = float(np.abs(measured).max())
    if gradient is None or not np.any(gradient):
        return f"none, where the output moves at a rate of {largest:.2g}" if largest > 0.05 else ""
    told = np.array([float((gradient * direction).sum()) for _, direction in slopes])
    error = float(np.abs(told - measured).max())
    allowed = 0.05 * max(1.0, largest)
    return f"{told[0]:.3g} where finite differences give {measured[0]:.3g}" if error > allowed else ""


def _slope(
    exam: Examination, problem: Problem, name: str, dy: Array, seed: int, part: float = 1.0
) -> tuple[float, Array]:
    """d/dε Σ y·dy along a random direction of one argument, by central differences; and that direction."""
    reading, subject = exam.subject.reading, exam.subject
    step = part * STEP[reading.dtype]
    call = reading.call(problem, "finite differences")
    at = next(place for place, a in enumerate(call.arguments) if a.name == name)
    given = np.asarray(call.arguments[at].value, dtype=np.float64)
    direction = np.random.default_rng(100 + seed).normal(size=given.shape)
    direction /= np.sqrt((direction**2).mean())
    ends = []
    for sign in (1, -1):
        moved = replace(call.arguments[at], value=given + sign * step * direction)
        arguments = (*call.arguments[:at], moved, *call.arguments[at + 1 :])
        raw = subject.runner.ask(replace(call, arguments=arguments)).at(reading.output)
        ends.append(float((raw * dy).sum()))
    return (ends[0] - ends[1]) / (2 * step), direction
