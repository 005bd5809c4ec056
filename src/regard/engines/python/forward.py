"""The forward pass, one place (b, h, i, j) after the other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError
from ..call import AXIS, Call
from ..tables import refuse_range
from .lists import Lists, Place
from .pairs import Vector


@dataclass(frozen=True)
class Steps:
    """The forward pass, step by step: numbers by place (b, h, row, j), totals by place without the shared index."""

    call: Call
    lists: Lists
    s: dict[Place, float]
    admitted: set[Place]
    m: dict[Place, float]
    z: dict[Place, float]
    f: dict[Place, float]  # what dropout multiplies a weight by
    w: dict[Place, float]  # after dropout

    @property
    def score(self) -> Any:
        return self.lists.matrix(self.s)

    @property
    def mask(self) -> Any:
        return self.lists.matrix(dict.fromkeys(self.admitted, 1.0)) != 0

    @property
    def weights(self) -> Any:
        return self.lists.matrix(self.w)

    @property
    def y(self) -> Any:
        return self.lists.array(_mixed(self), int(self.lists.v_width))

    @property
    def log_total(self) -> Any:
        weight, lists = self.call.formula.weight, self.lists
        if weight.over is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {weight!r}")
        axis = AXIS[weight.over.node.name]
        values = {g: (_log(z) + self.m[g] if weight.is_exponential else z) for g, z in self.z.items()}
        shape = tuple(1 if place == axis else size for place, size in enumerate(lists.shape))
        return lists.fill(values, shape, squeeze=axis)


def scores(call: Call) -> Any:
    """s_ij for every pair, admitted or not."""
    lists = Lists(call)
    _check_ranges(call, lists, None)
    return lists.matrix({place: lists.score(place) for place in lists.places()})


def attend(call: Call) -> Steps:
    """Every step of the forward pass."""
    lists, formula, weight = Lists(call), call.formula, call.formula.weight
    admitted = {p for p in lists.places() if lists.value(formula.admitted, p)}
    counted = admitted if weight.among is None else {p for p in lists.places() if lists.value(weight.among.node, p)}
    _check_ranges(call, lists, None)
    s = {p: lists.score(p) for p in lists.places() if p in admitted or p in counted}
    _check_ranges(call, lists, s)
    f = _factors(lists, admitted)
    if weight.over is None:
        w = {p: lists.value(weight.psi.node, p, s[p]) for p in admitted}
        return Steps(call, lists, s, admitted, {}, {}, f, dropped(f, w))

    group = group_of(weight.over.node.name)
    m = _shifts(lists, s, group)
    psi = {p: lists.scaled(weight.terms, p, s[p], m[group(p)]) for p in s}
    z = {g: lists.scaled(weight.sink_terms, g, 0.0, m[g]) for g in m}
    for p in sorted(counted):
        z[group(p)] += psi[p]
    w = {p: psi[p] / z[group(p)] if z[group(p)] != 0 else 0.0 for p in admitted}
    return Steps(call, lists, s, admitted, m, z, f, dropped(f, w))


def dropped(f: dict[Place, float], values: dict[Place, float]) -> dict[Place, float]:
    """f · x at each place, and 0 where f is 0, whatever x is."""
    return {p: f[p] * value if f[p] != 0 else 0.0 for p, value in values.items()}


def _factors(lists: Lists, admitted: set[Place]) -> dict[Place, float]:
    """f: 1 / (1 − p) where dropout keeps a weight, 0 where it does not; 1 without dropout."""
    if lists.call.dropout is None:
        return dict.fromkeys(admitted, 1.0)
    dropout, xp = lists.call.dropout.read(), lists.call.xp
    rows = {p[:3]: dropout.rows(xp, p[0], p[1], lists.start[p[0]] + p[2]) for p in admitted}
    columns = {j: dropout.columns(xp, j) for j in range(lists.call.keys)}
    return {p: dropout.scale if dropout.kept(xp, rows[p[:3]], columns[p[3]]) else 0.0 for p in admitted}


def group_of(index: str) -> Callable[[Place], Place]:
    """The place without the index that shares: all places of one total have one group."""
    axis = AXIS[index]
    return lambda place: (*place[:axis], 0, *place[axis + 1 :])  # type: ignore[return-value]


def _shifts(lists: Lists, s: dict[Place, float], group: Callable[[Place], Place]) -> dict[Place, float]:
    """m: the largest exponent of each total, so that nothing overflows; 0 where ψ has no exponential."""
    weight = lists.call.formula.weight
    heights = {group(p): [-math.inf] for p in lists.places()}
    for p, score in s.items():
        heights[group(p)] += [float(lists.value(a, p, score)) for r, a in weight.terms if lists.value(r, p, score) != 0]
    for g, found in heights.items():
        found += [float(lists.value(a, g)) for r, a in weight.sink_terms if lists.value(r, g) != 0]
    exponential = any(a != 0 for _, a in weight.terms)
    return {g: _highest(found) if exponential else 0.0 for g, found in heights.items()}


def _highest(values: list[float]) -> float:
    highest = math.nan if any(value != value for value in values) else max(values)
    return 0.0 if highest == -math.inf else highest


def _mixed(steps: Steps) -> dict[Place, Vector]:
    """y_i = Σ_j w_ij v_j."""
    lists = steps.lists
    y: dict[Place, Vector] = defaultdict(lambda: [0.0] * lists.v_width)
    for b, h, i, j in sorted(steps.w):
        w, v = steps.w[b, h, i, j], lists.v[b][h // lists.group][j]
        y[b, h, i, 0] = [total + w * value for total, value in zip(y[b, h, i, 0], v, strict=True)]
    return y


def _log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x) if x > 0 else math.nan


def _check_ranges(call: Call, lists: Lists, s: dict[Place, float] | None) -> None:
    """Every read that counts stands inside its table; those that need a score are looked at once there is one."""
    for guarded in call.formula.reads:
        if guarded.needs_score != (s is not None):
            continue
        sizes = call.tables[guarded.read.table].shape
        scored = [(p, (s or {}).get(p, 0.0)) for p in lists.places()]
        found = [lists.indices(guarded.read, p, x) for p, x in scored if lists.value(guarded.guard, p, x)]
        for axis, places in enumerate(zip(*found, strict=True)):
            outside = [place for place in places if not 0 <= place < sizes[axis]]
            if outside:
                refuse_range(call, guarded.read, axis, min(outside), max(outside))
