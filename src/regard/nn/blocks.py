"""One block: rows read each other, then each thinks by itself.

x ← x + attention(norm(x))
x ← x + cross(norm(x), memory)        in decoders that read a memory
x ← x + feed_forward(norm(x))
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..attention import Attention
from .attention import CrossAttention, SelfAttention
from .placement import Rows
from .style import Style, post_norm, pre_norm

__all__ = ["Block", "post_norm", "pre_norm"]


class Block(nn.Module):
    """Attention, feed-forward, residuals and norms.

    attention: the formula by which rows read each other
    cross:     the formula by which they read a memory; None for blocks that read none
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
        style: Style = Style(),  # noqa: B008
        **options: Any,
    ) -> None:
        super().__init__()
        options = {"bias": style.bias, "dropout": style.dropout, **options}
        self.residual, self.dropout = style.residual, nn.Dropout(style.dropout)
        self.attention_norm, self.attention = (
            style.norm_of(dim),
            SelfAttention(dim, heads, kv_heads, attention, **options),
        )
        if cross is not None:
            self.cross_norm, self.cross = style.norm_of(dim), CrossAttention(dim, heads, kv_heads, cross, **options)
        self.feed_forward_norm, self.feed_forward = style.norm_of(dim), style.feed_forward_of(dim)

    def forward(
        self, x: Tensor, rows: Rows | None = None, memory: Tensor | None = None, memory_lengths: Any = None
    ) -> Tensor:
        """x (batch, rows, dim), having read the rows and the memory."""
        x = self.residual(x, self.attention_norm, lambda x: self.dropout(self.attention(x, rows)))
        if memory is not None:
            reading = lambda x: self.dropout(self.cross(x, memory, rows, lengths=memory_lengths))  # noqa: E731
            x = self.residual(x, self.cross_norm, reading)
        return self.residual(x, self.feed_forward_norm, self.feed_forward)
