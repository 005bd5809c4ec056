"""What goes into PyTorch's kernel: q and k with the pair's own matrix, norms or slope, and attn_mask as a view.

A vector over i − j is kept once for each difference, in falling order, so that queries in reverse order read it one
step further along either axis: values[x], x = r + j with r = N − 1 counting down. No N × n number is ever written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sympy

from ..._shapes import Array, Float
from ...algebra.errors import EngineError
from ...algebra.fold import fold
from ...algebra.formula import Formula, GuardedRead
from ...algebra.functions import Where
from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Read
from ..call import Call
from ..reading import Reading
from ..select import quotient
from ..tables import refuse_range
from ..vectors import reading as vector_reading
from ..vectors import vector
from .reduction import Form, Reduction, constant, pattern

KINDS = {Form.COLUMN: Kind.COLUMN, Form.OFFSET: Kind.OFFSET, Form.CAUSAL: Kind.OFFSET}


def form_of(call: Call, law: Reduction) -> Form:
    """What attn_mask is in this call: j ≤ i is is_causal from the first key on, and hides none from the last."""
    if law.form != Form.CAUSAL:
        return law.form
    if call.first == 0:
        return Form.CAUSAL
    return Form.NONE if call.first is not None and call.first >= call.keys - 1 else Form.OFFSET


def reads_groups(call: Call, form: Form) -> bool:
    """Whether the kernel is told that several query heads read one key head; with truths, only the CPU's can be."""
    return call.group > 1 and (form != Form.GIVEN or bool(call.q.device.type == "cpu"))


FEW = 16  # queries


@contextmanager
def kernels(call: Call, form: Form) -> Iterator[None]:
    """The kernels to choose from: all, but for cuDNN's where it is wrong or slow.

    It gives no 0 for a row of truths in which nothing is admitted, and plans anew for each number of keys, which takes
    milliseconds: too long for a token.
    """
    cuda = sys.modules["torch"].backends.cuda
    if call.q.device.type == "cpu" or not cuda.cudnn_sdp_enabled() or (form != Form.GIVEN and call.queries > FEW):
        yield
        return
    cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        cuda.enable_cudnn_sdp(True)


def scale_of(call: Call, law: Reduction) -> float | None:
    """The factor as scale=; None where it varies and must go into q."""
    return constant(law.factor, call.heads, call.width, call.keys) if law.is_constant else None


def queries_and_keys(call: Call, law: Reduction, scale: float | None) -> tuple[Any, Any]:
    """q and k such that factor · pair is scale · q·k, up to what cancels and what is in attn_mask."""
    q, k = (call.q, call.k) if law.is_plain else _of_pair(call, law)
    return (q if scale is not None else q * vector(call, Kind.ROW, law.factor.node)), k


def _of_pair(call: Call, law: Reduction) -> tuple[Any, Any]:
    xp, q, k = call.xp, call.q, call.k
    if law.pair.word == "cosine":
        return _unit(xp, q), _unit(xp, k)
    if law.is_distance:
        middle = origin(k)
        q, k = q - by_query_head(call, middle), k - middle
    if law.pair.metric is None:
        return q, k
    metric = _metric(call, law)
    return q @ (metric + metric.mT if law.is_distance else metric), k


def origin(k: Float[Array, "b g n d"]) -> Float[Array, "b g 1 d"]:
    """The mean of the keys. Distances do not see where the origin is; rounding does."""
    return k.detach().mean(2, keepdim=True)


def _metric(call: Call, law: Reduction) -> Any:
    """The matrix of each batch and head, (B or 1, H or 1, D, D)."""
    return vector_reading(call, Kind.HEAD).metric(law.pair)


def by_query_head(call: Call, x: Any) -> Any:
    return x if call.group == 1 else x.repeat_interleave(call.group, 1)


def _unit(xp: Any, x: Float[Array, "b h n d"]) -> Float[Array, "b h n d"]:
    """Vectors of length 1; the zero vector stays zero."""
    largest = x.detach().abs().amax(-1, keepdim=True)  # so that no square over- or underflows
    scaled = x / largest.where((largest > 0) & largest.isfinite(), xp.ones_like(largest))
    return quotient(xp, scaled, scaled.norm(dim=-1, keepdim=True))


# -- attn_mask -------------------------------------------------------------------------------------------------


def attn_mask(call: Call, law: Reduction) -> Any | None:
    """The bias, with −inf where the mask admits nothing, as a view; rows of an offset view run backwards."""
    if law.form == Form.NONE:
        return None
    if law.form == Form.GIVEN:
        assert law.mask is not None
        return unrepeated(call.tables[law.mask.node.table])
    if law.form == Form.TABLE:
        return _matrix(call, law)
    values = _values(call, law, part_reading(call, KINDS[law.form]))
    return values if law.form == Form.COLUMN else _offset_view(call, values)


