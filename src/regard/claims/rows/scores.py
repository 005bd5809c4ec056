"""Claims about s_ij = score(q_i, k_j): queries, keys, and the matrix M between two vectors."""

from __future__ import annotations

import numpy as np

from ... import geometry
from ...algebra.expressions import Expression
from ...algebra.symbols import abs_, cosine, dot, i, j, sqdist
from ...attention import Attention, self_attention
from ...inputs.images import patches, unit
from ..measure import asymmetry, gap, grey, normal, relative_gap
from ..plots import Axis, Columns, chart, heat, side_by_side
from ..record import Figure, Measured, Measurements, Verdict
from ..registry import claim


@claim("K1", "A", "One matrix in both roles can only give a symmetric score.", Verdict.HOLDS)
def one_matrix() -> Measurements:
    """s_ij = (x_i W)·(x_j W) / √d = s_ji."""
    x = normal(5, 13, 7)
    scores = [Attention().scores(x @ W, x @ W) for W in normal(7, 17, 7, 5)]
    yield Measured(max(map(asymmetry, scores)), "largest |s_ij − s_ji| / max |s| of 17 matrices", at_most=1e-14)
    wrong = [score for score in SCORES if bool(Attention(score).laws.symmetry) != _is_symmetric(score, x)]
    yield Measured(len(wrong), f"of {len(SCORES)} scores, those that the algebra judges otherwise", at_most=0)


SCORES = (dot, cosine, -sqdist / 2, dot - abs_(i - j), dot - (i - j), dot * i, dot + i * j, cosine / (2 + i) + sqdist)


def _is_symmetric(score: Expression, x: np.ndarray) -> bool:
    return asymmetry(Attention(score).scores(x, x)) < 1e-14


@claim(
    "K2",
    "AB",
    "Two matrices make the score asymmetric unless they are equal; with the identity twice the dot product is back.",
    Verdict.CONDITION,
)
def two_matrices() -> Measurements:
    """s_ij = x_i Wq Wkᵀ x_jᵀ, symmetric exactly when Wq Wkᵀ is: also for Wk = Wq S with S = Sᵀ."""
    x, Wq, Wk, square = normal(11, 13, 7), normal(13, 7, 5), normal(17, 7, 5), normal(19, 5, 5)
    symmetric = square + square.T

    def asymmetry_with(Wk: np.ndarray) -> float:
        return asymmetry(Attention().scores(x @ Wq, x @ Wk))

    yield Measured(asymmetry_with(Wk), "|s_ij − s_ji| / max |s| of two unrelated matrices", at_least=0.1)
    yield Measured(asymmetry_with(Wq @ symmetric), "the same for Wk = Wq S, S symmetric, Wk ≠ Wq", at_most=1e-14)
    yield Measured(asymmetry_with(Wq @ square), "the same for Wk = Wq S, S not symmetric", at_least=0.1)
    yield Measured(gap(Wq, Wq @ symmetric), "largest |Wq − Wq S|: they do differ", at_least=0.1)
    eye = np.eye(7)
    identity = Attention(score=dot).scores(x @ eye, x @ eye)
    yield Measured(gap(identity, x @ x.T), "largest |s_ij − x_i·x_j| for Wq = Wk = I", at_most=1e-14)


@claim("K3", "AB", "The score is x M xᵀ with an M whose rank is at most d_k, and is q·k / √d_k.", Verdict.HOLDS)
def one_matrix_between() -> Measurements:
    """x M xᵀ = (x Wq)(x Wk)ᵀ / √d_k for M = Wq Wkᵀ / √d_k, rank M ≤ d_k; x is (n, d), Wq and Wk are (d, d_k).

    Text B gives Wq and Wk as (d_k, d), which its own formulas do not fit: x Wq needs (d, d_k), and so does a product
    Wq Wkᵀ that is to be (d, d). Text A's vectors are columns, so that its W_Q is our Wqᵀ, (d_k, d), and M is W_Qᵀ W_K.
    """
    x, forms, apart = normal(2, 13, 64), {}, []
    for width in (1, 8, 61, 64, 67):
        Wq, Wk = normal(3, 64, width), normal(5, 64, width)
        forms[width] = geometry.BilinearForm.of(Wq, Wk, scale=width**-0.5)
        apart.append(relative_gap(Attention().scores(x @ Wq, x @ Wk), forms[width].scores(x)))
        apart.append(relative_gap(self_attention(x, Wq, Wk), self_attention(x, M=forms[width].matrix)))
    shown = ", ".join(f"{form.rank} for d_k = {width}" for width, form in forms.items())
    yield Measured(max(apart), "largest difference of x M xᵀ from q·k / √d_k, and of outputs", at_most=1e-12)
    wrong = sum(form.rank != min(width, 64) for width, form in forms.items())
    yield Measured(wrong, "numeric ranks that are not min(d_k, 64)", at_most=0, detail=shown)
    sizes = np.linalg.svd(normal(7, 64, 64), compute_uv=False)
    missed = float(np.linalg.norm(sizes[8:]) / np.linalg.norm(sizes))
    yield Measured(missed, "share of an M of rank 64 that no d_k = 8 can hold", at_least=0.5)


