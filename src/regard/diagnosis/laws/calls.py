"""Laws of calling: the same answer twice, inputs left alone, texts of a batch apart, sizes free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..mutants import MUTANTS
from ..problem import Array, Problem
from .base import UNKNOWN, Examination, Suspicion, Verdict

TIMES = 12
LENGTHS = (1, 2, 3, 7, 9)
MOVED = 1.0


def same_twice(exam: Examination) -> Verdict:
    """The same inputs give the same output."""
    law = "same answer twice"
    subject = exam.subject
    problem = subject.reading.problem(3)
    runs = subject.outcome(problem, "the same call several times", times=TIMES).runs
    if len(runs) < TIMES:
        return Verdict(law, None, "the call failed")
    spread = _spread(np.stack(runs))
    if spread <= subject.tolerance:
        return Verdict(law, True, f"{TIMES} calls, largest difference {spread:.1g}")
    dropped = _dropped(exam, problem)
    if dropped is not None:
        differ = f"in evaluation, outputs of {TIMES} equal calls differ by up to {spread:.2g}"
        evidence = f"{differ}, as when {dropped:.0%} of the weights are dropped"
        return Verdict(law, False, evidence, (Suspicion("dropout in evaluation", evidence),))
    evidence = f"outputs of {TIMES} equal calls differ by up to {spread:.2g}"
    return Verdict(law, False, evidence, (Suspicion("not deterministic", evidence),))


def _spread(runs: Array) -> float:
    """How far the runs are apart; entries that are NaN in all of them are the same."""
    told = ~np.isnan(runs).all(axis=0)
    return float(np.ptp(runs[:, told], axis=0).max(initial=0.0))


def _dropped(exam: Examination, problem: Problem) -> float | None:
    """The share of weights that are dropped, where the weights can be seen: values are the identity."""
    subject = exam.subject
    facts = exam.description.module
    declared = [p for _, p in facts.dropouts if p > 0] if facts is not None else []
    if declared:
        return float(declared[0])
    if not exam.vectors:
        return 0.1 if "dropout" in exam.description.source.lower() else None
    identity = np.broadcast_to(np.eye(problem.keys), (*problem["v"].shape[:2], problem.keys, problem.keys))
    seen = problem.but(v=np.array(identity))
    runs = [subject.reading.canonical(run, seen) for run in subject.outcome(seen, "weights", times=60).runs]
    found = np.stack([run for run in runs if run is not None]) if any(run is not None for run in runs) else None
    if found is None:
        return None
    share = float((found == 0).mean())
    return share if 0 < share < 1 else None


def inputs_left_alone(exam: Examination) -> Verdict:
    """The caller's arrays are what they were."""
    law = "inputs left alone"
    outcome = exam.subject.outcome(exam.subject.reading.problem(4), "looking at the inputs afterwards")
    if not outcome.changed:
        return Verdict(law, True, "every argument is as it was")
    evidence = f"after the call {' and '.join(outcome.changed)} {'is' if len(outcome.changed) == 1 else 'are'} changed"
    return Verdict(law, False, evidence, (Suspicion("inputs changed in place", evidence),))


def texts_apart(exam: Examination) -> Verdict:
    """What is in one text of a batch does not change another's output."""
    law = "texts of a batch apart"
    reading = exam.subject.reading
    if not reading.layout.has("b") or reading.sizes.batch < 2:
        return Verdict(law, None, "it takes no batch")
    problem = reading.problem(5)
    moved = _other_text(problem)
    before, after = (exam.subject.observed(one, "changing another text of the batch") for one in (problem, moved))
    if before is None or after is None:
        return Verdict(law, None, "the call failed")
    change = float(np.nanmax(np.abs(after.y[0] - before.y[0]), initial=0.0))
    if change <= before.tolerance * 2:
        return Verdict(law, True, f"changing text 1 moves text 0 by {change:.1g}")
    evidence = f"changing text 1 moves the output of text 0 by {change:.2g}"
    if exam.explains(moved, after.y):
        return Verdict(law, False, evidence)
    return Verdict(law, False, evidence, (Suspicion("batch elements see each other", evidence),))


def _other_text(problem: Problem) -> Problem:
    names = ("q", "k", "v") if problem.form == "vectors" else ("x", "context", "memory")
    moved = {id(problem[name]): _moved(problem[name]) for name in names}
    return problem.but(**{name: moved[id(problem[name])] for name in names})


def _moved(array: Array) -> Array:
    made = np.array(array)
    made[1:] += np.random.default_rng(6).normal(size=made[1:].shape)
    return made


