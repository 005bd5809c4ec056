"""The formula with lists and loops, every index visible: the definition that all engines are held to.

    s[b,h,i,j] = score(q[b][h][i], k[b][h//G][j], i, j, h, b)        for every admitted pair
    Z[b,h,i]   = sink + Σ_j ψ(s[b,h,i,j])
    w[b,h,i,j] = ψ(s[b,h,i,j]) / Z[b,h,i]                            0 where Z is 0
    y[b][h][i] = Σ_j w[b,h,i,j] v[b][h//G][j]

G query heads read one key head. Dropout multiplies each w by f[b,h,i,j]: 1/(1−p) where it is kept, 0 where not.
"""

from __future__ import annotations

from ..._arrays import is_array
from .. import costs
from ..call import Call
from ..costs import Cost
from .backward import vjp
from .forward import Steps, attend, scores

GIVES = frozenset({"y", "totals", "matrices", "gradients"})
NUMBERS = 25  # of 8 bytes for each pair, in dictionaries


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    if any(getattr(array, "requires_grad", False) for array in call.given.values()):
        return "it keeps no graph for automatic differentiation; use dense, or vjp"
    seed = None if call.dropout is None else call.dropout.seed
    known = call.xp.known(call.q) and (not is_array(seed) or call.xp.known(seed))
    return None if known else "it reads numbers, which are not known while a compiler traces"


def cost(call: Call) -> Cost:
    """The cost of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    return costs.cost("python", call, held=pairs * NUMBERS)


__all__ = ["GIVES", "Steps", "attend", "cost", "refusal", "scores", "vjp"]
