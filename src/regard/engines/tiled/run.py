"""One call, ready to stream: sides of pairs, hoisted vectors, values, and buffers for blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...algebra.fold import fold
from ...algebra.intervals import ANY, Intervals
from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, I, J, Read
from ..call import Call
from ..reading import Reading, indices
from ..vectors import Offsets, reading, vector
from .calls import BITS
from .kernel import MASK, Kernel, Variant
from .pairs import Side, prepared
from .program import program
from .tape import Table
from .tiles import Block, Chunk, Schedule, Sizes, chunks, sees_differences, sizes

WHOLE_AXES = (BATCH, HEAD, I, J)
SMALL = 2**16  # pairs below which looking for a bound costs more than it saves
SHARED = 8  # patterns of bits that are kept: a window has as many blocks in a band
BOUND = 32.0  # |E| below which 2^E needs no shift: sums of many stay far from overflow, and none vanishes


@dataclass
class Band:
    """A chunk's band of rows, which run backwards: row r is position last − r."""

    chunk: Chunk
    rows: slice
    last: int
    vectors: dict[Any, Any]  # of heads and rows, by symbol
    lefts: dict[Any, Any]  # the left side of each pair, stacked

    @property
    def height(self) -> int:
        return int(self.rows.stop - self.rows.start)


