"""Block after block: rows in, rows out.

x ← x + p                          where they stand
x ← block_1(x), …, block_L(x)
y = norm(x)                        where the blocks norm before and not after
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from .._checks import check_count
from ..algebra.errors import CallError, KindError
from ..attention import Attention
from ..inputs.positions.base import NoPosition, Position
from .blocks import Block
from .cache import Cache
from .checks import check_rows, check_tables
from .initial import initialise
from .masks import made_causal
from .models import Model, remembered
from .placement import Placement, Rows
from .style import Style

Formulas = Attention | Sequence[Attention]


class Stack(Model):
    """Blocks of one width.

    depth:     L, how many blocks
    attention: the formula of all, or a list with one for each, gone through again where it is shorter
    position:  where the rows stand; shared by all blocks
    style:     what the blocks are made of beside attention
    tables:    what the formulas read; each block learns its own, starting from these
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        kv_heads: int | None,
        formulas: Sequence[Attention],
        position: Position,
        style: Style,
        **options: Any,
    ) -> None:
        check_count("depth", depth, 1)
        self.dim = dim
        self.placement = Placement(position, heads)
        joined = [position.join(formula) for formula in formulas]
        read = [*joined, *([options["cross"]] if options.get("cross") is not None else [])]
        check_tables(options.get("tables") or {}, {name for formula in read for name in formula.ranks})
        self.blocks = nn.ModuleList(
            Block(dim, heads, kv_heads, joined[n % len(joined)], style=style, **options) for n in range(depth)
        )
        self.placement.check(dim, self._attentions[0].width)
        self.norm = style.last_norm_of(dim)
        initialise(self, depth)

    @property
    def longest(self) -> int | None:
        """How many rows a text may have; None for any."""
        return self.placement.position.longest

    def placed(self, x: Tensor, **told: Any) -> tuple[Tensor, Rows]:
        """The rows with their positions, and what every block is told of them."""
        check_rows(x, self.dim, self._attentions[0].query)
        check_tables(told.get("tables") or {}, {name for a in self._attentions for name in a.attention.ranks})
        rows = self.placement.rows(x, self._attentions[0].width, **told)
        return self.placement(x, rows.start), rows

    def read(self, x: Tensor, rows: Rows, memory: Tensor | None = None, memory_lengths: Any = None) -> Tensor:
        """Through all blocks."""
        for block in self.blocks:
            x = block(x, rows, memory, memory_lengths)
        rows.done(x.shape[1])
        y: Tensor = self.norm(x)
        return y

    @property
    def _attentions(self) -> list[Any]:
        return [block.attention for block in self.blocks]


class Encoder(Stack):
    """Every row reads every row: for texts and images that are there as a whole.

    >>> import torch
    >>> Encoder(32, depth=2, heads=4)(torch.zeros(2, 7, 32), lengths=[7, 5]).shape
    torch.Size([2, 7, 32])
    """

    @remembered
    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Formulas = Attention(),  # noqa: B008 - a value that never changes
        position: Position = NoPosition(),  # noqa: B008
        style: Style = Style(),  # noqa: B008
        **options: Any,
    ) -> None:
        super().__init__(dim, depth, heads, kv_heads, formulas_of(attention), position, style, **options)

    def forward(self, x: Tensor, *, lengths: Any = None, mask: Tensor | None = None, **tables: Tensor) -> Tensor:
        """y (batch, rows, dim); `lengths` and `mask` as in SelfAttention."""
        x, rows = self.placed(x, lengths=lengths, mask=mask, tables=tables)
        return self.read(x, rows)


class Decoder(Stack):
    """Every row reads the rows before it, and a memory if there is one: for texts that are being written.

    attention: causal where it has no mask; a mask that lets a row read what comes after it is refused
    cross:     the formula by which a memory is read; None for a decoder without one
    memory:    the width of the memory; dim unless said otherwise

    >>> import torch
    >>> decoder = Decoder(32, depth=2, heads=4, cross=Attention())
    >>> decoder(torch.zeros(2, 7, 32), memory=torch.zeros(2, 11, 32)).shape
    torch.Size([2, 7, 32])
    """

    @remembered
    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        kv_heads: int | None = None,
        attention: Formulas = Attention(),  # noqa: B008
        position: Position = NoPosition(),  # noqa: B008
        style: Style = Style(),  # noqa: B008
        *,
        cross: Attention | None = None,
        memory: int | None = None,
        **options: Any,
    ) -> None:
        formulas = [made_causal(formula) for formula in formulas_of(attention)]
        super().__init__(dim, depth, heads, kv_heads, formulas, position, style, cross=cross, memory=memory, **options)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        lengths: Any = None,
        memory_lengths: Any = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        **tables: Tensor,
    ) -> Tensor:
        """y (batch, rows, dim).

        memory:         (batch, keys, width), read by every block;  memory_lengths: how many rows each text has in it
        lengths, mask:  as in SelfAttention
        cache:          the rows before, which are read as well
        """
        x, rows = self.placed(x, lengths=lengths, mask=mask, cache=cache, tables=tables)
        return self.read(x, rows, memory, memory_lengths)


def formulas_of(attention: Formulas) -> list[Attention]:
    """The formulas of the blocks, in turn."""
    formulas = [attention] if isinstance(attention, Attention) else list(attention)
    for formula in formulas:
        if not isinstance(formula, Attention):
            raise KindError(f"attention: an Attention, or a list of them; got {formula!r}")
    if not formulas:
        raise CallError("attention: at least one formula; got an empty list")
    return formulas