def _values(call: Call, law: Reduction, part: Reading) -> Float[Array, "b h 1 x"]:
    value: Any = 0.0 if law.bias is None else fold(law.bias.node, part, part.memo)
    value = part.array(part.real(value))
    value = value + norms(call, law) if law.is_distance else value
    if law.mask is not None:
        value = call.xp.where(part.array(fold(law.mask.node, part, part.memo)), value, -math.inf)
    return value.reshape((1,) * (4 - value.ndim) + tuple(value.shape))


def norms(call: Call, law: Reduction) -> Float[Array, "b h 1 n"]:
    """slope · ‖k‖², or slope · kᵀ P k, from the mean of the keys."""
    k = by_query_head(call, call.k - origin(call.k))
    other = k if law.pair.metric is None else k @ _metric(call, law)
    return (k * other).sum(-1)[:, :, None, :] * vector(call, Kind.HEAD, law.slope.node)


def part_reading(call: Call, kind: Kind) -> Reading:
    """The reading in which what varies so is a vector (b, h, 1, x); differences fall along the last axis."""
    if kind != Kind.OFFSET:
        return vector_reading(call, kind)
    xp, device = call.xp, call.q.device
    starts = call.start if call.first is None else call.start[:1]
    falling = xp.arange(call.queries - 1, -call.keys, -1, device=device)
    i = starts[:, None, None, None] + falling
    symbols = {
        I: i, J: xp.zeros((1, 1, 1, 1), dtype=i.dtype, device=device),
        HEAD: xp.arange(call.heads, device=device)[:, None, None],
        BATCH: xp.arange(call.batch, device=device)[:, None, None, None],
        HEADS: call.heads, WIDTH: call.width, KEYS: call.keys,
    }  # fmt: skip
    return Reading(call, symbols, (call.batch, call.heads, 1, int(falling.shape[0])))


def _offset_view(call: Call, values: Float[Array, "b h 1 x"]) -> Any:
    values = values.expand(*values.shape[:3], call.queries + call.keys - 1).contiguous()
    return values.as_strided((*values.shape[:2], call.queries, call.keys), (*values.stride()[:2], 1, 1))


def _matrix(call: Call, law: Reduction) -> Any:
    """The caller's own numbers [b, h, i, j], from the first query's position on."""
    assert law.bias is not None
    if call.first is None:
        raise EngineError('start: one integer for a bias read as [i, j]; got one for each batch; take engine="dense"')
    read, first = law.bias.node, call.first
    parts = {BATCH: slice(call.batch), HEAD: slice(call.heads), J: slice(call.keys)}
    parts[I] = slice(first, first + call.queries)
    table = unrepeated(call.tables[read.table][tuple(parts[index] for index in read.indices)])
    return table[:, None] if read.indices == (BATCH, I, J) else table.reshape((1,) * (4 - table.ndim) + table.shape)


def unrepeated(array: Any) -> Any:
    """The array with size 1 along every axis that only repeats: PyTorch may copy what it is given."""
    return array[tuple(slice(1) if stride == 0 else slice(None) for stride in array.stride())]


# -- ranges ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _checks(formula: Formula) -> tuple[tuple[GuardedRead, Kind], ...]:
    """Every read, with the vector over which it can be looked at together with the pairs that count."""
    return tuple(_check(guarded) for guarded in formula.reads if guarded.guard != sympy.false)


def _check(guarded: GuardedRead) -> tuple[GuardedRead, Kind]:
    together = pattern(Where(guarded.guard, guarded.read, sympy.S.Zero))
    if together is not None and together != Kind.FULL:
        return guarded, together
    alone = pattern(guarded.read)  # a term of the row beside a mask over i − j: every row counts
    assert alone is not None
    return GuardedRead(guarded.read, sympy.true), alone


def check_ranges(call: Call) -> None:
    """Every read that counts stands inside its table."""
    for guarded, kind in _checks(call.formula):
        read, sizes = guarded.read, call.tables[guarded.read.table].shape
        if kind == Kind.FULL:
            _check_matrix(call, read)
            continue
        part = part_reading(call, kind)
        for axis in range(len(read.indices)):
            place = part.index(read, axis)
            wrong = ((place < 0) | (place >= sizes[axis])) & part.mask(guarded.guard)
            if call.xp.is_true(wrong.any()):
                places = place.expand(wrong.shape)[wrong]
                refuse_range(call, read, axis, int(places.min()), int(places.max()))


def _check_matrix(call: Call, read: Read) -> None:
    first = call.first or 0
    ranges = {BATCH: (0, call.batch), HEAD: (0, call.heads), I: (first, first + call.queries), J: (0, call.keys)}
    for axis, index in enumerate(read.indices):
        (low, end), size = ranges[index], int(call.tables[read.table].shape[axis])
        if low < 0 or end > size:
            refuse_range(call, read, axis, low if low < 0 else size, end - 1 if end > size else -1)
