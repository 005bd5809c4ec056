"""Chapter 14: softmax attention over blocks of keys, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...attention import Attention
from .exercise import Choice, Exercise, Quiz, Verdict
from .judges import Checked, Compared

TASK = r"""
Write `attend(q, k, v, block=4)` in NumPy: softmax attention with $q_i \cdot k_j / \sqrt{d}$, reading `block` keys at
a time. Arrays are `(n, d)`. Keep for each query the largest score so far, the total so far and the sum so far; never
make the whole matrix. The number of keys need not be a multiple of `block`, and scores of a thousand must do no harm.
"""

START = """import numpy as np


def attend(q, k, v, block=4):
    m = np.full((len(q), 1), -np.inf)      # the largest score so far
    Z = np.zeros((len(q), 1))              # the total so far
    y = np.zeros((len(q), v.shape[-1]))    # the sum so far
    for first in range(0, len(k), block):
        scores = ...
        ...
    return y / Z
"""

ANSWER = """import numpy as np


def attend(q, k, v, block=4):
    m = np.full((len(q), 1), -np.inf)
    Z = np.zeros((len(q), 1))
    y = np.zeros((len(q), v.shape[-1]))
    for first in range(0, len(k), block):
        scores = q @ k[first : first + block].T / np.sqrt(q.shape[-1])
        new = np.maximum(m, scores.max(axis=-1, keepdims=True))
        factor = np.exp(m - new)
        weights = np.exp(scores - new)
        Z = factor * Z + weights.sum(axis=-1, keepdims=True)
        y = factor * y + weights @ v[first : first + block]
        m = new
    return y / Z
"""


def _stream(q: Any, k: Any, v: Any, block: int, *, root: bool = True, shifted: bool = True, total: bool = True,
            summed: bool = True, ragged: bool = True) -> Any:  # fmt: skip
    """The stream, and with a part left out what a mistake makes of it."""
    m, Z, y = np.full((len(q), 1), -np.inf), np.zeros((len(q), 1)), np.zeros((len(q), v.shape[-1]))
    last = len(k) if ragged else len(k) // block * block
    with np.errstate(all="ignore"):
        for first in range(0, last, block):
            part = slice(first, min(first + block, last))
            scores = q @ k[part].T / (np.sqrt(q.shape[-1]) if root else 1)
            new = np.maximum(m, scores.max(axis=-1, keepdims=True)) if shifted else np.zeros_like(m)
            factor = np.exp(m - new) if shifted else np.ones_like(m)
            weights = np.exp(scores - new)
            Z = (factor if total else 1) * Z + weights.sum(axis=-1, keepdims=True)
            y = (factor if summed else 1) * y + weights @ v[part]
            m = new
        return y / Z


def _right(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block)


def _no_root(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, root=False)


def _no_maximum(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, shifted=False)


def _total_left(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, total=False)


def _sum_left(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, summed=False)


def _both_left(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, total=False, summed=False)


def _dropped(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    return _stream(q, k, v, block, ragged=False)


def _nothing(q: Any, _: Any, v: Any, __: int = 4) -> Any:
    return np.full((len(q), v.shape[-1]), np.nan)


def _averaged(q: Any, k: Any, v: Any, block: int = 4) -> Any:
    parts = [slice(first, first + block) for first in range(0, len(k), block)]
    return np.mean([_stream(q, k[part], v[part], len(k)) for part in parts], axis=0)


def _problem(seed: int, queries: int, keys: int, width: int, block: int, spread: float = 1.0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    q, k = spread * (0.5 + rng.random((queries, width))), 0.5 + rng.random((keys, width))
    return q, k + np.arange(keys)[:, None] % 3, rng.standard_normal((keys, 2)), block


BOTH = "Z = factor * Z + weights.sum(axis=-1, keepdims=True)\ny = factor * y + weights @ v[first : first + block]"
NAMED = Compared(
    right=_right,
    problems=(_problem(0, 2, 7, 3, 3), _problem(1, 3, 8, 4, 4), _problem(2, 2, 9, 4, 2, 2000.0)),
    mistakes={
        "no block was read": (
            _nothing,
            "The total is still 0, and 0 / 0 is no number: the loop adds nothing to it yet.",
            BOTH,
        ),
        "total not rescaled": (
            _total_left,
            (
                "When a larger score comes, the sum is made smaller but the total is not. "
                "Both were added under the old maximum."
            ),
            BOTH,
        ),
        "sum not rescaled": (
            _sum_left,
            (
                "When a larger score comes, the total is made smaller but the sum is not. "
                "Both were added under the old maximum."
            ),
            BOTH,
        ),
        "nothing rescaled": (
            _both_left,
            (
                "Each block subtracts another maximum, so their exponentials are in "
                "different units. Before a block is added, "
                "what is there must be multiplied by exp(old maximum − new maximum)."
            ),
            f"factor = np.exp(m - new)\n{BOTH}",
        ),
        "no maximum subtracted": (
            _no_maximum,
            "exp of the raw scores overflows, and ∞ / ∞ is no number. Subtract the largest score so far.",
            "new = np.maximum(m, scores.max(axis=-1, keepdims=True))\nweights = np.exp(scores - new)",
        ),
        "last block dropped": (
            _dropped,
            "Where the keys are no multiple of the block, the last few are never read.",
            "for first in range(0, len(k), block):      # the last slice is simply shorter",
        ),
        "a softmax for each block": (
            _averaged,
            (
                "Each block is divided by its own total, and the results are averaged: a block in which nobody matters "
                "then counts as much as one that holds the answer. Divide once, in the end."
            ),
            BOTH,
        ),
        "no root of d": (
            _no_root,
            "The score is not divided by √d.",
            "scores = q @ k[first : first + block].T / np.sqrt(q.shape[-1])",
        ),
    },
)
WHOLE = Checked(Attention(), {"library": "numpy", "layout": "nd"})


def judge(target: str) -> Verdict:
    """First the mistakes of streams, by name; what passes is then checked as any attention is."""
    verdict = NAMED(target)
    return WHOLE(target) if verdict.right else verdict


AVERAGED = """import numpy as np


