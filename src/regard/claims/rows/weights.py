"""Claims about w_ij = ψ(s_ij) / Z_i: which ψ may stand there, and what a mask leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algebra.masks import causal
from ...algebra.symbols import cos, exp, relu, sigmoid, softplus
from ...algebra.weights import share
from ...attention import Attention
from ..measure import gap, normal, on_every_engine
from ..plots import Axis, Columns, chart
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim

CURVES: dict[str, tuple[object, Callable[[np.ndarray], np.ndarray]]] = {
    "exp": (exp, np.exp),
    "relu": (relu, lambda s: np.maximum(s, 0)),
    "relu²": (lambda s: relu(s) ** 2, lambda s: np.maximum(s, 0) ** 2),
    "softplus": (softplus, lambda s: np.log1p(np.exp(s))),
    "sigmoid": (sigmoid, lambda s: 1 / (1 + np.exp(-s))),
    "s²": (lambda s: s**2, lambda s: s**2),
    "1 + cos": (lambda s: 1 + cos(s), lambda s: 1 + np.cos(s)),
}
"""ψ as regard writes it, and as NumPy does."""


@claim(
    "N1",
    "B",
    "Any function that is nowhere negative gives weights once each row is divided by its sum; exp gives softmax.",
    Verdict.CONDITION,
)
def any_curve() -> Measurements:
    """w_ij = ψ(s_ij) / Σ_j ψ(s_ij), where that sum is not 0."""
    q, k = normal(2, 11, 5), np.abs(normal(3, 13, 5))
    q[0] = -np.abs(q[0])  # its scores are all negative: relu leaves nothing to share
    s = q @ k.T / np.sqrt(5)
    gaps, sums = {}, {}
    for name, (curve, psi) in CURVES.items():
        weights, total = Attention(weight=share(curve)).weights(q, k), psi(s).sum(axis=1, keepdims=True)
        shared = total[:, 0] > 0
        gaps[name] = gap(weights[shared], (psi(s) / np.where(total > 0, total, 1))[shared])
        sums[name] = weights.sum(axis=1)
    yield Measured(max(gaps.values()), f"largest error of the weights for ψ = {', '.join(CURVES)}", at_most=1e-14)
    off = max(gap(rows[1:], 1) for rows in sums.values())
    yield Measured(off, "largest |Σ_j w_ij − 1| where the sum is not 0", at_most=1e-14)
    stable = np.exp(s - s.max(axis=1, keepdims=True))
    softmax = stable / stable.sum(axis=1, keepdims=True)
    yield Measured(gap(Attention().weights(q, k), softmax), "largest difference from softmax", at_most=1e-14)
    yield Measured(sums["relu"][0], "Σ_j w_ij under relu of a row of negative scores", at_least=0, at_most=0)


@claim(
    "N6",
    "E",
    "Scores set to −∞ before softmax leave weights of exactly 0, and rows that sum to exactly 1.",
    Verdict.WRONG,
)
def masked_before() -> Measurements:
    """w_ij = 0 for j > i, exactly; Σ_j w_ij = 1 within rounding."""
    attention = Attention(mask=causal)
    q, k = (normal(seed, 2, 3, 7, 5).astype(np.float32) for seed in (5, 7))
    k[..., 5:, :] *= 1000  # the masked scores are the largest by far
    future = np.triu(np.ones((7, 7), bool), 1)
    found = on_every_engine(attention.weights, q, k)
    leaks = sum(int(np.count_nonzero(weights[..., future])) for weights in found.values())

    q, k = (normal(seed, 1009, 6, 5).astype(np.float32) for seed in (11, 13))
    weights = attention.weights(q, k)
    sums = weights[:, -1].sum(axis=-1, dtype=np.float32)  # the last row reads all six
    shown = " | ".join(" ".join(f"{weight:.2f}" if weight else "0" for weight in row) for row in weights[0])
    missed = float(np.mean(sums != 1))
    what = "share of float32 rows of six whose sum is not exactly 1"
    yield Measured(missed, what, at_least=0.2, at_most=0.5, detail=f"N = 6: {shown}")
    yield Measured(gap(sums, 1) / 2.0**-23, "largest |Σ_j w_ij − 1|, in steps of float32", at_most=6)
    yield Measured(leaks, "masked weights that are not exactly 0", at_most=0, detail=", ".join(found))
    yield _sums_drawn((sums.astype(float) - 1) * 2.0**24)


def _sums_drawn(steps: np.ndarray) -> Figure:
    """How many rows sum to what, in steps of float32 below 1."""
    values, counts = np.unique(steps, return_counts=True)
    shares, far, exact = 100 * counts / len(steps), float(np.abs(steps).max()) + 1, values == 0
    columns = Columns(values[exact], shares[exact]), Columns(values[~exact], shares[~exact], "accent")
    across = Axis("Σ_j w_ij − 1, in steps of 2⁻²⁴", -far, far)
    told = (
        f"Sums of the last row of six, of {len(steps)} examples in float32: {shares[exact].sum():.0f} % are exactly 1."
    )
    return Figure(chart(across, Axis("% of rows", 0, 10 * np.ceil(shares.max() / 10)), *columns), told)
