"""What the layers of a model read while it is called.

w = weights(W_q x, W_k x)        (batch, heads, rows, keys), layer by layer
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.attention import SelfAttention, heads
from ..nn.placement import Rows


def weights_while(model: nn.Module, call: Callable[[], Any]) -> list[Tensor]:
    """The weights of each self-attention of a model while it is called, in the order in which they are worked out."""
    seen: list[Tensor] = []
    with ExitStack() as hooks:
        for layer in model.modules():
            if isinstance(layer, SelfAttention):
                hooks.callback(
                    layer.register_forward_pre_hook(lambda layer, told: seen.append(_read(layer, *told))).remove
                )
        with torch.no_grad():
            call()
    return seen


def _read(layer: SelfAttention, x: Tensor, rows: Rows) -> Tensor:
    """w_ij of a layer, by its own formula and the masks of its rows."""
    q, k = (rows.turn(heads(part(x), layer.width)) for part in (layer.query, layer.key))
    formula = layer.formulas[rows.masked]
    known = {**layer.tables.all(), **rows.tables}
    weights: Tensor = formula.weights(q, k, start=rows.start, **{name: known[name] for name in formula.ranks})
    return weights
