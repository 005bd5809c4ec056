"""Chapter 7: a causal attention whose scores fall with distance (ALiBi), in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algebra.masks import causal
from ...attention import Attention
from ...inputs.positions import ALiBi
from .exercise import Choice, Exercise, Quiz
from .judges import Checked, Compared
from .naming import Named

TASK = """
Write `attend(q, k, v)` in NumPy: a **causal** attention that knows distance (ALiBi). Arrays are `(batch, H, n, d)`.
From the score $q_i \\cdot k_j / \\sqrt d$ of head $h$ (counted from 0) subtract $2^{-8 (h + 1) / H}\\,(i - j)$; hide
the keys after the query, $j > i$; then softmax over the keys. No position is added to q or k.
"""

START = """import numpy as np


def attend(q, k, v):
    H, n = q.shape[-3], q.shape[-2]
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    slopes = ...  # one number for each head
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    scores = ...  # the farther, the less
    scores = ...  # nothing from the future
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v
"""

ANSWER = """import numpy as np


def attend(q, k, v):
    H, n = q.shape[-3], q.shape[-2]
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    slopes = 2.0 ** (-8 * (np.arange(H) + 1) / H)
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    scores = scores - slopes[:, None, None] * (i - j)
    scores = np.where(j <= i, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v
"""

FORMULA = ALiBi().join(Attention(mask=causal))


def _attend(q: Any, k: Any, v: Any, *, sign: float = -1, first: int = 1, own: bool = True, inside: bool = False) -> Any:
    """As it should be, unless something else is asked for."""
    H, n, d = q.shape[-3:]
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    slopes = 2.0 ** (-8 * (np.arange(H) + first) / H)
    bias = sign * (slopes if own else np.full(H, slopes[0]))[:, None, None] * (i - j)
    dot = q @ np.swapaxes(k, -1, -2)
    scores = (dot + bias) / np.sqrt(d) if inside else dot / np.sqrt(d) + bias
    scores = np.where(j <= i, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def _problem(seed: int, heads: int, n: int) -> tuple[Any, ...]:
    return tuple(np.random.default_rng(seed).standard_normal((3, 2, heads, n, 8)))


MISTAKES = {
    "far counts more": (
        lambda q, k, v: _attend(q, k, v, sign=1),
        "The distance is added: what lies farthest back is read most, and the word before hardly at all.",
        "scores = scores - slopes[:, None, None] * (i - j)",
    ),
    "no distance": (
        lambda q, k, v: _attend(q, k, v, sign=0),
        "The scores know nothing of where a key stands: every past position is as near as any other.",
        "scores = scores - slopes[:, None, None] * (i - j)",
    ),
    "one slope for all heads": (
        lambda q, k, v: _attend(q, k, v, own=False),
        "All heads are as short-sighted as the first. The slopes differ so that some look near and some far.",
        "slopes[:, None, None]   # (H, 1, 1): one for each head, along the axis of heads",
    ),
    "slopes counted from 0": (
        lambda q, k, v: _attend(q, k, v, first=0),
        "The first head has the slope 2⁰ = 1. The exponent counts heads from 1.",
        "slopes = 2.0 ** (-8 * (np.arange(H) + 1) / H)",
    ),
    "distance divided by √d": (
        lambda q, k, v: _attend(q, k, v, inside=True),
        "The distance is taken away before the division, so that it shrinks with the width of the keys.",
        "scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1]) - slopes[:, None, None] * (i - j)",
    ),
}

EXERCISE = Exercise(
    function="attend",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Named(
        Compared(_attend, (_problem(0, 4, 5), _problem(1, 2, 7)), MISTAKES),
        Checked(FORMULA, {"library": "numpy", "roles": "q k v", "layout": "bhnd"}),
    ),
    wrong={
        "far counts more": ANSWER.replace("scores - slopes", "scores + slopes"),
        "no distance": ANSWER.replace("    scores = scores - slopes[:, None, None] * (i - j)\n", ""),
        "one slope for all heads": ANSWER.replace("slopes[:, None, None] *", "slopes[0] *"),
        "slopes counted from 0": ANSWER.replace("(np.arange(H) + 1)", "np.arange(H)"),
        "distance divided by √d": ANSWER.replace(" / np.sqrt(k.shape[-1])", "").replace(
            "scores - slopes[:, None, None] * (i - j)",
            "(scores - slopes[:, None, None] * (i - j)) / np.sqrt(k.shape[-1])",
        ),
        "no mask": ANSWER.replace("    scores = np.where(j <= i, scores, -np.inf)\n", ""),
        "strict mask": ANSWER.replace("j <= i", "j < i"),
    },
    hints=(
        "`2.0 ** (-8 * (np.arange(H) + 1) / H)` has one slope for each head; the first head is the most short-sighted.",
        (
            "Scores are `(batch, H, n, n)`. `slopes[:, None, None]` is `(H, 1, 1)` and `i - j` is `(n, n)`: together "
            "`(H, n, n)`."
        ),
        "`np.where(j <= i, scores, -np.inf)` keeps what is not in the future. exp(−∞) is 0.",
    ),
)

QUIZ = Quiz(
    "A model without positions and without a mask reads “the dog chased the cat”, and then “the cat chased the dog”. "
    "What is the same?",
    (
        Choice(
            "Each word's output vector: “cat” becomes the same in both.",
            "Attention is equivariant: shuffle the words, and the outputs are shuffled alike. Who chased whom is not "
            "in them.",
            right=True,
        ),
        Choice(
            "The whole output, row by row: attention is invariant.",
            "The rows have changed places with the words. Only what is summed over all rows stays: that is invariant.",
        ),
        Choice(
            "Nothing: the products differ.",
            "The same pairs of words give the same products; they only stand elsewhere in the matrix.",
        ),
        Choice(
            "Only the first row, since both begin with “the”.",
            "Not only that one: every word has the same output as before, wherever it stands.",
        ),
    ),
)
