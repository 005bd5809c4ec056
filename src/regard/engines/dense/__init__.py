"""The formula on whole matrices, through the array API: NumPy float64 is the oracle of every other engine.

    s = score(q, k)          (B, H, N, n)
    ψ = Σ r · exp(a − m)     m: the largest a of the row, so that nothing overflows
    Z = sink + Σ_j ψ
    w = ψ / Z                0 where Z is 0
    y = w v                  (B, H, N, E)

and back, with g = dy vᵀ:

    dψ = (g − Σ_j g w) / Z       ds = ψ'(s) dψ       then through the score's own derivative
"""

from __future__ import annotations

from ..call import Call
from .backward import vjp
from .forward import Steps, attend, scores
from .matrices import Matrices

MATRICES = 7  # of the size of the scores, held at the peak of a masked softmax (measured)


def refusal(call: Call) -> str | None:  # noqa: ARG001 - every engine is asked the same question
    """Why this engine cannot run the call; None where it can."""
    return None


def cost(call: Call) -> tuple[int, int]:
    """Operations and bytes of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    size = 4 if "64" not in str(call.working_dtype) else 8
    width = int(call.v.shape[3]) if call.v is not None else 0
    distances = sum(pair.word == "sqdist" for pair in call.formula.pairs)
    return 2 * pairs * (call.width * (1 + distances) + width), size * pairs * MATRICES


__all__ = ["Matrices", "Steps", "attend", "cost", "refusal", "scores", "vjp"]
