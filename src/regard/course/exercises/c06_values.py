"""Chapter 6: from x and its three matrices to y, in NumPy."""

from __future__ import annotations

from ...attention import Attention
from .exercise import Choice, Exercise, Quiz
from .judges import Checked

TASK = """
Write `attention(x, Wq, Wk, Wv)` in NumPy, the whole way from X to Y. `x` is `(..., N, d)`; `Wq` and `Wk` are
`(d, d_k)`, `Wv` is `(d, d_v)`. Make queries, keys and values, weigh with softmax of $q_i \\cdot k_j / \\sqrt{d_k}$
over the keys, and return Y of `(..., N, d_v)`.
"""

START = """import numpy as np


def attention(x, Wq, Wk, Wv):
    q, k, v = ..., ..., ...
    scores = ...
    weights = ...
    return ...
"""

ANSWER = """import numpy as np


def attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v
"""

EXERCISE = Exercise(
    function="attention",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Checked(Attention(), {"library": "numpy", "roles": "x wq wk wv"}),
    wrong={
        "values from the input": ANSWER.replace("weights @ v", "weights @ x"),
        "values from the keys": ANSWER.replace("x @ Wk, x @ Wv", "x @ Wk, x @ Wk"),
        "values from the queries": ANSWER.replace("x @ Wk, x @ Wv", "x @ Wk, x @ Wq"),
        "weights transposed": ANSWER.replace("return weights @ v", "return np.swapaxes(weights, -1, -2) @ v"),
        "queries and keys swapped": ANSWER.replace("q @ np.swapaxes(k, -1, -2)", "k @ np.swapaxes(q, -1, -2)"),
        "softmax over queries": ANSWER.replace("axis=-1", "axis=-2"),
        "no root of d": ANSWER.replace(" / np.sqrt(k.shape[-1])", ""),
    },
    hints=(
        "Rows are tokens, so a matrix stands on the right: `x @ Wq` turns every row of x into a query at once.",
        "The scores are `(N, N)`: one row for each query. Softmax runs along the last axis, as in chapter 5.",
        "The last product is `(N, N) @ (N, d_v)`. Which of q, k, v has d_v columns?",
    ),
)

QUIZ = Quiz(
    "You double every number in W_V and leave W_Q and W_K alone. What changes?",
    (
        Choice(
            "Every token listens to the same tokens as before, and hears them twice as loud.",
            "Weights come from q and k alone. Values enter only in the last step, so Y doubles and A stays as it is.",
            right=True,
        ),
        Choice(
            "The weights become sharper.",
            "Doubling W_Q or W_K would do that: they make the scores. W_V has no part in them.",
        ),
        Choice(
            "Nothing: softmax divides by the sum.",
            "The sum that is divided by is one of weights, and values are not in it.",
        ),
        Choice(
            "The output may leave the cloud of the values.",
            "The cloud itself is twice as large now, and the output is still an average of its points.",
        ),
    ),
)
