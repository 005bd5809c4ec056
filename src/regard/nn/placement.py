"""Where the rows of a pass stand: worked out once, read by every layer.

Placement   a position as a module: its tables are parameters, learned with the rest
Rows        what the attention of each layer is told beside the vectors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..algebra.errors import CallError, KindError
from ..inputs.positions.base import NoPosition, Position, Turning
from .cache import Cache, check_cache
from .masks import LENGTHS, read_masks


@dataclass(frozen=True)
class Rows:
    """The rows of one pass.

    start:  the place of the first row; a tensor of one for each text where they differ
    turn:   what the position does to queries and keys
    tables: what scores and masks read, by name
    masked: which masks of the caller join that of the formula: "", "lengths", "mask" or "lengths mask"
    cache:  the keys and values of the rows before; None where there are none to keep
    """

    start: int | Tensor = 0
    turn: Turning = field(default=lambda x: x)
    tables: Mapping[str, Tensor] = field(default_factory=dict)
    masked: str = ""
    cache: Cache | None = None

    def done(self, count: int) -> None:
        """Every layer has read the rows, so many: the cache counts them."""
        if self.cache is not None:
            self.cache.advance(count, self.tables.get(LENGTHS))


class Placement(nn.Module):
    """A position as a module: x_i + p_i in its forward; its turns and tables in `rows`."""

    def __init__(self, position: Position, heads: int | None = None) -> None:
        super().__init__()
        if not isinstance(position, Position):
            raise KindError(f"position: a value such as Rotary() or Learned.random(512, 64); got {position!r}")
        if None not in (heads, position.heads) and heads != position.heads:
            raise CallError(f"position: made for the layer's {heads} heads; got {position!r}, for {position.heads}")
        self._made, self._longest = position, position.longest
        self.tables = nn.ParameterDict({name: _numbers(array) for name, array in position.parameters.items()})

    def check(self, dim: int, width: int) -> None:
        """Refuse a position that rows of `dim`, in heads of `width`, cannot have."""
        table = next(iter(self.tables.values()), torch.empty(0, device="cpu"))
        try:
            self.position.add(table.new_empty((1, 0, dim)))
            self.position.turns(table.new_empty((1, 1, 1, width)))
        except CallError as error:
            raise CallError(
                f"position: for rows of width {dim}, in heads of {width}; got {type(self._made).__name__}: {error}"
            ) from None

    @property
    def position(self) -> Position:
        """The position with the parameters as they are now."""
        return self._made.with_parameters(self.tables) if len(self.tables) else self._made

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """The vectors with their positions."""
        return x if type(self._made) is NoPosition else self.position.add(x, start)

    def rows(
        self,
        x: Tensor,
        width: int,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        tables: Mapping[str, Tensor] | None = None,
    ) -> Rows:
        """What the layers are told of the rows x (batch, rows, D), which are read in heads of `width`.

        lengths: how many of the rows belong to each text: those behind are filling
        mask:    true where a pair is admitted, (rows, keys) or (batch, heads, rows, keys)
        cache:   the rows before
        tables:  of the formula
        """
        check_cache(cache)
        start: int | Tensor = 0 if cache is None else cache.start
        before = 0 if cache is None else cache.most
        self._check_room(start, x.shape[1])
        masked, masks = read_masks(lengths, mask, x, x.shape[1], before + x.shape[1])
        read = {**self.position.tables(), **(tables or {}), **masks}
        return Rows(start, self._turn(x, width, start, cache), read, masked, cache)

    def _check_room(self, start: int | Tensor, rows: int) -> None:
        longest = self._longest
        if longest is not None and isinstance(start, int) and start + rows > longest:
            raise CallError(
                f"rows: at most {longest} in a text, as many as {type(self._made).__name__} has positions; "
                f"got {start + rows}; shorten the text, or make the model with a longer position"
            )

    def extra_repr(self) -> str:
        return repr(self._made)

    def _turn(self, x: Tensor, width: int, start: int | Tensor, cache: Cache | None) -> Turning:
        position = self.position
        if position.dynamic and cache is not None:
            if cache.length is None:
                raise CallError(
                    f"cache: {position!r} asks for the length of the whole text, since kept keys are turned already; "
                    "got a cache without one; say it: Cache(length=…)"
                )
            position = position.settled(cache.length)
        like = x.new_empty((x.shape[0], 1, x.shape[1], width))
        return position.turns(like, start)


def _numbers(array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array.detach().clone()
    return torch.as_tensor(array, dtype=torch.get_default_dtype()).clone()
