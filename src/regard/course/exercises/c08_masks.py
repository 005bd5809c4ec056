"""Chapter 8: causal self-attention by hand in PyTorch, held against PyTorch's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...algebra.masks import causal
from ...attention import Attention
from ...diagnosis.sandbox.limits import Limits
from ...diagnosis.sandbox.process import Call, runner_for
from ..pieces.numbers import as_set
from .exercise import Choice, Exercise, Found, Quiz, Verdict
from .judges import SECONDS, Checked

N, WIDTH, CLOSE = 6, 8, 1e-6

TASK = """
Write causal self-attention with one head in PyTorch: `attention(x, Wq, Wk, Wv)` for `x` of `(B, N, d)`, with matrix
products, `softmax` and `torch.triu` alone. Return **two** things, the output `(B, N, d_v)` and the weights
`(B, N, N)`.

PyTorch's ready-made attention may not stand in it. It is what the result is held against: the two must agree to
$10^{-6}$.
"""

START = """import torch
import torch.nn.functional as F


def attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    n = x.shape[-2]
    hidden = ...  # (n, n), True where j > i
    scores = ...
    weights = ...
    return weights @ v, weights
"""

ANSWER = """import torch
import torch.nn.functional as F


def attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    n = x.shape[-2]
    hidden = torch.triu(torch.ones(n, n), diagonal=1).bool()
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    scores = scores.masked_fill(hidden, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights
"""

_BEFORE = """    scores = scores.masked_fill(hidden, float("-inf"))
    weights = F.softmax(scores, dim=-1)
"""
_AFTER = """    weights = F.softmax(scores, dim=-1)
    weights = weights.masked_fill(hidden, 0.0)
"""


@dataclass(frozen=True)
class Held:
    """Held against PyTorch's own: how far apart, the weights of N = 6, and what is missing in what was returned."""

    gap: float
    weights: Any
    missing: str = ""


@dataclass(frozen=True)
class Both:
    """First rg.check, which names mistakes; then PyTorch's own function on the same numbers."""

    checked: Checked

    def __call__(self, target: str) -> Verdict:
        verdict = self.checked(target)
        if not verdict.right:
            return verdict
        held = _held(target)
        if held.missing:
            return Verdict(False, "Not yet: the weights are missing.", (Found("weights not returned", held.missing),))
        if held.gap > CLOSE:
            says = as_set(f"It differs from F.scaled_dot_product_attention by {held.gap:.1g}; {CLOSE:.0e} is allowed.")
            return Verdict(False, "Not yet: not close enough.", (Found("not close enough", says),))
        return Verdict(True, as_set(f"Right, and {held.gap:.1g} from PyTorch's own function."), verdict.found)


def _inputs() -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [torch.randn(2, N, WIDTH), *(torch.randn(WIDTH, WIDTH) / WIDTH**0.5 for _ in range(3))]


@lru_cache(maxsize=1)
def _held(target: str) -> Held:
    """The answer and PyTorch's own function, on the same float32 numbers."""
    import torch

    x, *matrices = _inputs()
    with runner_for(target, Limits(seconds=SECONDS)) as runner:
        returned = runner.ask(Call((x, *matrices)))
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        return Held(
            0.0, None, "Only one thing came back. Return the output and the weights: return weights @ v, weights"
        )
    out, weights = (torch.as_tensor(one).detach() for one in returned)
    own = torch.nn.functional.scaled_dot_product_attention(*(x @ matrix for matrix in matrices), is_causal=True)
    return Held(float((out - own).abs().max()), np.asarray(weights[0]))


def show(target: str) -> str:
    """The weights of six positions, what stands above the diagonal, and what the rows sum to."""
    held = _held(target)
    weights = np.asarray(held.weights, np.float32)
    sums = weights.sum(axis=-1, dtype=np.float32)
    above = int(np.count_nonzero(np.triu(weights, 1)))
    lines = [
        " ".join(f"{one:6.4f}" if one else "     0" for one in row) + f"   sum {total:.8f}"
        for row, total in zip(weights, sums, strict=True)
    ]
    exact = int((sums == 1).sum())
    said = (
        f"largest difference from PyTorch's own, is_causal=True   {held.gap:.1e}\n"
        f"numbers above the diagonal that are not exactly 0       {above}\n"
        f"rows that sum to exactly 1 in float32                   {exact} of {N}\n"
        f"largest distance of a sum from 1                        {np.abs(sums - 1).max():.0e}\n\n"
    )
    return f"<pre>{said}{chr(10).join(lines)}</pre>"


EXERCISE = Exercise(
    function="attention",
    task=TASK,
    start=START,
    answer=ANSWER,
    judge=Both(Checked(Attention(mask=causal), {"library": "torch", "roles": "x wq wk wv"})),
    show=show,
    wrong={
        "softmax over queries": ANSWER.replace("dim=-1)", "dim=-2)"),
        "mask after the weights": ANSWER.replace(_BEFORE, _AFTER),
        "no root of d": ANSWER.replace(" / k.shape[-1] ** 0.5", ""),
        "no mask": ANSWER.replace('    scores = scores.masked_fill(hidden, float("-inf"))\n', ""),
        "strict mask": ANSWER.replace("diagonal=1", "diagonal=0"),
        "shifted mask": ANSWER.replace("diagonal=1", "diagonal=2"),
        "inverted mask": ANSWER.replace("masked_fill(hidden", "masked_fill(~hidden"),
        "hidden scores set to 0": ANSWER.replace('float("-inf")', "0.0"),
        "returned weights are others": ANSWER.replace("weights @ v, weights", "weights @ v, scores"),
        "weights not returned": ANSWER.replace("weights @ v, weights", "weights @ v"),
        "ready-made": ANSWER.replace(
            "weights @ v, weights", "F.scaled_dot_product_attention(q, k, v, is_causal=True), weights"
        ),
    },
    hints=(
        (
            "`torch.triu(torch.ones(n, n), diagonal=1)` has ones above the diagonal: that is where $j > i$. `.bool()` "
            "makes a mask of it."
        ),
        (
            "`scores.masked_fill(hidden, float('-inf'))`, and only then softmax: exp(−∞) is exactly 0, and no part of "
            "the total."
        ),
        "If PyTorch differs, look at three things in turn: the axis of softmax, the place of the mask, the root of d.",
    ),
)

QUIZ = Quiz(
    "Weights are set to 0 after softmax, and then each row is divided by its new sum. What is wrong with that?",
    (
        Choice(
            "On paper nothing: it equals masking before. In floating point it breaks when a hidden score is far "
            "larger than the others.",
            "The total cancels, so the weights are the same. But if exp of a kept score rounds to 0 beside a huge "
            "hidden one, the row is 0/0.",
            right=True,
        ),
        Choice(
            "The hidden tokens still leak through the total.",
            "They do without the second division. With it, their part in the total cancels.",
        ),
        Choice("Rows no longer sum to 1.", "They do: that is what the second division is for."),
        Choice(
            "It is slower, but always the same.",
            "It is the same in exact arithmetic only; try a hidden score of 200 in float32.",
        ),
    ),
)
