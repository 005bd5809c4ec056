"""The forward pass, block by block, with a running maximum where one is needed.

    m' = max(m, max_j E)        Z' = 2^(m − m') Z + Σ_j ψ        y' = 2^(m − m') y + Σ_j ψ v_j        y = y' / Z'

What is known of a row after its last block is m, Z and y: O(N) numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, I, J
from ..dropout import STEPS, Dropout
from ..tables import refuse_range
from ..vectors import reading
from .calls import BITS
from .kernel import SHIFT, Kernel, kernel
from .run import Band, Run
from .tiles import Block

LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class Streamed:
    """What the forward pass leaves: y (B, H, N, E), and m (in base 2) and Z · 2^(−m) of each row, (B, H, N, 1).

    Row terms that cancel are in none of them.
    """

    y: Any
    shift: Any
    total: Any

    def log(self, run: Run) -> Any:
        """log Z where ψ is exponential, otherwise Z."""
        if not run.program.is_shifted:
            return self.total.clone()
        return self.total.log() + (self.shift + run.dropped) / LOG2E


def stream(run: Run) -> Streamed:
    """y, m and Z of every row."""
    assert run.v is not None
    call, width = run.call, int(run.v.shape[3])
    shape = (call.batch, call.heads, call.queries)
    made = {"dtype": run.dtype, "device": call.q.device}
    y = torch.zeros((*shape, width), **made)
    shift, total = torch.zeros((*shape, 1), **made), torch.ones((*shape, 1), **made)
    sink = _sink(run)
    shared = call.formula.weight.over is not None
    for chunk in run.chunks():
        for band in run.bands(chunk):
            rows = _Rows(run, band, width, sink)
            for block in run.schedule.blocks(chunk, band.rows):
                rows.add(block)
            place = (chunk.batch, chunk.heads, band.rows)
            y[place] = rows.mixed().flip(2)
            if shared:
                shift[place], total[place] = rows.m.flip(2), rows.z.flip(2)
    return Streamed(y, shift, total)


class _Rows:
    """The state of one band of rows: m, Z and Σ ψ v."""

    def __init__(self, run: Run, band: Band, width: int, sink: tuple[Any, Any] | None) -> None:
        self.run, self.band, chunk = run, band, band.chunk
        shape = (chunk.batch.stop - chunk.batch.start, chunk.heads.stop - chunk.heads.start, band.height)
        made = {"dtype": run.dtype, "device": run.q.device}
        self.y = torch.zeros((*shape, width), **made)
        self.stacked = self.y.view(-1, chunk.group * band.height, width)
        self.v = run.chunk_of(run.v, chunk, chunk.key_heads)
        self.shifted = run.program.is_shifted and not run.is_bounded
        lowest = -math.inf if self.shifted else 0.0
        self.m = torch.full((*shape, 1), lowest, **made)
        self.z = torch.zeros((*shape, 1), **made)
        if sink is not None:
            height, value = (run.rows_of(part, band) for part in sink)
            self.m, self.z = self.m + height if not self.shifted else height.expand_as(self.m), self.z + value
        self.dropped = None if run.call.dropout is None else DropBits(run, run.call.dropout, band)

    def add(self, block: Block) -> None:
        """Take a block of keys in."""
        run, band = self.run, self.band
        code = kernel(run.call.formula, run.variant(block))
        registers = run.bind(code, band, block, {})
        run.fill(code, registers, band, block)
        first, second, *_ = code.code.steps
        for step in first:
            step.run(registers)
        _check_late_reads(run, code, registers)
        if self.shifted:
            self._raise(code, registers)
        for step in second:
            step.run(registers)
        psi = registers[code.psi]
        if run.call.formula.weight.over is not None:
            self.z += psi.sum(-1, keepdim=True)
        if self.dropped is not None:
            psi.mul_(self.dropped.kept(block))
        values = self.v[:, :, block.first : block.last].flatten(0, 1)
        flat = psi.view(values.shape[0], -1, values.shape[1])
        if code.mask is None or not run.needs_care:
            self.stacked.baddbmm_(flat, values)
        else:
            _mix(self.stacked, flat, values, registers[code.mask].expand_as(psi).reshape(flat.shape))

    def _raise(self, code: Kernel, registers: list[Any]) -> None:
        """m becomes the largest exponent so far, and what was summed is scaled to it."""
        highest = self.m
        for place in code.exponents:
            highest = torch.maximum(highest, registers[place].amax(-1, keepdim=True))
        safe = torch.where(highest == -math.inf, 0.0, highest)  # of a row that has read nothing yet
        scale = torch.exp2(self.m - safe)
        self.y.mul_(scale)
        self.z = self.z * scale
        self.m = highest
        registers[code.code.brought[SHIFT]] = safe

    def mixed(self) -> Any:
        """y of the band; 0 where Z is 0."""
        weight = self.run.call.formula.weight
        if weight.over is None:
            return self.y
        self.m = torch.where(self.m == -math.inf, 0.0, self.m)
        empty = self.z == 0
        return torch.where(empty, 0.0, self.y / torch.where(empty, 1.0, self.z))


def _mix(total: Any, weights: Any, values: Any, admitted: Any) -> None:
    """total += weights @ values, where a value that is not read cannot spoil the row, even if it is NaN."""
    finite = values.isfinite()
    total.baddbmm_(weights, torch.where(finite, values, 0.0))
    admitted = admits(admitted)
    for j in (~finite).any(2).any(0).nonzero().flatten().tolist():
        product = weights[:, :, j, None] * torch.where(finite[:, None, j], 0.0, values[:, None, j])
        total += torch.where(admitted[:, :, j, None] & ~finite[:, None, j], product, 0.0)


def admits(bits: Any) -> Any:
    """Bits as truths."""
    return (bits.view(BITS[bits.dtype]) if bits.dtype in BITS else bits) != 0


def _sink(run: Run) -> tuple[Any, Any] | None:
    """What a total begins with: its exponent in base 2, and its value below that."""
    weight = run.call.formula.weight
    if weight.over is None or weight.sink is None:
        return None
    rows = reading(run.call, Kind.ROW)
    if not run.program.is_shifted:
        return torch.zeros((1, 1, 1, 1), dtype=run.dtype, device=run.q.device), _four(
            rows.scaled(weight.sink_terms, 0.0)
        )
    height = None
    for r, a in weight.sink_terms:
        factor, exponent = (_four(rows.array(rows.real(rows.value(node)))) for node in (r, a))
        found = torch.where(factor == 0, -math.inf, exponent * LOG2E)
        height = found if height is None else torch.maximum(height, found)
    assert height is not None
    safe = torch.where(height == -math.inf, 0.0, height)
    return height, _four(rows.scaled(weight.sink_terms, safe / LOG2E))


def _four(x: Any) -> Any:
    return x.reshape((1,) * (4 - x.ndim) + tuple(x.shape))


def _check_late_reads(run: Run, code: Kernel, registers: list[Any]) -> None:
    """Reads at places that the score decides stand inside their tables where they count."""
    for read, places, guard in code.guards:
        counts = admits(registers[guard])
        for axis, place in enumerate(places):
            index = registers[place]
            wrong = ((index < 0) | (index >= run.call.tables[read.table].shape[axis])) & counts
            if bool(wrong.any()):
                found = index.expand_as(wrong)[wrong]
                refuse_range(run.call, read, axis, int(found.min()), int(found.max()))


class DropBits:
    """The weights of a band that are dropped, block by block, from the hashes of its rows and keys."""

    def __init__(self, run: Run, dropout: Dropout, band: Band) -> None:
        call, xp = run.call, run.call.xp
        whole = run.reading(band, Block(0, call.keys, False))
        b, h, i, j = (whole.symbols[symbol] for symbol in (BATCH, HEAD, I, J))
        self.dtype = run.dtype
        self.dropout, self.rows, self.columns = dropout, dropout.rows(xp, b, h, i), dropout.columns(xp, j)

    def kept(self, block: Block) -> Any:
        """1 / (1 − p) where a weight is kept, 0 where it is dropped."""
        x = self.rows ^ self.columns[..., block.first : block.last]
        for shift, factor in STEPS:
            x.bitwise_xor_(x >> shift).mul_(factor)
        return (x > self.dropout.threshold).to(self.dtype).mul_(self.dropout.scale)
