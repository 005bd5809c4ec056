"""One head of a captured call, read in blocks of rows: w_ij = ψ(s_ij) / Z_i, with Z_i found once and kept.

    log Z_i = log Σ_j exp(s_ij)        one number for each row, after which any part costs only itself

Totals are kept in `Captured.known`, by the formula's text, the batch item and the head. On a processor all is done in
NumPy, whichever library the arrays came from; on an accelerator in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from ...algebra.laws import Admits
from ...attention import Attention
from ...parts import Parts
from ..arrays import numpy_of
from ..record import Captured
from ..work import Stop
from .lines import Lines, span
from .pixels import Strip, joined, reduced

CELLS = 2**20  # of a block of a whole matrix: few enough to stay near the processor
ROWS = 256  # of a block that is read as lines
CELLS_ACCELERATED = 2**29  # 2 GB of scores
PARTS = 32  # of the keys, of which the mask is asked whether it admits any
OTHERS = 256  # totals of formulas that are tried, for one captured call
WHOLE = slice(None)
_LOCK = RLock()  # of what captured calls know


@dataclass(frozen=True, eq=False)
class Totals:
    """log Z (Z where ψ is no exponential) along one axis, as far as it is known.

    values: of NumPy, or on the accelerator where q lies
    done:   a NumPy truth for each place
    """

    values: Any
    done: Any


class Head:
    """One head of one batch item under a formula: its weights in blocks."""

    def __init__(self, captured: Captured, batch: int, head: int, formula: Attention | None = None) -> None:
        self.captured, self.batch, self.head = captured, batch, head
        self.formula = captured.formula if formula is None else formula
        plain = without_values(captured, self.formula)
        self.shared = plain.shared
        self.shape = plain.shape[2], plain.shape[3]
        self.first = int(plain.call.start[batch])
        self._plain = plain

    @cached_property
    def parts(self) -> Parts:
        """The formula on the vectors of this head, in the place of every head.

        Of all heads where they, or the batch, share a total.
        """
        if self.shared in ("heads", "batch"):
            return self._plain
        return _alone(self.captured, self._plain, self.batch, self.head)

    @property
    def xp(self) -> Any:
        """The library of what comes back."""
        return self.parts.call.xp

    @property
    def nbytes(self) -> int:
        """What is kept beside the captured arrays."""
        call, wide = self._plain.call, self._plain.call.working_dtype
        return 0 if call.dtype == wide else int(wide.itemsize) * self.shape[1] * call.width

    @property
    def is_accelerated(self) -> bool:
        """Whether large blocks pay."""
        return bool(self._plain.call.xp.is_accelerated(self._plain.call.q))

    @property
    def cells(self) -> int:
        """How many cells of a matrix are held at once."""
        return CELLS_ACCELERATED if self.is_accelerated else CELLS

    @property
    def step(self) -> int:
        """How many whole rows are read at once."""
        return ROWS if self._lines is not None else max(1, self.cells // max(1, self.shape[1]))

    @cached_property
    def _lines(self) -> Lines | None:
        if self.shared != "columns" or not all(self.shape):
            return None
        return Lines.of(self.parts, self.batch, self.head)

    # -- parts -----------------------------------------------------------------------------------------------------

    def weights(self, rows: Any, columns: Any, stop: Stop | None = None) -> Any:
        """The weights of a part, (rows, columns), exact."""
        part: dict[str, Any] = {"batch": self.batch, "heads": self.head, "rows": rows, "columns": columns}
        if self.shared in ("heads", "batch"):
            of = self.head if self.shared == "heads" else self.batch
            found = self.parts.weights(**{**part, self.shared: WHOLE})
            return found[0, of] if self.shared == "heads" else found[of, 0]
        if self.shared is None:
            return self.parts.weights(**part)[0, 0]
        known = self._known_totals(rows if self.shared == "columns" else columns, stop)
        return self.parts.weights(known[None, None], **part)[0, 0]

    def strip(self, rows: Any, size: int, stop: Stop | None = None) -> Strip:
        """The pixels of whole rows, ascending, with size × size cells in each; totals are kept on the way."""
        places = compact(rows)
        if self.shared not in (None, "columns"):
            return reduced(self.xp, self.weights(places, WHOLE, stop), rows // size, size)
        columns = self.admitted(places, size)
        if self._lines is not None:
            totals, largest, total = self._lines.read(places, columns, size)
            self._keep(places, totals)
            return joined(largest, total, rows // size, columns.start // size)
        steps = self.parts.by_itself(batch=self.batch, heads=self.head, rows=places, columns=columns)
        if self.shared == "columns":
            self._keep(places, steps.log_total[0, 0])
        return reduced(self.xp, steps.weights[0, 0], rows // size, size, columns.start // size)

    def totals(self, places: Any = WHOLE, stop: Stop | None = None) -> Any:
        """log Z (or Z) of rows, of columns where the weight shares over rows, in the library of q."""
        found, xp = self._known_totals(places, stop), self._plain.call.xp
        return xp.asarray(found) if isinstance(found, np.ndarray) and xp.name != "numpy" else found

    @property
    def known(self) -> Totals:
        """The totals that were found so far."""
        found: Totals = kept(self.captured, (self.formula.text, self.batch, self.head), self._nothing)
        return found

    # -- blocks ----------------------------------------------------------------------------------------------------

    def admitted(self, rows: Any, grain: int = 1) -> slice:
        """A range of keys outside of which the mask admits none of these rows, as far as that is cheap to say.

        grain: the range begins at a multiple of it, and ends at one or at the last key
        """
        n = self.shape[1]
        if self.formula.mask is None or self.formula.weight.among is not None or n < 8 * PARTS:
            return slice(0, n)
        low, high = span(rows)
        over = (self.first + low, self.first + high)
        edges = [*range(0, n, -(-n // PARTS // grain) * grain), n]
        first, last = 0, len(edges) - 1
        while first < last - 1 and self._none(over, (edges[first], edges[first + 1])):
            first += 1
        while first < last - 1 and self._none(over, (edges[last - 1], edges[last])):
            last -= 1
        return slice(edges[first], edges[last])

    def _none(self, rows: tuple[int, int], columns: tuple[int, int]) -> bool:
        call = self._plain.call
        sizes = {"n": call.keys, "d": call.width, "H": call.heads}
        heads, batch = (self.head, self.head + 1), (self.batch, self.batch + 1)
        return self.formula.laws.block(rows, columns, sizes=sizes, heads=heads, batch=batch) is Admits.NONE

    def _known_totals(self, places: Any, stop: Stop | None) -> Any:
        """Of the places, those not known yet found first; a block at a time."""
        known = self.known
        wanted = np.arange(len(known.done))[places]
        for block in self._blocks(wanted[~known.done[wanted]]):
            if stop is not None:
                stop.check()
            self._keep(block, self._found(block))
        return known.values[places if isinstance(places, slice) or self.xp.name == "numpy" else self.xp.asarray(places)]

    def _blocks(self, places: Any) -> Iterator[Any]:
        step = self.step if self.shared == "columns" else max(1, self.cells // max(1, self.shape[0]))
        for first in range(0, len(places), step):
            yield compact(places[first : first + step])

    def _found(self, places: Any) -> Any:
        if self.shared == "rows":
            return self.parts.by_itself(batch=self.batch, heads=self.head, columns=places).log_total[0, 0]
        columns = self.admitted(places)
        if self._lines is not None:
            return self._lines.read(places, columns)[0]
        return self.parts.by_itself(batch=self.batch, heads=self.head, rows=places, columns=columns).log_total[0, 0]

    def _keep(self, places: Any, values: Any) -> None:
        known = self.known
        if not known.done[places].all():
            known.values[places] = values
            known.done[places] = True

    def _nothing(self) -> Totals:
        size, call = self.shape[0 if self.shared == "columns" else 1], self.parts.call
        values = self.xp.zeros((size,), dtype=call.working_dtype, device=self.xp.device(call.q))
        return Totals(values, np.zeros(size, bool))


def totals(
    captured: Captured, batch: int, head: int, formula: Attention | None = None, stop: Stop | None = None
) -> Any:
    """log Z (or Z) of one head, in the library of q: one number for each row (each column where `over=i`)."""
    return Head(captured, batch, head, formula).totals(WHOLE, stop)


def without_values(captured: Captured, formula: Attention) -> Parts:
    """The captured queries and keys under a formula; nothing is mixed, so that values need not be read."""
    bare = replace(captured, v=None, known={})
    found: Parts = kept(captured, (formula.text, "parts"), lambda: bare.under(formula))
    return found


def kept(captured: Captured, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What a captured call knows by a key, which begins with a formula's text; made where it is not there yet.

    All of its own formula is kept; of others only what was asked for last.
    """
    with _LOCK:
        known = captured.known
        value = known.pop(key) if key in known else make()
        known[key] = value
        others = [other for other in known if other[0] != captured.formula.text]
        for oldest in others[: max(0, len(others) - OTHERS)]:
            del known[oldest]
        return value


