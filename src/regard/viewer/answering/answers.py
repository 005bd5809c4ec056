"""The questions that a page asks of a lens: the one protocol of the server, the widget and the exported page.

`Answers(lens).answer(name, options, stop)` gives a packet. Options are checked before any work; what is found is kept
in bounded caches; many threads may ask at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...algebra.errors import CallError, FormulaError
from ...attention import Attention, parse
from ..record import Captured
from ..weighing.pixels import half, host
from ..weighing.thumbs import thumbs
from ..weighing.tiles import Pyramid
from ..weighing.totals import Head, without_values
from ..work import Stop
from . import options, overview
from .cache import Cache
from .options import Option, checked, inside, refuse
from .packet import Packet

MATRIX = 2**20  # cells of a whole matrix that is sent at once
CELLS = 4096
LONGEST = 2000  # characters of a formula
PYRAMIDS = 512 * 2**20  # bytes of what is kept of maps
SMALL = 16 * 2**20  # bytes of thumbnails and measures

BATCH = options.whole().or_else(0)
LAYER = HEAD = PLACE = options.whole()
FORMULA = options.text(LONGEST).or_else(None)
LAYERS = options.wholes(4096).or_else(None)


@dataclass(frozen=True)
class Question:
    """A function of (answers, stop, **options), and what it may be asked with."""

    answer: Callable[..., Packet]
    options: Mapping[str, Option]


QUESTIONS: dict[str, Question] = {}


def question(**taken: Option) -> Callable[[Callable[..., Packet]], Callable[..., Packet]]:
    """Enter a function into the table of questions, under its own name."""

    def enter(function: Callable[..., Packet]) -> Callable[..., Packet]:
        QUESTIONS[function.__name__.strip("_")] = Question(function, taken)
        return function

    return enter


class Answers:
    """What a lens says, to any number of clients."""

    def __init__(self, lens: Any) -> None:
        self.lens = lens
        self.pyramids: Cache[Pyramid] = Cache(PYRAMIDS)
        self.small: Cache[Packet] = Cache(SMALL)

    def answer(self, name: str, asked: Mapping[str, Any] | None = None, stop: Stop | None = None) -> Packet:
        """The answer to one question; a RegardError where it cannot be asked so, Stopped where it was given up."""
        if name not in QUESTIONS:
            raise refuse("question", f"one of {', '.join(sorted(QUESTIONS))}", name)
        found = checked(asked or {}, QUESTIONS[name].options)
        if "batch" in found:
            inside("batch", found["batch"], len(self.lens.axes), "batch items")
        if found.get("layer") is not None:
            inside("layer", found["layer"], len(self.lens.layers), "layers")
        if found.get("head") is not None:
            inside("head", found["head"], self.lens.layers[found["layer"]].shape[1], "heads")
        return QUESTIONS[name].answer(self, Stop() if stop is None else stop, **found)

    def formula(self, layer: int, text: str | None) -> Attention:
        """The layer's own formula, or the one that a text says, if it reads no table that is not there."""
        captured: Captured = self.lens.layers[layer]
        if text is None:
            return captured.formula
        formula = read(text)
        for name in formula.ranks:
            if name not in captured.tables:
                there = f"there are {', '.join(captured.tables)}" if captured.tables else "this layer has none"
                raise CallError(f'formula: tables that the layer has; got table("{name}"); {there}')
        return formula

    def head(self, layer: int, batch: int, head: int, text: str | None) -> Head:
        """One head under a formula."""
        return self.pyramid(layer, batch, head, text).head

    def pyramid(self, layer: int, batch: int, head: int, text: str | None) -> Pyramid:
        """The map of one head under a formula."""
        formula, captured = self.formula(layer, text), self.lens.layers[layer]
        key = (layer, batch, head, formula.text)
        return self.pyramids.get(key, lambda: Pyramid(captured, batch, head, formula))


