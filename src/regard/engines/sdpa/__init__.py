"""PyTorch's own kernel, wherever the formula reduces to it; the reduction is a value that prints.

    >>> from regard import zoo
    >>> print(reduction(zoo.causal_dot()))
    F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / sqrt(d))
    >>> print(reduction(zoo.alibi()))
    F.scaled_dot_product_attention(q, k, v, attn_mask=offset view of -2 ** (-8 * (h + 1) / H) * (i - j), −inf where ...)
    >>> print(reduction(zoo.soft_cap()))
    the score is not slope · pair + bias with one pair of q and k

Refused wherever PyTorch would write N × n numbers, round more than the formula does, or spread a NaN.
"""

from __future__ import annotations

from .. import costs
from ..call import Call
from ..costs import Cost
from .forward import Steps, attend, scores
from .reduction import Form, Reduction, reduction
from .refusals import circumstances, refusal, refusal_by_shape, refusal_by_value


def cost(call: Call) -> Cost:
    """The cost of one forward pass."""
    law = reduction(call.formula)
    rows, columns = call.batch * call.heads * call.queries, call.batch * call.heads * call.keys
    held = rows  # a logarithm of Z for each row
    pairs = rows * call.keys
    if isinstance(law, Reduction):
        held += 0 if law.is_plain and law.is_constant else (rows + columns) * call.width
        held += columns if law.form == Form.COLUMN else 0
        held += rows + columns + 2 * rows * call.width if law.form == Form.OFFSET else 0  # queries and y, reversed
        pairs //= 2 if law.form == Form.CAUSAL else 1
    return costs.cost("sdpa", call, held=held, pairs=pairs, extra=_slower(call, law))


def _slower(call: Call, law: Reduction | str) -> int:
    """On a GPU the kernels that add a bias take about three times as long; estimated, not fitted."""
    biased = isinstance(law, Reduction) and law.form not in (Form.NONE, Form.CAUSAL)
    if call.v is None or not (biased and costs.is_on_gpu(call)):
        return 0
    return 2 * (call.width + int(call.v.shape[3]))


def notes(call: Call) -> list[str]:
    """How the formula reduces, for the plan."""
    return [str(reduction(call.formula))]


GIVES = frozenset({"y"})

__all__ = [
    "GIVES",
    "Form",
    "Reduction",
    "Steps",
    "attend",
    "circumstances",
    "cost",
    "notes",
    "reduction",
    "refusal",
    "refusal_by_shape",
    "refusal_by_value",
    "scores",
]