def compact(places: Any) -> Any:
    """Ascending places as a slice where there is no gap between them."""
    count = len(places)
    return slice(int(places[0]), int(places[0]) + count) if count and places[-1] - places[0] + 1 == count else places


def _alone(captured: Captured, parts: Parts, batch: int, head: int) -> Parts:
    """The same call with the vectors of one head in the place of every head; keys, read often, are widened."""
    call = _on_host(captured, parts).call

    def spread(array: Any, wide: bool) -> Any:
        own = head * int(array.shape[1]) // call.heads
        one = array[batch : batch + 1, own : own + 1]
        one = parts.call.xp.astype(one, parts.call.working_dtype, copy=False) if wide else one
        one = numpy_of(one) if call.xp.name == "numpy" else one
        return call.xp.broadcast_to(one, (call.batch, call.heads, *one.shape[2:]))

    return Parts(replace(call, q=spread(parts.call.q, False), k=spread(parts.call.k, True)))


def _on_host(captured: Captured, parts: Parts) -> Parts:
    """The same call in NumPy, but for q and k, which are looked at head by head; as it is on an accelerator."""
    call = parts.call
    if call.xp.name == "numpy" or call.xp.is_accelerated(call.q):
        return parts
    formula = parts.formula
    assert isinstance(formula, Attention)

    def make() -> Parts:
        dtype = numpy_of(call.xp.zeros((1,), dtype=call.working_dtype)).dtype
        empty = (np.broadcast_to(np.zeros((), dtype), array.shape) for array in (call.q, call.k))
        tables = {name: numpy_of(captured.tables[name]) for name in formula.ranks}
        start = captured.start if type(captured.start) is int or captured.start is None else numpy_of(captured.start)
        return formula.parts(*empty, start=start, **tables)

    found: Parts = kept(captured, (formula.text, "host"), make)
    return found
