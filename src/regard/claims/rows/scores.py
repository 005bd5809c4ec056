"""Claims about s_ij = score(q_i, k_j): distance and dot product, symmetry."""

from __future__ import annotations

import numpy as np

from ...algebra.expressions import Expression
from ...algebra.symbols import abs_, cosine, dot, i, j, sqdist, table
from ...attention import Attention
from ..measure import asymmetry, gap, normal
from ..record import Measured, Measurements, Verdict
from ..registry import claim


@claim(
    "G5",
    "A",
    "A squared distance is two squared lengths less twice the dot product; at equal lengths it ranks in reverse.",
    Verdict.HOLDS,
)
def distance_and_dot() -> Measurements:
    """‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖²."""
    q, k = normal(2, 11, 5), normal(3, 13, 5)
    products, distances = (Attention(score=score).scores(q, k) for score in (dot, sqdist))
    lengths = np.sum(q**2, axis=1)[:, None] + np.sum(k**2, axis=1)
    yield Measured(gap(distances, lengths - 2 * products), "largest error of the identity", at_most=1e-12)

    level = 3 * k / np.linalg.norm(k, axis=1, keepdims=True)
    yield Measured(_ranked_apart(q, level), "queries that rank keys of one length differently", at_most=0)
    yield Measured(_ranked_apart(q, k), "the same for keys of different lengths", at_least=1)
    by_distance, by_product = (Attention(score=score).weights(q, level) for score in (-sqdist / 2, dot))
    yield Measured(gap(by_distance, by_product), "largest difference of the weights at one length", at_most=1e-12)
    yield Measured(_error_of_the_law(q, k), "largest error of the weights that the algebra derives", at_most=1e-12)


def _error_of_the_law(q: np.ndarray, k: np.ndarray) -> float:
    """a ‖q − k‖² + c = −2a q·k + a ‖k‖² + c + (what depends on q alone, and cancels): a and c from the algebra."""
    attention = Attention(score=-sqdist / 3 + (i - j) / 4)
    law = attention.laws.affine
    assert law is not None
    derived = Attention(score=-2 * law.slope * dot + law.slope * table("squares")[j] + law.rest)
    return gap(attention.weights(q, k), derived.weights(q, k, squares=np.sum(k**2, axis=1)))


def _ranked_apart(q: np.ndarray, k: np.ndarray) -> int:
    """How many queries order the keys by rising distance other than by falling dot product."""
    nearest = np.argsort(Attention(score=sqdist).scores(q, k), axis=1)
    likest = np.argsort(-Attention(score=dot).scores(q, k), axis=1)
    return int(np.sum(np.any(nearest != likest, axis=1)))


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
