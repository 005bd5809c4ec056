"""Claims about y_i = Σ_j w_ij v_j: where it lies, what it keeps, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...algebra.masks import causal, prefix, window
from ...algebra.symbols import cosine, d, dot, exp, i, j, relu, sigmoid, softplus, sqdist, sqrt, table, tanh
from ...algebra.weights import each, share
from ...attention import Attention, self_attention
from ..measure import changed_bits, gap, normal, on_every_engine, outside_hull
from ..plots import Axis, Dots, Line, chart, side_by_side
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim

TINY = 2.0**-20
SCORES = (dot / sqrt(d), dot, -sqdist / 2, 3 * cosine, 5 * tanh(dot / 5), dot / sqrt(d) - (i - j) / 4)
CURVES = (
    exp,
    softplus,
    sigmoid,
    lambda s: relu(s) + TINY,
    lambda s: relu(s) ** 2 + TINY,
    lambda s: exp(s) + relu(s),
    lambda s: 1 / (1 + s**2),
)
MASKS = (None, causal, window(3), prefix(4))


def random_formulas(count: int, seed: int) -> Iterator[Attention]:
    """Formulas with `share` and a ψ that is nowhere 0, drawn from the parts above."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        score, curve, mask = (parts[rng.integers(len(parts))] for parts in (SCORES, CURVES, MASKS))
        yield Attention(score, share(curve), mask)


@claim(
    "G2",
    "ABE",
    "An output is a convex combination: no weight is negative, each row sums to 1, and the output lies in the cloud.",
    Verdict.HOLDS,
)
def convex_combination() -> Measurements:
    """w_ij ≥ 0, Σ_j w_ij = 1, y_i ∈ hull{v_j}: of the values, or of x itself where the values are x."""
    x, Wq, Wk, Wv = normal(2, 11, 3), normal(3, 3, 5), normal(5, 3, 5), normal(7, 3, 3)
    lowest, sums, outside = [], [], []
    for attention in random_formulas(47, seed=11):
        weights = attention.weights(x @ Wq, x @ Wk)
        lowest.append(weights.min())
        sums.append(gap(weights.sum(axis=1), 1))
        outside.append(outside_hull(self_attention(x, Wq, Wk, attention=attention), x))
        outside.append(outside_hull(self_attention(x, Wq, Wk, Wv, attention=attention), x @ Wv))
    yield Measured(max(outside), "farthest output outside the hull, of 47 random formulas", at_most=1e-12)
    yield Measured(min(lowest), "smallest weight", at_least=0)
    yield Measured(max(sums), "largest |Σ_j w_ij − 1|", at_most=1e-14)
    unshared = self_attention(x, Wq, Wk, Wv, attention=Attention(weight=each(sigmoid)))
    yield Measured(outside_hull(unshared, x @ Wv), "farthest output outside where nothing is shared", at_least=0.1)


@claim("M1", "BCE", "Under a causal mask a position reads itself and the past alone.", Verdict.HOLDS)
def only_the_past() -> Measurements:
    """y_i for i < t is the same, bit for bit, whatever stands in q, k and v from t on."""
    t, arrays = 5, [normal(seed, 2, 3, 7, width).astype(np.float32) for seed, width in ((2, 5), (3, 5), (5, 11))]

    def past(attention: Attention, future: float | None = None) -> dict[str, np.ndarray]:
        """y_i for i < t on every engine; `future` replaces what stands from t on."""
        given = [array.copy() for array in arrays]
        for array in given if future is not None else []:
            array[..., t:, :] = future
        return {name: y[..., :t, :] for name, y in on_every_engine(attention, *given).items()}

    before = past(Attention(mask=causal))
    afters = [past(Attention(mask=causal), future) for future in (100.0, np.nan, np.inf)]
    most = max(changed_bits(before[name], after[name]) for after in afters for name in before.keys() & after)
    what = "bytes of the past that change when 100, NaN or ∞ replaces the future"
    yield Measured(most, what, at_most=0, detail=", ".join(before))
    before, after = past(Attention()), past(Attention(), 100.0)
    least = min(changed_bits(before[name], after[name]) for name in before)
    yield Measured(least, "bytes that change where there is no mask", at_least=1)


