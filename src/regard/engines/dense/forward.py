"""The forward pass: scores, ψ with the row's largest exponent taken out, totals, weights, y."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..._arrays import Library
from ..._shapes import Array, Bool, Float
from ...algebra.errors import CallError
from ...algebra.fold import fold
from ...algebra.nodes import BATCH, HEAD, SCORE, I, J
from ...algebra.weights import Term, Weight
from ..call import AXIS, Call
from ..select import keep, mix, quotient
from ..tables import refuse_range
from .matrices import Matrices


@dataclass(frozen=True)
class Steps:
    """The forward pass, step by step."""

    call: Call
    raw: Matrices  # of every pair
    reading: Matrices  # of the pairs that count
    score: Float[Array, "b h i j"]
    admitted: Bool[Array, "b h i j"] | None  # None: every pair
    shift: Any  # m, with size 1 along the index that shares; 0 where ψ has no exponential
    psi: Float[Array, "b h i j"]  # ψ · exp(−m)
    total: Any | None  # Z · exp(−m); None where nothing is shared
    kept: Bool[Array, "b h i j"] | None  # by dropout; None: every weight
    weights: Float[Array, "b h i j"]  # after dropout
    y: Float[Array, "b h i e"] | None

    @property
    def mask(self) -> Any | None:
        """Which pairs are admitted; None where all are."""
        return self.admitted

    @property
    def log_total(self) -> Any:
        """log Z where ψ is exponential, otherwise Z; without the axis that shares."""
        weight, xp = self.call.formula.weight, self.call.xp
        if weight.over is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {weight!r}")
        value = self.total
        if weight.is_exponential:
            empty = value == 0  # where the logarithm has no slope: automatic differentiation would make NaN of it
            with xp.quiet():
                logarithm = xp.log(xp.where(empty, xp.ones_like(value), value)) + self.shift
            value = xp.where(empty, xp.full_like(logarithm, -math.inf), logarithm)
        return xp.squeeze(value, axis=AXIS[weight.over.node.name])


def attend(call: Call) -> Steps:
    """Every step of the forward pass."""
    with call.xp.quiet(), call.xp.exact(call.q):
        return _attend(Matrices.of(call))


def attend_part(call: Call, totals: Any | None = None, **part: Any) -> Steps:
    """Every step for chosen batches, heads, rows and columns.

    totals: log Z (Z where ψ is no exponential), (b, h, rows) or what the weight is shared over; without, Z is that of
            the part itself, which is right where the part holds all that is shared
    """
    with call.xp.quiet(), call.xp.exact(call.q):
        return _attend(Matrices.of(call, **part), totals)


def scores(call: Call, **part: Any) -> Any:
    """s_ij for every pair, admitted or not; of chosen batches, heads, rows and columns where they are given."""
    with call.xp.quiet(), call.xp.exact(call.q):
        reading = Matrices.of(call, **part)
        _check_ranges(call, reading, after_score=False)
        return reading.whole(fold(call.formula.score.node, reading, reading.memo))


def value(call: Call, node: Any, **part: Any) -> Any:
    """What an expression or a truth is for the pairs of a part, with size 1 along axes that it does not depend on."""
    with call.xp.quiet(), call.xp.exact(call.q):
        reading = Matrices.of(call, **part)
        found = reading.array(fold(node, reading, reading.memo))
        return found if found.ndim == 4 else call.xp.reshape(found, (1, 1, 1, 1))


def _attend(raw: Matrices, totals: Any | None = None) -> Steps:
    call = raw.call
    xp, weight = call.xp, call.formula.weight
    admitted = None if call.formula.mask is None else raw.mask(call.formula.mask.node)
    counted = admitted if weight.among is None else raw.mask(weight.among.node)
    reading = raw.where(_either(admitted, counted))

    s = _scores(call, raw, reading)
    if weight.over is None or totals is None:
        m, psi = _psi(raw, reading, weight)
        z = None if weight.over is None else _total(raw, weight, keep(xp, counted, psi), m)
    else:
        m, psi, z = _psi_under(reading, weight, totals)
    w = keep(xp, admitted, psi) if z is None else quotient(xp, keep(xp, admitted, psi), z)
    kept = _kept(raw)
    w = dropped(call, kept, w)
    y = None if call.v is None else mix(xp, w, reading.v, admitted)
    return Steps(call, raw, reading, s, admitted, m, psi, z, kept, w, y)


def _scores(call: Call, raw: Matrices, reading: Matrices) -> Any:
    """s_ij where pairs count; every table is looked at on the way."""
    _check_ranges(call, raw, after_score=False)
    s = reading.whole(fold(call.formula.score.node, reading, reading.memo))
    reading.memo[SCORE] = raw.memo[SCORE] = s
    _check_ranges(call, raw, after_score=True)
    return s


def _psi(raw: Matrices, reading: Matrices, weight: Weight) -> tuple[Any, Any]:
    """m and ψ · exp(−m): m is the largest exponent of each total, and 0 where nothing is shared or exponential."""
    if weight.over is None:
        return 0.0, reading.whole(fold(weight.psi.node, reading, reading.memo))
    m: Any = 0.0
    if weight.is_exponential:
        heights = _heights(reading, weight.terms, AXIS[weight.over.node.name])
        m = _shift([*heights, *_heights(raw, weight.sink_terms, None)], reading.xp)
    return m, reading.whole(reading.scaled(weight.terms, m))


def _psi_under(reading: Matrices, weight: Weight, totals: Any) -> tuple[Any, Any, Any]:
    """m, ψ · exp(−m) and Z · exp(−m) for totals that are known: m is log Z itself, and an empty row has Z = 0."""
    assert weight.over is not None
    xp = reading.xp
    totals = xp.expand_dims(totals, axis=AXIS[weight.over.node.name])
    if not weight.is_exponential:
        return 0.0, reading.whole(reading.scaled(weight.terms, 0.0)), totals
    empty = totals == -math.inf
    m = xp.where(empty, xp.zeros_like(totals), totals)
    z = xp.where(empty, xp.zeros_like(totals), xp.ones_like(totals))
    return m, reading.whole(reading.scaled(weight.terms, m)), z


def _total(raw: Matrices, weight: Weight, psi: Any, m: Any) -> Any:
    """Z · exp(−m): the sink, and the sum of ψ over the index that shares."""
    assert weight.over is not None
    total = raw.xp.sum(psi, axis=AXIS[weight.over.node.name], keepdims=True)
    return total if weight.sink is None else total + raw.scaled(weight.sink_terms, m)


def _kept(raw: Matrices) -> Any | None:
    """Which pairs dropout keeps; None where it keeps all."""
    dropout, xp, at = raw.call.dropout, raw.xp, raw.symbols
    if dropout is None:
        return None
    return dropout.kept(xp, dropout.rows(xp, at[BATCH], at[HEAD], at[I]), dropout.columns(xp, at[J]))


def dropped(call: Call, kept: Any | None, values: Any) -> Any:
    """m_ij x_ij / (1 − p): of weights on the way forward, of their gradients on the way back."""
    return values if call.dropout is None else keep(call.xp, kept, values) * call.dropout.scale


def _shift(heights: list[Any], xp: Library) -> Any:
    """m: the largest exponent that counts, or 0 where there is none."""
    highest = reduce(lambda x, y: xp.where(y > x, y, x), heights)
    return xp.constant(xp.where(highest == -math.inf, xp.zeros_like(highest), highest))


def _heights(reading: Matrices, terms: tuple[Term, ...], axis: int | None) -> list[Any]:
    """The exponents a of the terms r · exp(a) with r ≠ 0: the largest along the axis, or each (of a sink)."""
    found = []
    for r, a in terms:
        height = reading.array(reading.real(fold(a, reading, reading.memo)))
        if not r.is_Number:
            factor = reading.array(reading.real(fold(r, reading, reading.memo)))
            height = reading.xp.where(factor == 0, -math.inf, height + reading.xp.zeros_like(factor))
        if axis is not None:
            height = _highest(reading.xp, keep(reading.xp, reading.live, reading.whole(height), -math.inf), axis)
        found.append(height)
    return found


def _highest(xp: Library, values: Any, axis: int) -> Any:
    if values.shape[axis] == 0:
        shape = tuple(1 if place == axis else size for place, size in enumerate(values.shape))
        return xp.full(shape, -math.inf, dtype=values.dtype)
    return xp.max(values, axis=axis, keepdims=True)


def _either(a: Any | None, b: Any | None) -> Any | None:
    return None if a is None or b is None else a | b


def _check_ranges(call: Call, reading: Matrices, *, after_score: bool) -> None:
    """Every read that counts stands inside its table."""
    xp = call.xp
    for guarded in call.formula.reads:
        if guarded.needs_score != after_score:
            continue
        sizes = call.tables[guarded.read.table].shape
        for axis in range(len(guarded.read.indices)):
            place = reading.index(guarded.read, axis)
            outside = (place < 0) | (place >= sizes[axis])
            wrong = outside & reading.mask(guarded.guard)
            if xp.is_true(xp.any(wrong)):
                places = xp.broadcast_to(place, wrong.shape)[wrong]
                refuse_range(call, guarded.read, axis, int(xp.min(places)), int(xp.max(places)))
