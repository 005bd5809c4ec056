"""Claims about mistakes: what they do to the weights, and that `check` names them."""

from __future__ import annotations

import numpy as np

from ...algebra.errors import CallError
from ...algebra.masks import given
from ...attention import Attention
from ...diagnosis import check
from ..measure import normal
from ..record import Measured, Measurements, Verdict
from ..registry import claim

Array = np.ndarray


def _softmax(scores: Array, axis: int = -1) -> Array:
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


def _scores(q: Array, k: Array) -> Array:
    return np.asarray(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))


def along_queries(q: Array, k: Array, v: Array) -> Array:
    """Softmax along the queries."""
    return np.asarray(_softmax(_scores(q, k), axis=-2) @ v)


def masked_after(q: Array, k: Array, v: Array) -> Array:
    """Weights of the future set to 0 after softmax."""
    return np.asarray(np.tril(_softmax(_scores(q, k))) @ v)


def renormalised(q: Array, k: Array, v: Array) -> Array:
    """The same, divided by what is left."""
    weights = np.tril(_softmax(_scores(q, k)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)


def padded(q: Array, k: Array, v: Array, padding_mask: Array | None = None) -> Array:
    """A (batch, keys) mask that is never given its axes."""
    scores = _scores(q, k)
    return np.asarray(_softmax(scores if padding_mask is None else np.where(padding_mask, scores, -1e9)) @ v)


def _named(target: object, bug: str) -> Measured:
    """1 where check finds this bug and no other error."""
    report = check(target, limits=None)
    found = [finding.name for finding in report.errors]
    return Measured(float(found == [bug]), f"check names {bug!r} and nothing else", at_least=1, detail=", ".join(found))


@claim("N4", "E", "Softmax along the queries leaves rows that do not sum to 1.", Verdict.HOLDS)
def wrong_axis() -> Measurements:
    """Σ_i w_ij = 1, and Σ_j w_ij is anything."""
    sums = _softmax(_scores(normal(2, 7, 5), normal(3, 7, 5)), axis=-2).sum(axis=-1)
    yield Measured(float(np.abs(sums - 1).min()), "smallest |Σ_j w_ij − 1| of seven rows", at_least=1e-3)
    yield _named(along_queries, "softmax over queries")


@claim(
    "N5",
    "E",
    "Masked after softmax, rows do not sum to 1, and what is masked leaks through the total.",
    Verdict.CONDITION,
)
def masked_late() -> Measurements:
    """w_ij = exp(s_ij) / Σ over all keys, the hidden ones too; divided by Σ over the kept ones it is right again."""
    scores = np.zeros((6, 6))
    raised = scores.copy()
    raised[:, 5] = 5.0  # key 5 is hidden from query 0
    before, after = (np.tril(_softmax(one))[0, 0] for one in (scores, raised))
    yield Measured(1 - before, "what is missing of row 0, of six equal scores", at_least=0.8, at_most=0.84)
    share = "what is left of a kept weight when a hidden score rises by 5"
    yield Measured(after / before, share, at_most=0.05, detail=f"{before:.3f} to {after:.4f}")
    yield _named(masked_after, "mask after the weights")
    yield Measured(float(check(renormalised, limits=None).ok), "divided by what is left, it passes", at_least=1)


@claim("M3", "E", "A (queries, keys) mask broadcasts over a batch, a (batch, keys) mask does not.", Verdict.CONDITION)
def padding_broadcast() -> Measurements:
    """(B, N) against (B, H, N, N): an error that names both shapes; with B = N it is taken for (N, N)."""
    attention = Attention(mask=given("mask"))
    q, k, v = (normal(seed, 2, 3, 5, 7) for seed in (2, 3, 5))
    attention(q, k, v, mask=np.tril(np.ones((5, 5), dtype=bool)))
    text = ""
    try:
        attention(q, k, v, mask=np.ones((2, 5), dtype=bool))
    except CallError as error:
        text = str(error)
    named = "(2, 5)" in text and "(2, 3, 5, 5)" in text
    yield Measured(float(named), "the error names both shapes", at_least=1, detail=text)
    yield _named(padded, "mask broadcast by accident")
