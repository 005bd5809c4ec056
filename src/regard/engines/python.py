"""The formula with lists and loops, every index visible: the definition that all engines are held to.

    s[b,h,i,j] = score(q[b][h][i], k[b][h//G][j], i, j, h, b)        for every admitted pair
    Z[b,h,i]   = sink + Σ_j ψ(s[b,h,i,j])
    w[b,h,i,j] = ψ(s[b,h,i,j]) / Z[b,h,i]                            0 where Z is 0
    y[b][h][i] = Σ_j w[b,h,i,j] v[b][h//G][j]
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..algebra.calculus import partials
from ..algebra.errors import CallError
from ..algebra.fold import Number, fold
from ..algebra.functions import Elementary, Exp, Where
from ..algebra.nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Node, Pair, Read
from ..algebra.weights import Term, exponential_terms
from .call import Call, refuse_range

Place = tuple[int, int, int, int]  # b, h, row, j
Vector = list[float]
AXIS = {"b": 0, "h": 1, "i": 2, "j": 3}


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    if getattr(call.given["q"], "requires_grad", False):
        return "it keeps no graph for automatic differentiation; use dense, or vjp"
    return None if call.xp.known(call.q) else "it reads numbers, which are not known while a compiler traces"


def cost(call: Call) -> tuple[int, int]:
    """Operations and bytes of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    width = int(call.v.shape[3]) if call.v is not None else 0
    return 2 * pairs * (call.width + width), 200 * pairs


@dataclass(frozen=True)
class Steps:
    """The forward pass, step by step: numbers by place (b, h, row, j), totals by place without the shared index."""

    call: Call
    lists: Lists
    s: dict[Place, float]
    admitted: set[Place]
    m: dict[Place, float]
    z: dict[Place, float]
    w: dict[Place, float]

    @property
    def score(self) -> Any:
        return self.lists.matrix(self.s)

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


# -- forward ---------------------------------------------------------------------------------------------------


def scores(call: Call) -> Any:
    """s_ij for every pair, admitted or not."""
    lists = Lists(call)
    _check_ranges(call, lists)
    return lists.matrix({place: lists.score(place) for place in lists.places()})


def attend(call: Call) -> Steps:
    """Every step of the forward pass."""
    lists, formula, weight = Lists(call), call.formula, call.formula.weight
    _check_ranges(call, lists)
    admitted = {p for p in lists.places() if lists.value(formula.admitted, p)}
    counted = admitted if weight.among is None else {p for p in lists.places() if lists.value(weight.among.node, p)}
    s = {p: lists.score(p) for p in lists.places() if p in admitted or p in counted}
    if weight.over is None:
        w = {p: lists.value(weight.psi.node, p, s[p]) for p in admitted}
        return Steps(call, lists, s, admitted, {}, {}, w)

    group = _group(weight.over.node.name)
    m = _shifts(lists, s, group)
    psi = {p: lists.scaled(weight.terms, p, s[p], m[group(p)]) for p in s}
    z = {g: lists.scaled(weight.sink_terms, g, 0.0, m[g]) for g in m}
    for p in sorted(counted):
        z[group(p)] += psi[p]
    w = {p: psi[p] / z[group(p)] if z[group(p)] != 0 else 0.0 for p in admitted}
    return Steps(call, lists, s, admitted, m, z, w)


def _group(index: str) -> Callable[[Place], Place]:
    """The place without the index that shares: all places of one total have one group."""
    axis = AXIS[index]
    return lambda place: (*place[:axis], 0, *place[axis + 1 :])  # type: ignore[return-value]


def _shifts(lists: Lists, s: dict[Place, float], group: Callable[[Place], Place]) -> dict[Place, float]:
    """m: the largest exponent of each total, so that nothing overflows; 0 where ψ has no exponential."""
    weight = lists.call.formula.weight
    heights = {group(p): [-math.inf] for p in lists.places()}
    for p, score in s.items():
        heights[group(p)] += [lists.value(a, p, score) for r, a in weight.terms if lists.value(r, p, score) != 0]
    for g, found in heights.items():
        found += [lists.value(a, g) for _, a in weight.sink_terms]
    exponential = any(a != 0 for _, a in weight.terms)
    return {g: _highest(found) if exponential else 0.0 for g, found in heights.items()}


def _highest(values: list[float]) -> float:
    highest = math.nan if any(value != value for value in values) else max(values)
    return 0.0 if highest == -math.inf else highest