class Run:
    """Everything of a call that blocks share."""

    def __init__(self, call: Call) -> None:
        self.call, self.program = call, program(call.formula)
        self.dtype = call.working_dtype
        self.q, self.k = call.q.to(self.dtype), call.k.to(self.dtype)
        self.v = None if call.v is None else call.v.to(self.dtype)
        self.heads = reading(call, Kind.HEAD)
        self.vectors = {
            symbol: vector(call, kind, node)
            for symbol, (kind, node) in self.program.vectors.items()
            if kind != Kind.FULL
        }
        self.sides = {
            symbol: prepared(self.heads, scaled.pair, vector(call, Kind.HEAD, scaled.factor), self.q, self.k)
            for symbol, scaled in self.program.pairs.items()
        }
        self.dropped = self._without_row_terms()
        self.sizes: Sizes = sizes(call)
        self.schedule = Schedule(call, self.sizes)
        self.is_finite = all(_ends(x) != ANY for x in (self.q, self.k, self.v) if x is not None)
        self.needs_care = not self.is_finite and call.formula.mask is not None
        self.is_bounded = self.is_finite and self._is_bounded()
        self._buffers: dict[int, Any] = {}
        self._views: dict[Any, list[Any]] = {}
        self._shared: dict[Any, Any] = {}

    def _without_row_terms(self) -> Any:
        """Take out what cancels in every weight; what E loses by it, for the totals."""
        total = torch.zeros((), dtype=self.dtype, device=self.q.device)
        for symbol, slope in self.program.cancelling.items():
            side = self.sides[symbol]
            if side.scaled.row is not None:
                total = total + slope * side.scaled.row
                scaled = replace(side.scaled, row=None, low=None, high=None)
                self.sides[symbol] = replace(side, scaled=scaled)
        return total

    # -- order --------------------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        return chunks(self.call, self.sizes.chunk)

    def bands(self, chunk: Chunk) -> Iterator[Band]:
        """The bands of rows of a chunk, with the row vectors of each."""
        start = int(self.call.start[chunk.batch.start])
        for rows in self.schedule.bands:
            band = Band(chunk, rows, start + rows.stop - 1, {}, {})
            for symbol, value in self.vectors.items():
                kind = self.program.vectors[symbol][0]
                if kind in (Kind.HEAD, Kind.ROW):
                    band.vectors[symbol] = self.rows_of(value, band)
            yield band

    def variant(self, block: Block, wanted: tuple[Any, ...] | None = None) -> Variant:
        """The kind of a block; going back, with the leaves that want gradients."""
        shifted = self.program.is_shifted and not self.is_bounded
        return Variant(block.masked, shifted, wanted is not None, wanted or (), self.dtype)

    # -- parts of arrays ----------------------------------------------------------------------------------------

    def rows_of(self, x: Any, band: Band) -> Any:
        """The part of (B or 1, H or 1, N or 1, …) that a band reads, its rows backwards."""
        part = self.chunk_of(x, band.chunk)
        return part if part.shape[2] == 1 and self.call.queries > 1 else part[:, :, band.rows].flip(2)

    def chunk_of(self, x: Any, chunk: Chunk, heads: slice | None = None) -> Any:
        """The part of (B or 1, heads or 1, …) that a chunk reads."""
        x = x if x.shape[0] == 1 and self.call.batch > 1 else x[chunk.batch]
        many = heads if heads is not None else chunk.heads
        return x if x.shape[1] == 1 and self.call.heads > 1 and heads is None else x[:, many]

    def stacked(self, x: Any, chunk: Chunk) -> Any:
        """(b, h, rows, D) as (b · key heads, group · rows, D): heads that read one key head are more rows."""
        return x.reshape(-1, chunk.group * x.shape[2], x.shape[3])

    # -- a block ------------------------------------------------------------------------------------------------

    def bind(self, code: Kernel, band: Band, block: Block, extra: dict[Any, Any]) -> list[Any]:
        """The registers of a kernel for one block: buffers, constants, vectors, tables, bits."""
        chunk, height, width = band.chunk, band.height, block.last - block.first
        key = (id(code), chunk.count, height, width)
        if key not in self._views:
            shape = (chunk.batch.stop - chunk.batch.start, chunk.heads.stop - chunk.heads.start, height, width)
            self._views[key] = self._fresh(code, shape)
        registers = self._views[key]
        full: Reading | None = None
        for symbol, place in code.code.brought.items():
            if symbol in extra:
                registers[place] = extra[symbol]
            elif symbol in band.vectors:
                registers[place] = band.vectors[symbol]
            elif isinstance(symbol, Table):
                registers[place] = self.call.tables[symbol.name]
            elif symbol in self.program.vectors or symbol in self.program.truths or symbol == MASK:
                full = full or self.reading(band, block)
                registers[place] = self._brought(symbol, band, block, full)
        return registers

    def _fresh(self, code: Kernel, shape: tuple[int, ...]) -> list[Any]:
        registers: list[Any] = [None] * code.code.registers
        for number, place in enumerate(code.code.buffers):
            if number not in self._buffers:
                self._buffers[number] = torch.empty(self.sizes.pairs, dtype=self.dtype, device=self.q.device)
            registers[place] = self._buffers[number][: math.prod(shape)].view(shape)
        for value, place in code.code.constants.items():
            registers[place] = torch.tensor(value, dtype=self.dtype, device=self.q.device)
        return registers

    def _brought(self, symbol: Any, band: Band, block: Block, full: Reading) -> Any:
        program, columns = self.program, slice(block.first, block.last)
        if symbol == MASK or symbol in program.truths:
            return self._bits(program.truths[program.mask if symbol == MASK else symbol], band, block, full)
        kind, node = program.vectors[symbol]
        if kind == Kind.COLUMN:
            part = self.chunk_of(self.vectors[symbol], band.chunk)
            return part if part.shape[3] == 1 and self.call.keys > 1 else part[..., columns]
        if kind == Kind.OFFSET:
            offsets: Offsets = self.vectors[symbol]
            return offsets.block(band.last, block.first, band.height, block.last - block.first, band.chunk.heads)
        return full.array(full.real(fold(node, full, full.memo)))

    def _bits(self, node: Any, band: Band, block: Block, full: Reading) -> Any:
        """A truth of the block as bits; where it sees i − j alone, blocks on one diagonal share them."""
        key = (node, band.last - block.first, band.height, block.last - block.first)
        if key in self._shared:
            return self._shared[key]
        truths = full.array(fold(node, full, full.memo))
        along = sees_differences(node)
        bits = (truths[:1] if along else truths).to(BITS[self.dtype]).neg_()  # a chunk's batches start at one place
        if along and len(self._shared) < SHARED:
            self._shared[key] = bits
        return bits

    def reading(self, band: Band, block: Block) -> Reading:
        """The indices of a block, rows backwards."""
        chunk, call = band.chunk, self.call
        columns = slice(block.first, block.last)
        symbols, shape = indices(call, rows=band.rows, columns=columns, heads=chunk.heads, batch=chunk.batch)
        symbols[I] = symbols[I].flip(2)
        return BlockReading(call, symbols, shape, part=(chunk.batch, chunk.heads, band.rows, columns))

    def fill(self, code: Kernel, registers: list[Any], band: Band, block: Block) -> None:
        """u of every pair of the block: products of matrices, with their row and column terms."""
        chunk, columns = band.chunk, slice(block.first, block.last)
        for symbol, place in code.pairs.items():
            sides, out = self.sides[symbol].scaled, registers[place]
            right = self.chunk_of(sides.right, chunk, chunk.key_heads)[:, :, columns].flatten(0, 1)
            if symbol not in band.lefts:
                band.lefts[symbol] = self.stacked(self.rows_of(sides.left, band), chunk)
            left = band.lefts[symbol]
            sides.products(left, right, out.view(left.shape[0], left.shape[1], right.shape[1]))
            if sides.row is not None:
                out.add_(self.rows_of(sides.row, band))
            if sides.column is not None:
                out.add_(self.chunk_of(sides.column, chunk)[..., columns])
            if sides.low is not None or sides.high is not None:
                ends = (self.chunk_of(end, chunk) if torch.is_tensor(end) else end for end in (sides.low, sides.high))
                torch.clamp(out, *ends, out=out)

    # -- bounds -------------------------------------------------------------------------------------------------

    def _is_bounded(self) -> bool:
        """Whether no exponent can leave ±BOUND: by Cauchy and Schwarz, |l·r| ≤ ‖l‖ ‖r‖."""
        call, made = self.call, self.program
        if not made.is_shifted or self.v is None or not call.keys or not call.queries:
            return False
        if call.batch * call.heads * call.queries * call.keys < SMALL or call.formula.weight.sink is not None:
            return False
        ranges = {symbol: _range(side) for symbol, side in self.sides.items()}
        for symbol, (kind, _) in made.vectors.items():
            if kind == Kind.FULL:
                return False
            value = self.vectors[symbol]
            ranges[symbol] = _ends(value.values if kind == Kind.OFFSET else value)
        for term in made.terms:
            low, high = fold(term.exponent, Intervals(ranges))
            if not (term.r.is_Number and low >= -BOUND and high <= BOUND):
                return False
        return bool(self.v.abs().amax() < 2.0**60)


