"""The door of every engine: arrays of any rank and kind become one call of one shape, or an error.

Inside, queries are (batch, heads, queries, width), keys and values have as many heads as queries or a divisor of
them, tables have the working dtype, and `start` is the position of the first query in each batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Library, as_array, is_array, library
from ..algebra.errors import CallError, KindError
from ..algebra.formula import Formula
from .dropout import Dropout, asked
from .tables import check_metrics, laid_out

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
        shape = (*self.lead, *axes)
        return self.hand_back(array if tuple(array.shape) == shape else self.xp.reshape(array, shape))

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
    """Check the arguments of a call against each other and the formula, and bring them into one shape.

    The arrays of a call that look like those of one before were checked then; tables are looked at every time.
    """
    plain = seed is None and type(dropout) in (int, float) and dropout == 0
    looks = _looks(formula, q, k, v, start) if plain else None
    call = _with(_CHECKED[looks], q, k, v) if looks in _CHECKED else _checked(formula, q, k, v, start, dropout, seed)
    if looks is not None and looks not in _CHECKED:
        if len(_CHECKED) >= MOST:
            _CHECKED.clear()
        _CHECKED[looks] = _with(call, None, None, None)
    if tables or formula.ranks:
        call.tables.update(laid_out(call, tables))
        check_metrics(call)
    return call


# -- calls that look alike -------------------------------------------------------------------------------------

MOST = 4096
_CHECKED: dict[Any, Call] = {}


def _looks(formula: Formula, q: Any, k: Any, v: Any, start: object) -> Any | None:
    """All that the checks of a plain call look at; None where there may be more: another library, torch.func."""
    torch = sys.modules.get("torch")
    if torch is None or not type(q) is type(k) is type(v) is torch.Tensor or not (start is None or type(start) is int):
        return None
    if torch.compiler.is_compiling():
        return None
    if not (q.ndim == k.ndim == v.ndim == 4 and q.shape[0] == k.shape[0] == v.shape[0]) or q.is_meta:
        return None
    special = torch.is_autocast_enabled(q.device.type) or torch.is_inference_mode_enabled()
    if special or torch._C._are_functorch_transforms_active():
        return None
    stream = None  # where the start is written; other streams do not wait for that
    if q.is_cuda:
        if torch.cuda.is_current_stream_capturing():
            return None  # it is written when the graph is replayed
        stream = torch._C._cuda_getCurrentRawStream(q.device.index)
    return formula, start, stream, *((x.shape, x.dtype, x.device) for x in (q, k, v))


def _with(call: Call, q: Any, k: Any, v: Any) -> Call:
    """The same call with other arrays of the same looks."""
    given = {"q": q, "k": k, "v": v}
    return Call(
        call.formula, call.xp, q, k, v, {}, call.start, call.first, call.lead, given, False, None
    )  # fmt: skip


def _checked(formula: Formula, q: Any, k: Any, v: Any, start: Any, dropout: Any, seed: Any) -> Call:
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
    return Call(
        formula, xp, laid["q"], laid["k"], laid.get("v"), {},
        *_start(formula, xp, start, batch, int(queries), keys, laid["q"]), lead, arrays, not is_array(q),
        asked(xp, laid["q"], dropout, seed),
    )  # fmt: skip


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
        return xp.full((batch,), start, dtype=xp.widest[0], device=xp.device(like)), start
    own = is_array(start) and library(start).name == xp.name
    values: Any = start if own else np.asarray(start)
    if not (xp.is_integer(values) if own else values.dtype.kind in "iu"):
        raise KindError(f"start: an integer, or one for each batch; got {start!r}")
    values = values if own else xp.asarray(values, device=xp.device(like))
    if xp.device(values) != xp.device(like):
        raise CallError(f"device: start lies where q lies, on {xp.device(like)}; got it on {xp.device(values)}")
    if values.ndim > 0 and math.prod(values.shape) != batch:
        raise CallError(f"start: one integer, or one for each of {batch} batches; got shape {tuple(values.shape)}")
    values = xp.astype(values, xp.widest[0], copy=False)
    return xp.broadcast_to(xp.reshape(values, (-1,)), (batch,)), None if own else _common(values)


def _common(starts: Any) -> int | None:
    """The start that all have in common."""
    found = set(np.asarray(starts).reshape(-1).tolist())
    return found.pop() if len(found) == 1 else None
