"""Chapter 10: the backward pass of softmax attention, for queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .exercise import Choice, Exercise, Quiz
from .judges import Compared

TASK = """
Write the step back from `dy` to queries and keys. Given are `q`, `k`, `v`, each $n \\times d$, the weights `w`
$= \\mathrm{softmax}(q k^\\top / \\sqrt d)$, which are $n \\times n$, and `dy` $= \\partial L / \\partial y$,
$n \\times d$. Return `dq` and `dk`, both $n \\times d$. No loop is needed.
"""

START = """import numpy as np


def backward(q, k, v, w, dy):
    dw = ...       # what each weight would bring
    ds = ...       # through softmax
    dq = ...
    dk = ...
    return dq, dk
"""

ANSWER = """import numpy as np


def backward(q, k, v, w, dy):
    dw = dy @ v.T
    delta = (w * dw).sum(axis=-1, keepdims=True)
    ds = w * (dw - delta)
    root = np.sqrt(q.shape[-1])
    dq = ds @ k / root
    dk = ds.T @ q / root
    return dq, dk
"""


def _through(w: Any, dw: Any) -> Any:
    return w * (dw - (w * dw).sum(-1, keepdims=True))


def _ends(ds: Any, q: Any, k: Any) -> Any:
    root = np.sqrt(q.shape[-1])
    return np.stack([ds @ k / root, ds.T @ q / root])


def _right(q: Any, k: Any, v: Any, w: Any, dy: Any) -> Any:
    return _ends(_through(w, dy @ v.T), q, k)


def _by(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The whole step with another way from w and dw to ds."""
    return lambda q, k, v, w, dy: _ends(change(w, dy @ v.T), q, k)


def _no_root(q: Any, k: Any, v: Any, w: Any, dy: Any) -> Any:
    return _right(q, k, v, w, dy) * np.sqrt(q.shape[-1])


def _not_turned(q: Any, k: Any, v: Any, w: Any, dy: Any) -> Any:
    ds = _through(w, dy @ v.T)
    return np.stack([ds @ k, ds @ q]) / np.sqrt(q.shape[-1])


def _exchanged(q: Any, k: Any, v: Any, w: Any, dy: Any) -> Any:
    ds = _through(w, dy @ v.T)
    return np.stack([ds @ q, ds.T @ k]) / np.sqrt(q.shape[-1])


def _other_sum(w: Any, dw: Any) -> Any:
    return w * (dw - (w * dw).sum(0, keepdims=True))


MISTAKES = {
    "δ forgotten": (
        _by(lambda w, dw: w * dw),
        (
            "ds = w · dw treats every weight as free. They share one budget: what one gains the others lose, and "
            "the sum of ds over a row's keys must be 0."
        ),
        "delta = (w * dw).sum(axis=-1, keepdims=True)\nds = w * (dw - delta)",
    ),
    "δ over the wrong axis": (
        _by(_other_sum),
        "δ was summed over the queries. Each query has a δ of its own: what its present mixture costs.",
        "delta = (w * dw).sum(axis=-1, keepdims=True)",
    ),
    "w forgotten": (
        _by(lambda w, dw: dw - (w * dw).sum(-1, keepdims=True)),
        (
            "A score moves its weight in proportion to that weight: the slope of exp is exp. A key with weight 0 "
            "feels nothing."
        ),
        "ds = w * (dw - delta)",
    ),
    "softmax not passed": (
        _by(lambda w, dw: dw),
        "dw is the slope for the weights. Between them and the scores stands softmax, and it has a slope as well.",
        "ds = w * (dw - (w * dw).sum(axis=-1, keepdims=True))",
    ),
    "no root of d": (
        _no_root,
        "The score is q · k / √d, so its slope for q is k / √d. The root comes along on the way back.",
        "dq = ds @ k / np.sqrt(q.shape[-1])",
    ),
    "ds not transposed for dk": (
        _not_turned,
        "Row j of dk collects what all queries i want of key j: the sum runs down a column of ds.",
        "dk = ds.T @ q / root",
    ),
    "q and k exchanged": (
        _exchanged,
        "The slope of q · k for q is k, and for k it is q.",
        "dq = ds @ k / root\ndk = ds.T @ q / root",
    ),
    "uphill": (
        lambda *given: -_right(*given),
        "All signs are turned: this is the way to go, not the slope. A gradient points uphill; descent takes it off.",
        "ds = w * (dw - delta)",
    ),
}


def _problem(seed: int, n: int, d: int) -> tuple[Any, ...]:
    q, k, v, dy = np.random.default_rng(seed).standard_normal((4, n, d))
    e = np.exp(q @ k.T / np.sqrt(d))
    return q, k, v, e / e.sum(-1, keepdims=True), dy


EXERCISE = Exercise(
    function="backward",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Compared(_right, (_problem(0, 3, 2), _problem(1, 5, 4), _problem(2, 7, 8)), MISTAKES),
    wrong={
        "δ forgotten": ANSWER.replace("(dw - delta)", "dw"),
        "δ over the wrong axis": ANSWER.replace("axis=-1", "axis=0"),
        "w forgotten": ANSWER.replace("w * (dw - delta)", "dw - delta"),
        "no root of d": ANSWER.replace(" / root", ""),
        "ds not transposed for dk": ANSWER.replace("ds.T @ q", "ds @ q"),
        "q and k exchanged": ANSWER.replace("ds @ k", "ds @ q").replace("ds.T @ q", "ds.T @ k"),
    },
    hints=(
        (
            "The weight w_ij multiplies v_j, and the result meets dy_i: one more unit of it changes L by dy_i · "
            "v_j. As a matrix that is `dy @ v.T`."
        ),
        (
            "δ is one number a row: what the row's present mixture costs, Σ_j w_ij dw_ij. Only what costs more or "
            "less than that moves a score: `w * (dw - delta)`."
        ),
        "s = q kᵀ / √d. Hold k and move q: `ds @ k / root`. Hold q and move k: the same with ds on its side.",
    ),
)

QUIZ = Quiz(
    "A value $v_j$ costs exactly as much as the present mixture: $dy \\cdot v_j = dy \\cdot y = \\delta$. What happens "
    "to its score?",
    (
        Choice(
            "Nothing: its gradient is 0.",
            "ds_j = w_j (dy · v_j − δ) = 0. More of it would change the mixture, but not the loss, to first order.",
            right=True,
        ),
        Choice(
            "It falls, if dy · v_j is positive.",
            "To cost something is not enough. Weights share one budget, and a key loses only if it costs more than "
            "the mixture that would take its place.",
        ),
        Choice("It falls to 0.", "Scores fall where a value costs more than the mixture, not where it equals it."),
        Choice(
            "That depends on its weight.",
            "The weight only scales the step: w_j times 0 is 0 for every weight.",
        ),
    ),
)
