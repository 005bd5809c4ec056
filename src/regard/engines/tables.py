"""The tables of a call: found by name, checked against the formula, and brought into the shapes that it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._arrays import is_array, library, numbers
from ..algebra.errors import CallError, KindError, TableError
from ..algebra.expressions import Expression
from ..algebra.nodes import Read

if TYPE_CHECKING:
    from .call import Call


def laid_out(call: Call, tables: Mapping[str, object]) -> dict[str, Any]:
    ranks = call.formula.ranks
    missing = [name for name in ranks if tables.get(name) is None]
    unused = [name for name in tables if name not in ranks]
    if missing:
        given = [name for name, value in tables.items() if value is not None]
        told, got = ", ".join(f"{name}=" for name in missing), ", ".join(given) or "none"
        raise TableError(f"tables: the formula reads {', '.join(ranks)}; got {got}; pass {told} an array by that name")
    if unused:
        known = ", ".join(ranks) or "no table"
        part = {"mask", "attn_mask", "causal", "is_causal", "scale", "bias"} & set(unused)
        advice = "a mask or scale is part of the formula, as in Attention(mask=j <= i)" if part else "leave it out"
        raise TableError(
            f"tables: the formula reads {known}; got {', '.join(unused)}, which it does not read; {advice}"
        )
    return {name: _table(call, name, tables[name], rank) for name, rank in ranks.items()}


def _table(call: Call, name: str, value: Any, rank: int) -> Any:
    xp = call.xp
    table = value if is_array(value) else xp.asarray(numbers(value, name), device=xp.device(call.q))
    call.given[name] = table
    if library(table).name != xp.name:
        raise KindError(f"{name}: tables come from the library of q, {xp.name}; got {library(table).name}")
    if xp.device(table) != xp.device(call.q):
        raise CallError(f"device: tables lie where q lies, on {xp.device(call.q)}; got {name} on {xp.device(table)}")
    if rank < 0:
        return _given_mask(call, name, table)
    table = _with_batch(call, name, table, rank)
    if table.ndim != rank:
        shown = f"[{', '.join('…' * rank)}]" if rank else ""
        raise TableError(
            f"{name}: the formula reads it with {rank} axes{shown and ' ' + shown}; "
            f"got shape {tuple(call.given[name].shape)}"
        )
    if xp.is_real(table):
        if name in call.formula.integer_tables:
            raise TableError(f"{name}: stands in an index, so it holds integers; got dtype {table.dtype}; convert it")
        return xp.astype(table, call.working_dtype, copy=rank == 0)  # a score may be a view of one number
    if not (xp.is_integer(table) or xp.is_bool(table)):
        raise TableError(f"{name}: a table holds real numbers, integers or truths; got dtype {table.dtype}")
    return xp.astype(table, xp.widest[0], copy=False) if xp.is_integer(table) else table


def _with_batch(call: Call, name: str, table: Any, rank: int) -> Any:
    """A table read as [b, …] that came without the batch axis is shared by the batch."""
    if name not in call.formula.shared_tables or table.ndim != rank - 1:
        return table
    return call.xp.broadcast_to(table[None, ...], (call.batch, *table.shape))


def _given_mask(call: Call, name: str, table: Any) -> Any:
    """A boolean array against the weights' shape, as (batch, heads, queries, keys) or sizes of 1."""
    xp = call.xp
    if not xp.is_bool(table):
        raise TableError(f"{name}: given(…) takes truths, True where a pair is admitted; got dtype {table.dtype}")
    full = (*call.lead, call.queries, call.keys)
    try:
        fits = np.broadcast_shapes(tuple(table.shape), full) == full
    except ValueError:
        fits = False
    if not fits:
        raise TableError(
            f"{name}: broadcasts from the right to (…, queries, keys) {full}; got shape {tuple(table.shape)}; "
            f"a (batch, keys) array of valid keys goes in as {name}[:, None, :], with one more None for heads"
        )
    four = xp.broadcast_to(table, full)
    return xp.reshape(four, (call.batch, call.heads, call.queries, call.keys))


def once(table: Any, but: Collection[int] = ()) -> Any:
    """A tensor of PyTorch without the repetitions of broadcast axes, but for some."""
    for axis in range(table.ndim):
        if axis not in but and table.stride(axis) == 0 and table.shape[axis] > 1:
            table = table.narrow(axis, 0, 1)
    return table


def check_metrics(call: Call) -> None:
    """A metric has the widths of what it stands between."""
    for pair in call.formula.pairs:
        if pair.metric is not None:
            expected = (int(call.q.shape[3]), int(call.k.shape[3]))
            found = tuple(call.tables[pair.metric.table].shape[-2:])
            if pair.word == "sqdist" and expected[0] != expected[1]:
                raise CallError(f"width: sqdist compares vectors of one width; got {expected}")
            if found != expected:
                raise TableError(
                    f"{pair.metric.table}: {pair.word} needs the widths of q and k, {expected}; got {found}"
                )


def refuse_range(call: Call, read: Read, axis: int, low: int, high: int) -> NoReturn:
    """A read that counts stands outside its table."""
    size = int(call.tables[read.table].shape[axis])
    raise TableError(
        f"{read.table}: {Expression(read)!r} must stay within its {size} entries along axis {axis}; got indices from "
        f"{low} to {high} for admitted pairs; make the table longer, mask those pairs, "
        "or clamp with minimum and maximum"
    )
