"""The door of every engine: arrays of any rank and kind become one call of one shape, or an error.

Inside, queries are (batch, heads, queries, width), keys and values have as many heads as queries or a divisor of
them, tables have the working dtype, and `start` is the position of the first query in each batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..algebra.errors import CallError, KindError, TableError
from ..algebra.expressions import Expression
from ..algebra.formula import Formula
from ..algebra.nodes import Read
from .arrays import Library, as_array, is_array, library
from .dropout import Dropout, asked

Shape = tuple[int, ...]
AXIS = {"b": 0, "h": 1, "i": 2, "j": 3}  # of scores and weights


@dataclass(frozen=True)
class Call:
    """One call, in one shape. `q` (B, H, N, D), `k` (B, G, n, D), `v` (B, G, n, E) with G dividing H."""

    formula: Formula
    xp: Library
    q: Any
    k: Any
    v: Any | None
    tables: dict[str, Any]
    start: Any  # (B) integers
    first: int | None  # the start of every batch, where it is known without looking
    lead: Shape  # the leading axes of the output, heads included
    given: dict[str, Any]  # the arguments as they came, for the shapes of gradients
    from_lists: bool
    dropout: Dropout | None = None  # None: every weight is kept

    @property
    def batch(self) -> int:
        return int(self.q.shape[0])

    @property
    def heads(self) -> int:
        return int(self.q.shape[1])

    @property
    def queries(self) -> int:
        return int(self.q.shape[2])

    @property
    def keys(self) -> int:
        return int(self.k.shape[2])

    @property
    def width(self) -> int:
        return int(self.k.shape[3])

    @property
    def group(self) -> int:
        """How many query heads read one key head."""
        return self.heads // max(int(self.k.shape[1]), 1)

    @property
    def dtype(self) -> Any:
        return self.given["q"].dtype

    @property
    def working_dtype(self) -> Any:
        return self.xp.working_dtype(self.dtype)

    def restore(self, array: Any, *axes: int) -> Any:
        """An array (B, H, …) with the leading axes of the arguments again."""
        return self.hand_back(self.xp.reshape(array, (*self.lead, *axes)))

    def fit(self, name: str, gradient: Any) -> Any:
        """A gradient (B, heads, …) in the shape and dtype of its argument: summed over what was broadcast."""
        xp, original = self.xp, self.given[name]
        shape = tuple(original.shape)
        if name in ("q", "k", "v"):
            batch_axes, inner = (self.lead[:-1], 1) if original.ndim >= 4 else (self.lead, 2)
            gradient = xp.reshape(gradient, (*batch_axes, *gradient.shape[inner:]))
        while gradient.ndim > len(shape):
            gradient = xp.sum(gradient, axis=0)
        repeated = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
        gradient = xp.sum(gradient, axis=repeated, keepdims=True) if repeated else gradient
        return xp.astype(gradient, original.dtype, copy=False)

    def hand_back(self, array: Any) -> Any:
        """The array as the caller's kind: lists for lists."""
        return array.tolist() if self.from_lists else array


def prepare(
    formula: Formula,
    q: object,
    k: object,
    v: object = None,
    *,
    start: object = None,
    dropout: object = 0.0,
    seed: object = None,
    tables: Mapping[str, object],
) -> Call:
    """Check the arguments of a call against each other and the formula, and bring them into one shape."""
    arrays = {
        name: as_array(value, name)
        for name, value in (("q", q), ("k", k), ("v", v))
        if name != "v" or value is not None
    }
    xp = _one_library(arrays)
    arrays = xp.promoted(arrays)
    _check_kinds(xp, arrays)
    if formula.uses("b") and any(map(xp.is_mapped, arrays.values())):
        raise CallError("vmap: b counts the batch axis, which vmap hides; got both; keep the axis and leave vmap out")
    _check_ranks(arrays)
    _check_shapes(formula, arrays)
    batch_axes = _batch_axes(arrays)
    laid = {name: _lay_out(xp, array, batch_axes) for name, array in arrays.items()}
    batch, heads, queries, _ = laid["q"].shape
    lead = batch_axes if arrays["q"].ndim < 4 else (*batch_axes, heads)
    keys = int(laid["k"].shape[2])
    call = Call(
        formula, xp, laid["q"], laid["k"], laid.get("v"), {},
        *_start(formula, xp, start, batch, int(queries), keys, laid["q"]), lead, arrays, not is_array(q),
        asked(xp, laid["q"], dropout, seed),
    )  # fmt: skip
    call.tables.update(_tables(call, tables))
    _check_metrics(call)
    return call


# -- arrays ----------------------------------------------------------------------------------------------------


def _one_library(arrays: dict[str, Any]) -> Library:
    libraries = {name: library(array) for name, array in arrays.items()}
    names = {name: xp.name for name, xp in libraries.items()}
    if len(set(names.values())) > 1:
        told = ", ".join(f"{name} is {kind}" for name, kind in names.items())
        raise KindError(f"arrays: q, k and v come from one library; got {told}; convert them first")
    return libraries["q"]


def _check_kinds(xp: Library, arrays: dict[str, Any]) -> None:
    for name, array in arrays.items():
        if not xp.is_real(array):
            raise KindError(
                f"{name}: real floating numbers; got dtype {array.dtype}; convert it, for example to float32"
            )
    dtypes = {name: array.dtype for name, array in arrays.items()}
    devices = {name: xp.device(array) for name, array in arrays.items()}
    for what, found in (("dtype", dtypes), ("device", devices)):
        if len(set(map(str, found.values()))) > 1:
            told = ", ".join(f"{name} has {value}" for name, value in found.items())
            raise CallError(f"{what}: q, k and v share one {what}; got {told}; convert them to one")


