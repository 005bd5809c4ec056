"""What a saved lens says of itself, as JSON; the arrays stand in files beside it.

    {"format": "regard lens", "version": 1, "title": …, "model": …, "notes": […], "missing": [{"name", "why"}],
     "begin": {"layer": 3, "head": 1, "query": 10, "key": 2},
     "image": false, "axes": [{"tokens": {"labels": […], "special": [0], "grid": null}}],
     "layers": [{"name", "formula": "Attention(…)", "start": 0, "query": "tokens", "key": "tokens", "heads": null}]}

A formula is text that `parse` reads. What was written is not trusted: every value is looked at before it is used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._arrays import is_array
from ...attention import Attention, parse
from ..arrays import numpy_of
from ..record import Axis, Captured, Missing
from .mapped import StoreError

if TYPE_CHECKING:
    from ..lenses import Lens

FORMAT, VERSION = "regard lens", 1
BEGIN = ("layer", "head", "query", "key")
LAYERS, BATCHES, AXES, PLACES, LETTERS = 4096, 4096, 64, 2**24, 20_000
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # signs that steer a terminal


def told(lens: Lens) -> dict[str, Any]:
    """All of a lens but its arrays and its image."""
    return {
        "format": FORMAT, "version": VERSION, "title": lens.title, "model": lens.model, "notes": list(lens.notes),
        "begin": dict(lens.begin),
        "missing": [{"name": one.name, "why": one.why} for one in lens.missing],
        "image": lens.image is not None,
        "axes": [{name: _told_axis(axis) for name, axis in one.items()} for one in lens.axes],
        "layers": [_told_layer(captured) for captured in lens.layers],
    }  # fmt: skip


def _told_axis(axis: Axis) -> dict[str, Any]:
    grid = None if axis.grid is None else list(axis.grid)
    return {"labels": list(axis.labels), "special": sorted(axis.special), "grid": grid}


def _told_layer(captured: Captured) -> dict[str, Any]:
    start: Any = captured.start
    if start is not None and type(start) is not int:
        start = np.asarray(numpy_of(start) if is_array(start) else start).tolist()
    heads = None if captured.heads is None else list(captured.heads)
    named = {"name": captured.name, "formula": captured.formula.text, "start": start}
    return {**named, "query": captured.query, "key": captured.key, "heads": heads}


# -- reading -------------------------------------------------------------------------------------------------------


def check_version(about: dict[str, Any]) -> None:
    """Refuse what is no lens, or one that another version wrote."""
    if about.get("format") != FORMAT:
        raise StoreError(f"lens.json: of the format {FORMAT!r}; got {str(about.get('format'))[:40]!r}")
    if type(about.get("version")) is not int or about["version"] != VERSION:
        got = str(about.get("version"))[:40]
        raise StoreError(f"lens.json: version {VERSION}; got {got}; read it with the regard that wrote it")


def words(about: dict[str, Any]) -> dict[str, Any]:
    """Title, model, notes and what is missing."""
    missing = [
        Missing(text(entry(one, "missing"), "name"), text(one, "why")) for one in several(about, "missing", LAYERS)
    ]
    notes = [text({"notes": note}, "notes") for note in several(about, "notes", LAYERS)]
    said = {"title": text(about, "title"), "model": text(about, "model"), "notes": notes, "missing": missing}
    return {**said, "begin": _begin(entry(about.get("begin", {}), "begin"))}


def _begin(begin: dict[str, Any]) -> dict[str, int]:
    """Where a page begins; a lens that does not say so has nothing."""
    for name, place in begin.items():
        if name not in BEGIN or type(place) is not int or not 0 <= place < PLACES:
            raise StoreError(f"begin: places by {', '.join(BEGIN)}; got {name[:40]} = {str(place)[:40]}")
    return begin


def axes(about: dict[str, Any]) -> list[dict[str, Axis]]:
    """The axes of each batch item."""
    found = []
    for one in several(about, "axes", BATCHES):
        if len(entry(one, "axes")) > AXES:
            raise StoreError(f"axes: at most {AXES} for each batch item; got {len(one)}")
        found.append({name: _axis(name, entry(axis, f"axes, {name[:40]}")) for name, axis in one.items()})
    return found


def _axis(name: str, axis: dict[str, Any]) -> Axis:
    labels, special = several(axis, "labels", PLACES), several(axis, "special", PLACES)
    if not all(isinstance(label, str) and len(label) <= LETTERS for label in labels):
        raise StoreError(f"labels: texts of at most {LETTERS} letters; got another kind on axis {name[:40]!r}")
    if not all(type(place) is int and 0 <= place < len(labels) for place in special):
        raise StoreError(f"special: places from 0 to {len(labels) - 1}; got others on axis {name[:40]!r}")
    grid = axis.get("grid")
    patches = len(labels) - len(set(special))
    if grid is None:
        return Axis(name, tuple(labels), frozenset(special))
    sides = grid if isinstance(grid, list) and all(type(side) is int and side > 0 for side in grid) else []
    if len(sides) != 2 or sides[0] * sides[1] != patches:
        raise StoreError(f"grid: rows and columns of {patches} patches; got {str(grid)[:40]}")
    return Axis(name, tuple(labels), frozenset(special), (sides[0], sides[1]))


def layer(about: dict[str, Any], arrays: dict[str, Any]) -> Captured:
    """One captured call, from what is said of it and its arrays: q, k, v, and "table." before each table's name."""
    tables = {name.removeprefix("table."): array for name, array in arrays.items() if name.startswith("table.")}
    own = {name: array for name, array in arrays.items() if not name.startswith("table.")}
    if not {"q", "k"} <= set(own) <= {"q", "k", "v"} or not all(map(str.isidentifier, tables)):
        raise StoreError(f"arrays: q and k, v or not, and tables; got {', '.join(arrays)[:80]}")
    if any(array.ndim != 4 for array in own.values()):
        raise StoreError(f"arrays: (batch, heads, positions, width); got {[array.shape for array in own.values()]}")
    heads = None if about.get("heads") is None else tuple(wholes(about, "heads"))
    if heads is not None and len(heads) != own["q"].shape[1]:
        raise StoreError(f"heads: a number for each of {own['q'].shape[1]} heads; got {len(heads)}")
    return Captured(
        text(about, "name"), _formula(about), own["q"], own["k"], own.get("v"), tables, _start(about),
        text(about, "query"), text(about, "key"), heads,
    )  # fmt: skip


