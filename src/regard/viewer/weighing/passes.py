"""One pass over all rows of a head, which finds the totals and the coarse pixels at once.

Rows are read so that any beginning of the pass shows the whole map: one row of every pixel row first (evenly spread),
then more of each. A thread reads while somebody looks, and rests when nobody has asked for a while.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import pairwise
from threading import Condition, Thread
from typing import Any

import numpy as np

from ..work import Stop, Stopped
from .pixels import Picture, covered, interleaved
from .totals import Head

WIDEST = 4096  # pixels a side of what is kept
REST = 2.0  # seconds without a question after which the thread ends
PATIENCE = 1.0  # seconds that a first answer waits for a row of each pixel row


class Pass:
    """The coarse levels of one head.

    level: the finest of them, whose pixels are kept; at most WIDEST a side
    """

    def __init__(self, head: Head, finest: int) -> None:
        self.head = head
        longest = max(1, *head.shape)
        self.level = max(finest, int(np.ceil(np.log2(longest / WIDEST))))
        self.size = 2**self.level
        self._shape = -(-head.shape[0] // self.size), -(-head.shape[1] // self.size)
        self._picture: Picture | None = None
        self._coarser: dict[int, Picture] = {}  # of the whole map, once every row was read
        self._blocks: Iterator[Any] = iter(())
        self._block: Any | None = None
        self._changed = Condition()
        self._asked = 0.0
        self._readers = 0
        self._failed: Exception | None = None

    @property
    def nbytes(self) -> int:
        """What is kept."""
        kept = [] if self._picture is None else [self._picture, *self._coarser.values()]
        return sum(picture.nbytes for picture in kept)

    def tile(
        self, level: int, rows: tuple[int, int], columns: tuple[int, int], stop: Stop | None = None
    ) -> tuple[Any, float]:
        """Pixels of a level that is no finer than `self.level`, and the share of their rows that was read."""
        factor = 2 ** (level - self.level)
        down, across = (slice(first * factor, last * factor) for first, last in (rows, columns))
        end = time.monotonic() + PATIENCE
        with self._changed:
            self._start()
            while not self._is_ready(down, factor) and time.monotonic() < end:
                self._start()
                if stop is not None:
                    stop.check()
                self._changed.wait(0.05)
            if self._failed is not None:
                raise self._failed
            assert self._picture is not None
            if self._is_whole:
                found = self.whole(level).part(slice(*rows), slice(*columns))
            else:
                found = self._picture.part(down, across).coarser(factor)
            shown = found.shown(covered(slice(*columns), self.head.shape[1], 2**level))
            size = 2**level
            cells = min(rows[1] * size, self.head.shape[0]) - rows[0] * size
            return shown, float(found.counts.sum() / cells)

    @property
    def _is_whole(self) -> bool:
        return self._picture is not None and bool(self._picture.counts.sum() == self.head.shape[0])

    def whole(self, level: int) -> Picture:
        """All pixels of a level, after every row was read: each level from the one before."""
        assert self._picture is not None
        if level == self.level:
            return self._picture
        if level not in self._coarser:
            self._coarser[level] = self.whole(level - 1).coarser(2)
        return self._coarser[level]

    def run(self, stop: Stop | None = None) -> None:
        """The whole pass, in this thread."""
        with self._changed:
            self._prepare()
        while (block := self._next()) is not None:
            self._read(block, Stop() if stop is None else stop)

    def close(self) -> None:
        """Let the thread end now; a later question starts another."""
        self._asked = -math.inf

    # -- reading ---------------------------------------------------------------------------------------------------

    def _is_ready(self, rows: slice, factor: int) -> bool:
        if self._failed is not None or self._picture is None:
            return True
        counts = self._picture.counts[rows]
        return bool(np.add.reduceat(counts, np.arange(0, len(counts), factor)).all())

    def _prepare(self) -> None:
        if self._picture is None:
            self._picture = Picture.empty(self._shape)
            self._blocks = self._in_order()

    def _start(self) -> None:
        """Let a thread read on, if there is something to read and none does."""
        self._prepare()
        self._asked = time.monotonic()
        assert self._picture is not None
        if self._readers == 0 and self._failed is None and self._picture.counts.sum() < self.head.shape[0]:
            self._readers += 1
            Thread(target=self._work, daemon=True, name="regard-tiles").start()

    def _work(self) -> None:
        try:
            while (block := self._next()) is not None:
                self._read(block, Resting(self))
        except Stopped:
            pass
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is told to whoever asks next
            self._failed = problem
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _next(self) -> Any | None:
        """The block to be read now; it stays so until it was read."""
        if self._block is None:
            self._block = next(self._blocks, None)
        return self._block

    def _read(self, rows: Any, stop: Stop) -> None:
        stop.check()
        strip = self.head.strip(rows, self.size, stop)
        with self._changed:
            assert self._picture is not None
            self._picture.add(strip)
            self._block = None
            self._changed.notify_all()

    def _in_order(self) -> Iterator[Any]:
        """Blocks of rows, each ascending, together all of them."""
        n, size = self.head.shape[0], self.size
        if self.head.is_accelerated:
            yield from self._cut(np.arange(n), size)
            return
        pixels = self._shape[0]
        stride = 2 ** max(0, (pixels - 1).bit_length() - 6)
        for offset in interleaved(stride):
            yield from self._cut(np.arange(offset, pixels, stride) * size, 1)
        edges = sorted({1, min(8, size), size})
        for low, high in pairwise(edges):
            rows = (np.arange(pixels)[:, None] * size + np.arange(low, high)).reshape(-1)
            yield from self._cut(rows[rows < n], high - low)

    def _cut(self, rows: Any, unit: int) -> Iterator[Any]:
        """Rows in blocks of bounded size, each of whole units."""
        step = max(1, self.head.step // unit) * unit
        for first in range(0, len(rows), step):
            yield rows[first : first + step]


class Resting(Stop):
    """Set when nobody has asked for a while."""

    def __init__(self, coarse: Pass) -> None:
        super().__init__()
        self._coarse = coarse

    @property
    def is_set(self) -> bool:
        return time.monotonic() - self._coarse._asked > REST
