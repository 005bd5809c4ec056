"""The formula with lists and loops, every index visible: the definition that all engines are held to.

    s[b,h,i,j] = score(q[b][h][i], k[b][h//G][j], i, j, h, b)        for every admitted pair
    Z[b,h,i]   = sink + Σ_j ψ(s[b,h,i,j])
    w[b,h,i,j] = ψ(s[b,h,i,j]) / Z[b,h,i]                            0 where Z is 0
    y[b][h][i] = Σ_j w[b,h,i,j] v[b][h//G][j]

G query heads read one key head.
"""

from __future__ import annotations

from ..call import Call
from .backward import vjp
from .forward import Steps, attend, scores


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    if any(getattr(array, "requires_grad", False) for array in call.given.values()):
        return "it keeps no graph for automatic differentiation; use dense, or vjp"
    return None if call.xp.known(call.q) else "it reads numbers, which are not known while a compiler traces"


def cost(call: Call) -> tuple[int, int]:
    """Operations and bytes of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    width = int(call.v.shape[3]) if call.v is not None else 0
    return 2 * pairs * (call.width + width), 200 * pairs


__all__ = ["Steps", "attend", "cost", "refusal", "scores", "vjp"]
