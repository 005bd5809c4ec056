"""Chapter 2: the cosine of every row with every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from .exercise import READY_MADE, Choice, Exercise, Quiz
from .judges import Compared

TASK = """
Write `cosines(x, y)` in NumPy: the cosine of **every row of `x` with every row of `y`**. `x` is `(n, d)`, `y` is
`(m, d)`, and what comes back is `(n, m)`: row $i$, column $j$ is $\\cos(x_i, y_j)$. No row is zero.
"""

START = """import numpy as np


def cosines(x, y):
    return ...
"""

ANSWER = """import numpy as np


def cosines(x, y):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    y = y / np.linalg.norm(y, axis=1, keepdims=True)
    return x @ y.T
"""


def _lengths(x: Any) -> Any:
    return np.linalg.norm(x, axis=1, keepdims=True)


def _right(x: Any, y: Any) -> Any:
    return (x / _lengths(x)) @ (y / _lengths(y)).T


def _centred(x: Any) -> Any:
    return x - x.mean(axis=1, keepdims=True)


UNIT = "x = x / np.linalg.norm(x, axis=1, keepdims=True)\ny = y / np.linalg.norm(y, axis=1, keepdims=True)"
MISTAKES = {
    "not divided by the lengths": (
        lambda x, y: x @ y.T,
        "These are dot products: a long row comes out as similar to everything. A cosine is between −1 and 1.",
        UNIT,
    ),
    "divided by the lengths of x alone": (
        lambda x, y: (x / _lengths(x)) @ y.T,
        "x has length 1 now, y has not: what is long in y still wins. Both have to be divided.",
        UNIT,
    ),
    "divided by the lengths of y alone": (
        lambda x, y: x @ (y / _lengths(y)).T,
        "y has length 1 now, x has not. The order within a row is right, but the numbers leave −1 to 1.",
        UNIT,
    ),
    "divided by squared lengths": (
        lambda x, y: (x / _lengths(x) ** 2) @ (y / _lengths(y) ** 2).T,
        (
            "The length is the root of the sum of squares; the root is missing, so long rows come out as too little "
            "similar."
        ),
        UNIT,
    ),
    "one length for the whole matrix": (
        lambda x, y: (x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)).T,
        "np.linalg.norm without axis is one number for all rows together. Each row has a length of its own.",
        UNIT,
    ),
    "lengths of the columns": (
        lambda x, y: (x / np.linalg.norm(x, axis=0)) @ (y / np.linalg.norm(y, axis=0)).T,
        (
            "axis=0 goes down the columns: each feature was brought to length 1. A vector is a row, so the sum runs "
            "over axis 1."
        ),
        UNIT,
    ),
    "centred": (
        lambda x, y: _right(_centred(x), _centred(y)),
        "Each row has lost its mean first: that is the correlation. A good measure, but another one.",
        UNIT,
    ),
    "distances": (
        lambda x, y: np.linalg.norm(x[:, None] - y[None], axis=-1),
        "These are distances: 0 for rows that are equal, where a cosine is 1.",
        "return x @ y.T  # of rows of length 1",
    ),
    "cosine distances": (
        lambda x, y: 1 - _right(x, y),
        "1 − cos is 0 for the same direction and 2 for the opposite one. Asked for is the cosine itself.",
        "return x @ y.T  # of rows of length 1",
    ),
    "rows and columns exchanged": (
        lambda x, y: _right(y, x),
        "The result is (m, n): rows belong to y. Row i should belong to x_i.",
        "return x @ y.T",
    ),
}

RNG = np.random.default_rng(2)

EXERCISE = Exercise(
    function="cosines",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Compared(
        _right,
        tuple((RNG.normal(1, 2, (n, d)), RNG.normal(1, 2, (m, d))) for n, m, d in ((2, 3, 2), (3, 4, 3), (5, 2, 8))),
        MISTAKES,
    ),
    wrong={
        "not divided by the lengths": "def cosines(x, y):\n    return x @ y.T\n",
        "divided by the lengths of x alone": ANSWER.replace(
            "    y = y / np.linalg.norm(y, axis=1, keepdims=True)\n", ""
        ),
        "divided by the lengths of y alone": ANSWER.replace(
            "    x = x / np.linalg.norm(x, axis=1, keepdims=True)\n", ""
        ),
        "one length for the whole matrix": ANSWER.replace(", axis=1, keepdims=True", ""),
        "lengths of the columns": ANSWER.replace("axis=1", "axis=0"),
        "centred": ANSWER.replace(
            "    x = x / np",
            "    x = x - x.mean(1, keepdims=True)\n    y = y - y.mean(1, keepdims=True)\n    x = x / np",
        ),
        "cosine distances": ANSWER.replace("return x", "return 1 - x"),
        "rows and columns exchanged": ANSWER.replace("x @ y.T", "y @ x.T"),
        "divided by squared lengths": """import numpy as np


def cosines(x, y):
    return x @ y.T / np.outer((x**2).sum(axis=1), (y**2).sum(axis=1))
""",
        "distances": """import numpy as np


def cosines(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))
""",
    },
    refused={
        **READY_MADE,
        "cosine_similarity": "the answer, from another library",
        "cdist": "the answer, from another library",
    },
    hints=(
        "A cosine is the dot product of two vectors of length 1. So: first the lengths, then one product.",
        (
            "`np.linalg.norm(x, axis=1, keepdims=True)` has the length of every row, as a column, so that `x /` it "
            "divides row by row."
        ),
        "`x @ y.T` has one row for each row of `x`, and one column for each row of `y`.",
    ),
)

QUIZ = Quiz(
    "Two vectors have fixed lengths. At which angle between them is their distance greatest?",
    (
        Choice("At 0°.", "There it is least: the difference of the two lengths."),
        Choice(
            "At 90°, where they have nothing in common.",
            "One can read that, but it is not so: beyond 90° the dot product goes below zero, and the distance "
            "goes on growing.",
        ),
        Choice(
            "At 180°, where they point opposite ways.",
            "‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y, and x·y is least at 180°. For lengths 1 the distances are 0, √2 and 2.",
            right=True,
        ),
        Choice("It does not depend on the angle.", "It does, by −2 x·y; only the two squares are fixed."),
    ),
)
