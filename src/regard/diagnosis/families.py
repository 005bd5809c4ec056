"""Formulas with a free number or two: attentions of the zoo in any temperature, and softmax in any scale.

    softmax(c · cosine)     c is fitted to what the target returned, by Gauss–Newton steps with damping

A family whose best numbers predict every observation is what the target computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.expressions import Mask
from ..algebra.masks import causal
from ..algebra.symbols import (
    abs_,
    cosine,
    d,
    dot,
    exp,
    h,
    i,
    j,
    log,
    n,
    relu,
    sigmoid,
    sqdist,
    sqrt,
    table,
    tanh,
    where,
)
from ..algebra.weights import each, share
from ..attention import Attention
from .problem import Array, Problem
from .search import Observation, Search
from .steps import Steps

ROUNDS = 60
PATIENCE = 6
CLOSE = 1e-10
LEAST, MOST = 1e-3, 15.0  # the smallest factor, and the largest number added, that a formula is believed to have
PER_HEAD = {"slope", "sink"}  # tables with a number for each head


@dataclass(frozen=True)
class Family:
    """A formula whose tables are free numbers, and where to start looking for them."""

    zoo: str  # the name of it in the zoo; "" for softmax in another scale
    title: str
    formula: Attention
    starts: tuple[tuple[tuple[str, float], ...], ...]
    bug: str = ""  # the mistake that it is, where it is one

    def sizes(self, heads: int) -> dict[str, int]:
        """How many numbers each table holds."""
        return {name: heads if name in PER_HEAD else 1 for name, _ in self.starts[0]}


@dataclass(frozen=True)
class Fitted:
    """A family with its numbers."""

    family: Family
    numbers: tuple[tuple[str, tuple[float, ...]], ...]
    steps: Steps

    @property
    def text(self) -> str:
        """The formula with the numbers written in, rounded."""
        text = repr(self.family.formula)
        for name, values in self.numbers:
            if len(values) == 1:  # numbers for each head stay a table
                text = text.replace(f'table("{name}")[h]', f"{values[0]:.5g}").replace(
                    f'table("{name}")', f"{values[0]:.5g}"
                )
        return text


def _families() -> list[Family]:
    c, b, cap = table("c"), table("bias"), table("cap")
    slope = table("slope")[h]
    sinks = share(exp, sink=exp(table("sink")[h]))
    plain = dot / sqrt(d)
    one = ((("c", 1.0),), (("c", 0.1),), (("c", 10.0),))
    sloped = ((("slope", 0.1),), (("slope", 0.5),), (("slope", 0.01),))
    return [
        Family("", "softmax in another scale", Attention(score=c * dot), one, bug="wrong scale"),
        Family("cosine_similarity", "cosine with temperature", Attention(score=c * cosine), one),
        Family("euclidean", "Euclidean (RBF kernel)", Attention(score=-c * sqdist), one),
        Family("", "negative distance", Attention(score=-c * sqrt(sqdist)), one),
        Family("soft_cap", "soft cap", Attention(score=cap * tanh(plain / cap)), ((("cap", 2.0),), (("cap", 10.0),))),
        Family(
            "soft_cap",
            "soft cap",
            Attention(score=cap * tanh(c * dot / cap)),
            ((("c", 0.4), ("cap", 2.0)), (("c", 1.0), ("cap", 5.0))),
        ),
        Family("sigmoid", "sigmoid", Attention(weight=sigmoid, score=c * dot - log(n)), one),
        Family("sigmoid", "sigmoid", Attention(weight=sigmoid, score=c * dot + b), ((("c", 0.4), ("bias", 0.0)),)),
        Family("relu_over_n", "ReLU / n", Attention(weight=each(relu), score=c * dot), one),
        Family("squared_relu", "squared ReLU", Attention(weight=each(lambda s: relu(s) ** 2), score=c * dot), one),
        Family("softmax_plus_one", "softmax plus a sink", Attention(weight=share(exp, sink=c)), one),
        Family("learned_sinks", "learned sinks", Attention(weight=sinks), ((("sink", 0.0),),)),
        Family("alibi", "ALiBi", Attention(score=plain - slope * (i - j)), sloped),
        Family("alibi", "ALiBi, both ways", Attention(score=plain - slope * abs_(i - j)), sloped),
    ]


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Every family, without a mask and causal."""
    bare = _families()
    masked = [replace(one, formula=_causal(one.formula)) for one in bare]
    return (*bare, *masked, *filled(causal))