def sizes_free(exam: Examination) -> Verdict:
    """Any length is taken, up to the longest, and every one is right."""
    law = "any length"
    reading, facts = exam.subject.reading, exam.description.module
    longest = facts.longest if facts is not None and facts.longest else max(LENGTHS)
    lengths = [n for n in LENGTHS if n <= longest]
    wrong: list[str] = []
    for n in lengths:
        problem = reading.problem(7, queries=n, keys=n)
        outcome = exam.subject.outcome(problem, f"a call with {n} positions")
        y = reading.read(outcome, problem)
        if y is None:
            wrong.append(
                f"length {n}: {outcome.kind or 'another shape'}{': ' + outcome.error[:80] if outcome.error else ''}"
            )
        elif exam.model is not None and not exam.subject.random and not exam.explains(problem, y):
            wrong.append(f"length {n}: wrong values")
    if not wrong:
        return Verdict(law, True, f"lengths {', '.join(map(str, lengths))}")
    evidence = f"works at length {reading.sizes.queries}, not at {'; '.join(wrong[:3])}"
    return Verdict(law, False, evidence, (Suspicion("length baked in", evidence),))


def batches_free(exam: Examination) -> Verdict:
    """Any number of texts."""
    law = "any batch"
    reading = exam.subject.reading
    if not reading.layout.has("b"):
        return Verdict(law, None, "it takes no batch")
    failed = []
    for batch in (1, 3, 4):
        problem = reading.problem(8, batch=batch)
        outcome = exam.subject.outcome(problem, f"a call with {batch} texts")
        if reading.read(outcome, problem) is None:
            failed.append(f"{batch} texts: {outcome.kind or 'another shape'} {outcome.error[:80]}".strip())
    if not failed:
        return Verdict(law, True, "1, 3 and 4 texts")
    evidence = f"works with {reading.sizes.batch} texts, not with {'; '.join(failed[:2])}"
    return Verdict(law, False, evidence, (Suspicion("batch size baked in", evidence),))


def different_lengths(exam: Examination) -> Verdict:
    """Fewer queries than keys: they are the last rows."""
    law = "fewer queries than keys"
    reading = exam.subject.reading
    if reading.shared:
        return Verdict(law, None, "queries and keys are made of one input")
    problem = reading.problem(9, queries=3, keys=reading.sizes.keys)
    y = exam.subject.y(problem, "a call with fewer queries than keys")
    if y is None:
        return Verdict(law, None, "it takes as many queries as keys")
    if exam.model is None or exam.subject.random:
        return Verdict(law, None, "the right values are not known")
    if exam.explains(problem, y):
        return Verdict(law, True, "3 queries, 5 keys: right")
    return _corner(exam, law, problem, y)


def _corner(exam: Examination, law: str, problem: Problem, y: Array) -> Verdict:
    formula = (exam.model or exam.right).formula
    if formula is None or formula.mask is None:
        return Verdict(law, None, "its positions count from 0 for queries and keys alike")
    upper = exam.predicted(exam.model or exam.right, replace(problem, start=0))
    if upper is None or exam.differs(y, upper):
        unknown = Suspicion(UNKNOWN, "with 3 queries and 5 keys the output is wrong", "warning")
        return Verdict(law, False, "3 queries, 5 keys: wrong values", (unknown,))
    evidence = "with 3 queries and 5 keys, query 0 stands at position 0, not at position 2"
    return Verdict(law, False, evidence, (Suspicion("mask in the wrong corner", evidence),))


def fewer_key_heads(exam: Examination) -> Verdict:
    """Key heads that serve groups of query heads serve neighbours: 0 0 1 1."""
    law = "fewer key heads than query heads"
    reading = exam.subject.reading
    if not exam.vectors or not reading.layout.has("h"):
        return Verdict(law, None, "it takes no heads")
    problem = reading.problem(10, heads=4, groups=2)
    y = exam.subject.y(problem, "two key heads for four query heads")
    if y is None or exam.model is None or exam.subject.random:
        return Verdict(law, None, "it takes as many key heads as query heads")
    if exam.explains(problem, y):
        return Verdict(law, True, "4 query heads, 2 key heads: right")
    evidence = "with 4 query heads and 2 key heads, query heads 0 1 2 3 read key heads 0 1 0 1"
    for mutant in MUTANTS["groups repeated in the wrong order"]:
        tiled = mutant(exam.model)
        predicted = None if tiled is None else exam.predicted(tiled, problem)
        if predicted is not None and not exam.differs(y, predicted):
            return Verdict(law, False, evidence, (Suspicion("groups repeated in the wrong order", evidence),))
    unknown = Suspicion(UNKNOWN, "with 4 query heads and 2 key heads the output is wrong", "warning")
    return Verdict(law, False, "4 query heads, 2 key heads: wrong values", (unknown,))
