"""Chapter 13: weights over pairs, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnosis.sandbox.limits import Limits
from ...diagnosis.sandbox.process import Call, runner_for
from ..figures.charts import matrix_of
from .exercise import Choice, Exercise, Quiz
from .judges import SECONDS, Compared

TASK = r"""
Write `third(angles, beta)` in NumPy. `angles` has the places of $N$ cards on the clock, in radians, shape `(N,)`.
Return the weights over pairs, shape `(N, N, N)`:

$$w_{ijk} = \frac{\exp s_{ijk}}{\sum_{l, m} \exp s_{ilm}} \qquad s_{ijk} = \beta \cos(\theta_i + \theta_j + \theta_k)$$

All pairs count here, also $j = k$ and $j = i$. It should survive $\beta = 1000$.
"""

START = """import numpy as np


def third(angles, beta):
    scores = ...
    weights = ...
    return weights
"""

ANSWER = """import numpy as np


def third(angles, beta):
    together = angles[:, None, None] + angles[None, :, None] + angles[None, None, :]
    scores = beta * np.cos(together)
    weights = np.exp(scores - scores.max(axis=(1, 2), keepdims=True))
    return weights / weights.sum(axis=(1, 2), keepdims=True)
"""


def _softmax(scores: Any, axis: Any) -> Any:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def _three(angles: Any) -> tuple[Any, Any, Any]:
    return angles[:, None, None], angles[None, :, None], angles[None, None, :]


def _right(angles: Any, beta: float) -> Any:
    return _softmax(beta * np.cos(sum(_three(angles))), (1, 2))


def _two_looks(angles: Any, beta: float) -> Any:
    i, j, k = _three(angles)
    return _softmax(beta * (np.cos(i + j) + np.cos(i + k)), (1, 2))


def _one_axis(angles: Any, beta: float) -> Any:
    return _softmax(beta * np.cos(sum(_three(angles))), 2)


def _everything(angles: Any, beta: float) -> Any:
    return _softmax(beta * np.cos(sum(_three(angles))), (0, 1, 2))


def _difference(angles: Any, beta: float) -> Any:
    i, j, k = _three(angles)
    return _softmax(beta * np.cos(i - j - k), (1, 2))


def _no_beta(angles: Any, beta: float) -> Any:
    return _softmax(np.cos(sum(_three(angles))) + 0 * beta, (1, 2))


def _overflowing(angles: Any, beta: float) -> Any:
    with np.errstate(all="ignore"):
        weights = np.exp(beta * np.cos(sum(_three(angles))))
        return weights / weights.sum(axis=(1, 2), keepdims=True)


def _shown(target: str) -> str:
    """The pairs of one card, as the answer weighs them."""
    cards, hours = np.array([3, 5, 1, 2, 8, 4, 0]), 10
    with runner_for(target, Limits(seconds=SECONDS)) as runner:
        weights = np.asarray(runner.ask(Call((2 * np.pi * cards / hours, 60.0))), dtype=float)
    names = [str(card) for card in cards]
    picture = matrix_of(weights[0], names, names, says="weights of all pairs for the card 3", cell=34)
    return (
        f"<figure>{picture}<figcaption>Your weights, for the card {names[0]}, on a "
        f"clock of {hours}: each cell is a pair. "
        f"Those that light up complete it.</figcaption></figure>"
    )


_rng = np.random.default_rng(0)
JUDGE = Compared(
    right=_right,
    problems=(
        (_rng.uniform(0, 2 * np.pi, 3), 1.5),
        (_rng.uniform(0, 2 * np.pi, 4), 0.7),
        (np.array([0.3, 2.0, 4.5, 5.0]), 1000.0),
    ),
    mistakes={
        "two separate looks": (
            _two_looks,
            (
                "The score is a sum of a part for (i, j) and a part for (i, k). exp of a sum is a product, so w_ijk is "
                "w_ij times w_ik: two looks that know nothing of each other. j and k still never meet."
            ),
            "scores = beta * np.cos(i + j + k)      # one cosine of all three together",
        ),
        "softmax over one of the two": (
            _one_axis,
            "Each (i, j) has a whole unit of attention for its k. There is one unit for all pairs of a card together.",
            "weights / weights.sum(axis=(1, 2), keepdims=True)",
        ),
        "softmax over all three": (
            _everything,
            "All cards share one unit of attention. Each card that asks has its own.",
            "weights / weights.sum(axis=(1, 2), keepdims=True)",
        ),
        "difference in place of sum": (
            _difference,
            "This finds pairs whose sum equals the card; asked are pairs that complete it to 0.",
            "together = angles[:, None, None] + angles[None, :, None] + angles[None, None, :]",
        ),
        "beta left out": (
            _no_beta,
            "The score is not multiplied by β: a cosine lies between −1 and 1, too little for softmax to choose.",
            "scores = beta * np.cos(together)",
        ),
        "no maximum subtracted": (
            _overflowing,
            (
                "exp of 1000 is more than a float holds, and ∞ / ∞ is no number. Subtract the "
                "largest score of each card first."
            ),
            "weights = np.exp(scores - scores.max(axis=(1, 2), keepdims=True))",
        ),
    },
)

EXERCISE = Exercise(
    function="third",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=JUDGE,
    wrong={
        "two separate looks": ANSWER.replace(
            "together = angles[:, None, None] + angles[None, :, None] + angles[None, None, :]",
            "i, j, k = angles[:, None, None], angles[None, :, None], angles[None, None, :]",
        ).replace("np.cos(together)", "(np.cos(i + j) + np.cos(i + k))"),
        "softmax over one of the two": ANSWER.replace("axis=(1, 2)", "axis=-1"),
        "softmax over all three": ANSWER.replace("axis=(1, 2), keepdims=True", ""),
        "difference in place of sum": ANSWER.replace(" + angles[None", " - angles[None"),
        "beta left out": ANSWER.replace("beta * np", "np"),
        "no maximum subtracted": ANSWER.replace(" - scores.max(axis=(1, 2), keepdims=True)", ""),
    },
    hints=(
        (
            "`angles[:, None, None]` has shape (N, 1, 1); adding arrays of shapes (N, 1, 1), "
            "(1, N, 1) and (1, 1, N) gives (N, N, N)."
        ),
        "One unit of attention for each i: sum over the last two axes at once, `axis=(1, 2)`, with `keepdims=True`.",
        "exp(1000) overflows. Subtract each card's largest score: the weights stay the same.",
    ),
    show=_shown,
)

QUIZ = Quiz(
    "Why can a single head not compare two other tokens j and k with each other?",
    (
        Choice(
            "Because softmax lets only one key through.",
            "Softmax lets many keys through, each with its share. The shares are found one key at a time.",
        ),
        Choice(
            (
                "Because its output is a sum over single keys: each term has seen one other "
                "token, and the total only adds them up."
            ),
            "A sum of terms f(i, j) has no term in which j and k stand together.",
            right=True,
        ),
        Choice(
            "Because queries and keys have too few numbers.",
            "Wider vectors make one pair's score finer. Still no score holds three tokens.",
        ),
    ),
)
