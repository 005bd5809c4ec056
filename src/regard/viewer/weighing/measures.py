"""What each head does, in numbers: the weight that rows put on places with a meaning, on average.

    m_h = mean over rows i of Σ_j w_hij [j is such a place for i]        rows that have no such place are left out

Long inputs are measured on an even sample of their rows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import numpy_of
from ..record import Axis, Captured
from ..work import Stop
from .streaming import blocks, sample
from .totals import without_values

if TYPE_CHECKING:
    from ..lenses import Lens

NEAR = 3  # places that count as local
ROWS = 2048  # of a sample

Matrix = Any  # an array of NumPy


def measures(lens: Lens, layer: int, batch: int, stop: Stop) -> tuple[list[dict[str, str]], Matrix]:
    """The names of the measures, {"name", "what"}, and their values (heads, measures) in float32.

    NaN stands where no row has such a place.
    """
    captured = lens.layers[layer]
    parts = without_values(captured, captured.formula)
    _, heads, queries, keys = parts.shape
    places = Places.of(lens, captured, batch)
    suited = [measure for measure in MEASURES if measure.suits(places)]
    sums, counts = np.zeros((heads, len(suited))), np.zeros((heads, len(suited)))
    for rows, (steps,) in blocks(captured, [parts], batch, range(heads), sample(queries, keys, ROWS), stop):
        block = Block(places, rows, numpy_of(steps.weights)[0], _admitted(steps))
        for column, measure in enumerate(suited):
            found = measure.of(block)
            sums[:, column] += np.nansum(found, axis=1)
            counts[:, column] += (~np.isnan(found)).sum(axis=1)
    with np.errstate(all="ignore"):
        values = (sums / counts).astype(np.float32)
    return [{"name": measure.name, "what": measure.what} for measure in suited], values


def _admitted(steps: Any) -> Matrix | None:
    return None if steps.admitted is None else numpy_of(steps.admitted)[0]


# -- what stands where -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """The keys of a call, and where its queries stand among them.

    first: the place of the first query; None where queries stand along an axis of their own
    """

    axis: Axis
    keys: int
    first: int | None

    @classmethod
    def of(cls, lens: Lens, captured: Captured, batch: int) -> Places:
        query, key = (lens.axes[batch][name] for name in (captured.query, captured.key))
        start = int(numpy_of(captured.parts.call.start)[batch])
        continues = start > 0 and query.labels == key.labels[start : start + len(query)]
        return cls(key, len(key), 0 if captured.query == captured.key else start if continues else None)

    @cached_property
    def special(self) -> Matrix:
        """Which keys stand for no text and no patch."""
        return np.isin(np.arange(self.keys), sorted(self.axis.special))

    @cached_property
    def words(self) -> Matrix:
        """A number for each label; special ones have −1."""
        _, numbers = np.unique(np.array(self.axis.labels, dtype=object).astype(str), return_inverse=True)
        return np.where(self.special, -1, numbers.reshape(-1))

    @cached_property
    def marks(self) -> Matrix:
        """Which keys are punctuation."""
        found = [_is_punctuation(label) for label in self.axis.labels]
        return np.array(found, dtype=bool) & ~self.special

    @cached_property
    def grid(self) -> Matrix:
        """The row and column of each patch, (keys, 2); far outside for what is no patch."""
        assert self.axis.grid is not None
        found = np.full((self.keys, 2), -(2**20), dtype=np.int64)
        patches = np.flatnonzero(~self.special)[: self.axis.grid[0] * self.axis.grid[1]]
        found[patches] = np.stack(np.divmod(np.arange(len(patches)), self.axis.grid[1]), axis=1)
        return found


def _is_punctuation(label: str) -> bool:
    text = label.strip()
    return bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text)


@dataclass(frozen=True)
class Block:
    """Some rows of every head: weights (heads, rows, keys)."""

    places: Places
    rows: Matrix
    weights: Matrix
    admitted: Matrix | None

    @cached_property
    def offset(self) -> Matrix:
        """j − i, (rows, keys)."""
        return np.arange(self.places.keys)[None, :] - self.at[:, None]

    @property
    def at(self) -> Matrix:
        """The place of each query among the keys."""
        assert self.places.first is not None
        return self.rows + self.places.first

    @cached_property
    def readable(self) -> Matrix:
        """Which keys some head may read, (rows, keys)."""
        shape = (len(self.rows), self.places.keys)
        return np.ones(shape, bool) if self.admitted is None else self.admitted.any(axis=0)

    @cached_property
    def same(self) -> Matrix:
        """Which keys have the label of the query, (rows, keys); none where the query is special."""
        words = self.places.words
        own = words[self.at]
        return (own[:, None] == words[None, :]) & (own >= 0)[:, None]

    def on(self, aims: Matrix) -> Matrix:
        """The weight on chosen keys, (heads, rows); NaN for rows that have none."""
        aims = np.broadcast_to(aims, (len(self.rows), self.places.keys))
        found = np.einsum("hij,ij->hi", self.weights, aims.astype(self.weights.dtype))
        return np.where(aims.any(axis=1), found, np.nan)

    def apart(self) -> tuple[Matrix, Matrix]:
        """Rows and columns of the grid between query and key."""
        grid = self.places.grid
        between = np.abs(grid[self.at][:, None, :] - grid[None, :, :])
        patch = (grid[self.at, 0] >= 0)[:, None] & (grid[:, 0] >= 0)[None, :]
        far = np.where(patch[..., None], between, 2**20)
        return far[..., 0], far[..., 1]


# -- the measures ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """One number of a head: what it says, where it makes sense, and its value for each head and row."""

    name: str
    what: str
    suits: Callable[[Places], bool]
    of: Callable[[Block], Matrix]


def _anywhere(_: Places) -> bool:
    return True


def _own(places: Places) -> bool:
    return places.first is not None


def _text(places: Places) -> bool:
    return _own(places) and places.axis.grid is None


def _patches(places: Places) -> bool:
    return _own(places) and places.axis.grid is not None


def _first(block: Block) -> Matrix:
    """The weight on key 0, of the rows that are not it."""
    found = block.weights[:, :, 0].astype(np.float64)
    return found if block.places.first is None else np.where(block.at > 0, found, np.nan)


def _again(block: Block) -> Matrix:
    return block.on(block.same & (block.offset != 0) & block.readable)


def _induction(block: Block) -> Matrix:
    """Key j where j − 1 is an earlier place with the label of the query."""
    after = np.zeros_like(block.same)
    after[:, 1:] = block.same[:, :-1]
    return block.on(after & (block.offset < 0) & block.readable)


def _broad(block: Block) -> Matrix:
    """exp(H) / number of keys that may be read, of rows that may read two or more and have no negative weight.

    H = −Σ p log p with p = w / Σ w, which is log Σ w − Σ w log w / Σ w.
    """
    w = block.weights
    count = np.full(w.shape[:2], block.places.keys) if block.admitted is None else block.admitted.sum(axis=2)
    total = w.sum(axis=2)
    with np.errstate(all="ignore"):
        logs = np.log(w, where=w > 0, out=np.zeros_like(w))
        found = np.exp(np.log(total) - np.einsum("hij,hij->hi", w, logs) / total) / count
    return np.where((count > 1) & (total > 0) & (w.min(axis=2, initial=0) >= 0), found, np.nan)


def _neighbours(block: Block) -> Matrix:
    up, across = block.apart()
    return block.on(up + across == 1)


MEASURES: tuple[Measure, ...] = (
    Measure("previous", "weight on the place before", _text, lambda b: b.on(b.offset == -1)),
    Measure("next", "weight on the place after", _text, lambda b: b.on(b.offset == 1)),
    Measure("itself", "weight on the query's own place", _own, lambda b: b.on(b.offset == 0)),
    Measure("first", "weight on the first place: a sink", _anywhere, _first),
    Measure("special", "weight on places that stand for no text", _anywhere, lambda b: b.on(b.places.special)),
    Measure("same", "weight on other places of the same token", _text, _again),
    Measure("induction", "weight on what followed the same token before", _text, _induction),
    Measure("local", f"weight within {NEAR} places", _text, lambda b: b.on(np.abs(b.offset) <= NEAR)),
    Measure("punctuation", "weight on punctuation", _text, lambda b: b.on(b.places.marks)),
    Measure("neighbours", "weight on the four patches around", _patches, _neighbours),
    Measure("same row", "weight on patches of the same row", _patches, lambda b: b.on(b.apart()[0] == 0)),
    Measure("same column", "weight on patches of the same column", _patches, lambda b: b.on(b.apart()[1] == 0)),
    Measure("broad", "keys that a row spreads over, as a share of those it may read", _anywhere, _broad),
    Measure("most", "the largest weight of a row", _anywhere, lambda b: b.weights.max(axis=2, initial=0)),
)
