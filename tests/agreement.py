"""One call for random formulas, what agreement means, and formulas that make trouble."""

from __future__ import annotations

from typing import Any

import numpy as np

import regard as rg
from strategies import Case, arrays, environment

CALL = arrays()
ENV = environment(CALL)


def close(found: Any, expected: Any, scale: float = 1.0, accuracy: float = 1e-11) -> None:
    """Equal up to rounding in float64, relative to the largest number in sight."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    largest = max(1.0, scale, float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))))
    np.testing.assert_allclose(found, expected, rtol=0, atol=accuracy * largest)


def roughness(case: Case) -> float:
    """How much rounding in the scores grows into the weights."""
    scores = case.scores(ENV)
    return 1.0 + float(np.max(np.abs(scores), initial=0, where=np.isfinite(scores)))


TROUBLE = [
    rg.Attention(score=rg.dot + rg.table("heads")[rg.h, 0] * rg.log(rg.i - rg.j + 1), mask=rg.causal),
    rg.Attention(score=rg.dot * rg.table("scale") / (rg.i - rg.j), mask=rg.j < rg.i),
    rg.Attention(score=rg.table("ids")[rg.j] / 3 - rg.table("line")[rg.table("ids")[rg.j]] + rg.dot),
    rg.Attention(weight=rg.share(lambda s: rg.relu(s) + rg.exp(s - 900))),
    rg.Attention(weight=rg.share(rg.exp, sink=1 + rg.exp(rg.table("heads")[rg.h, 2])), mask=rg.j < rg.i),
    rg.Attention(weight=lambda s: s * rg.table("scale"), mask=rg.causal),
    rg.Attention(score=-rg.sqrt(rg.sqdist) + rg.sqrt(rg.i - rg.j), mask=rg.causal),
]


i, j, s, dot, exp, where = rg.i, rg.j, rg.s, rg.dot, rg.exp, rg.where
TROUBLE += [
    rg.Attention(score=where(dot > 0, rg.sqrt(dot), -rg.sqrt(-dot))),
    rg.Attention(score=where(dot < 0, 1 / dot, dot), mask=rg.causal),
    rg.Attention(score=rg.maximum(rg.table("line")[i], rg.table("line")[j]) + dot, weight=lambda s: s),
    rg.Attention(score=rg.relu(dot) ** (rg.h + 1)),
    rg.Attention(score=rg.relu(dot / (2 * (1 + rg.sqdist))), mask=dot / (2 * (j + 1)) >= -1),
    rg.Attention(weight=rg.share(where(s > 0, exp(s + rg.table("line")[i]), exp(s)))),
    rg.Attention(weight=rg.share(lambda s: (exp(s) - 1) ** 2), score=dot / 1e3 + 1e-3),
    rg.Attention(weight=rg.share(lambda s: exp(s) / (1 + exp(s))), score=2000 * dot),
    rg.Attention(weight=rg.share(exp, sink=rg.table("line")[0] * 0 + rg.relu(-(rg.table("scale") ** 2)) * exp(900))),
    rg.Attention(weight=rg.share(exp, sink=where(rg.h > 2, 1, 2)), mask=j < i),
    rg.Attention(score=dot + where(j <= i, 0, -1e20)),
    rg.Attention(score=dot + rg.table("line")[i * i % 7] * i**2 / 30),
    rg.Attention(score=dot(rg.table("P")[rg.table("ids")[rg.h]])),
]
