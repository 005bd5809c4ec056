"""Chapter 15: measure a head, then all heads of a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...diagnosis.sandbox.limits import Limits
from ...diagnosis.sandbox.process import Call, runner_for
from ..figures.lenses import wall_of
from .exercise import Choice, Exercise, Quiz
from .judges import SECONDS, Compared

TASK = r"""
Write `previous_token(weights)` in NumPy. `weights` has shape `(heads, n, n)`: row $i$ of a head says what token $i$
reads. Return one number for each head, shape `(heads,)`: the mean weight on the token before, over all tokens that
have one. The answer is then put to every head of SmolLM2.
"""

START = """import numpy as np


def previous_token(weights):
    return ...
"""

ANSWER = """import numpy as np


def previous_token(weights):
    n = weights.shape[-1]
    here = np.arange(1, n)                     # token 0 has none before it
    return weights[:, here, here - 1].mean(axis=-1)
"""


def _right(weights: Any) -> Any:
    return np.diagonal(weights, -1, 1, 2).mean(-1)


def _itself(weights: Any) -> Any:
    return np.diagonal(weights, 0, 1, 2).mean(-1)


def _next(weights: Any) -> Any:
    return np.diagonal(weights, 1, 1, 2).mean(-1)


def _summed(weights: Any) -> Any:
    return np.diagonal(weights, -1, 1, 2).sum(-1)


def _all_rows(weights: Any) -> Any:
    return np.diagonal(weights, -1, 1, 2).sum(-1) / weights.shape[-1]


def _all_heads(weights: Any) -> Any:
    return np.diagonal(weights, -1, 1, 2).mean()


def _around(weights: Any) -> Any:
    here = np.arange(weights.shape[-1])
    return weights[:, here, here - 1].mean(-1)


def _shown(target: str) -> str:
    """Every head of SmolLM2 by the answer, and the best one by name."""
    from ... import viewer
    from ...viewer.lenses import Lens

    lens = Lens.open(Path(viewer.__file__).parent / "gallery" / "4-decoder-bakery.lens")
    with runner_for(target, Limits(seconds=SECONDS)) as runner:
        found = [np.asarray(runner.ask(Call((lens.weights(layer),))), dtype=float) for layer in range(len(lens))]
    values = np.stack(found)
    layer, head = (int(place) for place in np.unravel_index(values.argmax(), values.shape))
    picture = wall_of(
        values, lit=(layer, head), top=1.0, says="the weight on the token before, for every head of SmolLM2"
    )
    return (
        f"<figure>{picture}<figcaption>Your measure, on all {values.size} heads of SmolLM2: "
        f"layer {layer}, head {head} reads the token "
        f"before, with {values.max():.0%} of its weight.</figcaption></figure>"
    )


def _weights(seed: int, heads: int, n: int) -> Any:
    raw = np.exp(np.random.default_rng(seed).standard_normal((heads, n, n)) * 1.5)
    return raw / raw.sum(-1, keepdims=True)


MEND = "here = np.arange(1, n)\nweights[:, here, here - 1].mean(axis=-1)"
JUDGE = Compared(
    right=_right,
    problems=((_weights(0, 2, 4),), (_weights(1, 3, 7),)),
    mistakes={
        "the diagonal": (
            _itself,
            "This is the weight of each token on itself: i = j. The token before is j = i − 1.",
            MEND,
        ),
        "the next token": (
            _next,
            "Rows are who reads, columns are who is read. Above the diagonal, j = i + 1, stands the token after.",
            MEND,
        ),
        "sum in place of mean": (
            _summed,
            (
                "A longer text has more rows, so a sum grows with it. Divide by the number of "
                "tokens that have one before them."
            ),
            MEND,
        ),
        "divided by all tokens": (
            _all_rows,
            "The first token has none before it and cannot count: n − 1 rows remain, not n.",
            MEND,
        ),
        "around the corner": (
            _around,
            "For token 0 the index −1 is the last token: Python counts from behind. Begin with token 1.",
            MEND,
        ),
        "all heads in one": (
            _all_heads,
            "One number for all heads together. Take the mean along the last axis alone, and each head keeps its own.",
            MEND,
        ),
    },
)

EXERCISE = Exercise(
    function="previous_token",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=JUDGE,
    wrong={
        "the diagonal": ANSWER.replace("np.arange(1, n)", "np.arange(n)").replace("here - 1", "here"),
        "the next token": ANSWER.replace("here, here - 1", "here - 1, here"),
        "sum in place of mean": ANSWER.replace("mean(", "sum("),
        "divided by all tokens": ANSWER.replace("mean(axis=-1)", "sum(axis=-1) / n"),
        "around the corner": ANSWER.replace("np.arange(1, n)", "np.arange(n)"),
        "all heads in one": ANSWER.replace("mean(axis=-1)", "mean()"),
    },
    hints=(
        "For token 5 the wanted weight is `weights[:, 5, 4]`: row 5, column 4.",
        "`weights[:, rows, columns]` with two arrays of equal length picks one entry for each pair of them.",
        (
            "Rows 1 … n − 1 and columns one less; then the mean along the last axis. "
            "`np.diagonal(weights, -1, 1, 2)` does the same."
        ),
    ),
    show=_shown,
)

QUIZ = Quiz(
    "A head puts 99% of its weight on the first token. What follows?",
    (
        Choice(
            "The first token is the most important word of the text.",
            "The same head rests on the first token of any text, whatever it says.",
        ),
        Choice(
            "That it was read; whether it mattered is told by its value, and by what changes when it is blocked.",
            (
                "A weight of 99% on a value of nearly no length adds nearly nothing. Only an "
                "intervention tells what depends on it."
            ),
            right=True,
        ),
        Choice(
            "The head is broken and should be removed.",
            "It may rest here and work on another text, where it finds what it looks for.",
        ),
    ),
)
