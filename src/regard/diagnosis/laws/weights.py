"""Laws of the weights: rows sum to one, outputs lie among the values, the order of keys does not matter."""

from __future__ import annotations

import numpy as np

from ..problem import Array, Problem
from ..steps import Turn
from .base import Examination, Suspicion, Verdict

FACTOR = 4.0


def rows_sum_to_one(exam: Examination) -> Verdict:
    """Where every value is 1, every output is 1."""
    law = "rows sum to one"
    problem = _all_ones(exam)
    if problem is None:
        return Verdict(law, None, "the values cannot be set")
    observed = exam.subject.observed(problem, "values that are all 1")
    if observed is None:
        return Verdict(law, None, "the call failed")
    y = observed.y[np.isfinite(observed.y)]
    if not y.size:
        return Verdict(law, False, "no output is a number")
    return Verdict(
        law, bool(np.abs(y - 1).max() <= observed.tolerance * 2), f"sums from {y.min():.4g} to {y.max():.4g}"
    )


def _all_ones(exam: Examination) -> Problem | None:
    """A problem whose values are all 1 whatever the inputs, with an output projection that adds nothing."""
    problem = exam.subject.reading.problem(11)
    if exam.vectors:
        return problem.but(v=np.ones_like(problem["v"]))
    if "bv" not in problem.arrays or "wv" not in problem.arrays:
        return None
    ones = {"wv": np.zeros_like(problem["wv"]), "bv": np.ones_like(problem["bv"])}
    if "wo" in problem.arrays:
        wo = problem["wo"]
        ones["wo"] = np.full_like(wo, 1.0 / wo.shape[0])
    if "bo" in problem.arrays:
        ones["bo"] = np.zeros_like(problem["bo"])
    return problem.but(**ones)


