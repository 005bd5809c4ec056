"""`data`: what the written functions read, as one flat tuple in the order of their slots."""

from __future__ import annotations

from typing import Any

from ..vectors import constant
from .program import Program
from .source import Written

Tensors = dict[Any, Any]


def packed(
    made: Program, text: Written, vectors: Tensors, tables: dict[str, Any], start: Any, sizes: Any, highest: int
) -> tuple[Any, ...]:
    """The tuple. `vectors` by symbol (with the sink), `tables` by name, `sizes` of the call: heads, width, keys."""
    found: list[Any] = []
    for slot in text.slots:
        match slot.what:
            case "number":
                found.append(constant(made.vectors[slot.name][1], sizes.heads, sizes.width, sizes.keys))
            case "head" | "row" | "column":
                found += _vector(vectors[slot.name])
            case "offset":
                found += [vectors[slot.name], _stride(vectors[slot.name], 0), highest]
            case "table":
                table = tables[slot.name]
                found += [table, *table.stride(), *table.shape]
            case "given":
                table = tables[slot.name]
                found += [table, *table.stride(), *table.shape[2:]]
            case "start":
                found.append(start)
            case "size":
                found.append({"H": sizes.heads, "d": sizes.width, "n": sizes.keys}[slot.name])
    return tuple(found) or (0,)


def _vector(value: Any) -> list[Any]:
    return [value, _stride(value, 0), _stride(value, 1)]


def _stride(value: Any, axis: int) -> int:
    """0 along an axis that is there once for all."""
    return 0 if value.shape[axis] == 1 else int(value.stride(axis))
