"""Cells to pixels: the largest and the sum of the weights that a pixel covers, as rows are read in any order.

    largest = max over its rows and columns        mean = Σ / (rows read × columns covered)

Kept in float32, and rounded to float16 once, when they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Strip:
    """What a block of rows says of pixels: arrays (pixel rows, pixel columns) in float32."""

    places: Any  # which pixel rows, ascending
    counts: Any  # how many rows of each were read
    first: int  # the pixel column where the strip begins; outside of it every weight is 0
    largest: Any
    total: Any


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels, as far as their rows were read."""

    largest: Any  # −∞ where no row was read
    total: Any
    counts: Any  # rows read of each pixel row

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Picture:
        """Of which nothing is known."""
        return cls(np.full(shape, -np.inf, np.float32), np.zeros(shape, np.float32), np.zeros(shape[0], np.int64))

    @property
    def nbytes(self) -> int:
        return int(self.largest.nbytes + self.total.nbytes + self.counts.nbytes)

    def add(self, strip: Strip) -> None:
        """Take in rows that were not read before."""
        rows = strip.places
        across = slice(strip.first, strip.first + strip.largest.shape[1])
        beside = (slice(0, across.start), slice(across.stop, self.largest.shape[1]))
        for part in beside:
            if part.stop > part.start:
                self.largest[rows, part] = np.maximum(self.largest[rows, part], 0)
        self.largest[rows, across] = np.maximum(self.largest[rows, across], strip.largest)
        self.total[rows, across] += strip.total
        self.counts[rows] += strip.counts

    def part(self, rows: slice, columns: slice) -> Picture:
        """A view of some pixels."""
        return Picture(self.largest[rows, columns], self.total[rows, columns], self.counts[rows])

    def coarser(self, size: int) -> Picture:
        """The same with size × size pixels in one."""
        found = self
        for _ in range(size.bit_length() - 1):
            found = found._halved()
        return found

    def _halved(self) -> Picture:
        """The same with 2 × 2 pixels in one."""
        largest = _paired(np.maximum, _paired(np.maximum, self.largest, 0), 1)
        total = _paired(np.add, _paired(np.add, self.total, 0), 1)
        return Picture(largest, total, _paired(np.add, self.counts, 0))

    def shown(self, covered: Any) -> Any:
        """float16 (2, rows, columns): the largest and the mean; 0 where no row was read.

        covered: how many columns of cells each pixel column covers
        """
        read = self.counts[:, None]
        mean = self.total / (np.maximum(read, 1) * covered)
        return half(np.stack([np.where(read > 0, self.largest, np.float32(0)), mean]))


def _paired(two: Any, values: Any, axis: int) -> Any:
    """Each two neighbours along an axis in one; the last stays alone where there is an odd one."""
    turned = np.moveaxis(values, axis, 0)
    pairs = len(turned) // 2
    made = np.empty((len(turned) - pairs, *turned.shape[1:]), values.dtype)
    two(turned[0 : 2 * pairs : 2], turned[1 : 2 * pairs : 2], out=made[:pairs])
    made[pairs:] = turned[2 * pairs :]
    return np.moveaxis(made, 0, axis)


def reduced(xp: Any, weights: Any, places: Any, size: int, first: int = 0) -> Strip:
    """Weights (rows, cells) as a strip of pixels.

    places: the pixel row of each row, ascending; first: the pixel column where the weights begin
    """
    rows, counts = np.unique(places, return_counts=True)
    if len(rows) and counts[0] > 1 and (counts == counts[0]).all():  # whole rows first: the longer axis stays whole
        boxes = xp.reshape(weights, (len(rows), int(counts[0]), weights.shape[1]))
        return Strip(rows, counts, first, *_across(xp, xp.max(boxes, axis=1), xp.sum(boxes, axis=1), size))
    return joined(*_across(xp, weights, weights, size), places, first)


def joined(largest: Any, total: Any, places: Any, first: int = 0) -> Strip:
    """Rows of pixels, (rows, pixels), as a strip: those of one pixel row in one."""
    rows, begins, counts = np.unique(places, return_index=True, return_counts=True)
    if len(rows) == len(places):
        return Strip(rows, counts, first, largest, total)
    return Strip(rows, counts, first, np.maximum.reduceat(largest, begins), np.add.reduceat(total, begins))


def _across(xp: Any, largest: Any, total: Any, size: int) -> tuple[Any, Any]:
    """Along the columns, in NumPy."""
    return host(_folded(xp, xp.max, xp.maximum, largest, size)), host(_folded(xp, xp.sum, xp.add, total, size))


def _folded(xp: Any, whole: Any, two: Any, values: Any, size: int) -> Any:
    """Each `size` columns in one; the last may have fewer. NumPy is slow along short axes, so that it takes halves."""
    rest = values.shape[1] % size
    kept, last = values[:, : values.shape[1] - rest], values[:, values.shape[1] - rest :]
    if xp.name == "numpy":
        for _ in range(size.bit_length() - 1):
            kept = two(kept[:, 0::2], kept[:, 1::2])
    else:
        kept = whole(xp.reshape(kept, (kept.shape[0], -1, size)), axis=2)
    return xp.concat([kept, whole(last, axis=1, keepdims=True)], axis=1) if rest else kept


def half(values: Any) -> Any:
    """As float16, rounded to nearest. NumPy takes 80 ns for each number below 2⁻¹⁴, of which maps are full."""
    values = np.asarray(values, np.float32)
    size = np.abs(values)
    small = size < 2**-14
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.where(small, np.float32(0), values).astype(np.float16)
        steps = np.where(small, np.rint(size * 2**24), 0).astype(np.uint16)
    bits = found.view(np.uint16)
    bits |= steps | (np.signbit(values).astype(np.uint16) << 15)
    return found


def host(array: Any) -> Any:
    """As NumPy float32."""
    found = array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()
    return found.astype(np.float32, copy=False)


def covered(columns: slice, size: int, level_size: int) -> Any:
    """How many of `size` cells each pixel of pixel columns covers at a level whose pixels are so wide."""
    ends = np.minimum((np.arange(columns.start, columns.stop) + 1) * level_size, size)
    return (ends - np.arange(columns.start, columns.stop) * level_size).astype(np.float32)


def interleaved(count: int) -> list[int]:
    """0 … count − 1 with the bits turned round: 0, 4, 2, 6, 1, 5, 3, 7, so that any beginning is spread evenly."""
    bits = max(0, count - 1).bit_length()
    turned = (int(format(place, f"0{bits}b")[::-1], 2) if bits else 0 for place in range(2**bits))
    return [place for place in turned if place < count]
