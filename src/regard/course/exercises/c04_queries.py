"""Chapter 4: queries, keys and their scores."""

from __future__ import annotations

from ...attention import Attention
from .exercise import Choice, Exercise, Quiz
from .judges import Checked

TASK = """
Write the heart of `attend(x, Wq, Wk)` in NumPy: queries, keys, and the score of every pair. `x` is `(..., n, D)`, one
row for each patch; `Wq` and `Wk` are `(D, d)`. Row $i$, column $j$ of the scores is how much $i$ asks of $j$:
$q_i \\cdot k_j / \\sqrt d$. (Why $\\sqrt d$ is the next chapter's question.)

The last three lines are there already: they make shares of the scores, and take a mean with them. Leave them as they
are.
"""

START = """import numpy as np


def attend(x, Wq, Wk):
    q = ...
    k = ...
    scores = ...

    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ x
"""

ANSWER = """import numpy as np


def attend(x, Wq, Wk):
    q = x @ Wq
    k = x @ Wk
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])

    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ x
"""


EXERCISE = Exercise(
    function="attend",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Checked(Attention(), {"library": "numpy", "roles": "x wq wk"}),
    wrong={
        "keys from the queries": ANSWER.replace("k = x @ Wk", "k = x @ Wq"),
        "queries and keys swapped": ANSWER.replace("q @ np.swapaxes(k, -1, -2)", "k @ np.swapaxes(q, -1, -2)"),
        "no root of d": ANSWER.replace(" / np.sqrt(k.shape[-1])", ""),
        "d for its root": ANSWER.replace("np.sqrt(k.shape[-1])", "k.shape[-1]"),
        "root of the model width": ANSWER.replace("k.shape[-1]", "x.shape[-1]"),
        "key not transposed": ANSWER.replace("np.swapaxes(k, -1, -2)", "k"),
    },
    hints=(
        (
            "`x @ Wq` multiplies every row of `x` at once: row $i$ of it is $q_i$. The keys are made in the same "
            "way, with the other matrix."
        ),
        (
            "All products of a query with a key are one product of matrices: rows of `q` with rows of `k`, so `k` "
            "is turned on its side."
        ),
        "`np.swapaxes(k, -1, -2)` turns it, also where there are more axes in front. `k.shape[-1]` is $d$.",
    ),
)

QUIZ = Quiz(
    "Somebody says: with queries and keys, each pair of patches is compared with a matrix of its own. What is right?",
    (
        Choice(
            "One matrix M = W_Q W_Kᵀ serves all pairs; what changes from pair to pair is the score.",
            "x_i M x_jᵀ has the same M for every i and j, in every picture, until training changes it.",
            right=True,
        ),
        Choice(
            "True: M depends on the query.",
            "q depends on x, M does not: W_Q and W_K are the same two matrices for every row.",
        ),
        Choice(
            "M is Σ⁻¹ of the data.",
            "That was chapter 3: measured, symmetric. M is learned, and in general not symmetric.",
        ),
        Choice(
            "M is symmetric, because a dot product is.",
            "q·k = k·q, but q_i·k_j is not q_j·k_i: the two patches have changed their roles.",
        ),
    ),
)