def among_the_values(exam: Examination) -> Verdict:
    """min_j v_j ≤ y_i ≤ max_j v_j in every feature."""
    law = "outputs among the values"
    if not exam.vectors:
        return Verdict(law, None, "values are made inside")
    problem = exam.subject.reading.problem(12)
    observed = exam.subject.observed(problem, "comparing outputs with values")
    if observed is None:
        return Verdict(law, None, "the call failed")
    v = np.repeat(problem["v"], problem.heads // problem.groups, axis=1)
    low, high = v.min(axis=2, keepdims=True), v.max(axis=2, keepdims=True)
    beyond = float(np.nanmax(np.maximum(low - observed.y, observed.y - high), initial=0.0))
    if beyond <= observed.tolerance:
        return Verdict(law, True, "every feature lies between its smallest and largest value")
    return Verdict(law, False, f"outputs leave the range of the values by {beyond:.2g}")


def order_of_keys(exam: Examination) -> Verdict:
    """Keys and values in another order give the same output."""
    law = "order of keys does not matter"
    reading = exam.subject.reading
    chain = exam.model or exam.right
    if isinstance(chain.place, Turn) or (chain.formula is not None and chain.formula.uses("i", "j")):
        return Verdict(law, None, "the formula looks at positions")
    problem = reading.problem(13)
    places = np.random.default_rng(14).permutation(problem.keys)
    ordered = _ordered(problem, places, reading.shared)
    before, after = (exam.subject.observed(one, "keys in another order") for one in (problem, ordered))
    if before is None or after is None:
        return Verdict(law, None, "the call failed")
    y = after.y[..., np.argsort(places), :] if reading.shared else after.y
    change = float(np.nanmax(np.abs(y - before.y), initial=0.0))
    return Verdict(law, change <= 2 * before.tolerance, f"another order moves outputs by {change:.2g}")


def _ordered(problem: Problem, places: Array, shared: bool) -> Problem:
    if problem.form == "vectors":
        return problem.but(k=problem["k"][..., places, :], v=problem["v"][..., places, :])
    if shared:
        x = problem["x"][..., places, :]
        return problem.but(x=x, context=x, memory=x)
    return problem.but(context=problem["context"][..., places, :], memory=problem["memory"][..., places, :])


def who_reads_whom(exam: Examination) -> Verdict:
    """Which outputs change when one key and its value do."""
    law = "who reads whom"
    problem = exam.subject.reading.problem(15)
    before = exam.subject.observed(problem, "changing one position at a time")
    if before is None:
        return Verdict(law, None, "the call failed")
    n = problem.keys
    reads = np.zeros((problem.queries, n), dtype=bool)
    for j in range(n):
        after = exam.subject.observed(moved(problem, j), f"changing position {j}")
        if after is None:
            return Verdict(law, None, "the call failed")
        change = np.abs(after.y - before.y)
        most = change.max(axis=(0, 1, 3)) if exam.vectors else change.max(axis=(0, 2))
        reads[:, j] = ~(most <= 2 * before.tolerance)
    return Verdict(law, None, _pattern(reads, exam.subject.reading.shared))


def moved(problem: Problem, j: int) -> Problem:
    """Another key j, and another value: in every role of an input that serves several."""
    names = ("q", "k", "v") if problem.form == "vectors" else ("x", "context", "memory")
    changed: dict[int, Array] = {}
    for name in names[1:]:
        if id(problem[name]) not in changed:
            array = changed[id(problem[name])] = np.array(problem[name])
            array[..., j, :] += np.random.default_rng(j).normal(size=array[..., j, :].shape)
    return problem.but(**{name: changed.get(id(problem[name]), problem[name]) for name in names})


def _pattern(reads: Array, own: bool) -> str:
    """The pairs that are read, in words. `own`: a position always moves with its own query."""
    queries, n = reads.shape
    i, j = np.arange(n - queries, n)[:, None], np.arange(n)
    names = {
        "every position reads every other": (j >= 0) & (i >= 0),
        "each reads itself and what came before (causal)": j <= i,
        "each reads what came before, and not itself": j < i,
        "each reads one position ahead": j <= i + 1,
        "each reads itself and what comes after": j >= i,
        "each reads what comes after, and not itself": j > i,
        "each reads itself alone": i == j,
    }
    for name, pattern in names.items():
        if np.array_equal(reads, pattern | (i == j) if own else pattern):
            return name
    return f"{reads.mean():.0%} of the pairs are read"


def scale_law(exam: Examination) -> Verdict:
    """q · a and k / a have the same products, so the same output."""
    law = "q · a with k / a is the same"
    if not exam.vectors:
        return Verdict(law, None, "queries and keys are made inside")
    problem = exam.subject.reading.problem(16)
    scaled = problem.but(q=problem["q"] * FACTOR, k=problem["k"] / FACTOR)
    before, after = (exam.subject.observed(one, "scaled queries and keys") for one in (problem, scaled))
    if before is None or after is None:
        return Verdict(law, None, "the call failed")
    change = float(np.nanmax(np.abs(after.y - before.y), initial=0.0))
    return Verdict(law, change <= 2 * before.tolerance, f"outputs move by {change:.2g}")


def returned_weights(exam: Examination) -> Verdict:
    """The weights that are returned are those that the values were mixed with."""
    law = "returned weights are the weights"
    reading = exam.subject.reading
    if reading.weights is None:
        return Verdict(law, None, "no weights are returned")
    if exam.model is None or exam.subject.random:
        return Verdict(law, None, "the weights are not known")
    problem = reading.problem(17)
    shown = reading.returned_weights(exam.subject.outcome(problem, "looking at the returned weights"), problem)
    used = _used(exam, problem)
    if shown is None or used is None:
        return Verdict(law, None, "the weights are not known")
    errors = [float(np.nanmax(np.abs(shown - one))) for one in _forms(used) if one.shape == shown.shape]
    if not errors:
        return Verdict(law, None, f"of shape {shown.shape}: not compared")
    if min(errors) <= 2 * exam.subject.tolerance:
        return Verdict(law, True, f"largest difference {min(errors):.1g}")
    sums = f"its rows sum to {np.nanmean(shown.sum(-1)):.3g} on average"
    evidence = f"the returned matrix differs from the weights in use by up to {min(errors):.2g}; {sums}"
    return Verdict(law, False, evidence, (Suspicion("returned weights are others", evidence),))


def _used(exam: Examination, problem: Problem) -> Array | None:
    state = None if exam.model is None else exam.state(exam.model, problem)
    return None if state is None or state.weights is None else np.nan_to_num(np.asarray(state.weights))


def _forms(used: Array) -> list[Array]:
    """The weights with and without their batch and heads, and averaged over heads."""
    mean = used.mean(axis=1)
    flat = used.reshape(-1, *used.shape[2:])
    heads_first = used.transpose(1, 0, 2, 3)
    turned = heads_first.reshape(flat.shape)
    return [used, mean, used[:, 0], used[0], mean[0], used[0, 0], heads_first, flat, turned]
