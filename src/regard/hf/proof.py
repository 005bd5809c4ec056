"""A model's own eager attention beside the formula that we read from its call, on a few rows of made-up numbers.

A call names scale, soft-cap, sink, bias and mask, and a model may do more than it says. So the first call of each
module, and of each kind, is tried on both: eight queries at most, against the last keys. Where they differ the model
is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..algebra.errors import CallError
from .asked import MASK, Asked, own_formula, read_table
from .call import Call
from .sources import source

ROWS, COLUMNS = 8, 512
PROVEN: WeakKeyDictionary[torch.nn.Module, set[Any]] = WeakKeyDictionary()


def prove(name: str, call: Call, asked: Asked) -> None:
    """Refuse a module whose own attention is not what its call asks for."""
    kinds = PROVEN.setdefault(call.module, set())
    kind = (asked, call.queries > 1)
    if kind in kinds or torch.compiler.is_compiling():
        return
    eager = source(call.module).eager
    if eager is not None:
        with torch.no_grad(), torch.autocast(call.query.device.type, enabled=False):
            _compare(name, call, asked, eager)
    kinds.add(kind)


def _compare(name: str, call: Call, asked: Asked, eager: Any) -> None:
    q, k, v = _made_up(call)
    bias = _last(call, call.options.get("position_bias"))
    mask, truths, added = _masks(call, q, k)
    theirs = eager(call.module, q, k, v, mask, **{**call.options, "position_bias": bias, "dropout": 0.0})[0]
    tables = {**call.tables, "attention_mask": truths}
    sample = replace(
        asked,
        shifted=False,
        mask=None if truths is None else MASK,
        position_bias=_axes("position_bias", bias, q, k, tables),
        added=_axes("added", added, q, k, tables),
    )
    formula = own_formula(sample)
    ours = formula(q, k, v, start=0, engine="dense", **{table: tables[table] for table in formula.ranks})
    apart = _apart(ours, theirs.transpose(1, 2), truths)
    size = 1 + max((float(x.abs().max()) for x in (added, bias) if x is not None), default=0.0)
    if not apart <= 1e-5 * size:  # eager attention takes its softmax in float32
        raise CallError(
            f"use: {name} ({type(call.module).__name__}) does more than it says: its own eager attention and "
            f"{own_formula(asked)!r}, which its call asks for, differ by {apart:.2g}; it cannot be served"
        )


def _apart(ours: torch.Tensor, theirs: torch.Tensor, truths: torch.Tensor | None) -> float:
    """The largest difference, but for rows that read nothing: ours are 0, eager ones the mean of all values."""
    apart = (ours - theirs).abs().amax(-1)
    reads = torch.ones_like(apart, dtype=torch.bool) if truths is None else truths.any(-1).expand(apart.shape)
    return float(apart.where(reads, torch.zeros_like(apart)).max())


def _made_up(call: Call) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normal numbers in float64, of scores near 2: queries, keys and values of one batch."""
    generator, scale = torch.Generator().manual_seed(0), call.options.get("scaling")
    rows, columns, width = min(call.queries, ROWS), min(_keys(call), COLUMNS), call.query.shape[-1]
    sizes = ((call.query, rows), (call.key, columns), (call.value, columns))
    q, k, v = (
        torch.randn(1, x.shape[1], count, x.shape[3], generator=generator, dtype=torch.float64).to(x.device)
        for x, count in sizes
    )
    factor = width**-0.5 if scale is None else float(scale)
    return (q * (2 / (factor * width**0.5)) if factor else q), k, v


def _keys(call: Call) -> int:
    return call.queries if call.is_causal else call.keys  # further keys of a static cache are read by nobody


def _last(call: Call, numbers: torch.Tensor | None) -> torch.Tensor | None:
    """The last rows and columns, of the first batch: those of the made-up numbers."""
    if numbers is None:
        return None
    numbers = numbers[..., : _keys(call)][..., -COLUMNS:]
    numbers = numbers[..., -ROWS:, :] if numbers.ndim > 1 else numbers
    numbers = numbers[:1] if numbers.ndim == 4 else numbers
    return numbers if numbers.dtype == torch.bool else numbers.double()


def _masks(
    call: Call, q: torch.Tensor, k: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """The mask as eager attention takes it, as truths, and the numbers in it."""
    truths, added = (_last(call, part) for part in call.mask_parts())
    if call.is_causal:
        rows, columns = q.shape[2], k.shape[2]
        truths = torch.ones(rows, columns, dtype=torch.bool, device=q.device).tril(columns - rows)[None, None]
    if truths is None and added is None:
        return None, None, None
    numbers = torch.zeros((), dtype=torch.float64, device=q.device) if added is None else added
    least = torch.finfo(torch.float32).min
    mask = numbers if truths is None else torch.where(truths, numbers, least)
    return mask.expand(1, -1, q.shape[2], k.shape[2]), truths, added


def _axes(
    name: str, numbers: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor, tables: dict[str, Any]
) -> str | None:
    return None if numbers is None else read_table(name, numbers, q, k.shape[2], tables)
