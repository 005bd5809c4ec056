"""Chapter 11: layer normalisation, and a block that is made with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .exercise import Choice, Exercise, Quiz
from .judges import Compared

TASK = """
Write the block. `attend` and `feed` are given and finished: the first lets rows read each other, the second works on
each row by itself. You write two functions. `norm(x)` gives every row mean 0 and spread 1 (divide by $n$, not
$n - 1$; no learned numbers). `block(x, wq, wk, wv, w1, w2)` is the block with the norm **before** each part:

$$x \\leftarrow x + \\mathrm{attend}(\\mathrm{norm}(x)) \\qquad x \\leftarrow x + \\mathrm{feed}(\\mathrm{norm}(x))$$

`x` is $n \\times D$: one row for each token. Return the new `x`, of the same shape.
"""

GIVEN = """import numpy as np


def attend(x, wq, wk, wv):
    q, k, v = x @ wq, x @ wk, x @ wv
    s = q @ k.T / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(axis=-1, keepdims=True))
    return w / w.sum(axis=-1, keepdims=True) @ v


def feed(x, w1, w2):
    return np.maximum(x @ w1, 0) @ w2


"""

START = (
    GIVEN
    + """def norm(x):
    return ...


def block(x, wq, wk, wv, w1, w2):
    return ...
"""
)

ANSWER = (
    GIVEN
    + """def norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance)


def block(x, wq, wk, wv, w1, w2):
    x = x + attend(norm(x), wq, wk, wv)
    x = x + feed(norm(x), w1, w2)
    return x
