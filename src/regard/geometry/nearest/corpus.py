"""The vectors that are searched, read in blocks: an array of any library, or a file that is sliced like one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Library, as_array, is_array, library
from ...algebra.errors import CallError, KindError


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of the corpus, from row `first`, with what bounds the rounding of their products."""

    xp: Library
    rows: Any
    first: int

    @cached_property
    def squares(self) -> Any:
        """‖y‖² of each row."""
        return self.xp.squares(self.rows)

    @cached_property
    def longest(self) -> Any:
        """No row is longer, in float64; what underflow took from the squares is given back."""
        largest = self.xp.astype(self.xp.max(self.squares), self.xp.float64)
        return self.xp.sqrt(largest + self.tiny) * (1 + self.gamma)

    @cached_property
    def gamma(self) -> float:
        """A product x·y is off by at most γ ‖x‖ ‖y‖; with room for what is done to it afterwards."""
        return self.xp.product_error(self.rows, int(self.rows.shape[1]) + 8)

    @property
    def tiny(self) -> float:
        """What underflow takes at most from a product of vectors no longer than 1."""
        return 2.0 * (int(self.rows.shape[1]) + 8) * float(self.xp.finfo(self.rows.dtype).smallest_normal)

    def holds(self, reach: Any) -> bool:
        """Whether a square of this, or a sum of two, is a finite number here."""
        return bool(reach**2 < float(self.xp.finfo(self.rows.dtype).max) / 4)

    @property
    def is_safe(self) -> bool:
        """Whether no square over- or underflows, but for rows that are zero."""
        xp, facts = self.xp, self.xp.finfo(self.rows.dtype)
        low, high = float(facts.smallest_normal) / float(facts.eps) ** 2, float(facts.max)
        inside = (self.squares >= low) & (self.squares <= high)
        return bool(xp.all(inside | ~xp.any(self.rows != 0, axis=1))) if not bool(xp.all(inside)) else True

    def like(self, rows: Any) -> Block:
        """Other rows at the same place."""
        return replace(self, rows=rows)

    def wide(self) -> Block:
        """The same rows in float64."""
        return self.like(self.xp.astype(self.rows, self.xp.float64))

    def refuse_wild(self) -> None:
        """NaN and infinities are nowhere near: the row that holds them is named."""
        xp = self.xp
        if bool(xp.all(xp.isfinite(self.squares))):
            return
        wild = xp.any(~xp.isfinite(self.rows), axis=1)
        if bool(xp.any(wild)):
            row = self.first + int(xp.argmax(xp.astype(wild, xp.int8)))
            raise CallError(f"corpus: finite numbers; got NaN or infinity in row {row}; drop such rows or fill them")


@dataclass(frozen=True, eq=False)
class Corpus:
    """N rows of width D, handed out as blocks in the library, dtype and place of the queries."""

    xp: Library
    source: Any
    device: Any

    @classmethod
    def of(cls, xp: Library, source: Any, device: Any) -> Corpus:
        """A corpus from an array, nested lists, or whatever has a shape and can be sliced, as files on a disk."""
        if not (hasattr(source, "shape") and hasattr(source, "__getitem__")):
            source = as_array(source, "corpus")
        if len(source.shape) != 2:
            raise CallError(f"corpus: a matrix, one vector in each row; got {tuple(source.shape)}")
        if is_array(source) and not isinstance(source, np.ndarray) and library(source).name != xp.name:
            raise KindError(
                f"corpus: from the library of the queries, {xp.name}, or from NumPy; got {library(source).name}"
            )
        return cls(xp, source, device)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        count, width = self.source.shape
        return int(count), int(width)

    def blocks(self, size: int) -> Iterator[Block]:
        """Every row once, in order, `size` at a time."""
        for first in range(0, self.shape[0], size):
            yield Block(self.xp, self._rows(first, first + size), first)

    def _rows(self, first: int, last: int) -> Any:
        part = self.source[first:last]
        part = part if is_array(part) else np.asarray(part)
        xp, own = self.xp, library(part)
        if not (own.is_real(part) or own.is_integer(part) or own.is_bool(part)):
            raise KindError(f"corpus: real numbers; got dtype {part.dtype}")
        narrow = part.dtype.itemsize <= (4 if own.is_real(part) else 2)
        if isinstance(part, np.ndarray) and xp.name != "numpy":  # others take no reversed and no read-only memory
            part = np.require(part, part.dtype.newbyteorder("="), ["C", "W"])
        part = xp.asarray(own.constant(part), device=self.device)
        return xp.astype(part, xp.float32 if narrow else xp.float64, copy=False)
