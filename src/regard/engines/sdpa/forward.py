"""One call of PyTorch's kernel. Its gradients are PyTorch's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..._shapes import Array, Float
from ...algebra.errors import EngineError
from ..call import Call
from .reduction import Form, Reduction, reduction
from .tensors import (
    attn_mask,
    by_query_head,
    check_ranges,
    form_of,
    kernels,
    queries_and_keys,
    reads_groups,
    scale_of,
)


@dataclass(frozen=True)
class Steps:
    """The forward pass: PyTorch's kernel returns y and none of the steps before it."""

    call: Call
    y: Float[Array, "b h i e"]

    @property
    def score(self) -> NoReturn:
        """Not returned by PyTorch's kernel."""
        _refuse("scores")

    @property
    def mask(self) -> NoReturn:
        """Not returned by PyTorch's kernel."""
        _refuse("mask")

    @property
    def weights(self) -> NoReturn:
        """Not returned by PyTorch's kernel."""
        _refuse("weights")

    @property
    def log_total(self) -> NoReturn:
        """Not returned by PyTorch's kernel."""
        _refuse("totals")


def attend(call: Call) -> Steps:
    """y by PyTorch's kernel."""
    law = reduction(call.formula)
    if isinstance(law, str):
        raise EngineError(f"engine: sdpa cannot run this call: {law}")
    if call.formula.reads:
        check_ranges(call)
    with call.xp.exact(call.q):
        return Steps(call, _attended(call, law))


def _attended(call: Call, law: Reduction) -> Float[Array, "b h i e"]:
    from torch._C import DisableTorchFunction
    from torch.nn.functional import scaled_dot_product_attention

    scale = scale_of(call, law)
    q, k = queries_and_keys(call, law, scale)
    form = form_of(call, law)
    mask = None if form in (Form.NONE, Form.CAUSAL) else attn_mask(call, law)
    backwards, groups = form == Form.OFFSET, reads_groups(call, form)
    k, v = (k, call.v) if groups else (by_query_head(call, x) for x in (k, call.v))
    with kernels(call, form), DisableTorchFunction():  # PyTorch's own, also where a mode stands in for it
        y = scaled_dot_product_attention(
            packed(q.flip(2) if backwards else q), packed(k), packed(v), attn_mask=mask,
            is_causal=form == Form.CAUSAL, scale=1.0 if scale is None else scale, enable_gqa=groups,
        )  # fmt: skip
    return y.flip(2) if backwards else y


def packed(x: Any) -> Any:
    """The array with its last axis in one piece, without which PyTorch takes its N × n path."""
    return x if x.stride(-1) == 1 else x.contiguous()


def scores(call: Call) -> NoReturn:  # noqa: ARG001 - every engine is asked the same question
    """Not returned by PyTorch's kernel."""
    _refuse("scores")


def _refuse(what: str) -> NoReturn:
    raise EngineError(f'{what}: PyTorch\'s kernel returns y alone; got engine="sdpa"; take engine="dense"')
