"""A language model: what comes next, from what came before.

x = E[t] + p        x ← Decoder(x)        logits = x Eᵀ
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._checks import check_count
from ..attention import Attention
from ..inputs.positions.base import Position
from ..inputs.positions.rotary import Rotary
from .cache import Cache
from .generation import writing
from .initial import initialise
from .models import Model, check_ids, remembered
from .stacks import Decoder, Formulas
from .style import Style


class GPT(Model):
    """Tokens in, the logits of the next token out.

    tokens:    V, the size of the vocabulary
    attention: the formula of all blocks, or a list with one for each; causal where it has no mask
    position:  Rotary() unless said otherwise; Learned.random(1024, dim) as in GPT-2, ALiBi(), …
    style:     what the blocks are made of beside attention
    tied:      whether the last map is the embedding again

    >>> import torch
    >>> model = GPT(100, dim=32, depth=2, heads=4)
    >>> model(torch.tensor([[5, 7, 11]])).shape
    torch.Size([1, 3, 100])
    """

    @remembered
    def __init__(
        self,
        tokens: int,
        dim: int,
        depth: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Formulas = Attention(),  # noqa: B008 - a value that never changes
        position: Position = Rotary(),  # noqa: B008
        style: Style = Style(),  # noqa: B008
        *,
        tied: bool = True,
        **options: Any,
    ) -> None:
        check_count("tokens", tokens, 1)
        check_count("dim", dim, 1)
        self.tokens = tokens
        self.embedding = nn.Embedding(tokens, dim)
        self.dropout = nn.Dropout(style.dropout)
        self.decoder = Decoder(dim, depth, heads, kv_heads, attention, position, style, **options)
        self.head = nn.Linear(dim, tokens, bias=False)
        initialise(self.embedding)
        initialise(self.head)
        if tied:
            self.head.weight = self.embedding.weight

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None for any."""
        return self.decoder.longest

    def forward(
        self,
        ids: Tensor,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """Logits (batch, rows, tokens), in row r those of the token that follows it.

        lengths: how many of the ids belong to each text: those behind are filling
        mask:    true where a row reads a key, (rows, keys) or (batch, heads, rows, keys); joined to the formula's own
        cache:   the rows before, which are read as well
        tables:  of the formula, by name
        """
        logits: Tensor = self.head(self.rows(ids, lengths=lengths, mask=mask, cache=cache, **tables))
        return logits

    def rows(
        self,
        ids: Tensor,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """What the decoder makes of each row, (batch, rows, dim), before the last map."""
        x = self.embedding(check_ids(ids, self.tokens))
        x, rows = self.decoder.placed(x, lengths=lengths, mask=mask, cache=cache, tables=tables)
        return self.decoder.read(self.dropout(x), rows)

    def after(self, ids: Tensor, *, lengths: Any = None, **told: Any) -> Tensor:
        """Logits (batch, tokens) of the token after each text: those of its last row, without the others."""
        y = self.rows(ids, lengths=lengths, **told)
        ends = -1 if lengths is None else torch.as_tensor(lengths, device=y.device) - 1
        logits: Tensor = self.head(y[torch.arange(y.shape[0], device=y.device), ends])
        return logits

    generate, stream = writing.generate, writing.stream  # the model is their first argument
