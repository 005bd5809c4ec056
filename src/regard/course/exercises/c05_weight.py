"""Chapter 5: softmax with its root, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...attention import Attention
from .exercise import Choice, Exercise, Quiz
from .judges import Checked, Compared
from .naming import Named

TASK = """
Write `attend(q, k, v)` in NumPy: scores $q_i \\cdot k_j / \\sqrt{d}$, softmax over the keys, and the values by their
weights. Arrays are `(..., n, d)`. It should also survive scores of a thousand.
"""

START = """import numpy as np


def attend(q, k, v):
    scores = ...
    weights = ...
    return weights @ v
"""

ANSWER = """import numpy as np


def attend(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v
"""


def _attend(q: Any, k: Any, v: Any, axis: int | None = -1) -> Any:
    """Softmax with a total over an axis; over all of the array with none."""
    scores = q @ k.T / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True) @ v


def _problem(seed: int) -> tuple[Any, Any, Any]:
    """As many tokens as numbers in each: a product that is the wrong way round still runs, and is named."""
    q, k, v = np.random.default_rng(seed).standard_normal((3, 5, 5))
    return q, k, v


MISTAKES = {
    "one total for all rows": (
        lambda q, k, v: _attend(q, k, v, axis=None),
        (
            "The sum runs over the whole array, so that all weights together are 1. Each row should have a whole of "
            "its own: as it is, a query hears less the more queries there are."
        ),
        "weights = weights / weights.sum(axis=-1, keepdims=True)",
    ),
}

EXERCISE = Exercise(
    function="attend",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Named(Compared(_attend, (_problem(0), _problem(1)), MISTAKES), Checked(Attention(), {"library": "numpy"})),
    wrong={
        "no root of d": ANSWER.replace(" / np.sqrt(k.shape[-1])", ""),
        "softmax over queries": ANSWER.replace("axis=-1", "axis=-2"),
        "one total for all rows": ANSWER.replace("weights.sum(axis=-1, keepdims=True)", "weights.sum()"),
        "no maximum subtracted": ANSWER.replace(" - scores.max(axis=-1, keepdims=True)", ""),
    },
    hints=(
        "`q @ np.swapaxes(k, -1, -2)` has one row for each query and one column for each key.",
        "Keys stand along the last axis of the scores: that is the axis to sum over, with `keepdims=True`.",
        "exp of a large number overflows. What can be taken from every score of a row without changing the weights?",
    ),
)

QUIZ = Quiz(
    "Why are scores divided by √d before softmax?",
    (
        Choice("So that the weights sum to 1.", "They sum to 1 with any scale: the division by the total does that."),
        Choice(
            "Because scores of d products spread like √d, and softmax of far-apart scores listens to one key alone.",
            "Variances add: d products of spread 1 make a sum of spread √d. Divided by √d it is 1 again, for any d.",
            right=True,
        ),
        Choice("To make the product of the matrices cheaper.", "It costs one more operation for each pair."),
        Choice("Because long vectors are less similar.", "A longer vector has larger dot products, if anything."),
    ),
)
