"""A text encoder: every token reads the whole text.

x = norm(E[t] + S[segment] + p)        y = Encoder(x)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._checks import check_count
from ..algebra.errors import CallError
from ..attention import Attention
from ..inputs.positions.added import Learned
from ..inputs.positions.base import Position
from .initial import initialise
from .models import Model, check_ids, drawn_seed, remembered
from .stacks import Encoder, Formulas
from .style import Style, post_norm

BERT_STYLE = Style(residual=post_norm, epsilon=1e-12)


class BERT(Model):
    """Tokens in, a vector for each out, having read the text on both sides.

    tokens:   V, the size of the vocabulary
    position: Learned.random(512, dim) unless said otherwise
    segments: how many parts of a text are told apart

    >>> model = BERT(100, dim=32, depth=2, heads=4)
    >>> model(torch.tensor([[5, 7, 11]])).shape
    torch.Size([1, 3, 32])
    """

    @remembered
    def __init__(
        self,
        tokens: int,
        dim: int,
        depth: int,
        heads: int,
        attention: Formulas = Attention(),  # noqa: B008 - a value that never changes
        position: Position | None = None,
        style: Style = BERT_STYLE,
        *,
        kv_heads: int | None = None,
        segments: int = 2,
        **options: Any,
    ) -> None:
        for name, size in (("tokens", tokens), ("dim", dim), ("segments", segments)):
            check_count(name, size, 1)
        position = Learned.random(512, dim, seed=drawn_seed()) if position is None else position
        self.tokens = tokens
        self.embedding, self.segments = nn.Embedding(tokens, dim), nn.Embedding(segments, dim)
        self.norm, self.dropout = style.norm_of(dim), nn.Dropout(style.dropout)
        self.encoder = Encoder(dim, depth, heads, kv_heads, attention, position, style, **options)
        initialise(self.embedding)
        initialise(self.segments)

    def forward(
        self,
        ids: Tensor,
        segments: Tensor | None = None,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """y (batch, rows, dim).

        segments: the part of the text that each token belongs to; the first unless said otherwise
        lengths:  how many of the ids belong to each text: those behind are filling
        """
        ids = check_ids(ids, self.tokens)
        parts = torch.zeros_like(ids) if segments is None else self._parts(segments, ids)
        x = self.embedding(ids) + self.segments(parts)
        x, rows = self.encoder.placed(x, lengths=lengths, mask=mask, tables=tables)
        return self.encoder.read(self.dropout(self.norm(x)), rows)

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None for any."""
        return self.encoder.longest

    def embed(self, ids: Tensor, segments: Tensor | None = None, *, lengths: Any = None, **told: Tensor) -> Tensor:
        """One vector for each text, (batch, dim): the mean of its rows, of length 1."""
        y = self(ids, segments, lengths=lengths, **told)
        count = torch.as_tensor(ids.shape[1] if lengths is None else lengths, device=y.device).reshape(-1, 1)
        inside = torch.arange(ids.shape[1], device=y.device) < count
        total = y.masked_fill(~inside[..., None], 0).sum(1)  # of the direction of the mean
        return nn.functional.normalize(total, dim=-1)

    def _parts(self, segments: Any, ids: Tensor) -> Tensor:
        if isinstance(segments, Tensor) and segments.shape != ids.shape:
            raise CallError(f"segments: one for each of the ids, {tuple(ids.shape)}; got shape {tuple(segments.shape)}")
        return check_ids(segments, self.segments.num_embeddings, "segments")