def attend(q, k, v, block=4):
    y, blocks = 0, range(0, len(k), block)
    for first in blocks:
        scores = q @ k[first : first + block].T / np.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        y = y + weights / weights.sum(axis=-1, keepdims=True) @ v[first : first + block]
    return y / len(blocks)
"""
FACTOR_Z, FACTOR_Y = "Z = factor * Z +", "y = factor * y +"
EXERCISE = Exercise(
    function="attend",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=judge,
    wrong={
        "total not rescaled": ANSWER.replace(FACTOR_Z, "Z = Z +"),
        "sum not rescaled": ANSWER.replace(FACTOR_Y, "y = y +"),
        "nothing rescaled": ANSWER.replace(FACTOR_Z, "Z = Z +").replace(FACTOR_Y, "y = y +"),
        "no maximum subtracted": ANSWER.replace("np.exp(scores - new)", "np.exp(scores)").replace(
            "np.exp(m - new)", "1"
        ),
        "last block dropped": ANSWER.replace("len(k), block)", "len(k) // block * block, block)"),
        "a softmax for each block": AVERAGED,
        "no root of d": ANSWER.replace(" / np.sqrt(q.shape[-1])", ""),
    },
    hints=(
        (
            "`k[first : first + block]` is a block of keys, the last one too: a slice that "
            "reaches past the end is simply shorter."
        ),
        "new = max of m and this block's scores, for each query: `np.maximum(m, scores.max(axis=-1, keepdims=True))`.",
        "What was added under the old maximum is multiplied by `np.exp(m - new)`: the total and the sum alike.",
    ),
)

QUIZ = Quiz(
    "A query has read half of its keys. What must it remember of them, to finish exactly?",
    (
        Choice("All their scores.", "They are never needed again: their part of both sums is already added."),
        Choice(
            (
                "The largest score, the total and the sum of values: as many numbers whether "
                "it has read ten keys or a million."
            ),
            (
                "From these three, any block that follows can be added exactly; the factor exp(m "
                "− m′) puts old and new into one unit."
            ),
            right=True,
        ),
        Choice(
            "Only its output so far.",
            "Then it would not know how much that output weighs against the next block: the total is missing.",
        ),
    ),
)
