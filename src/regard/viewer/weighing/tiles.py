"""Any part of a map at any size: tiles of 256 × 256 pixels, from q, k and totals, on demand.

    level z: a pixel covers 2^z × 2^z cells, and holds the largest and the mean weight of them

Fine levels are read from the cells of the tile. Coarse levels come from one pass over all rows, which finds the
totals on its way (`passes`).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...attention import Attention
from ..answering.options import inside
from ..record import Captured
from ..work import Stop
from .passes import Pass
from .pixels import Picture, covered, interleaved, reduced
from .totals import Head, compact

SIDE = 256
FINE = 3  # the coarsest level that is always read from its cells
PATIENCE = 0.2  # seconds that a fine tile spends on totals which are not known, beyond one row for each pixel


class Pyramid:
    """The map of one head at every level."""

    def __init__(self, captured: Captured, batch: int, head: int, formula: Attention | None = None) -> None:
        self.head = Head(captured, batch, head, formula)
        self.shape = self.head.shape
        self.coarse = Pass(self.head, FINE + 1)

    @property
    def levels(self) -> int:
        """How many there are: the coarsest is one tile."""
        return max(1, int(np.ceil(np.log2(max(1, *self.shape) / SIDE))) + 1)

    @property
    def nbytes(self) -> int:
        """What is kept."""
        return self.head.nbytes + self.coarse.nbytes

    def tile(self, level: int, row: int, column: int, stop: Stop | None = None) -> tuple[Any, float]:
        """The largest and the mean weight of each pixel, float16 (2, r, c), and the share of rows they know of.

        At level 0 the two are one, (1, r, c). The share is 1 where the tile is exact.
        """
        inside("level", level, self.levels, "levels")
        down, across = _span("row", row, level, self.shape[0]), _span("column", column, level, self.shape[1])
        if level >= self.coarse.level:
            return self.coarse.tile(level, down, across, stop)
        return self._fine(level, down, across, stop)

    def _fine(
        self, level: int, rows: tuple[int, int], columns: tuple[int, int], stop: Stop | None
    ) -> tuple[Any, float]:
        """A tile from its cells: of rows whose totals are known or soon found, and of one in each pixel at least."""
        size = 2**level
        across = slice(columns[0] * size, min(columns[1] * size, self.shape[1]))
        every = np.arange(rows[0] * size, min(rows[1] * size, self.shape[0]))
        read = self._readable(every, size, stop)
        picture = Picture.empty((rows[1] - rows[0], columns[1] - columns[0]))
        step = max(1, self.head.cells // max(1, across.stop - across.start) // size) * size
        for first in range(0, len(every), step):
            if stop is not None:
                stop.check()
            chosen = every[first : first + step][read[first : first + step]]
            weights = self.head.weights(compact(chosen), across, stop)
            picture.add(reduced(self.head.xp, weights, chosen // size - rows[0], size))
        shown = picture.shown(covered(slice(*columns), self.shape[1], size))
        return shown[: 1 if level == 0 else 2], float(read.mean())

    def _readable(self, rows: Any, size: int, stop: Stop | None) -> Any:
        """Which rows are read: a truth for each."""
        read = np.ones(len(rows), bool)
        if self.head.shared != "columns" or size == 1:
            return read
        read = self.head.known.done[rows]
        end = time.monotonic() + PATIENCE
        for offset in interleaved(size):
            chosen = (rows % size == offset) & ~read
            if (offset and time.monotonic() > end) or not chosen.any():
                continue
            self.head.totals(rows[chosen], stop)
            read |= chosen
        return read


def _span(name: str, place: int, level: int, size: int) -> tuple[int, int]:
    """The pixels along one side of a tile."""
    count = -(-size // 2**level)
    inside(name, place, -(-count // SIDE), f"{name}s of tiles at level {level}")
    return place * SIDE, min((place + 1) * SIDE, count)
