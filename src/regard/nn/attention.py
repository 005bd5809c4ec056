"""Attention as a layer: rows in, rows out.

q = W_q x    k = W_k x    v = W_v x        in heads (batch, heads, rows, width)
y = W_o [attention(q, k, v)]               by a formula, head by head, side by side again
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._checks import check_count
from ..algebra.errors import CallError, KindError
from ..attention import Attention
from ..inputs.positions.base import NoPosition, Position
from .cache import Cache
from .checks import check_rows, check_share, check_tables, check_texts
from .masks import read_masks, uncachable, variants
from .placement import Placement, Rows


class Projected(nn.Module):
    """The four matrices of attention, and the formula between them.

    dim:       D, the width of the rows
    heads:     H, how many queries each row asks;  kv_heads: G, how many keys and values it offers, a divisor of H
    attention: the formula
    width:     of a head; dim / heads unless said otherwise
    memory:    the width of the rows that are read, where they are others
    bias:      whether the projections add a vector
    dropout:   the share of weights that is dropped in training
    tables:    what the formula reads, by name; a Parameter is learned, a plain tensor stays
    """

    reads_memory: ClassVar[bool] = False  # whether keys and values are of other rows than the queries

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Attention = Attention(),  # noqa: B008 - a value that never changes
        *,
        width: int | None = None,
        memory: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        tables: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(attention, Attention):
            raise KindError(f"attention: an Attention, as in Attention(mask=causal); got {attention!r}")
        self.dim, self.heads, self.kv_heads = dim, heads, heads if kv_heads is None else kv_heads
        self.width = _head_width(dim, heads, self.kv_heads, width)
        self.attention, self.dropout = attention, check_share(dropout)
        self.formulas = variants(attention, memory=self.reads_memory)
        self.uncachable = uncachable(attention)
        memory = dim if memory is None else memory
        self.query = nn.Linear(dim, heads * self.width, bias)
        self.key = nn.Linear(memory, self.kv_heads * self.width, bias)
        self.value = nn.Linear(memory, self.kv_heads * self.width, bias)
        self.out = nn.Linear(heads * self.width, dim, bias)
        self.tables = Tables(tables or {})
        check_tables(self.tables.all(), attention.ranks)
        _check_names(name for name in attention.ranks if name not in self.tables.all())

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Tensor:
        """W_o [attention(q, k, v)], by the formula and the masks of the rows."""
        formula = self.formulas[rows.masked]
        known = {**self.tables.all(), **rows.tables}
        tables = {name: known[name] for name in formula.ranks if name in known}
        dropout = self.dropout if self.training else 0.0
        return self.out(joined(formula(q, k, v, start=rows.start, dropout=dropout, **tables)))

    def extra_repr(self) -> str:
        groups = "" if self.kv_heads == self.heads else f" reading {self.kv_heads}"
        return f"{self.dim}, {self.heads} heads{groups} of {self.width}, {self.attention!r}"


class SelfAttention(Projected):
    """Every row of x reads the rows of x.

    dim:       D, the width of the rows
    heads:     H, how many queries each row asks;  kv_heads: G, how many keys and values it offers, a divisor of H
    attention: the formula
    position:  where the rows stand: a value such as Rotary() or ALiBi(); its tables are learned
    width:     of a head; dim / heads unless said otherwise
    bias:      whether the projections add a vector
    dropout:   the share of weights that is dropped in training
    tables:    what the formula reads, by name; a Parameter is learned, a plain tensor stays

    >>> layer = SelfAttention(64, heads=4)
    >>> layer(torch.zeros(2, 7, 64)).shape
    torch.Size([2, 7, 64])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Attention = Attention(),  # noqa: B008
        position: Position = NoPosition(),  # noqa: B008
        *,
        width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        tables: Mapping[str, Tensor] | None = None,
    ) -> None:
        placement = Placement(position, heads)
        formula = position.join(attention) if isinstance(attention, Attention) else attention
        super().__init__(
            dim, heads, kv_heads, formula, width=width, bias=bias, dropout=dropout, tables=tables
        )  # fmt: skip
        self.placement = placement
        placement.check(dim, self.width)

    def forward(
        self,
        x: Tensor,
        rows: Rows | None = None,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """y (batch, rows, dim).

        rows:    what a model has worked out for all of its layers; the rest is for a layer by itself
        lengths: how many of the rows belong to each text: those behind are read by none, and mean nothing
        mask:    true where a row reads a key, (rows, keys) or (batch, heads, rows, keys)
        cache:   the rows before, which are read as well
        tables:  of the formula, by name
        """
        check_rows(x, self.dim, self.query)
        alone = rows is None
        if rows is not None and (tables or any(told is not None for told in (lengths, mask, cache))):
            raise CallError(
                "rows: hold lengths, mask, cache and tables already; got more of them; pass one or the other"
            )
        if rows is None:
            check_tables(tables, self.attention.ranks)
            rows = self.placement.rows(x, self.width, lengths=lengths, mask=mask, cache=cache, tables=tables)
            x = self.placement(x, rows.start)
        q, k, v = heads(self.query(x), self.width), heads(self.key(x), self.width), heads(self.value(x), self.width)
        q, k = rows.turn(q), rows.turn(k)
        if rows.cache is not None:
            self._check_kept()
            k, v = rows.cache.append(self, k, v)
        y = self.attend(q, k, v, rows)
        if alone:
            rows.done(x.shape[1])
        return y

    def _check_kept(self) -> None:
        if self.uncachable is not None:
            raise CallError(
                f"cache: keys and values of {self.attention!r} cannot be kept: {self.uncachable}; "
                "or leave the cache out: cache=False in generate"
            )


class CrossAttention(Projected):
    """Every row of x reads the rows of a memory, another sequence.

    >>> layer = CrossAttention(64, heads=4, memory=32)
    >>> layer(torch.zeros(2, 7, 64), torch.zeros(2, 11, 32)).shape
    torch.Size([2, 7, 64])
    """

    reads_memory = True

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        rows: Rows | None = None,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """y (batch, rows, dim) from x (batch, rows, dim) and memory (batch, keys, width).

        rows:    where x stands, as a model has worked it out
        lengths: how many rows of the memory belong to each text
        mask:    true where a row reads a key, (rows, keys) or (batch, heads, rows, keys)
        """
        check_rows(x, self.dim, self.query)
        check_rows(memory, self.key.in_features, self.key, "memory")
        check_texts(x, memory)
        q = heads(self.query(x), self.width)

        def offered() -> tuple[Tensor, Tensor]:
            return heads(self.key(memory), self.width), heads(self.value(memory), self.width)

        kept = None if rows is None else rows.cache
        k, v = offered() if kept is None else kept.once(self, offered)
        if (k.shape[0], k.shape[2]) != tuple(memory.shape[:2]):
            raise CallError(
                f"memory: the cache holds one of {k.shape[0]} texts and {k.shape[2]} rows; "
                f"got shape {tuple(memory.shape)}; each memory has its own Cache()"
            )
        return self.attend(q, k, v, self._rows(x, memory, rows, lengths, mask, tables))

    def _rows(
        self, x: Tensor, memory: Tensor, rows: Rows | None, lengths: Any, mask: Any, tables: dict[str, Tensor]
    ) -> Rows:
        """The place of x, with masks that are of the memory."""
        check_tables(tables, self.attention.ranks)
        argument = "lengths" if rows is None else "memory_lengths"  # as the caller of a model knows them
        masked, masks = read_masks(lengths, mask, memory, x.shape[1], memory.shape[1], argument, "memory")
        return Rows(0 if rows is None else rows.start, tables={**tables, **masks}, masked=masked)


class Tables(nn.Module):
    """The tables of a formula: parameters and tensors that move with the module."""

    def __init__(self, tables: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, array in tables.items():
            if hasattr(self, name):
                raise CallError(f"tables: a name that modules of PyTorch leave free; got {name!r}; choose another")
            if isinstance(array, nn.Parameter):
                self.register_parameter(name, nn.Parameter(array.detach().clone(), array.requires_grad))
            else:
                self.register_buffer(name, torch.as_tensor(array).clone())

    def all(self) -> dict[str, Any]:
        """Every table by name."""
        return {**self._parameters, **self._buffers}


TAKEN = ("x", "ids", "images", "rows", "lengths", "mask", "cache", "memory", "memory_lengths", "segments")


def _check_names(names: Iterable[str]) -> None:
    """Refuse tables that a call could not bring, since an argument of forward has their name."""
    for name in names:
        if name in TAKEN:
            hint = "; leave its mask out and pass lengths= or mask= in the call" if name in ("lengths", "mask") else ""
            raise CallError(f"attention: its table {name} has the name of an argument; got it; choose another{hint}")


# -- heads -----------------------------------------------------------------------------------------------------


def heads(x: Tensor, width: int) -> Tensor:
    """(batch, rows, heads · width) → (batch, heads, rows, width)."""
    return x.reshape(*x.shape[:2], x.shape[2] // width, width).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """(batch, heads, rows, width) → (batch, rows, heads · width)."""
    return x.transpose(1, 2).flatten(2)


def _head_width(dim: int, heads: int, kv_heads: int, width: int | None) -> int:
    for name, size in (("dim", dim), ("heads", heads), ("kv_heads", kv_heads), ("width", width)):
        if size is not None:
            check_count(name, size, 1)
    if heads % kv_heads:
        raise CallError(f"kv_heads: divides the {heads} heads, so that each is read by as many; got {kv_heads}")
    if width is None and dim % heads:
        fits = [h for h in range(1, dim + 1) if dim % h == 0]
        near = min(fits, key=lambda h: abs(h - heads))
        raise CallError(f"heads: divides dim, {dim}; got {heads}; take {near}, or say the width of a head: width=…")
    return dim // heads if width is None else width
