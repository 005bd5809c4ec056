"""Chapter 9: several heads from a function that knows one, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...attention import Attention
from .exercise import Choice, Exercise, Quiz
from .judges import Checked, Compared
from .naming import Named

TASK = """
`attend(q, k, v)` is one head, and it is given. Write `multihead(x, Wq, Wk, Wv, Wo, heads)` with it: `x` is
`(batch, N, D)`, the matrices are `(D, D)`. Cut queries, keys and values into `heads` parts of D / `heads` columns
each, let every head attend by itself, put the results side by side in the order of the heads, and multiply by `Wo`. A
loop is welcome.
"""

ATTEND = """import numpy as np


def attend(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v
"""

START = f"""{ATTEND}

def multihead(x, Wq, Wk, Wv, Wo, heads):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    width = q.shape[-1] // heads
    ...
"""

ANSWER = f"""{ATTEND}

def multihead(x, Wq, Wk, Wv, Wo, heads):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    width = q.shape[-1] // heads
    found = []
    for h in range(heads):
        own = slice(h * width, (h + 1) * width)
        found.append(attend(q[..., own], k[..., own], v[..., own]))
    return np.concatenate(found, axis=-1) @ Wo
"""

RESHAPED = f"""{ATTEND}

def multihead(x, Wq, Wk, Wv, Wo, heads):
    batch, N, D = x.shape

    def split(a):
        return a.reshape(batch, N, heads, D // heads).transpose(0, 2, 1, 3)

    y = attend(split(x @ Wq), split(x @ Wk), split(x @ Wv))
    return y.transpose(0, 2, 1, 3).reshape(batch, N, D) @ Wo
"""
"""The same without a loop: all heads in one product."""


def _attend(q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def _parts(x: Any, heads: int, width: int) -> list[Any]:
    return [x[..., h * width : (h + 1) * width] for h in range(heads)]


def _found(x: Any, Wq: Any, Wk: Any, Wv: Any, heads: int) -> list[Any]:
    width = Wq.shape[1] // heads
    cut = [_parts(x @ matrix, heads, width) for matrix in (Wq, Wk, Wv)]
    return [_attend(*parts) for parts in zip(*cut, strict=True)]


def _multihead(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, heads: int) -> Any:
    return np.concatenate(_found(x, Wq, Wk, Wv, heads), axis=-1) @ Wo


def _repeated(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, _heads: int) -> Any:
    return _attend(x @ Wq, x @ Wk, x @ Wv) @ Wo


def _one_slice(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, heads: int) -> Any:
    return np.concatenate([_found(x, Wq, Wk, Wv, heads)[0]] * heads, axis=-1) @ Wo


def _woven(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, heads: int) -> Any:
    return np.stack(_found(x, Wq, Wk, Wv, heads), axis=-1).reshape(x.shape) @ Wo


def _averaged(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, heads: int) -> Any:
    return np.tile(np.mean(_found(x, Wq, Wk, Wv, heads), axis=0), heads) @ Wo


def _problem(seed: int, heads: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((2, 5, 12)), *rng.standard_normal((4, 12, 12)) / 12**0.5, heads)


MISTAKES = {
    "every head reads the whole width": (
        _repeated,
        "The width was not cut: every head asks the same question with all D columns, so all find the same weights.",
        "own = slice(h * width, (h + 1) * width)\nfound.append(attend(q[..., own], k[..., own], v[..., own]))",
    ),
    "one slice for all heads": (
        _one_slice,
        (
            "All heads use the first slice: one question, asked several times, and most columns of the matrices are "
            "never used."
        ),
        "own = slice(h * width, (h + 1) * width)   # it moves on with h",
    ),
    "heads interleaved": (
        _woven,
        (
            "The results are woven, number by number, where they should stand one head after the other: W_O meets the "
            "wrong columns."
        ),
        "np.concatenate(found, axis=-1) @ Wo",
    ),
    "heads averaged": (
        _averaged,
        "The heads are averaged, so what each one found by itself is lost before W_O can tell them apart.",
        "np.concatenate(found, axis=-1) @ Wo",
    ),
}

_SPLIT = "return a.reshape(batch, N, heads, D // heads).transpose(0, 2, 1, 3)"

EXERCISE = Exercise(
    function="multihead",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Named(
        Compared(_multihead, (_problem(0, 3), _problem(1, 2)), MISTAKES),
        Checked(Attention(), {"library": "numpy", "heads": 4}),
    ),
    wrong={
        "every head reads the whole width": ANSWER.replace(
            "attend(q[..., own], k[..., own], v[..., own])", "attend(q, k, v)[..., own]"
        ),
        "one slice for all heads": ANSWER.replace("slice(h * width, (h + 1) * width)", "slice(0, width)"),
        "heads interleaved": ANSWER.replace(
            "np.concatenate(found, axis=-1)", "np.stack(found, axis=-1).reshape(x.shape)"
        ),
        "heads averaged": ANSWER.replace("np.concatenate(found, axis=-1)", "np.tile(np.mean(found, axis=0), heads)"),
        "heads split without transpose": RESHAPED.replace(_SPLIT, "return a.reshape(batch, heads, N, D // heads)"),
        "heads merged without transpose": RESHAPED.replace("y.transpose(0, 2, 1, 3).reshape", "y.reshape"),
        "root of the model width": ANSWER.replace("np.sqrt(k.shape[-1])", "np.sqrt(width)")
        .replace("attend(q, k, v)", "attend(q, k, v, width)")
        .replace("v[..., own])", "v[..., own], x.shape[-1])"),
        "softmax over heads": RESHAPED.replace("axis=-1", "axis=1"),
        "output projection forgotten": ANSWER.replace(" @ Wo", ""),
    },
    hints=(
        "Head h owns the columns from `h * width` to `(h + 1) * width` of q, of k and of v.",
        (
            "`attend(q[..., own], k[..., own], v[..., own])` with `own = slice(h * width, (h + 1) * width)` is one "
            "head's result."
        ),
        "Collect them in a list; `np.concatenate(found, axis=-1)` puts them side by side, and `@ Wo` mixes them.",
    ),
)

QUIZ = Quiz(
    "A layer of width 512 is cut into 8 heads in place of 1. What does that cost in parameters of $W_Q$, $W_K$, $W_V$ "
    "and $W_O$?",
    (
        Choice(
            "Eight times as many.",
            "Each head has its own matrices, but each is only 64 columns wide: together 512, as before.",
        ),
        Choice(
            "Nothing: the same four matrices, cut into slices.",
            "Heads are slices of the width. What grows is the number of weight matrices: eight of N × N in place of "
            "one.",
            right=True,
        ),
        Choice("An eighth.", "Each head has an eighth of the columns, and there are eight of them."),
        Choice("It depends on N.", "Parameters never do: that is why one model reads texts of any length."),
    ),
)
