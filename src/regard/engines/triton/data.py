"""`data`: what the written functions read, as one flat tuple in the order of their slots."""

from __future__ import annotations

from typing import Any

from ..vectors import constant
from .program import Program
from .source import Written
from .starting import sixteens, steps

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
            case "head":
                found += [vectors[slot.name], *_strides(vectors[slot.name])]
            case "row" | "column":
                vector = vectors[slot.name]
                found += [vector, *sixteens(*_strides(vector), int(vector.shape[2]))[:2]]
            case "offset":
                found += [vectors[slot.name], _strides(vectors[slot.name])[0], highest]
            case "table":
                table = tables[slot.name]
                found += [table, *steps(*table.stride()), *table.shape]
            case "given":
                table = tables[slot.name]
                found += [table, *steps(*table.stride()), *table.shape[2:]]
            case "start":
                found.append(start)
            case "size":
                found.append({"H": sizes.heads, "d": sizes.width, "n": sizes.keys}[slot.name])
    return tuple(found) or (0,)


def _strides(value: Any) -> tuple[int, int]:
    """Of the first two axes; 0 along one that is there once for all."""
    axes = zip(value.shape[:2], value.stride()[:2], strict=True)
    by_batch, by_head = (int(step) if count > 1 else 0 for count, step in axes)
    return by_batch, by_head
