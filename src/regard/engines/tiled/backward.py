"""The backward pass, block by block, with the weights computed again.

    g_ij = dy_i · v_j / Z_i − δ_i / Z_i        δ_i = dy_i · y_i
    dv_j = Σ_i ψ_ij dy_i / Z_i                 dx = Σ g ∂ψ/∂x    for u, and for every vector that a table stands in

A block adds to O(N) sums: of rows, of keys, of differences i − j. What the sums mean for q, k, metrics, factors and
tables is worked out once, at the end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.calculus import leaves
from ...algebra.laws import Kind
from ...algebra.nodes import Read
from ..scatter import shares, to_metric, to_table
from ..vectors import differences, reading
from .forward import LOG2E, DropBits, Streamed, admits
from .kernel import SHIFT, Kernel, kernel
from .pairs import Pulls, finite, pulled_back
from .run import Band, Run
from .tiles import Block


@dataclass(frozen=True)
class Upstream:
    """The gradients that come in, by row: dy / Z, and δ / Z (None where nothing is shared)."""

    dy: Any
    delta: Any | None

    @classmethod
    def of(cls, run: Run, done: Streamed, dy: Any, dtotal: Any | None) -> Upstream:
        """`dtotal` is the gradient of log Z, or of Z where ψ is no exponential: (B, H, N, 1)."""
        dy = dy.to(run.dtype)
        weight = run.call.formula.weight
        if weight.over is None:
            return cls(dy, None)
        delta = (dy * done.y).sum(-1, keepdim=True)
        if dtotal is not None:
            delta = delta - (dtotal if weight.is_exponential else dtotal * done.total)
        usable = done.total != 0
        if run.needs_care:  # a row of NaN says so through its weights, which are 0 where nothing is read
            usable &= ~done.total.isnan()
        inverse = torch.where(usable, 1 / torch.where(usable, done.total, 1.0), 0.0)
        return cls(
            dy * inverse, torch.where(done.total == 0, 0.0, delta / torch.where(done.total == 0, 1.0, done.total))
        )


def pull(run: Run, done: Streamed, dy: Any, dtotal: Any | None, tables: frozenset[str]) -> dict[str, Any]:
    """The gradients of q, k, v and the named tables, in the shapes of the call and the working dtype."""
    return _Backward(run, done, Upstream.of(run, done, dy, dtotal), tables).run()


class _Backward:
    def __init__(self, run: Run, done: Streamed, up: Upstream, tables: frozenset[str]) -> None:
        self.the, self.done, self.up, self.tables = run, done, up, tables
        self.wanted = (*run.program.pairs, *_vectors(run, tables), *_late(run, tables))
        self.dv = torch.zeros_like(run.v, memory_format=torch.contiguous_format)
        self.left: dict[Any, Any] = {}
        self.right: dict[Any, Any] = {}
        self.sums: dict[tuple[Any, Kind], Any] = {}
        self.table_sums: dict[str, Any] = defaultdict(float)
        for symbol, side in run.sides.items():
            self.left[symbol] = torch.zeros_like(side.scaled.left, memory_format=torch.contiguous_format)
            self.right[symbol] = torch.zeros_like(side.scaled.right, memory_format=torch.contiguous_format)

    def run(self) -> dict[str, Any]:
        for chunk in self.the.chunks():
            for band in self.the.bands(chunk):
                rows = _Rows(self, band)
                for block in self.the.schedule.blocks(chunk, band.rows):
                    rows.add(block)
                rows.finish()
        return self._gathered()

    # -- sums ---------------------------------------------------------------------------------------------------

    def sum_of(self, leaf: Any, kind: Kind) -> Any:
        """The sum of g · ∂ψ/∂leaf, in the shape of its kind."""
        call = self.the.call
        if (leaf, kind) not in self.sums:
            low, high = differences(call)
            shapes = {
                Kind.HEAD: (call.batch, call.heads, 1, 1),
                Kind.ROW: (call.batch, call.heads, call.queries, 1),
                Kind.COLUMN: (call.batch, call.heads, 1, call.keys),
                Kind.OFFSET: (1, call.heads, high - low + 1, 1),
            }
            self.sums[leaf, kind] = torch.zeros(shapes[kind], dtype=self.the.dtype, device=call.q.device)
        return self.sums[leaf, kind]

    def add(self, leaf: Any, kind: Kind, g: Any, band: Band, block: Block) -> None:
        """Add a block of g · ∂ψ/∂leaf to its sum."""
        chunk, total = band.chunk, self.sum_of(leaf, kind)
        match kind:
            case Kind.HEAD:
                total[chunk.batch, chunk.heads] += g.sum((2, 3), keepdim=True)
            case Kind.ROW:
                total[chunk.batch, chunk.heads, band.rows] += g.sum(3, keepdim=True).flip(2)
            case Kind.COLUMN:
                total[chunk.batch, chunk.heads, :, block.first : block.last] += g.sum(2, keepdim=True)
            case Kind.OFFSET:
                first = differences(self.the.call)[1] - band.last + block.first
                found = _diagonals(g.sum(0))
                total[0, chunk.heads, first : first + found.shape[1], 0] += found

    # -- the end ------------------------------------------------------------------------------------------------

    def _gathered(self) -> dict[str, Any]:
        run, call = self.the, self.the.call
        dq, dk = torch.zeros_like(run.q), torch.zeros_like(run.k)
        q, k = (finite(x) for x in (run.q, run.k)) if run.needs_care else (run.q, run.k)
        for symbol, side in run.sides.items():
            needed = (Kind.ROW, Kind.COLUMN) if side.plain.row is not None else ()
            pulls = Pulls(self.left[symbol], self.right[symbol], *(self.sum_of(symbol, kind) for kind in needed))
            to_q, to_k, metric, factor = pulled_back(run.heads, side, q, k, pulls)
            dq, dk = dq + to_q, dk + to_k
            read = side.pair.metric
            if read is not None and read.table in self.tables:
                self.table_sums[read.table] = self.table_sums[read.table] + to_metric(run.heads, read, metric)
            self._to_tables(run.heads, run.program.pairs[symbol].factor, factor)
        for symbol, (kind, node) in run.program.vectors.items():
            if (symbol, kind) in self.sums:
                self._to_tables(reading(call, kind), node, self.sums[symbol, kind])
        self._through_sink()
        found = {"q": dq, "k": dk, "v": self.dv}
        for name in self.tables:
            found[name] = self.table_sums.get(name, torch.zeros_like(call.tables[name]))
        return found

    def _to_tables(self, part: Any, node: Any, g: Any, shift: Any = 0.0) -> None:
        """Add g · ∂node/∂read to every table that is asked for."""
        if not {leaf.table for leaf in leaves(node) if isinstance(leaf, Read)} & self.tables:
            return
        for leaf, share in shares(part, node, g, shift):
            if leaf.table in self.tables:
                found = to_table(part, leaf, torch.where(g == 0, 0.0, share))  # what no one reads may have no slope
                self.table_sums[leaf.table] = self.table_sums[leaf.table] + (0.0 if found is None else found)

    def _through_sink(self) -> None:
        sink = self.the.call.formula.weight.sink
        if sink is not None and self.up.delta is not None:
            self._to_tables(reading(self.the.call, Kind.ROW), sink.node, -self.up.delta, self.done.shift / LOG2E)


class _Rows:
    """One band of rows, going back."""

    def __init__(self, whole: _Backward, band: Band) -> None:
        self.whole, self.band, self.run = whole, band, whole.the
        run, chunk = self.run, band.chunk
        self.shift = run.rows_of(whole.done.shift, band)
        self.delta = None if whole.up.delta is None else run.rows_of(whole.up.delta, band)
        self.dy = run.stacked(run.rows_of(whole.up.dy, band), chunk)
        self.v = run.chunk_of(run.v, chunk, chunk.key_heads)
        self.dv = whole.dv[chunk.batch, chunk.key_heads]
        self.left = {
            symbol: torch.zeros(
                (self.dy.shape[0], self.dy.shape[1], side.scaled.left.shape[3]), dtype=run.dtype, device=run.q.device
            )
            for symbol, side in run.sides.items()
        }
        lost = run.rows_of(whole.done.total, band).isnan() if run.needs_care else None
        self.lost = None if lost is None or not bool(lost.any()) else lost
        self.dropped = None if run.call.dropout is None else DropBits(run, run.call.dropout, band)

    def add(self, block: Block) -> None:
        """Take a block of keys in."""
        run, band, keys = self.run, self.band, slice(block.first, block.last)
        code = kernel(run.call.formula, run.variant(block, self.whole.wanted))
        registers = run.bind(code, band, block, {SHIFT: self.shift})
        run.fill(code, registers, band, block)
        first, second, third = code.code.steps
        for step in (*first, *second):
            step.run(registers)
        values = self.v[:, :, keys].flatten(0, 1)
        flat = (values.shape[0], self.dy.shape[1], values.shape[1])
        assert code.gradient is not None
        psi, g = registers[code.psi], registers[code.gradient]
        if self.lost is not None:
            psi.masked_fill_(self.lost if code.mask is None else self.lost & admits(registers[code.mask]), math.nan)
        torch.bmm(self.dy, values.mT, out=g.view(flat))
        if self.dropped is not None:
            kept = self.dropped.kept(block)
            g.mul_(kept)
            psi = psi * kept
        self.dv[:, :, keys].flatten(0, 1).baddbmm_(psi.view(flat).mT, self.dy)
        if self.delta is not None:
            g.sub_(self.delta)
        for step in third:
            step.run(registers)
        self._spread(code, registers, block, flat)

    def _spread(self, code: Kernel, registers: list[Any], block: Block, flat: tuple[int, ...]) -> None:
        """Add g · ∂ψ/∂x to the sums of every x."""
        run, band = self.run, self.band
        for leaf, (place, coefficient) in code.pulls.items():
            g = registers[place]
            if leaf in run.sides:
                self._to_sides(leaf, g, coefficient, block, flat)
            elif isinstance(leaf, Read):
                self._to_read(leaf, g * coefficient, [registers[index] for index in code.indices[leaf]])
            elif run.program.vectors[leaf][0] == Kind.FULL:
                part = run.reading(band, block)
                self.whole._to_tables(part, run.program.vectors[leaf][1], g * coefficient)
            else:
                self._sum(leaf, run.program.vectors[leaf][0], g, coefficient, block)

    def _to_sides(self, leaf: Any, g: Any, coefficient: float, block: Block, flat: tuple[int, ...]) -> None:
        run, band, chunk, keys = self.run, self.band, self.band.chunk, slice(block.first, block.last)
        sides = run.sides[leaf].scaled
        right = run.chunk_of(sides.right, chunk, chunk.key_heads)[:, :, keys].flatten(0, 1)
        left = band.lefts[leaf]
        if run.needs_care:  # what no one reads may be NaN, and 0 · NaN is not 0
            left, right = finite(left), finite(right)
        self.left[leaf].baddbmm_(g.view(flat), right, alpha=coefficient)
        to_right = self.whole.right[leaf][chunk.batch, chunk.key_heads][:, :, keys].flatten(0, 1)
        to_right.baddbmm_(g.view(flat).mT, left, alpha=coefficient)
        if run.sides[leaf].plain.row is not None:
            self._sum(leaf, Kind.ROW, g, coefficient, block)
            self._sum(leaf, Kind.COLUMN, g, coefficient, block)

    def _sum(self, leaf: Any, kind: Kind, g: Any, coefficient: float, block: Block) -> None:
        self.whole.add(leaf, kind, g if coefficient == 1.0 else g * coefficient, self.band, block)

    def _to_read(self, read: Read, g: Any, indices: list[Any]) -> None:
        """A table that was read at places which the score decided."""
        table, name = self.run.call.tables[read.table], read.table
        places = [index.long().clamp_(0, size - 1) for index, size in zip(indices, table.shape, strict=True)]
        flat = tuple(place.expand_as(g).reshape(-1) for place in places)
        found = torch.zeros_like(table).index_put_(flat, g.reshape(-1), accumulate=True)
        self.whole.table_sums[name] = self.whole.table_sums[name] + found

    def finish(self) -> None:
        """Write what the band's rows have gathered."""
        chunk, rows = self.band.chunk, self.band.rows
        for symbol, total in self.left.items():
            target = self.whole.left[symbol][chunk.batch, chunk.heads, rows]
            target.copy_(total.view(target.shape).flip(2))


def _vectors(run: Run, tables: frozenset[str]) -> list[Any]:
    """The hoisted vectors that the named tables stand in."""
    return [
        symbol
        for symbol, (_, node) in run.program.vectors.items()
        if {leaf.table for leaf in leaves(node) if isinstance(leaf, Read)} & tables
    ]


def _late(run: Run, tables: frozenset[str]) -> list[Any]:
    return [read for read in run.program.late_reads if read.table in tables]


def _diagonals(g: Any) -> Any:
    """The sums of (h, R, C) over r + c = 0, 1, …: rows a step longer, read as if they were a step shorter."""
    heads, rows, columns = g.shape
    wide = rows + columns
    skewed = g.new_zeros((heads, rows, wide))
    skewed[:, :, :columns] = g
    return skewed.view(heads, -1)[:, : rows * (wide - 1)].view(heads, rows, wide - 1).sum(1)
