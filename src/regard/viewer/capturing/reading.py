"""A call of an attention kernel as a formula with its tables.

    s_ij = cap · tanh(scale · q_i·k_j / cap) + position_bias[b, h, i, j] + added[b, h, i, j]

Queries are the last rows of the keys, unless the call or its mask says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.masks import causal
from ...attention import Attention
from ...hf.asked import Asked, _four_axes, own_formula, read_table, scale_of
from .masks import TABLE, Masks, Seen

ONLY = Seen()


@dataclass(frozen=True)
class Kernel:
    """What a call asks for beside q, k and v. `mask` broadcasts to (…, queries, keys)."""

    scale: Any = None
    is_causal: bool = False
    mask: torch.Tensor | None = None
    softcap: float | None = None
    sink: torch.Tensor | None = None
    position_bias: torch.Tensor | None = None


def formula_of(kernel: Kernel, q: torch.Tensor, keys: int, masks: Masks) -> tuple[Attention, dict[str, Any], int]:
    """The formula, the tables that it reads, and where the first query stands."""
    queries, tables = int(q.shape[-2]), {}
    seen = ONLY if kernel.mask is None else masks.read(_four_axes("mask", _wide(kernel.mask, keys), q, keys))
    start = 0 if kernel.is_causal else max(keys - queries, 0) if seen.start is None else seen.start
    if seen.truths is not None:
        tables[TABLE] = seen.truths
    if kernel.sink is not None:
        tables["sink"] = kernel.sink.reshape(-1)
    q, bias = _four(q), kernel.position_bias
    bias = None if bias is None or not bool(bias.any()) else bias  # attention between texts gets zeros
    read = {
        name: None if numbers is None else read_table(name, numbers.detach(), q, keys, tables)
        for name, numbers in (("position_bias", bias), ("added", seen.numbers))
    }
    shifted = start > 0 and any("i" in (axes or "") for axes in read.values())
    if shifted:
        tables["first"] = start
    asked = Asked(
        scale=scale_of(kernel.scale, q.shape[-1], tables),
        softcap=kernel.softcap,
        mask=seen.mask if not kernel.is_causal else causal if seen.mask is None else causal & seen.mask,
        sink=kernel.sink is not None,
        shifted=shifted,
        **read,
    )
    return own_formula(asked), tables, start


def _wide(mask: torch.Tensor, keys: int) -> torch.Tensor:
    """A mask as wide as the keys: some are made for a longer cache."""
    return mask if mask.ndim == 0 or mask.shape[-1] <= keys else mask[..., :keys]


def fours(*arrays: torch.Tensor) -> list[torch.Tensor]:
    """Arrays of two to any number of axes with four: batch, heads, positions, width."""
    return [_four(array) for array in arrays]


def _four(array: torch.Tensor) -> torch.Tensor:
    if array.ndim > 4:
        return array.flatten(0, -4)
    return array[:, None] if array.ndim == 3 else array[None, None] if array.ndim == 2 else array
