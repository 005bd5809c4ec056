"""The common case by hand, on NumPy: softmax of a score that is a straight line in q·k.

    s_ij = slope_i (q_i·k_j) + rest_ij        log Z_i = m_i + log Σ_j exp(s_ij − m_i)

Keys go by in chunks that stay near the processor, with the largest score so far taken out; pixels are reduced while a
chunk is there, and divided by Z at the end. A third of the time of whole matrices, and no matrix is ever held.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.expressions import Expression
from ...algebra.laws import Admits, Kind, kind_of
from ...algebra.nodes import I, J, symbols
from ...parts import Parts

CHUNK = 2**18  # scores held at once
WHOLE = slice(None)


@dataclass(frozen=True, eq=False)
class Lines:
    """One head that can be read so: `of` says whether it can.

    slope, rest: as above; rest is None where it is 0
    """

    parts: Parts
    batch: int
    head: int
    slope: Expression
    rest: Expression | None

    @classmethod
    def of(cls, parts: Parts, batch: int, head: int) -> Lines | None:
        """The head's lines; None where its formula has others, or its arrays are not of NumPy."""
        formula, law = parts.formula, parts.formula.laws.affine
        if law is None or not formula.weight.is_softmax or parts.call.xp.name != "numpy":
            return None
        if law.pair.node.word != "dot" or law.pair.node.metric is not None:
            return None
        if kind_of(law.slope.node) not in (Kind.HEAD, Kind.ROW):
            return None
        if any(symbols(guarded.read) & {I, J} for guarded in formula.reads):
            return None  # places in a table, which the engine checks pair by pair
        parts.by_itself(batch=batch, heads=head, rows=slice(0, 1), columns=slice(0, 1))  # which checks the others
        return cls(parts, batch, head, law.slope, None if law.rest.node == 0 else law.rest)

    def read(self, rows: Any, columns: slice, size: int = 0) -> tuple[Any, Any, Any]:
        """log Z of rows, and the largest and the sum of each `size` weights (rows, pixels); without pixels for size 0.

        columns: a range of keys outside of which the mask admits none; it begins at a multiple of size
        """
        at = {"batch": self.batch, "heads": self.head}
        call = self.parts.call
        slope = self.parts.value(self.slope, **at, rows=rows).astype(call.working_dtype)
        q = call.q[self.batch, self.head, rows].astype(call.working_dtype) * slope[0, 0, :, :1]
        q = np.ascontiguousarray(q.T)  # (width, rows)
        k = call.k[self.batch, self.head]
        step = max(CHUNK // max(1, q.shape[1]), 64)
        step = -(-step // size) * size if size else step
        pixels = -(-(columns.stop - columns.start) // size) if size else 0
        running = Running(q.shape[1], q.dtype, pixels, size)
        buffer = np.empty((min(step, max(1, columns.stop - columns.start)), q.shape[1]), q.dtype)
        said = self._said(rows)
        with np.errstate(all="ignore"):
            for first in range(columns.start, columns.stop, step):
                part = slice(first, min(first + step, columns.stop))
                scores = np.matmul(k[part], q, out=buffer[: part.stop - first])
                if self.rest is not None:
                    scores += self.parts.value(self.rest, **at, rows=rows, columns=part)[0, 0].T
                if said is not None and said(part) is not Admits.ALL:
                    assert self.parts.formula.mask is not None
                    truth = self.parts.value(self.parts.formula.mask, **at, rows=rows, columns=part)[0, 0].T
                    np.copyto(scores, -math.inf, where=~truth)
                running.take(scores)
            return running.finished()

    def _said(self, rows: Any) -> Callable[[slice], Admits] | None:
        """What the mask says of a chunk of keys; None without a mask."""
        formula, call = self.parts.formula, self.parts.call
        if formula.mask is None:
            return None
        low, high = span(rows)
        start = int(call.start[self.batch])
        heads, batch = (self.head, self.head + 1), (self.batch, self.batch + 1)
        sizes, over = {"n": call.keys, "d": call.width, "H": call.heads}, (start + low, start + high)
        block = formula.laws.block
        return lambda part: block(over, (part.start, part.stop), sizes=sizes, heads=heads, batch=batch)


class Running:
    """Rows while their keys go by: the largest score so far, the total, and pixels under the largest of their time."""

    def __init__(self, rows: int, dtype: Any, pixels: int, size: int) -> None:
        self.size = size
        self.high = np.full(rows, -np.inf, dtype)
        self.total = np.zeros(rows, np.float64)
        self.pixels = np.empty((2, pixels, rows), dtype)  # the largest and the sum, written where they stay
        self.shifts: list[tuple[int, Any]] = []  # how many pixels were there, and what was taken out of the next

    def take(self, scores: Any) -> None:
        """The next keys, (keys, rows); the scores are used up."""
        high = np.maximum(self.high, scores.max(axis=0))
        shift = np.where(high == -np.inf, 0, high).astype(high.dtype)
        scores -= shift
        psi = np.exp(scores, out=scores)
        self.total *= np.exp(self.high - shift)
        self.high = high
        self.total += self._reduced(psi, shift) if self.size else np.ones(len(psi), psi.dtype) @ psi

    def _reduced(self, psi: Any, shift: Any) -> Any:
        """Write the pixels of these keys, and give their sum."""
        done = sum(count for count, _ in self.shifts)
        whole, rest = divmod(len(psi), self.size)
        boxes = psi[: whole * self.size].reshape(whole, self.size, psi.shape[1])
        for fold, pixels in zip((np.maximum, np.add), self.pixels, strict=True):
            fold.reduce(boxes, axis=1, out=pixels[done : done + whole])
            if rest:
                fold.reduce(psi[whole * self.size :], axis=0, out=pixels[done + whole])
        count = whole + bool(rest)
        self.shifts.append((count, shift))
        return self.pixels[1, done : done + count].sum(axis=0)

    def finished(self) -> tuple[Any, Any, Any]:
        """log Z, and the largest and the sum of each pixel's weights, (rows, pixels)."""
        dtype = self.high.dtype
        log_total = (np.log(self.total) + np.where(self.high == -np.inf, 0, self.high)).astype(dtype)
        known = np.where(log_total == -np.inf, 0, log_total).astype(dtype)
        done = 0
        for count, shift in self.shifts:
            self.pixels[:, done : done + count] *= np.exp(shift - known)
            done += count
        return log_total, self.pixels[0].T, self.pixels[1].T


def span(rows: Any) -> tuple[int, int]:
    """The first of ascending places, and the one behind the last."""
    return (rows.start, rows.stop) if isinstance(rows, slice) else (int(rows[0]), int(rows[-1]) + 1)
