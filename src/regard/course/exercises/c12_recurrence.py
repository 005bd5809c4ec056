"""Chapter 12: how a gradient fades on its way back through a recurrent net."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .exercise import Choice, Exercise, Quiz
from .judges import Compared

TASK = """
Measure the fading yourself. A recurrent net has made its states $h_t = \\tanh(h_{t-1} W + x_t U)$. You get them as
`h`, an array $T \\times d$ whose last row is $h_T$, and `w` $= W$, which is $d \\times d$. Let $L$ be the sum of the
entries of $h_T$, so that the gradient there is all ones. Walk it back:

$$g_T = (1, \\ldots, 1) \\qquad g_{t-1} = \\bigl(g_t * (1 - h_t^2)\\bigr)\\, W^\\top$$

where $*$ and the square are entry by entry. Return an array of $T$ numbers: the lengths
$\\lVert g_T \\rVert, \\lVert g_{T-1} \\rVert, \\ldots, \\lVert g_1 \\rVert$, the last state first.
"""

START = """import numpy as np


def fading(h, w):
    g = np.ones(h.shape[1])
    lengths = [...]
    for state in h[:0:-1]:      # h_T, …, h_2
        g = ...
        lengths.append(...)
    return np.array(lengths)
"""

ANSWER = """import numpy as np


def fading(h, w):
    g = np.ones(h.shape[1])
    lengths = [np.linalg.norm(g)]
    for state in h[:0:-1]:
        g = (g * (1 - state**2)) @ w.T
        lengths.append(np.linalg.norm(g))
    return np.array(lengths)
"""

Step = Callable[[Any, Any, Any, Any], Any]


def _walked(step: Step) -> Callable[[Any, Any], Any]:
    """Lengths on the way back, by a step g ← step(g, h_t, h_{t−1}, w)."""

    def fading(h: Any, w: Any) -> Any:
        g = np.ones(h.shape[1])
        lengths = [np.linalg.norm(g)]
        for at in range(len(h) - 1, 0, -1):
            g = step(g, h[at], h[at - 1], w)
            lengths.append(np.linalg.norm(g))
        return np.array(lengths)

    return fading


_right = _walked(lambda g, now, before, w: (g * (1 - now**2)) @ w.T)
STEP = "g = (g * (1 - state**2)) @ w.T"
MISTAKES = {
    "slope of tanh forgotten": (
        _walked(lambda g, now, before, w: g @ w.T),
        (
            "The state went through tanh, and so must the gradient: the slope of tanh at h is 1 − h², at most 1. "
            "Without it nothing would ever saturate."
        ),
        STEP,
    ),
    "w not transposed": (
        _walked(lambda g, now, before, w: (g * (1 - now**2)) @ w),
        "Forward a row is multiplied by W; on the way back it is multiplied by W on its side.",
        STEP,
    ),
    "slope at the state before": (
        _walked(lambda g, now, before, w: (g * (1 - before**2)) @ w.T),
        "1 − h² was taken at h_{t−1}. The step from g_t to g_{t−1} goes through the tanh that made h_t.",
        "for state in h[:0:-1]:      # h_T first\n    " + STEP,
    ),
    "slope behind the matrix": (
        _walked(lambda g, now, before, w: (g @ w.T) * (1 - now**2)),
        "Forward W comes first and tanh second; backward tanh comes first.",
        STEP,
    ),
    "slope without the square": (
        _walked(lambda g, now, before, w: (g * (1 - now)) @ w.T),
        "The slope of tanh is 1 − tanh², not 1 − tanh.",
        STEP,
    ),
    "farthest first": (
        lambda h, w: _right(h, w)[::-1],
        "The lengths are right and stand the wrong way round: the last state comes first, then ever farther back.",
        "return np.array(lengths)",
    ),
    "squares of lengths": (
        lambda h, w: _right(h, w) ** 2,
        "These are squared lengths. A length is the root of the sum of squares.",
        "lengths.append(np.linalg.norm(g))",
    ),
    "from the wrong end": (
        lambda h, w: _right(h[::-1], w),
        "The walk began at h_1. It begins at the end, at h_T, and goes back in time.",
        "for state in h[:0:-1]:      # h_T, …, h_2",
    ),
}


def _problem(seed: int, rows: int, width: int, size: float) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    w = size * rng.standard_normal((width, width)) / np.sqrt(width)
    h, states = np.zeros(width), []
    for row in rng.standard_normal((rows, width)):
        h = np.tanh(h @ w + row)
        states.append(h)
    return np.stack(states), w


EXERCISE = Exercise(
    function="fading",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Compared(_right, (_problem(0, 4, 2, 1.0), _problem(1, 6, 5, 1.5), _problem(2, 9, 8, 2.0)), MISTAKES),
    wrong={
        "slope of tanh forgotten": ANSWER.replace("(g * (1 - state**2)) @ w.T", "g @ w.T"),
        "w not transposed": ANSWER.replace("w.T", "w"),
        "slope at the state before": ANSWER.replace("h[:0:-1]", "h[-2::-1]"),
        "slope behind the matrix": ANSWER.replace("(g * (1 - state**2)) @ w.T", "(g @ w.T) * (1 - state**2)"),
        "slope without the square": ANSWER.replace("state**2", "state"),
        "farthest first": ANSWER.replace("np.array(lengths)", "np.array(lengths[::-1])"),
        "squares of lengths": ANSWER.replace("np.linalg.norm(g)", "g @ g"),
        "from the wrong end": ANSWER.replace("h[:0:-1]", "h[:-1]"),
    },
    hints=(
        "The first length is that of a row of ones: `np.linalg.norm(g)`.",
        "`1 - state**2` is the slope of tanh at this state, entry by entry; it multiplies `g` before the matrix does.",
        "Row g, matrix on its side: `(g * (1 - state**2)) @ w.T`.",
    ),
)

QUIZ = Quiz(
    "What does attention pay for having one step between any two rows?",
    (
        Choice(
            "It looks at all pairs: N² scores for N rows.",
            "A recurrent net does N steps of one size. Attention has no order to wait for, but its work and, held "
            "whole, its matrix grow with N². Chapter 14 deals with the matrix.",
            right=True,
        ),
        Choice(
            "It forgets what is far away.", "Distance has no part in the formula; a weight depends on q and k alone."
        ),
        Choice(
            "Its rows have to be worked out one after the other.",
            "That is the recurrent net: h_t needs h_{t−1}. Rows of attention need no other output row.",
        ),
        Choice("It has more parameters for longer texts.", "W_Q, W_K and W_V are the same for every length."),
    ),
)