@lru_cache(maxsize=256)
def read(text: str) -> Attention:
    """A whole formula from its text."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise refuse("formula", f"a text of 1 to {LONGEST} characters", text)
    try:
        value = parse(text)
    except RecursionError:
        raise FormulaError("formula: brackets inside brackets, but not so many; got too many to read") from None
    if not isinstance(value, Attention):
        raise refuse("formula", "a whole attention, as in softmax(dot / sqrt(d))", text)
    return value


# -- what there is -------------------------------------------------------------------------------------------------


@question()
def _about(answers: Answers, _: Stop) -> Packet:
    """Everything that the page needs before the first picture."""
    return answers.small.get("about", lambda: Packet(overview.about(answers.lens)))


@question(**{"batch": BATCH, "axis": options.text(200), "from": PLACE.or_else(0), "to": PLACE})
def labels(answers: Answers, _: Stop, batch: int, axis: str, to: int, **asked: int) -> Packet:
    """The labels of some places of a long axis."""
    return Packet(overview.labels(answers.lens, batch, axis, asked["from"], to))


@question()
def image(answers: Answers, _: Stop) -> Packet:
    """The image whose patches are looked at, as PNG."""
    if answers.lens.image is None:
        raise CallError("image: a lens on an image; got one without; look at its text or map")
    return Packet({"type": "image/png"}, (np.frombuffer(answers.lens.image, np.uint8),))


# -- weights -------------------------------------------------------------------------------------------------------


@question(batch=BATCH, layer=LAYER, side=options.whole(1, 64).or_else(32))
def _thumbs(answers: Answers, stop: Stop, batch: int, layer: int, side: int) -> Packet:
    """Small pictures of all heads of a layer."""

    def make() -> Packet:
        found, exact = thumbs(answers.lens.layers[layer], batch, side, stop)
        return Packet({"exact": exact}, (found,))

    return answers.small.get(("thumbs", batch, layer, side), make)


@question(batch=BATCH, query=PLACE, layers=LAYERS)
def row(answers: Answers, stop: Stop, batch: int, query: int, layers: tuple[int, ...] | None) -> Packet:
    """What one query reads, in every layer and head."""
    return _lines(answers, stop, batch, query, layers, axis=2)


@question(batch=BATCH, key=PLACE, layers=LAYERS)
def column(answers: Answers, stop: Stop, batch: int, key: int, layers: tuple[int, ...] | None) -> Packet:
    """Who reads one key, in every layer and head."""
    return _lines(answers, stop, batch, key, layers, axis=3)


def _lines(
    answers: Answers, stop: Stop, batch: int, place: int, layers: tuple[int, ...] | None, *, axis: int
) -> Packet:
    """One row or column of every head of every layer that has that place."""
    every = answers.lens.layers
    chosen = tuple(range(len(every))) if layers is None else layers
    for layer in chosen:
        inside("layers", layer, len(every), "layers")
    chosen = tuple(layer for layer in chosen if place < every[layer].shape[axis])
    if not chosen:
        longest = max((one.shape[axis] for one in every), default=0)
        inside("query" if axis == 2 else "key", place, min(longest, place), "places")
    return Packet({"layers": list(chosen)}, tuple(_line(answers, stop, batch, place, layer, axis) for layer in chosen))


def _line(answers: Answers, stop: Stop, batch: int, place: int, layer: int, axis: int) -> Any:
    """(heads, keys) of one query, or (heads, queries) of one key."""
    captured = answers.lens.layers[layer]
    parts = without_values(captured, captured.formula)
    stop.check()
    whole = ("columns", None, "heads") if axis == 2 else ("rows", None, "heads")
    name = "rows" if axis == 2 else "columns"
    if parts.shared in whole:
        return host(parts.weights(batch=batch, **{name: place})[0]).reshape(parts.shape[1], -1)
    one, every = slice(place, place + 1), slice(None)
    rows, columns = (one, every) if axis == 2 else (every, one)
    found = [answers.head(layer, batch, head, None).weights(rows, columns, stop) for head in range(parts.shape[1])]
    return np.stack([host(one).reshape(-1) for one in found])


@question(batch=BATCH, layer=LAYER, head=HEAD.or_else(None), formula=FORMULA)
def matrix(answers: Answers, stop: Stop, batch: int, layer: int, head: int | None, formula: str | None) -> Packet:
    """Whole matrices of one head or of all, where they are small."""
    shape = answers.lens.layers[layer].shape
    heads = range(shape[1]) if head is None else [head]
    cells = len(heads) * shape[2] * shape[3]
    if cells > MATRIX:
        raise CallError(f"matrix: at most {MATRIX} weights at once; got {cells}; ask for tiles")
    whole = slice(None)
    found = []
    for one in heads:
        stop.check()
        found.append(half(host(answers.head(layer, batch, one, formula).weights(whole, whole, stop))))
    return Packet({"heads": list(heads)}, (np.stack(found),))


@question(
    batch=BATCH, layer=LAYER, head=HEAD, level=options.whole(0, 40), row=PLACE, column=PLACE, formula=FORMULA
)  # fmt: skip
def tile(
    answers: Answers, stop: Stop, batch: int, layer: int, head: int, level: int, row: int, column: int,
    formula: str | None,
) -> Packet:  # fmt: skip
    """256 × 256 pixels of a map: the largest and the mean weight of each."""
    found, known = answers.pyramid(layer, batch, head, formula).tile(level, row, column, stop)
    return Packet({"known": known, "exact": known == 1}, (found,))


@question(batch=BATCH, layer=LAYER, head=HEAD, rows=options.span(), columns=options.span(), formula=FORMULA)
def cells(
    answers: Answers, stop: Stop, batch: int, layer: int, head: int, rows: tuple[int, int], columns: tuple[int, int],
    formula: str | None,
) -> Packet:  # fmt: skip
    """Exact weights of a few cells."""
    shape = answers.lens.layers[layer].shape
    inside("rows", rows[1] - 1, shape[2], "queries")
    inside("columns", columns[1] - 1, shape[3], "keys")
    count = (rows[1] - rows[0]) * (columns[1] - columns[0])
    if count > CELLS:
        raise CallError(f"cells: at most {CELLS} at once; got {count}; ask for tiles")
    found = answers.head(layer, batch, head, formula).weights(slice(*rows), slice(*columns), stop)
    return Packet({}, (host(found),))


# -- what is made of them ------------------------------------------------------------------------------------------


@question(batch=BATCH, layer=LAYER, head=HEAD, query=PLACE, key=PLACE, formula=FORMULA)
def pair(
    answers: Answers, _: Stop, batch: int, layer: int, head: int, query: int, key: int, formula: str | None
) -> Packet:
    """One weight, explained."""
    from ..weighing.pair import explain

    shape = answers.lens.layers[layer].shape
    inside("query", query, shape[2], "queries")
    inside("key", key, shape[3], "keys")
    chosen = None if formula is None else answers.formula(layer, formula)
    return Packet(explain(answers.lens, layer, head, batch, query, key, formula=chosen))


@question(batch=BATCH, layer=LAYER, head=HEAD, formula=FORMULA, changes=options.text(LONGEST).or_else(None))
def whatif(
    answers: Answers, stop: Stop, batch: int, layer: int, head: int, formula: str | None, changes: str | None
) -> Packet:
    """Another formula on the same vectors, and what it changes."""
    from ..weighing.whatif import what_if

    return Packet(what_if(answers.lens, layer, head, batch, formula, stop, changes))


@question(batch=BATCH, layer=LAYER)
def measures(answers: Answers, stop: Stop, batch: int, layer: int) -> Packet:
    """What each head does, in numbers."""
    from ..weighing.measures import measures as measured

    def make() -> Packet:
        names, found = measured(answers.lens, layer, batch, stop)
        return Packet({"names": names}, (np.asarray(found, np.float32),))

    return answers.small.get(("measures", batch, layer), make)


@question(
    batch=BATCH, query=PLACE.or_else(None), how=options.one_of("mean", "max").or_else("mean"),
    residual=options.number(0, 1).or_else(0.5),
)  # fmt: skip
def rollout(answers: Answers, stop: Stop, batch: int, query: int | None, how: str, residual: float) -> Packet:
    """What reaches a query through all layers."""
    from ..weighing.rollout import rollout as rolled

    def make() -> Packet:
        return Packet({}, (np.asarray(rolled(answers.lens, batch, query, how, residual, stop), np.float32),))

    return answers.small.get(("rollout", batch, query, how, residual), make)
