"""One block: rows read each other, then each thinks by itself.

x ← x + attention(norm(x))
x ← x + cross(norm(x), memory)        in decoders that read a memory
x ← x + feed_forward(norm(x))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..algebra.errors import CallError
from ..attention import Attention
from .attention import CrossAttention, SelfAttention
from .placement import Rows
from .style import Style, check_style, post_norm, pre_norm

__all__ = ["Block", "post_norm", "pre_norm"]


class Block(nn.Module):
    """Attention, feed-forward, residuals and norms.

    attention: the formula by which rows read each other
    cross:     the formula by which they read a memory; None for blocks that read none
    memory:    the width of the memory; dim unless said otherwise
    style:     what the rest is made of
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Attention = Attention(),  # noqa: B008 - a value that never changes
        *,
        cross: Attention | None = None,
        memory: int | None = None,
        style: Style = Style(),  # noqa: B008
        tables: Mapping[str, Tensor] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        check_style(style)
        options = {"bias": style.bias, "dropout": style.dropout, **options}
        read = _read_by(tables or {}, attention)
        self.residual, self.dropout = style.residual, nn.Dropout(style.dropout)
        self.attention_norm = style.norm_of(dim)
        self.attention = SelfAttention(dim, heads, kv_heads, attention, tables=read, **options)
        if cross is not None:
            read = _read_by(tables or {}, cross)
            self.cross_norm = style.norm_of(dim)
            self.cross = CrossAttention(dim, heads, kv_heads, cross, memory=memory, tables=read, **options)
        self.feed_forward_norm = style.norm_of(dim)
        self.feed_forward = style.feed_forward_of(dim)
        self.crosses = cross is not None

    def forward(
        self, x: Tensor, rows: Rows | None = None, memory: Tensor | None = None, memory_lengths: Any = None
    ) -> Tensor:
        """x (batch, rows, dim), having read the rows and the memory."""
        if (memory is not None) != self.crosses:
            rule = (
                "needs the memory that it reads" if self.crosses else "reads no memory: make it with cross=Attention()"
            )
            raise CallError(f"memory: this block {rule}; got {'none' if memory is None else 'one'}")
        x = self.residual(x, self.attention_norm, lambda x: self.dropout(self.attention(x, rows)))
        if memory is not None:
            reading = lambda x: self.dropout(self.cross(x, memory, rows, lengths=memory_lengths))  # noqa: E731
            x = self.residual(x, self.cross_norm, reading)
        return self.residual(x, self.feed_forward_norm, self.feed_forward)


def _read_by(tables: Mapping[str, Tensor], attention: Attention) -> dict[str, Tensor]:
    """Those that a formula reads: blocks of one stack may read different ones."""
    return {name: array for name, array in tables.items() if name in attention.ranks}