@dataclass(frozen=True, kw_only=True)
class BlockReading(Reading):
    """The indices of one block, rows backwards; what the call gives for every pair is cut to it, not gathered."""

    part: tuple[slice, slice, slice, slice]

    def read(self, node: Read, indices: list[Any]) -> Any:
        """A matrix of the call, table[b, h, i, j] or with fewer of them, is cut where the block stands inside it."""
        axes = [WHOLE_AXES.index(index) for index in node.indices if index in WHOLE_AXES]
        table, first = self.call.tables[node.table], int(self.call.start[self.part[0].start])
        ends = [
            (part.start + first * (axis == 2), part.stop + first * (axis == 2)) for axis, part in enumerate(self.part)
        ]
        inside = all(
            ends[axis][0] >= 0 and ends[axis][1] <= size for axis, size in zip(axes, table.shape, strict=False)
        )
        if len(axes) != len(node.indices) or axes != sorted(set(axes)) or not axes or not inside:
            return super().read(node, indices)
        cut = table[tuple(slice(*ends[axis]) for axis in axes)]
        four = cut[tuple(slice(None) if axis in axes else None for axis in range(4))]
        return four.flip(2) if 2 in axes else four

    def given(self, name: str) -> Any:
        batch, heads, rows, columns = self.part
        return self.call.tables[name][batch, heads, rows, columns].flip(2)


def _range(side: Side) -> tuple[float, float]:
    sides = side.scaled
    size = float(sides.left.norm(dim=-1).amax() * sides.right.norm(dim=-1).amax())
    low, high = -size, size
    for term in (sides.row, sides.column):
        if term is not None:
            ends = _ends(term)
            low, high = low + ends[0], high + ends[1]
    return (low, high) if math.isfinite(low) and math.isfinite(high) else ANY


def _ends(values: Any) -> tuple[float, float]:
    if not values.numel():
        return 0.0, 0.0
    low, high = (float(end) for end in torch.aminmax(values))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else ANY