"""
)

Part = Callable[[Any], Any]
Order = Callable[[Any, Part, Part, Part], Any]


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def _before(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    x = x + attend(norm(x))
    return x + feed(norm(x))


def _made(order: Order = _before, norm: Part = _norm) -> Callable[..., Any]:
    """A block with another order, or another norm."""

    def block(x: Any, wq: Any, wk: Any, wv: Any, w1: Any, w2: Any) -> Any:
        def attend(z: Any) -> Any:
            s = z @ wq @ (z @ wk).T / np.sqrt(wq.shape[-1])
            w = np.exp(s - s.max(-1, keepdims=True))
            return w / w.sum(-1, keepdims=True) @ (z @ wv)

        return order(x, norm, attend, lambda z: np.maximum(z @ w1, 0) @ w2)

    return block


def _no_residual(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    return feed(norm(attend(norm(x))))


def _after(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    x = norm(x + attend(x))
    return norm(x + feed(x))


def _stream_normed(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    x = norm(x)
    x = norm(x + attend(x))
    return x + feed(x)


def _second_missing(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    x = x + attend(norm(x))
    return feed(norm(x))


def _one_norm(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    x = x + attend(norm(x))
    return x + feed(x)


def _beside(x: Any, norm: Part, attend: Part, feed: Part) -> Any:
    return x + attend(norm(x)) + feed(norm(x))


def _variance(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / x.var(-1, keepdims=True)


def _tokens(x: Any) -> Any:
    return (x - x.mean(0, keepdims=True)) / x.std(0, keepdims=True)


def _whole(x: Any) -> Any:
    return (x - x.mean()) / x.std()


def _sample(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True, ddof=1)


def _no_mean(x: Any) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


ADD = "x = x + attend(norm(x), wq, wk, wv)\nx = x + feed(norm(x), w1, w2)"
ROW = "mean = x.mean(axis=-1, keepdims=True)\nvariance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)"
MISTAKES = {
    "residual missing": (
        _made(_no_residual),
        (
            "What a part makes takes the place of what was there. After a few blocks nothing of the input is left, "
            "and rows become one another."
        ),
        ADD,
    ),
    "second residual missing": (
        _made(_second_missing),
        "The feed-forward's result takes the place of the rows. Both parts are added to what was there.",
        ADD,
    ),
    "norm after the sum": (
        _made(_after),
        (
            "This is norm(x + part(x)): the first transformer's way. It works, but here the norm stands before the "
            "part, so that the stream itself runs through untouched."
        ),
        ADD,
    ),
    "the stream is normed": (
        _made(_stream_normed),
        "The normed rows were kept as x. The norm is for the part that reads; what it is added to stays as it was.",
        ADD,
    ),
    "second norm missing": (
        _made(_one_norm),
        "The feed-forward reads rows of any length. Each part has a norm before it.",
        "x = x + feed(norm(x), w1, w2)",
    ),
    "feed-forward beside attention": (
        _made(_beside),
        "Both parts read the same x. The feed-forward comes second: it works on what attention has brought.",
        ADD,
    ),
    "variance not rooted": (
        _made(norm=_variance),
        "The rows were divided by their variance. A spread is its root: √variance.",
        "return (x - mean) / np.sqrt(variance)",
    ),
    "norm over tokens": (
        _made(norm=_tokens),
        (
            "Mean and spread were taken down the columns, over all tokens. Each row has its own: a token must not "
            "change because others stand beside it."
        ),
        ROW,
    ),
    "one norm for all rows": (
        _made(norm=_whole),
        "One mean and one spread were taken over the whole table. Each row has its own.",
        ROW,
    ),
    "divided by n − 1": (
        _made(norm=_sample),
        "The spread is that of a sample, with n − 1 below. Layer normalisation divides by n.",
        "variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)",
    ),
    "mean not subtracted": (
        _made(norm=_no_mean),
        (
            "Rows were divided by their size alone. That is RMSNorm, which many models use; here the mean is taken "
            "off first."
        ),
        ROW,
    ),
}


def _problem(seed: int, n: int, width: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    x = 2 * rng.standard_normal((n, width)) + 1
    wq, wk, wv = rng.standard_normal((3, width, width)) / np.sqrt(width)
    return x, wq, wk, wv, rng.standard_normal((width, 2 * width)) / 2, rng.standard_normal((2 * width, width)) / 2


EXERCISE = Exercise(
    function="block",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Compared(_made(), (_problem(0, 3, 4), _problem(1, 5, 6), _problem(2, 4, 8)), MISTAKES),
    wrong={
        "residual missing": ANSWER.replace("x = x + attend", "x = attend").replace("x = x + feed", "x = feed"),
        "norm after the sum": ANSWER.replace(
            "x = x + attend(norm(x), wq, wk, wv)", "x = norm(x + attend(x, wq, wk, wv))"
        ).replace("x = x + feed(norm(x), w1, w2)", "x = norm(x + feed(x, w1, w2))"),
        "variance not rooted": ANSWER.replace("np.sqrt(variance)", "variance"),
        "norm over tokens": ANSWER.replace(".mean(axis=-1", ".mean(axis=0"),
        "divided by n − 1": ANSWER.replace("np.sqrt(variance)", "x.std(axis=-1, keepdims=True, ddof=1)"),
        "second norm missing": ANSWER.replace("feed(norm(x), w1", "feed(x, w1"),
        "feed-forward beside attention": ANSWER.replace(
            "x = x + attend(norm(x), wq, wk, wv)\n    x = x + feed",
            "x = x + attend(norm(x), wq, wk, wv) + feed",
        ),
    },
    hints=(
        "A row's mean is `x.mean(axis=-1, keepdims=True)`; `keepdims` lets it be taken off every entry of that row.",
        "The spread is the root of the mean square of what is left after the mean is taken off.",
        "The norm is inside, the sum outside: `x + attend(norm(x), …)`. Then the same with `feed`, on the new x.",
    ),
)

QUIZ = Quiz(
    "Twelve layers of attention alone: no residual, no feed-forward. What comes out?",
    (
        Choice(
            "Rows that are all nearly the same.",
            "Each layer averages, and averages of averages move together. After a few layers every row is the mean "
            "of everything; no later layer can tell them apart again.",
            right=True,
        ),
        Choice(
            "The same as one linear map of the input.",
            "It is linear only while the weights are held fixed. They depend on what is read, and no linear map "
            "comes near it.",
        ),
        Choice("The input, unchanged.", "That would take a residual: without it, what was there is gone."),
        Choice("Rows that grow without bound.", "Averages do not grow; growth is what sums without a norm do."),
    ),
)
