"""Chapter 3: the Mahalanobis distance of every row to every row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .exercise import READY_MADE, Choice, Exercise, Quiz
from .judges import Compared

TASK = """
Write `mahalanobis(x)` in NumPy. `x` is a cloud, `(n, d)`: one point in each row, and more points than coordinates.
Return `(n, n)`: the Mahalanobis distance of every point to every point,

$$d_{ij} = \\sqrt{(x_i - x_j)^\\top \\Sigma^{-1} (x_i - x_j)}$$

where $\\Sigma$ is the covariance of the cloud itself: products of centred columns, added up and divided by $n - 1$.
You may whiten first, or not.
"""

START = """import numpy as np


def mahalanobis(x):
    centred = ...
    covariance = ...
    return ...
"""

ANSWER = """import numpy as np


def mahalanobis(x):
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / (len(x) - 1)
    precision = np.linalg.inv(covariance)
    apart = x[:, None, :] - x[None, :, :]
    return np.sqrt(np.einsum("ija,ab,ijb->ij", apart, precision, apart))
"""

WHITENED = """import numpy as np


def mahalanobis(x):
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / (len(x) - 1)
    values, Q = np.linalg.eigh(covariance)
    white = centred @ Q / np.sqrt(values)
    return np.linalg.norm(white[:, None] - white[None], axis=-1)
"""
"""The same by another way: right as well."""


def _covariance(x: Any, *, centred: bool = True, less: int = 1) -> Any:
    around = x - x.mean(axis=0) if centred else x
    return around.T @ around / (len(x) - less)


def _squares(x: Any, middle: Any) -> Any:
    apart = x[:, None, :] - x[None, :, :]
    return np.einsum("ija,ab,ijb->ij", apart, middle, apart)


def _with(middle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Distances with this matrix in the middle."""
    return lambda x: np.sqrt(np.maximum(_squares(x, middle(x)), 0))


def _along(power: float) -> Callable[[Any], Any]:
    """Distances after each axis was multiplied by this power of its variance."""

    def middle(x: Any) -> Any:
        values, Q = np.linalg.eigh(_covariance(x))
        return (Q * values ** (2 * power)) @ Q.T

    return _with(middle)


def _right(x: Any) -> Any:
    return _with(lambda cloud: np.linalg.inv(_covariance(cloud)))(x)


def _rows_for_columns(x: Any) -> Any:
    values, Q = np.linalg.eigh(_covariance(x))
    white = (x - x.mean(axis=0)) @ Q.T / np.sqrt(values)
    return np.linalg.norm(white[:, None] - white[None], axis=-1)


PRECISION = "precision = np.linalg.inv(covariance)"
MISTAKES = {
    "Euclidean distance": (
        _with(lambda x: np.eye(x.shape[1])),
        "Nothing stands in the middle: every direction counts alike, however much the cloud varies along it.",
        PRECISION,
    ),
    "Σ in place of its inverse": (
        _with(_covariance),
        (
            "Directions in which the cloud varies much count even more, as if one multiplied by the spread. It is "
            "the inverse that "
            "makes them fair."
        ),
        PRECISION,
    ),
    "no square root": (
        lambda x: _squares(x, np.linalg.inv(_covariance(x))),
        "These are squared distances: right in their order, wrong in their size.",
        "return np.sqrt(squares)",
    ),
    "not centred": (
        _with(lambda x: np.linalg.inv(_covariance(x, centred=False))),
        "The mean was not taken away before the products: Σ then holds where the cloud lies, not only how it spreads.",
        "centred = x - x.mean(axis=0)",
    ),
    "divided by n": (
        _with(lambda x: np.linalg.inv(_covariance(x, less=0))),
        (
            "Σ was divided by n. With the mean taken from the same points, n − 1 is meant here; all distances are a "
            "little too large."
        ),
        "covariance = centred.T @ centred / (len(x) - 1)",
    ),
    "variances alone": (
        _with(lambda x: np.diag(1 / np.diag(_covariance(x)))),
        (
            "Each coordinate was divided by its own spread: units no longer matter, but what two coordinates share "
            "is counted twice."
        ),
        PRECISION,
    ),
    "Λ in place of its root": (
        _along(-1),
        "Along each axis it was divided by the variance. Whitening divides by its root, the spread.",
        "white = centred @ Q / np.sqrt(values)",
    ),
    "rows for columns of Q": (
        _rows_for_columns,
        (
            "eigh returns the axes as columns of Q. x @ Q.T turns the other way, and then divides along directions "
            "that are not axes."
        ),
        "white = centred @ Q / np.sqrt(values)",
    ),
}

RNG = np.random.default_rng(3)

EXERCISE = Exercise(
    function="mahalanobis",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Compared(
        _right,
        tuple((RNG.normal(size=(n, d)) @ RNG.normal(size=(d, d)) + 3,) for n, d in ((5, 2), (7, 3), (12, 5))),
        MISTAKES,
    ),
    wrong={
        "Euclidean distance": ANSWER.replace("np.linalg.inv(covariance)", "np.eye(x.shape[1])"),
        "Σ in place of its inverse": ANSWER.replace("np.linalg.inv(covariance)", "covariance"),
        "no square root": ANSWER.replace("np.sqrt(", "(", 1),
        "not centred": ANSWER.replace("x - x.mean(axis=0)", "x"),
        "divided by n": ANSWER.replace("(len(x) - 1)", "len(x)"),
        "variances alone": ANSWER.replace("np.linalg.inv(covariance)", "np.diag(1 / np.diag(covariance))"),
        "Λ in place of its root": WHITENED.replace("np.sqrt(values)", "values"),
        "rows for columns of Q": WHITENED.replace("@ Q /", "@ Q.T /"),
    },
    refused={**READY_MADE, "cdist": "SciPy's own distance", "pdist": "SciPy's own distance"},
    hints=(
        (
            "`x.mean(axis=0)` is the mean of each column. `centred.T @ centred` is `(d, d)`: every column with "
            "every column. "
            "(`np.cov(x, rowvar=False)` is the same; without `rowvar=False` it takes rows for columns.)"
        ),
        "All differences at once: `x[:, None, :] - x[None, :, :]` is `(n, n, d)`.",
        (
            "Or whiten: `values, Q = np.linalg.eigh(covariance)`, then `centred @ Q / np.sqrt(values)`, and plain "
            "distances."
        ),
    ),
)

QUIZ = Quiz(
    "The data is whitened with A, and somebody else whitens it with R A, where R is a rotation. What differs "
    "between the two?",
    (
        Choice(
            "The whitened coordinates; no distance between points.",
            "(RA)ᵀ(RA) = AᵀRᵀRA = AᵀA = Σ⁻¹, whichever rotation it is: the same circle, turned.",
            right=True,
        ),
        Choice(
            "The distances: only one whitening is right.",
            "Both give covariance 1, and both give Σ⁻¹ between two vectors. There are as many whitenings as rotations.",
        ),
        Choice("Nothing at all.", "The coordinates do differ: the cloud is turned."),
        Choice("The covariance of the whitened data.", "It is 1 in both: R · 1 · Rᵀ = 1."),
    ),
)