def _check_ranks(arrays: dict[str, Any]) -> None:
    for name, array in arrays.items():
        if array.ndim < 2:
            raise CallError(f"{name}: at least two axes, (…, positions, width); got shape {tuple(array.shape)}")
    if len({array.ndim for array in arrays.values()}) > 1:
        raise CallError(f"axes: q, k and v have as many axes as each other; got {_shapes(arrays)}; add axes of size 1")


def _check_shapes(formula: Formula, arrays: dict[str, Any]) -> None:
    q, k, v = arrays["q"], arrays["k"], arrays.get("v")
    plain = any(pair.metric is None for pair in formula.pairs)
    if plain and q.shape[-1] != k.shape[-1]:
        raise CallError(
            f"width: q and k have one width; got q {tuple(q.shape)} and k {tuple(k.shape)}; "
            'project them to one width, or compare them by dot(table("M"))'
        )
    if k.shape[-1] == 0 or q.shape[-1] == 0:
        raise CallError(f"width: vectors have at least one entry; got {_shapes(arrays)}")
    if v is not None and v.shape[-2] != k.shape[-2]:
        raise CallError(f"keys: one value for each key; got k {tuple(k.shape)} and v {tuple(v.shape)}")
    if q.ndim < 4:
        return
    if v is not None and v.shape[-3] != k.shape[-3]:
        raise CallError(f"heads: k and v have the same heads; got k {tuple(k.shape)} and v {tuple(v.shape)}")
    if (k.shape[-3] and q.shape[-3] % k.shape[-3]) or (k.shape[-3] == 0 and q.shape[-3]):
        raise CallError(
            f"heads: the query heads are a multiple of the key heads; got q {tuple(q.shape)} and k {tuple(k.shape)}"
        )


def _batch_axes(arrays: dict[str, Any]) -> Shape:
    axes = [tuple(array.shape[: -3 if array.ndim >= 4 else -2]) for array in arrays.values()]
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*axes))
    except ValueError:
        raise CallError(f"batch: the leading axes of q, k and v are equal, or 1; got {_shapes(arrays)}") from None


def _lay_out(xp: Library, array: Any, batch_axes: Shape) -> Any:
    """(…, heads, positions, width) → (batch, heads, positions, width); three axes have one head."""
    inner = tuple(array.shape[-3:]) if array.ndim >= 4 else (1, *array.shape[-2:])
    batch = array.shape[: -3 if array.ndim >= 4 else -2]
    array = xp.reshape(array, (*batch, *inner))
    if tuple(batch) != batch_axes:
        array = xp.broadcast_to(array, (*batch_axes, *inner))
    return xp.reshape(array, (math.prod(batch_axes), *inner))


def _shapes(arrays: dict[str, Any]) -> str:
    return ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())


# -- positions -------------------------------------------------------------------------------------------------


def _start(
    formula: Formula, xp: Library, start: object, batch: int, queries: int, keys: int, like: Any
) -> tuple[Any, int | None]:
    """The position of the first query in each batch; queries are the last rows of the keys unless said otherwise."""
    if start is None:
        if queries > keys and formula.uses("i"):
            raise CallError(
                f"start: the formula uses i, and {queries} queries cannot be the last rows of {keys} keys; "
                "say where the first query stands, for example start=0"
            )
        start = keys - queries
    if type(start) is int:
        return xp.full((batch,), start, dtype=xp.int64, device=xp.device(like)), start
    own = is_array(start) and library(start).name == xp.name
    values: Any = start if own else np.asarray(start)
    if not (xp.is_integer(values) if own else values.dtype.kind in "iu"):
        raise KindError(f"start: an integer, or one for each batch; got {start!r}")
    values = values if own else xp.asarray(values, device=xp.device(like))
    if xp.device(values) != xp.device(like):
        raise CallError(f"device: start lies where q lies, on {xp.device(like)}; got it on {xp.device(values)}")
    if values.ndim > 0 and math.prod(values.shape) != batch:
        raise CallError(f"start: one integer, or one for each of {batch} batches; got shape {tuple(values.shape)}")
    values = xp.astype(values, xp.int64, copy=False) if xp.name != "jax" else values
    return xp.broadcast_to(xp.reshape(values, (-1,)), (batch,)), None if own else _common(values)


def _common(starts: Any) -> int | None:
    """The start that all have in common."""
    found = set(np.asarray(starts).reshape(-1).tolist())
    return found.pop() if len(found) == 1 else None


# -- tables ----------------------------------------------------------------------------------------------------


def _tables(call: Call, tables: Mapping[str, object]) -> dict[str, Any]:
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
    table = value if is_array(value) else xp.asarray(_numbers(value, name), device=xp.device(call.q))
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
    return xp.astype(table, xp.int64, copy=False) if xp.is_integer(table) and xp.name != "jax" else table


def _numbers(value: object, name: str) -> Any:
    """A table that came as a number or nested lists."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise KindError(f"{name}: an array, a number or nested lists of numbers; got {type(value).__name__}")
    return array


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


def _check_metrics(call: Call) -> None:
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
