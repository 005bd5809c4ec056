"""PyTorch's fused layers: nn.TransformerEncoderLayer and nn.MultiheadAttention in evaluation.

    q, k, v = x W_q + b_q, x W_k + b_k, x W_v + b_v        inside of one function, which hands back only the sum

Here they are made once more, beside it. Masks are True, or not 0, where a pair is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from .reading import Kernel

if TYPE_CHECKING:
    from .mode import Mode

KEYS = 1  # the kind of a mask (batch, keys); others are (queries, keys), or have four axes


def note_encoder_layer(mode: Mode, arguments: Any) -> None:
    """One fused encoder layer: its input, sizes, weights, options, norms and mask, as PyTorch hands them over."""
    src, width, heads, weight, bias, _, _, _, norm_first, eps, norm, norm_bias, *rest = arguments
    mask, kind = (*rest[6:8], None, None)[:2]
    x = F.layer_norm(src, (width,), norm, norm_bias, eps) if norm_first else src
    _note(mode, (x, x, x), heads, weight, bias, mask, kind)


def note_native(mode: Mode, arguments: Any) -> None:
    """One fused nn.MultiheadAttention: its inputs, sizes, weights, mask and options, as PyTorch hands them over."""
    query, key, value, _, heads, weight, bias, _, _, *rest = arguments
    mask, _, _, kind = (*rest, None, None, None, None)[:4]
    _note(mode, (query, key, value), heads, weight, bias, mask, kind)


def _note(mode: Mode, inputs: Any, heads: int, weight: Any, bias: Any, mask: Any, kind: int | None) -> None:
    with torch.no_grad():
        inputs, lengths = _padded(inputs)
        arrays = (F.linear(x, w, b) for x, w, b in zip(inputs, weight.chunk(3), bias.chunk(3), strict=True))
        q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in arrays)
        admitted = lengths if mask is None else _admitted(mask, kind)
        mode.keep(Kernel(mask=admitted), q, k, v)


def _padded(inputs: Any) -> tuple[Any, torch.Tensor | None]:
    """Texts of different lengths side by side, and which of their keys are theirs."""
    if not inputs[0].is_nested:
        return inputs, None
    rows = [row.shape[0] for row in inputs[1].unbind()]
    padded = {id(x): torch.nested.to_padded_tensor(x, 0.0) for x in inputs}
    places = torch.arange(max(rows), device=inputs[0].device)
    lengths = torch.tensor(rows, device=inputs[0].device)
    return [padded[id(x)] for x in inputs], (places < lengths[:, None])[:, None, None, :]


def _admitted(mask: torch.Tensor, kind: int | None) -> torch.Tensor:
    kept = ~mask.bool()
    return kept[:, None, None, :] if kind == KEYS else kept