def _mixed(steps: Steps) -> dict[Place, Vector]:
    """y_i = Σ_j w_ij v_j."""
    lists, y = steps.lists, defaultdict(lambda: [0.0] * steps.lists.v_width)
    for b, h, i, j in sorted(steps.w):
        w, v = steps.w[b, h, i, j], lists.v[b][h // lists.group][j]
        y[b, h, i, 0] = [total + w * value for total, value in zip(y[b, h, i, 0], v, strict=True)]
    return y


# -- backward --------------------------------------------------------------------------------------------------


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, pair by pair."""
    call, lists, weight = steps.call, steps.lists, steps.call.formula.weight
    grads, dy = Gradients(call, lists), dy.tolist()
    g = {(b, h, i, j): _dot(dy[b][h][i], lists.v[b][h // lists.group][j]) for b, h, i, j in steps.w}
    for b, h, i, j in sorted(steps.w):
        grads.add_vector("v", (b, h // lists.group, j), [steps.w[b, h, i, j] * value for value in dy[b][h][i]])
    for p, dpsi in _through_total(steps, g, grads).items():
        m = steps.m[_group(weight.over.node.name)(p)] if weight.over is not None else 0.0
        ds = dpsi * lists.scaled(weight.slope_terms, p, steps.s[p], m)
        grads.through(weight.psi.node, p, dpsi, m, steps.s[p])
        grads.through(call.formula.score.node, p, ds, 0.0, 0.0)
    return grads.arrays()


def _through_total(steps: Steps, g: dict[Place, float], grads: Gradients) -> dict[Place, float]:
    """dψ · exp(m) for every pair that counts: g where nothing is shared, otherwise (g − Σ g w) / Z."""
    weight = steps.call.formula.weight
    if weight.over is None:
        return g
    group, delta = _group(weight.over.node.name), defaultdict(float)
    for p in sorted(g):
        delta[group(p)] += g[p] * steps.w[p]
    if weight.sink is not None:
        for total, z in steps.z.items():
            grads.through(weight.sink.node, total, -delta[total] / z if z != 0 else 0.0, steps.m[total], 0.0)
    dpsi = {}
    for p in sorted(steps.s):
        z, counts = steps.z[group(p)], weight.among is None or steps.lists.value(weight.among.node, p)
        dpsi[p] = (g.get(p, 0.0) - (delta[group(p)] if counts else 0.0)) / z if z != 0 else 0.0
    return dpsi


class Gradients:
    """Sums of gradients by place, for each argument."""

    def __init__(self, call: Call, lists: Lists) -> None:
        self.call, self.lists = call, lists
        shapes = {"q": call.q.shape, "k": call.k.shape, "v": call.v.shape if call.v is not None else ()}
        shapes |= {name: table.shape for name, table in call.tables.items() if call.xp.is_real(table)}
        self.sums = {name: np.zeros(tuple(shape)) for name, shape in shapes.items()}

    def add_vector(self, name: str, place: tuple[int, ...], values: Iterable[float]) -> None:
        for e, value in enumerate(values):
            self.sums[name][(*place, e)] += value

    def through(self, node: Any, place: Place, gradient: float, shift: float, score: float) -> None:
        """Add gradient · ∂node/∂leaf to every leaf of `node`."""
        for leaf, slope in partials(node).items():
            share = gradient * self.lists.scaled(exponential_terms(slope), place, score, shift)
            if isinstance(leaf, Pair):
                self._to_pair(leaf, place, share)
            elif leaf.table in self.sums:
                self.sums[leaf.table][self.lists.entry(leaf, place)] += share

    def _to_pair(self, pair: Pair, place: Place, share: float) -> None:
        b, h, i, j = place
        q, k = self.lists.vectors(place)
        metric = None if pair.metric is None else self.lists.metric(pair.metric, place)
        dq, dk, dm = PAIRS[pair.word].backward(q, k, metric)
        self.add_vector("q", (b, h, i), (share * value for value in dq))
        self.add_vector("k", (b, h // self.lists.group, j), (share * value for value in dk))
        if pair.metric is not None:
            where = self.lists.entry(pair.metric, place)
            for row, values in enumerate(dm):
                self.add_vector(pair.metric.table, (*where, row), (share * value for value in values))

    def arrays(self) -> dict[str, Any]:
        working = self.call.working_dtype
        return {name: self.call.fit(name, self.lists.converted(total, working)) for name, total in self.sums.items()}


# -- pairs of vectors ------------------------------------------------------------------------------------------

Matrix = list[list[float]]


class Dot:
    """q·k, or qᵀ M k."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        return _dot(q, k if metric is None else _times(metric, k))

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        outer = [[x * y for y in k] for x in q]
        return (k, q, outer) if metric is None else (_times(metric, k), _times(_transposed(metric), q), outer)


class SqDist:
    """‖q − k‖², or (q−k)ᵀ P (q−k)."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        difference = [x - y for x, y in zip(q, k, strict=True)]
        return Dot.forward(difference, difference, metric)

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        difference = [x - y for x, y in zip(q, k, strict=True)]
        left, right, outer = Dot.backward(difference, difference, metric)
        dq = [x + y for x, y in zip(left, right, strict=True)]
        return dq, [-x for x in dq], outer


class Cosine:
    """q·k / (‖q‖ ‖k‖), and 0 where either is the zero vector."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        lengths = math.sqrt(_dot(q, q)), math.sqrt(_dot(k, k))
        if 0 in lengths:
            return 0.0
        unit_q, unit_k = [x / lengths[0] for x in q], [x / lengths[1] for x in k]
        value = _dot(unit_q, unit_k)
        return min(max(value, -1.0), 1.0) if value == value else value

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        q_length, k_length = math.sqrt(_dot(q, q)), math.sqrt(_dot(k, k))
        return _pulled(q, k, k_length, q_length), _pulled(k, q, q_length, k_length), []


def _pulled(x: Vector, other: Vector, other_length: float, length: float) -> Vector:
    """∂cosine/∂x = (ô − (x̂·ô) x̂) / ‖x‖, and 0 where either vector is zero."""
    if length == 0 or other_length == 0:
        return [0.0] * len(x)
    unit, towards = [value / length for value in x], [value / other_length for value in other]
    alike = _dot(unit, towards)
    return [(to - alike * own) / length for to, own in zip(towards, unit, strict=True)]


PAIRS: dict[str, Any] = {"dot": Dot, "sqdist": SqDist, "cosine": Cosine}


def _dot(x: Vector, y: Vector) -> float:
    return sum((a * b for a, b in zip(x, y, strict=True)), 0.0)


def _times(matrix: Matrix, x: Vector) -> Vector:
    return [_dot(row, x) for row in matrix]


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def _log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


# -- a call as lists ---------------------------------------------------------------------------------------------


class Lists:
    """The arguments of a call as nested lists, and the formula's value at one place."""

    def __init__(self, call: Call) -> None:
        self.call, self.group = call, call.group
        self.q, self.k, self.v = (_listed(x) for x in (call.q, call.k, call.v))
        self.v_width = 0 if call.v is None else int(call.v.shape[3])
        self.tables = {name: _listed(table) for name, table in call.tables.items()}
        self.start = [int(position) for position in call.start.tolist()]
        self.shape = (call.batch, call.heads, call.queries, call.keys)

    def places(self) -> Iterable[Place]:
        batch, heads, queries, keys = map(range, self.shape)
        return ((b, h, i, j) for b in batch for h in heads for i in queries for j in keys)

    def vectors(self, place: Place) -> tuple[Vector, Vector]:
        b, h, i, j = place
        return self.q[b][h][i], self.k[b][h // self.group][j]

    def score(self, place: Place) -> float:
        return float(self.value(self.call.formula.score.node, place))

    def value(self, node: Any, place: Place, score: float = 0.0) -> Any:
        """The value of an expression or mask at one place; `score` is what s stands for."""
        return fold(node, Scalars(self, place, score))

    def scaled(self, terms: tuple[Term, ...], place: Place, score: float, shift: float) -> float:
        """Σ r · exp(a − shift)."""
        return sum((self.value(r, place, score) * Exp.scalar(self.value(a, place, score) - shift) for r, a in terms), 0.0)

    def metric(self, read: Read, place: Place) -> Matrix:
        return _at(self.tables[read.table], self.entry(read, place))

    def entry(self, read: Read, place: Place) -> tuple[int, ...]:
        """Where a read stands in its table, kept inside."""
        sizes = self.call.tables[read.table].shape
        return tuple(min(max(where, 0), int(size) - 1) for where, size in zip(self.indices(read, place), sizes, strict=False))

    def indices(self, read: Read, place: Place) -> tuple[int, ...]:
        return tuple(int(self.value(index, place)) for index in read.indices)

    # -- and back to arrays --------------------------------------------------------------------------------------

    def matrix(self, values: dict[Place, float]) -> Any:
        return self.fill(values, self.shape)

    def fill(self, values: dict[Place, float], shape: tuple[int, ...], squeeze: int | None = None) -> Any:
        full = np.zeros(shape)
        for place, value in values.items():
            full[place] = value
        return self.converted(full if squeeze is None else full.squeeze(squeeze), self.call.working_dtype)

    def array(self, rows: dict[Place, Vector], width: int) -> Any:
        full = np.zeros((*self.shape[:3], width))
        for (b, h, i, _), values in rows.items():
            full[b, h, i] = values
        return self.converted(full, self.call.working_dtype)

    def converted(self, array: Any, dtype: Any) -> Any:
        xp = self.call.xp
        return xp.asarray(array, dtype=dtype, device=xp.device(self.call.q))


class Scalars:
    """The algebra of Python numbers at one place: integers stay integers, all else is a float."""

    def __init__(self, lists: Lists, place: Place, score: float) -> None:
        self.lists, self.place = lists, place
        b, h, row, j = place
        call = lists.call
        self.symbols = {
            BATCH: b, HEAD: h, I: lists.start[b] + row, J: j, SCORE: score,
            HEADS: call.heads, WIDTH: call.width, KEYS: call.keys,
        }  # fmt: skip

    def number(self, value: Number) -> Any:
        return float(value) if isinstance(value, Fraction) else value

    def symbol(self, symbol: Any) -> Any:
        return self.symbols[symbol]

    def pair(self, pair: Pair) -> float:
        q, k = self.lists.vectors(self.place)
        metric = None if pair.metric is None else self.lists.metric(pair.metric, self.place)
        return float(PAIRS[pair.word].forward(q, k, metric))

    def sum(self, terms: list[Any]) -> Any:
        return sum(terms)

    def product(self, coefficient: Number, above: list[Any], below: list[Any]) -> Any:
        value = math.prod(above) * self.number(coefficient)
        for divisor in below:
            value = _divided(value, float(divisor))
        return value

    def power(self, base: Any, exponent: Any) -> float:
        return _raised(float(base), float(exponent))

    def apply(self, function: type[Node], arguments: list[Any]) -> Any:
        assert issubclass(function, Elementary)
        if function is Where or function.keeps_integers:
            return function.scalar(*arguments)
        return function.scalar(*map(float, arguments))

    def read(self, node: Read, indices: list[Any]) -> Any:
        value = _at(self.lists.tables[node.table], self.lists.entry(node, self.place))
        return int(value) if isinstance(value, bool) else value

    def truth(self, value: bool) -> bool:
        return value

    def compare(self, left: Any, relation: str, right: Any) -> bool:
        match relation:
            case "<=":
                return bool(left <= right)
            case "<":
                return bool(left < right)
            case ">=":
                return bool(left >= right)
            case ">":
                return bool(left > right)
            case _:
                return bool(left == right)

    def given(self, name: str) -> bool:
        return bool(_at(self.lists.tables[name], self.place))

    def both(self, parts: list[Any]) -> bool:
        return all(parts)

    def either(self, parts: list[Any]) -> bool:
        return any(parts)

    def negation(self, part: Any) -> bool:
        return not part


def _listed(array: Any) -> Any:
    return None if array is None else array.tolist()


def _at(table: Any, place: Iterable[int]) -> Any:
    for index in place:
        table = table[index]
    return table


def _divided(x: float, y: float) -> float:
    """x / y by the rules of IEEE 754."""
    if y != 0:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _raised(base: float, exponent: float) -> float:
    """baseᵉ by the rules of IEEE 754: NaN for a fractional power of a negative number."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _check_ranges(call: Call, lists: Lists) -> None:
    """Every read that counts stands inside its table."""
    for guarded in call.formula.reads:
        sizes = call.tables[guarded.read.table].shape
        found = [lists.indices(guarded.read, p) for p in lists.places() if lists.value(guarded.guard, p)]
        for axis, places in enumerate(zip(*found, strict=True)):
            low, high = min(places), max(places)
            if low < 0 or high >= sizes[axis]:
                refuse_range(call, guarded.read, axis, low, high)


__all__ = ["Steps", "attend", "cost", "refusal", "scores", "vjp"]
