"""What one look at a model, or at arrays, has kept: calls of attention, of which any part can be seen.

w_ij = ψ(s_ij) / Z_i        the part that is asked for, from q, k and the formula; never the whole unless asked
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import is_array
from ..algebra.errors import CallError, KindError
from .arrays import numpy_of, size_of
from .record import Axis, Captured, Missing
from .weighing.totals import Head, without_values

WHOLE = slice(None)
SHOWN = 8  # names in an error, and lines of what is missing


class Lens:
    """Calls of attention with what stands along their axes: of a model, or of arrays.

    title, model: in words
    layers:       what was captured, in the order of the calls
    axes:         for each batch item, its axes by name
    image:        a PNG of the image whose patches stand along an axis with a grid, cropped to them
    missing:      what could not be captured, and why
    notes:        what else a reader should know
    begin:        where a page begins, {"layer": 3, "head": 1, "query": 10, "key": 2}; found from the weights without

    `lens[3]` and `lens["encoder.layer.3.attention.self"]` are one captured call; `lens.weights(3, head=2)` its numbers.
    """

    def __init__(
        self,
        layers: Sequence[Captured],
        axes: Sequence[Mapping[str, Axis]],
        *,
        title: str = "",
        model: str = "",
        image: bytes | None = None,
        missing: Sequence[Missing] = (),
        notes: Sequence[str] = (),
        begin: Mapping[str, int] | None = None,
    ) -> None:
        self.layers, self.axes = tuple(layers), tuple(dict(one) for one in axes)
        self.title, self.model, self.image = title, model, image
        self.missing, self.notes, self.begin = tuple(missing), tuple(notes), dict(begin or {})
        self._check()

    def _check(self) -> None:
        """Every call has its axes, and they are as long as its arrays."""
        if not self.layers:
            raise CallError("lens: at least one captured call; got none")
        for captured in self.layers:
            batches, _, queries, _ = captured.q.shape
            if batches > len(self.axes):
                raise CallError(f"axes: for each of {batches} batch items of {captured.name}; got {len(self.axes)}")
            for axes in self.axes[:batches]:
                for name, size in ((captured.query, queries), (captured.key, captured.k.shape[2])):
                    if name not in axes or len(axes[name]) != size:
                        got = f"{len(axes[name])} on {name!r}" if name in axes else f"no axis {name!r}"
                        raise CallError(f"axes: {size} places for {captured.name}; got {got}")

    # -- layers ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Captured]:
        return iter(self.layers)

    def __getitem__(self, layer: int | str) -> Captured:
        return self.layers[self.index(layer)]

    def index(self, layer: int | str) -> int:
        """The place of a layer, from its place or the name of its module."""
        if isinstance(layer, str):
            names = [captured.name for captured in self.layers]
            if layer not in names:
                more = ", …" if len(names) > SHOWN else ""
                raise CallError(f"layer: one of {', '.join(names[:SHOWN])}{more}; got {layer!r}")
            return names.index(layer)
        if type(layer) is not int:
            raise KindError(f"layer: a whole number, or the name of a module; got {layer!r}")
        if not -len(self) <= layer < len(self):
            raise IndexOutside(f"layer: from 0 to {len(self) - 1}; got {layer}")
        return layer % len(self)

    @property
    def batches(self) -> int:
        """How many inputs were looked at side by side."""
        return len(self.axes)

    @property
    def bytes(self) -> int:
        """What q, k, v and the tables take; what several layers share counts once."""
        arrays = (array for one in self.layers for array in (one.q, one.k, one.v, *one.tables.values()))
        return sum(size_of(array) for array in {id(array): array for array in arrays if is_array(array)}.values())

    # -- numbers -----------------------------------------------------------------------------------------------------

    def weights(
        self, layer: int | str, head: int | None = None, batch: int = 0, rows: Any = WHOLE, columns: Any = WHOLE
    ) -> Any:
        """w_ij as NumPy, (rows, columns) of one head or (heads, rows, columns) of all; float64 where q is, or float32.

        rows, columns: an integer, a slice or a sequence of integers; all unless said otherwise
        """
        captured, heads = self[layer], WHOLE if head is None else head
        part = {"batch": _one(batch, "batch"), "heads": heads, "rows": rows, "columns": columns}
        known = None
        plain = without_values(captured, captured.formula)
        if plain.shared == "columns" and head is not None and not _is_whole(columns):
            known = self._totals(captured, batch, head, rows)[None, None]
        found = numpy_of(plain.weights(known, **part))[0]
        return found if head is None else found[0]

    def totals(self, layer: int | str, head: int | None = None, batch: int = 0) -> Any:
        """log Z of each row (Z where ψ is no exponential) as NumPy; found once, then known."""
        captured, batch = self[layer], _one(batch, "batch")
        if captured.parts.shared not in ("columns", "rows"):
            raise CallError(f"totals: of a weight that shares along rows or columns; got {captured.formula.weight!r}")
        heads = range(captured.shape[1]) if head is None else [_one(head, "head")]
        found = np.asarray([numpy_of(self._totals(captured, batch, one)) for one in heads])
        return found if head is None else found[0]

    @staticmethod
    def _totals(captured: Captured, batch: int, head: int, rows: Any = WHOLE) -> Any:
        for name, place, size in zip(("batch", "head"), (batch, head), captured.shape, strict=False):
            if not 0 <= place < size:
                raise CallError(f"{name}: from 0 to {size - 1}; got {place}")
        places = WHOLE if _is_whole(rows) else np.atleast_1d(np.arange(captured.shape[2])[rows])
        return Head(captured, batch, head).totals(places)

    # -- where it goes -----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write JSON and safetensors, totals included: a folder, or one file where the path ends in .zip.

        What stands at the path stays until the new one is whole; only a lens is written over.
        """
        from .keeping.store import save

        return save(self, path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Lens:
        """A lens that was saved; its arrays stay on the disk until they are looked at. Needs no PyTorch."""
        from .keeping.store import load

        return cls(**load(path))

    def html(self, path: str | os.PathLike[str], *, layer: int = 0, head: int = 0, batch: int = 0) -> Path:
        """Write one page that opens without a server; every pair of the chosen head is explained in it."""
        from .export import html

        return html(self, Path(path), layer=layer, head=head, batch=batch)

    def serve(self, **options: Any) -> Any:
        """Open the lens in a browser, from this machine alone."""
        from .server import serve

        return serve([self], **options)

    def widget(self) -> Any:
        """The lens in a notebook: Jupyter, VS Code, Colab, marimo."""
        from .widget import LensWidget

        return LensWidget(self)

    # -- how it is shown ---------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from .keeping.table import table

        return table(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        try:
            bundle = self.widget()._repr_mimebundle_(include=include, exclude=exclude)
        except ImportError:
            return {"text/plain": repr(self)}
        return bundle


class IndexOutside(CallError, IndexError):  # noqa: N818 - as its parents, it tells what is wrong
    """A place where no layer is."""


def _is_whole(part: Any) -> bool:
    return isinstance(part, slice) and part == WHOLE


def _one(place: Any, name: str) -> int:
    if not isinstance(place, int | np.integer) or isinstance(place, bool):
        raise KindError(f"{name}: a whole number; got {place!r}")
    return int(place)
