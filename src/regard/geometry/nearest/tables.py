"""The tables that a score reads, beside the queries and in the shapes that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._arrays import Library, is_array, numbers
from ...algebra.errors import TableError
from ...algebra.formula import Formula
from ..vectors import together


def laid_out(xp: Library, formula: Formula, queries: Any, count: int, tables: Mapping[str, object]) -> dict[str, Any]:
    """Every table of the formula by its name, and no other; `count` rows are searched."""
    ranks = formula.ranks
    if set(tables) != set(ranks):
        named, given = ", ".join(ranks) or "no table", ", ".join(tables) or "none"
        raise TableError(f"tables: the score reads {named}; got {given}; pass each by its name, and no other")
    beside = {name: _beside(xp, queries, name, tables[name]) for name in ranks}
    fitting = {name: _fitting(xp, formula, name, beside[name], (int(queries.shape[0]), count)) for name in ranks}
    _check_metrics(formula, fitting, int(queries.shape[1]))
    return fitting


def _beside(xp: Library, queries: Any, name: str, value: Any) -> Any:
    """A table beside the queries: real numbers in float64, integers in int64, truths as they are."""
    value = value if is_array(value) else xp.asarray(numbers(value, name), device=xp.device(queries))
    _, (_, real) = together(queries=queries, **{name: value})
    if xp.is_bool(value):
        return value
    return xp.astype(value, xp.int64, copy=False) if xp.is_integer(value) else xp.constant(real)


def _fitting(xp: Library, formula: Formula, name: str, table: Any, pairs: tuple[int, int]) -> Any:
    """A table with the axes that the formula reads; a mask with those of queries and rows."""
    rank, shape = formula.ranks[name], tuple(table.shape)
    if rank < 0:
        if not xp.is_bool(table):
            raise TableError(f"{name}: given(…) takes truths, True where a pair is admitted; got dtype {table.dtype}")
        if len(shape) > 2 or any(size not in (1, full) for size, full in zip(shape[::-1], pairs[::-1], strict=False)):
            raise TableError(f"{name}: broadcasts to (queries, rows), {pairs}; got shape {shape}")
        return xp.broadcast_to(table, pairs)
    if name in formula.shared_tables and len(shape) == rank - 1:
        table = table[None, ...]  # one batch
    if table.ndim != rank:
        raise TableError(f"{name}: read with {rank} axes; got shape {shape}")
    if name in formula.integer_tables and xp.is_real(table):
        raise TableError(f"{name}: stands in an index, so it holds integers; got dtype {table.dtype}; convert it")
    return table


def _check_metrics(formula: Formula, tables: Mapping[str, Any], width: int) -> None:
    for pair in formula.pairs:
        if pair.metric is not None and tuple(tables[pair.metric.table].shape[-2:]) != (width, width):
            shape = tuple(tables[pair.metric.table].shape)
            raise TableError(f"{pair.metric.table}: {width} × {width} for vectors of that width; got shape {shape}")