def filled(mask: Mask) -> tuple[Family, ...]:
    """Hidden pairs get a number for a score, or added to it, and are read where others are not much above."""
    fill, plain = table("fill"), dot / sqrt(d)
    starts = ((("fill", -5.0),), (("fill", -20.0),))
    scores = (where(mask, plain, fill), where(mask, plain, plain + fill))
    return tuple(
        Family("", "a finite mask value", Attention(score=score), starts, bug="finite mask value") for score in scores
    )


def _causal(formula: Attention) -> Attention:
    return Attention(score=formula.score, weight=formula.weight, mask=causal)


def fitted(search: Search, base: Steps, family: Family) -> Fitted | None:
    """The family with numbers that predict every observation, in the place of the base's formula; None if none do."""
    chain = base.with_formula(family.formula)
    if chain is None:
        return None
    for start in family.starts:
        numbers = _solved(chain, family, dict(start), search.observations[0])
        if numbers is not None and _means_something(numbers) and _explains(chain, numbers, search.observations):
            told = tuple((name, tuple(float(x) for x in values)) for name, values in numbers.items())
            return Fitted(family, told, chain)
    return None


def _means_something(numbers: dict[str, Array]) -> bool:
    """Whether scores still decide: a slope of 0, or a bias that drowns them, explains everything and nothing."""
    factors = [np.abs(values).min() for name, values in numbers.items() if name in ("c", "cap")]
    added = [np.abs(values).max() for name, values in numbers.items() if name == "bias"]
    return all(size > LEAST for size in factors) and all(size < MOST for size in added)


def _explains(chain: Steps, numbers: dict[str, Array], observations: Sequence[Observation]) -> bool:
    told = [replace(one, problem=with_numbers(one.problem, numbers)) for one in observations]
    return Search(told).explains(chain)


def with_numbers(problem: Problem, numbers: dict[str, Any]) -> Problem:
    """The problem with tables for the free numbers."""
    tables = {name: np.asarray(values) if name in PER_HEAD else float(values[0]) for name, values in numbers.items()}
    return replace(problem, options={**problem.options, **tables})


def _solved(chain: Steps, family: Family, start: dict[str, float], seen: Observation) -> dict[str, Array] | None:
    """Levenberg–Marquardt in the numbers; None where the formula cannot be computed."""
    sizes = family.sizes(seen.problem.heads)
    ends = np.cumsum(list(sizes.values()))[:-1]

    def numbers(theta: Array) -> dict[str, Array]:
        return dict(zip(sizes, np.split(theta, ends), strict=True))

    def residual(theta: Array) -> Array | None:
        y = _predicted(chain, with_numbers(seen.problem, numbers(theta)))
        if y is None or y.shape != seen.y.shape:
            return None
        return np.where(np.isfinite(y) & np.isfinite(seen.y), y - seen.y, 0.0).ravel()

    theta = np.concatenate([np.full(sizes[name], start[name]) for name in sizes])
    found = _descended(residual, theta)
    return None if found is None else numbers(found)


def _descended(residual: Any, theta: Array) -> Array | None:
    r, damping = residual(theta), 1e-3
    if r is None:
        return None
    last = float("inf")
    for round_ in range(ROUNDS):
        if round_ % PATIENCE == 0:
            if r @ r > 0.5 * last:  # a family that fits comes down much faster
                break
            last = float(r @ r)
        jacobian = _jacobian(residual, theta, r)
        if jacobian is None:
            return None
        gram, slope = jacobian.T @ jacobian, jacobian.T @ r
        step = np.linalg.lstsq(gram + damping * np.diag(np.diag(gram) + 1e-12), -slope, rcond=None)[0]
        moved = residual(theta + step)
        if moved is not None and moved @ moved < r @ r:
            theta, r, damping = theta + step, moved, damping / 5
        else:
            damping *= 8
        if r @ r < CLOSE**2 * r.size or damping > 1e12:
            break
    return theta


def _jacobian(residual: Any, theta: Array, r: Array) -> Array | None:
    columns = []
    for at in range(theta.size):
        moved = theta.copy()
        moved[at] += 1e-6 * max(1.0, abs(theta[at]))
        there = residual(moved)
        if there is None:
            return None
        columns.append((there - r) / (moved[at] - theta[at]))
    return np.stack(columns, axis=1)


def _predicted(chain: Steps, problem: Problem) -> Array | None:
    state = Search([Observation(problem, np.empty(0), 0.0)]).state(chain)
    return None if state is None else np.asarray(state.y)
