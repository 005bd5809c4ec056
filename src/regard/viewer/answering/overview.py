"""What a page has to know before its first picture, small: each formula once, labels only where there are few."""

from __future__ import annotations

from typing import Any

from ...algebra.errors import CallError
from ...algebra.mistakes import MISTAKES
from ...attention import Attention
from ..record import Axis, Captured
from ..weighing.beginning import beginning
from ..weighing.tiles import SIDE
from .options import inside, refuse

LABELS = 4096  # of an axis that come with the page, and that are asked for at once
ALL_LABELS = 16384  # of all axes together


def about(lens: Any) -> dict[str, Any]:
    """Title, layers, axes, formulas and their classic mistakes."""
    formulas = {captured.formula.text: captured.formula for captured in lens.layers}
    return {
        "title": lens.title, "model": lens.model, "notes": list(lens.notes),
        "missing": [{"name": one.name, "why": one.why} for one in lens.missing],
        "batches": len(lens.axes), "image": lens.image is not None,
        "layers": [_layer(captured) for captured in lens.layers],
        "axes": _axes(lens),
        "mathml": {text: formula.mathml() for text, formula in formulas.items()},
        "mistakes": {text: _mistakes(formula) for text, formula in formulas.items()},
        "bytes": sum(held(captured) for captured in lens.layers),
        "tile": SIDE, "labels": LABELS, "begin": dict(lens.begin) or beginning(lens),
    }  # fmt: skip


def labels(lens: Any, batch: int, axis: str, first: int, last: int) -> dict[str, Any]:
    """The labels of the places from first up to, and without, last, and which of them are special."""
    known = lens.axes[batch]
    if axis not in known:
        raise refuse("axis", f"one of {', '.join(known)}", axis)
    found = known[axis]
    inside("to", last - 1, len(found), "places, from 1")
    if not 0 < last - first <= LABELS:
        raise CallError(f"to: after from, and at most {LABELS} places at once; got {first} to {last}")
    special = [place for place in range(first, last) if place in found.special]
    return {"labels": list(found.labels[first:last]), "special": special, "from": first}


def held(captured: Captured) -> int:
    """The bytes of q, k, v and the tables."""
    arrays = [captured.q, captured.k, captured.v, *captured.tables.values()]
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays if array is not None)


def _layer(captured: Captured) -> dict[str, Any]:
    _, heads, queries, keys = captured.shape
    return {
        "name": captured.name, "heads": list(range(heads) if captured.heads is None else captured.heads),
        "keyHeads": int(captured.k.shape[1]), "queries": queries, "keys": keys, "width": int(captured.k.shape[-1]),
        "formula": captured.formula.text, "query": captured.query, "key": captured.key,
        "dtype": str(captured.q.dtype).removeprefix("torch."), "hasValues": captured.v is not None,
        "shared": captured.parts.shared,
    }  # fmt: skip


def _axes(lens: Any) -> list[dict[str, Any]]:
    """For each batch item, the axes by name; labels of the first ones, and of none that is long."""
    left = ALL_LABELS
    found: list[dict[str, Any]] = []
    for axes in lens.axes:
        found.append({})
        for name, axis in axes.items():
            shown = len(axis) <= min(LABELS, left)
            left -= len(axis) if shown else 0
            found[-1][name] = _axis(axis, shown)
    return found


def _axis(axis: Axis, shown: bool) -> dict[str, Any]:
    """Without labels where they are asked for in parts."""
    return {
        "length": len(axis), "labels": list(axis.labels) if shown else None,
        "special": sorted(axis.special) if shown else None, "grid": None if axis.grid is None else list(axis.grid),
    }  # fmt: skip


def _mistakes(formula: Attention) -> list[dict[str, Any]]:
    made = [(mistake, mistake.of(formula)) for mistake in MISTAKES]
    return [
        {"name": mistake.name, "does": mistake.does, "leadsTo": mistake.leads_to, "formula": wrong.text}
        for mistake, wrong in made
        if wrong is not None
    ]
