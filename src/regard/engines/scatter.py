"""Gradients of tables: each number is added where it was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..algebra.calculus import partials
from ..algebra.nodes import Read
from ..algebra.weights import exponential_terms
from .reading import Reading
from .select import keep


def shares(reading: Reading, node: Any, gradient: Any, shift: Any = 0.0) -> Iterator[tuple[Any, Any]]:
    """(leaf, gradient · ∂node/∂leaf) for every pair and read below `node`; exponentials are scaled by exp(−shift)."""
    for leaf, slope in partials(node).items():
        yield leaf, keep(reading.xp, reading.live, gradient * reading.scaled(exponential_terms(slope), shift))


def to_table(reading: Reading, read: Read, g: Any) -> Any | None:
    """The gradient of the table that is read; None where it holds no real numbers."""
    table, xp = reading.call.tables[read.table], reading.xp
    if not xp.is_real(table):
        return None
    if not read.indices:
        return xp.sum(g)
    places = [xp.broadcast_to(reading.place(read, axis), g.shape) for axis in range(len(read.indices))]
    return xp.scatter(table.shape, tuple(xp.reshape(place, (-1,)) for place in places), xp.reshape(g, (-1,)))


def to_metric(reading: Reading, read: Read, g: Any) -> Any:
    """The gradient of a table of matrices; `g` is (B, H, D, D), added where this head and batch read their matrix."""
    table, xp = reading.call.tables[read.table], reading.xp
    if not read.indices:
        return xp.sum(g, axis=(0, 1))
    axes = range(len(read.indices))
    places = [xp.broadcast_to(reading.place(read, axis), (*g.shape[:2], 1, 1)) for axis in axes]
    flat = tuple(xp.reshape(place, (-1,)) for place in places)
    return xp.scatter(table.shape, flat, xp.reshape(g, (-1, *g.shape[2:])))
