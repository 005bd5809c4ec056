"""The formula on whole matrices, through the array API: NumPy float64 is the oracle of every other engine.

    s = score(q, k)          (B, H, N, n)
    ψ = Σ r · exp(a − m)     m: the largest a of the row, so that nothing overflows
    Z = sink + Σ_j ψ
    w = ψ / Z                0 where Z is 0
    y = w v                  (B, H, N, E)

and back, with g = dy vᵀ:

    dψ = (g − Σ_j g w) / Z       ds = ψ'(s) dψ       then through the score's own derivative

With dropout the last w becomes m w / (1 − p), and so does the first g; Z is as without.
"""

from __future__ import annotations

from .. import costs
from ..call import Call
from ..costs import Cost
from .backward import vjp
from .forward import Steps, attend, attend_part, scores, value
from .matrices import Matrices

GIVES = frozenset({"y", "totals", "matrices", "gradients"})
MATRICES = 7  # of the size of the scores, held at the peak of a masked softmax (measured)


def refusal(call: Call) -> str | None:  # noqa: ARG001 - every engine is asked the same question
    """Why this engine cannot run the call; None where it can."""
    return None


def cost(call: Call) -> Cost:
    """The cost of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    distances = sum(pair.word == "sqdist" for pair in call.formula.pairs)
    return costs.cost("dense", call, held=pairs * (MATRICES + (call.dropout is not None)), extra=distances * call.width)


__all__ = ["GIVES", "Matrices", "Steps", "attend", "attend_part", "cost", "refusal", "scores", "value", "vjp"]