@claim(
    "K5",
    "A",
    "With queries and keys the matrix in the middle changes with the pair that is compared.",
    Verdict.WRONG,
    needs=["sklearn", "PIL"],
)
def one_matrix_for_all_pairs() -> Measurements:
    """S = X M Yᵀ gives M = X⁺ S (Yᵀ)⁺, the same whichever patches X and Y hold; w_ij changes with the other patches."""
    sky, lake, pagoda, flower = (
        _patches(*place)
        for place in (("china", 20, 400), ("china", 240, 400), ("china", 150, 150), ("flower", 150, 250))
    )
    Wq, Wk = normal(2, 16, 4), normal(3, 16, 4)
    M, attention = Wq @ Wk.T / np.sqrt(4), Attention()
    pairs = (pagoda, lake), (lake, pagoda), (sky, sky), (flower, flower)
    found = [_middle(attention.scores(x @ Wq, y @ Wk), x, y) for x, y in pairs]
    what = "largest difference of M as pagoda and lake, sky and sky, or another photograph tell it"
    yield Measured(max(relative_gap(M, one) for one in found), what, at_most=1e-9)
    own = [geometry.Mahalanobis.fit(x).precision for x in (pagoda, flower)]
    other = [_middle(geometry.BilinearForm(P).scores(x), x, x) for P, x in zip(own, (pagoda, flower), strict=True)]
    yield Measured(relative_gap(*other), "the same of a matrix that does change, Σ⁻¹ of each photograph", at_least=0.1)

    crowds = [np.concatenate([pagoda[:1], lake[:1], others]) for others in (lake, flower)]
    scores, weights = (
        [float(read(x @ Wq, x @ Wk)[0, 1]) for x in crowds] for read in (attention.scores, attention.weights)
    )
    yield Measured(abs(scores[0] - scores[1]), "difference of one pair's score in two photographs", at_most=1e-12)
    yield Measured(max(weights) / min(weights), "ratio of that pair's weights there", at_least=1.5)
    names = "M: pagoda and lake", "M: lake and pagoda", "M: sky and sky", "M: a flower"
    maps = [heat(one, name, cell=8) for name, one in zip(names, found, strict=True)]
    moving = [heat(one, f"Σ⁻¹: {name}", cell=8) for name, one in zip(("the pagoda", "a flower"), other, strict=True)]
    told = "The matrix in the middle, recovered from the scores of four kinds of pairs: one and the same. "
    yield Figure(side_by_side(*maps, *moving), told + "A matrix that does change with what is compared looks like Σ⁻¹.")


def _patches(name: str, top: int, left: int) -> np.ndarray:
    """The 256 patches of 4 × 4 of a part of a photograph in grey, from 0 to 1."""
    return np.asarray(patches(unit(grey(name)[top : top + 64, left : left + 64]).astype(float), 4).vectors)


def _middle(scores: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The M that fits X M Yᵀ = S best."""
    return np.asarray(np.linalg.pinv(x) @ scores @ np.linalg.pinv(y).T)


@claim("K6", "B", "x M xᵀ is a dot product in the geometry that M defines.", Verdict.WRONG)
def no_geometry() -> Measurements:
    """xᵀ M x < 0 for some x: M = Wq Wkᵀ is not symmetric, and (M + Mᵀ)/2 has d_k positive and d_k negative eigenvalues.

    M = W Wᵀ is symmetric and makes no length negative, but with d_k < d it makes those along d − d_k directions 0:
    it is an inner product for d_k ≥ d alone.
    """
    form = geometry.BilinearForm.of(normal(2, 64, 8), normal(3, 64, 8), scale=8**-0.5)
    x = geometry.axes(form.symmetric).vectors[:, -1]
    yield Measured(form(x, x), "xᵀ M x of a unit vector x, its squared length", at_most=-1)
    told = "{0.positive} positive, {0.negative} negative, {0.zero} zero".format
    wrong = gap(form.signature, (8, 8, 48))
    yield Measured(wrong, "eigenvalues off 8, 8, 48, for d 64, d_k 8", at_most=0, detail=told(form.signature))
    yield Measured(form.asymmetry, "‖M − Mᵀ‖ / (2 ‖M‖)", at_least=0.1)

    for width, counts in ((8, (8, 0, 56)), (64, (64, 0, 0))):
        W = normal(5, 64, width)
        shared = geometry.BilinearForm.of(W, W, scale=width**-0.5)
        what = f"M = W Wᵀ, d_k = {width}: eigenvalues off {', '.join(map(str, counts))}"
        yield Measured(gap(shared.signature, counts), what, at_most=0, detail=told(shared.signature))
        yield Measured(shared.asymmetry, "its asymmetry", at_most=1e-15)
        is_one = shared.is_inner_product
        yield Measured(is_one, "whether it is an inner product", at_least=int(width == 64), at_most=int(width == 64))
    yield _signs_drawn(form)


def _signs_drawn(form: geometry.BilinearForm) -> Figure:
    """The eigenvalues of (M + Mᵀ) / 2 by size, those below 0 in the accent."""
    values = geometry.axes(form.symmetric).values
    places, below, far = np.arange(1, len(values) + 1), values < 0, 1.1 * np.abs(values).max()
    columns = Columns(places[~below], values[~below]), Columns(places[below], values[below], "accent")
    across = Axis("the 64 eigenvalues of (M + Mᵀ) / 2, by size", 0, 65, {1: "1", 8: "8", 57: "57", 64: "64"})
    told = "{0.positive} directions have a positive squared length, {0.zero} none at all, {0.negative} a negative one."
    return Figure(chart(across, Axis("", -far, far), *columns), told.format(form.signature))
