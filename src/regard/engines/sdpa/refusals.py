"""Why PyTorch's kernel cannot run a call, in one clause; what shapes tell first, then what only numbers tell."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

from ...algebra.expressions import Expression
from ...algebra.laws import Kind
from ..call import Call
from ..vectors import vector
from .reduction import Form, Reduction, reduction
from .tensors import form_of, kernels, reads_groups, scale_of

MATH = 0  # torch.nn.attention.SDPBackend.MATH: scores and weights written out


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    return refusal_by_shape(call) or refusal_by_value(call)


def refusal_by_shape(call: Call) -> str | None:
    """What formula, library, shapes, dtypes, device and gradients tell."""
    if call.xp.name != "torch":
        return f"it runs on PyTorch, not on {call.xp.name}"
    law = reduction(call.formula)
    return law if isinstance(law, str) else next(_reasons(call, law), None)


def circumstances(call: Call) -> tuple[Any, ...]:
    """What `refusal_by_shape` looks at beside formula, library, shapes, dtypes, device, dropout and `call.first`."""
    if call.xp.name != "torch":
        return ()
    torch, arrays = sys.modules["torch"], [x for x in (call.q, call.k, call.v) if x is not None]
    layouts = [x.stride(-1) == 1 for x in arrays]
    learned = torch.is_grad_enabled() and tuple(x.requires_grad for x in (*arrays, *call.tables.values()))
    cuda = torch.backends.cuda  # its switches count on the CPU, too
    return (*layouts, learned, cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.cudnn_sdp_enabled())


def refusal_by_value(call: Call) -> str | None:
    """What only the numbers tell, on the CPU: a NaN or ∞."""
    law = reduction(call.formula)
    if isinstance(law, str) or call.xp.name != "torch":
        return None
    if call.v is None or call.q.device.type != "cpu" or not call.xp.known(call.q):
        return None
    if law.row is not None and not bool(vector(call, Kind.ROW, law.row.node).detach().isfinite().all()):
        return f"{law.row!r} holds NaN or ∞, which does not cancel"
    hides = law.mask is not None and form_of(call, law) != Form.NONE
    return _wild(call, law) if hides or law.is_distance else None


def _wild(call: Call, law: Reduction) -> str | None:
    """A NaN must stay in the rows that read it, and PyTorch's kernel multiplies it by 0 in the others."""
    arrays = {"q": call.q, "k": call.k, "v": call.v}
    if math.isfinite(sum(x.detach().sum().item() for x in arrays.values())):
        return None
    wild = [name for name, x in arrays.items() if not bool(x.isfinite().all())]
    where = "rows that do not read it" if law.mask is not None else "every row"
    return f"{' and '.join(wild)} hold NaN or ∞, which PyTorch's kernel would spread to {where}" if wild else None


def _reasons(call: Call, law: Reduction) -> Iterator[str]:
    if call.v is None:
        yield "there are no values, and PyTorch's kernel returns y alone"
        return
    if getattr(call, "dropout", None) is not None:
        yield "PyTorch's kernel would drop other weights"
    if any(map(call.xp.is_mapped, (call.q, call.k, call.v))):
        yield "vmap hides an axis from PyTorch's kernel"
    if 0 in (call.batch, call.heads, call.queries, call.keys):
        yield "there is nothing to attend to"
        return
    if call.v.shape[3] != call.width:
        yield f"values of width {call.v.shape[3]} beside keys of width {call.width} take PyTorch's N × n path"
        return
    yield from _rounding(call, law)
    yield from _gradients(call, law)
    if law.form == Form.TABLE and call.first is None:
        yield "each batch starts elsewhere in the bias"
    if call.q.device.type != "cpu":
        yield from _device_reasons(call, law)
    yield from _path(call, law)


def _rounding(call: Call, law: Reduction) -> Iterator[str]:
    """Distances are what large numbers leave; in half precision, q and k that are not as they came round once more."""
    dtype, pair = str(call.dtype).removeprefix("torch."), repr(Expression(law.pair))
    if law.is_distance and dtype != "float64":
        yield f"‖k‖² − 2 q·k leaves too few digits of {pair} in {dtype}"
    if call.dtype != call.working_dtype and not (law.is_plain and scale_of(call, law) is not None):
        yield f"{f'{law.factor!r} q' if law.is_plain else pair} would be rounded to {dtype} before the sum"


def _gradients(call: Call, law: Reduction) -> Iterator[str]:
    """PyTorch's kernels differentiate through q, k and v, and through attn_mask on their N × n path alone."""
    import torch

    if not (law.mask_tables and torch.is_grad_enabled()):
        return
    parts = {"k": call.k, **call.tables}
    learned = [name for name in law.mask_tables if parts[name].requires_grad]
    if learned:
        yield f"PyTorch's kernel gives no gradient for {' and '.join(learned)} in attn_mask"


def _device_reasons(call: Call, law: Reduction) -> Iterator[str]:
    """Off the CPU, PyTorch's kernels copy views that are not aligned, and take the maximum before the scale."""
    device = call.q.device.type
    if form_of(call, law) not in (Form.NONE, Form.CAUSAL, Form.GIVEN):  # truths for every pair are N × n already
        yield f"PyTorch may write attn_mask out as N × n numbers on {device}"
    if (scale_of(call, law) or 0.0) < 0:
        yield f"PyTorch's kernels on {device} need a scale above 0"


def _path(call: Call, law: Reduction) -> Iterator[str]:
    """PyTorch's own answer for arrays like those that will go in; of arrays without numbers it knows none."""
    device = call.q.device.type
    if call.xp.known(call.q):
        if _takes_math_path(call, law):
            yield "PyTorch would take its N × n path"
    elif device != "cpu":
        yield f"PyTorch does not say which path it takes on {device} before it runs"
    elif not sys.modules["torch"].backends.cuda.flash_sdp_enabled():
        yield "PyTorch would take its N × n path"


def _takes_math_path(call: Call, law: Reduction) -> bool:
    import torch

    assert call.v is not None
    sizes = (call.batch, call.heads, call.queries, call.width)
    form = form_of(call, law)
    groups = reads_groups(call, form)
    heads = int(call.k.shape[1]) if groups else call.heads
    q, k, v = _alike(call.q, sizes), *(_alike(x, (call.batch, heads, *x.shape[2:])) for x in (call.k, call.v))
    masked = form not in (Form.NONE, Form.CAUSAL)
    dtype = torch.bool if form == Form.GIVEN else call.working_dtype
    mask = torch.empty((1, 1, 1, call.keys), dtype=dtype, device=q.device) if masked else None
    causal = form == Form.CAUSAL
    try:
        with kernels(call, form):
            return int(torch._fused_sdp_choice(q, k, v, mask, 0.0, causal, scale=1.0, enable_gqa=groups)) == MATH
    except (AttributeError, TypeError, RuntimeError):  # no public way to ask; the shapes were looked at above
        return bool(call.q.device.type != "cpu")


def _alike(x: Any, sizes: tuple[int, ...] | None = None) -> Any:
    """The array, or one with the shape and layout that it will have in the kernel."""
    sizes = sizes or tuple(x.shape)
    return x if tuple(x.shape) == sizes and x.stride(-1) == 1 else x.new_empty(sizes)
