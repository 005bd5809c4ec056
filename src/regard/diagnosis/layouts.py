"""How targets lay out their arrays, as values: from the one layout of problems to theirs, and back.

vectors   bhnd bnhd hnd nhd bnd nbd nd dn        from (batch, heads, n, d)
inputs    bnd nbd nd dn                          from (batch, n, width)
one query d | nd, bd | bnd                       a query without an axis of positions, against many keys
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Array

AXES = {"b": "batch", "h": "heads", "n": "positions", "d": "width"}


@dataclass(frozen=True)
class Layout:
    """An order of the axes b, h, n, d; those that are left out have size 1."""

    axes: str
    one: bool = False  # queries come one at a time, without an axis of positions

    @property
    def name(self) -> str:
        """As people say it: `bhnd`, or `d|nd` for one query against many keys."""
        return f"{self.queries.axes}|{self.axes}" if self.one else self.axes

    @property
    def words(self) -> str:
        """The axes in words: `batch, heads, positions, width`."""
        said = ", ".join(AXES[axis] for axis in self.axes)
        return f"{self.queries.words}) of one query, keys ({said}" if self.one else said

    @property
    def queries(self) -> Layout:
        """That of queries and outputs."""
        return Layout(self.axes.replace("n", "")) if self.one else self

    def has(self, axis: str) -> bool:
        """Whether arrays have that axis."""
        return axis in self.axes

    def of(self, x: Array, axes: str = "bhnd") -> Array:
        """Arrays of problems, whose axes are named, in this layout."""
        kept = [axis for axis in axes if axis in self.axes]
        index = tuple(slice(None) if axis in self.axes else 0 for axis in axes)
        return np.ascontiguousarray(np.asarray(x)[index].transpose([kept.index(axis) for axis in self.axes]))

    def back(self, x: Array, axes: str = "bhnd") -> Array:
        """From this layout to that of problems."""
        kept = [axis for axis in axes if axis in self.axes]
        ordered = np.asarray(x).transpose([self.axes.index(axis) for axis in kept])
        return ordered[tuple(slice(None) if axis in self.axes else None for axis in axes)]


VECTOR_LAYOUTS = (
    *map(Layout, "bhnd bnhd bnd nbd hnd nhd nd dn".split()),
    Layout("bnd", one=True),
    Layout("nd", one=True),
)
INPUT_LAYOUTS = tuple(map(Layout, "bnd nbd nd dn".split()))
LAYOUTS = {layout.name: layout for layout in VECTOR_LAYOUTS}