def _formula(about: dict[str, Any]) -> Attention:
    try:
        formula = parse(text(about, "formula"))
    except RecursionError:
        raise StoreError("formula: one that a reader could follow; got brackets in brackets without end") from None
    if not isinstance(formula, Attention):
        raise StoreError(f"formula: an Attention; got {formula!r}")
    return formula


def _start(about: dict[str, Any]) -> Any:
    start = about.get("start")
    if start is None or (type(start) is int and abs(start) < 2**53):
        return start
    return np.asarray(wholes(about, "start"), np.int64)


# -- values ----------------------------------------------------------------------------------------------------------


def entry(value: Any, name: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise StoreError(f"{name}: a JSON object; got {str(value)[:40]}")
    return value


def several(about: dict[str, Any], name: str, most: int) -> list[Any]:
    """A list that is not too long."""
    value = about.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise StoreError(f"{name}: a list of at most {most}; got {str(value)[:40]}")
    return value


def text(about: dict[str, Any], name: str) -> str:
    """A text that is not too long, without signs that steer a terminal."""
    value = about.get(name)
    if not isinstance(value, str) or len(value) > LETTERS:
        raise StoreError(f"{name}: a text of at most {LETTERS} letters; got {str(value)[:40]}")
    return STEERING.sub("", value)


def wholes(about: dict[str, Any], name: str) -> list[int]:
    """A list of whole numbers."""
    value = several(about, name, BATCHES)
    if not all(type(number) is int and abs(number) < 2**53 for number in value):
        raise StoreError(f"{name}: whole numbers; got {str(value)[:40]}")
    return value