@claim("V3", "D", "Attention mixes what is there and makes no new features.", Verdict.HOLDS)
def no_new_features() -> Measurements:
    """Y = W V: rank Y ≤ rank V, and every row of Y lies in the row space of V."""
    q, k, v = normal(2, 13, 5), normal(3, 13, 5), normal(5, 13, 3) @ normal(7, 3, 11)  # v has rank 3 and width 11
    basis = np.linalg.svd(v)[2][:3]

    def new_part(rows: np.ndarray) -> float:
        return float(np.linalg.norm(rows - rows @ basis.T @ basis) / np.linalg.norm(rows))

    outputs = [attention(q, k, v) for attention in random_formulas(23, seed=13)]
    sizes = [np.linalg.svd(y, compute_uv=False) for y in outputs]
    yield Measured(max(map(new_part, outputs)), "largest part of an output outside the row space of V", at_most=1e-13)
    fourth = max(size[3] / size[0] for size in sizes)
    yield Measured(fourth, "fourth singular value of Y over its first, V of rank 3", at_most=1e-13)
    bent = min(new_part(np.tanh(y)) for y in outputs)
    yield Measured(bent, "the part outside after a nonlinearity, which does make features", at_least=0.01)


@claim("T1", "A", "Layers of self-attention, however many, are together one linear function.", Verdict.WRONG)
def stacked() -> Measurements:
    """x ↦ A (A x Wv) Wv is linear for a fixed A, and no linear map of x when A = softmax(x M xᵀ)."""
    Wq, Wk, Wv, A = normal(2, 3, 2), normal(3, 3, 2), normal(5, 3, 3), normal(7, 5, 5)
    inputs = normal(11, 211, 5, 3)
    fixed, own = Attention(score=table("A")[i, j]), Attention()

    def held(x: np.ndarray) -> np.ndarray:
        return np.asarray(fixed(x, x, x @ Wv, A=A))

    def free(x: np.ndarray) -> np.ndarray:
        return np.asarray(own(x @ Wq, x @ Wk, x @ Wv))

    own_fit, held_fit = (_best_linear(layer, inputs) for layer in (free, held))
    yield Measured(_misfit(*own_fit), "what the best linear map misses of two layers", at_least=0.1)
    yield Measured(_misfit(*held_fit), "the same where the weights are held fixed", at_most=1e-12)
    plots = _fit_drawn("two layers", *own_fit, tone="accent"), _fit_drawn("weights held fixed", *held_fit)
    yield Figure(side_by_side(*plots), "Were the layers one linear function, every point would lie on the line.")


Fit = tuple[np.ndarray, np.ndarray]


def _best_linear(layer: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray) -> Fit:
    """The outputs Y of two layers, and X B with the linear map B that comes nearest; a constant may be added."""
    outputs = layer(layer(inputs)).reshape(len(inputs), -1)
    given = np.column_stack([inputs.reshape(len(inputs), -1), np.ones(len(inputs))])
    return outputs, given @ np.linalg.lstsq(given, outputs, rcond=None)[0]


def _misfit(outputs: np.ndarray, nearest: np.ndarray) -> float:
    """‖Y − X B‖ / ‖Y‖."""
    return float(np.linalg.norm(outputs - nearest) / np.linalg.norm(outputs))


def _fit_drawn(title: str, outputs: np.ndarray, nearest: np.ndarray, tone: str = "ink") -> str:
    """One number of the output against what the best linear map makes of it, in units of its spread."""
    y, fitted = (column[:, 0] / outputs[:, 0].std() for column in (outputs, nearest))
    seen = (np.abs(y) < 3) & (np.abs(fitted) < 3)
    marks = Line([-3, 3], [-3, 3], "faint"), Dots(fitted[seen], y[seen], tone, size=3.6)
    return chart(Axis("best linear map", -3, 3), Axis(f"output, {title}", -3, 3), *marks, width=260, height=250)
