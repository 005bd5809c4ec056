"""The formula on whole matrices, through the array API: NumPy float64 is the oracle of every other engine.

    s = score(q, k)          (B, H, N, n)
    ψ = Σ r · exp(a − m)     m: the largest a of the row, so that nothing overflows
    Z = sink + Σ_j ψ
    w = ψ / Z                0 where Z is 0
    y = w v                  (B, H, N, E)

and back, with g = dy vᵀ:

    dψ = (g − Σ_j g w) / Z       ds = ψ'(s) dψ       then through the score's own derivative
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import Any

from ..algebra.calculus import partials
from ..algebra.errors import CallError, TableError
from ..algebra.fold import Number, fold
from ..algebra.functions import Elementary, Floor, Sqrt, Where
from ..algebra.nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Node, Pair, Read
from ..algebra.weights import Term, exponential_terms
from .arrays import Library
from .call import Call, refuse_range

AXIS = {"b": 0, "h": 1, "i": 2, "j": 3}
ROWS = 2**22  # differences q − k held at once, in entries


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    return None


def cost(call: Call) -> tuple[int, int]:
    """Operations and bytes of one forward pass."""
    pairs = call.batch * call.heads * call.queries * call.keys
    size = 4 if "64" not in str(call.working_dtype) else 8
    width = int(call.v.shape[3]) if call.v is not None else 0
    distances = sum(pair.word == "sqdist" for pair in call.formula.pairs)
    return 2 * pairs * (call.width * (1 + distances) + width), size * pairs * 4


def attend(call: Call) -> Steps:
    """Every step of the forward pass."""
    with call.xp.quiet():
        return _attend(call)


def scores(call: Call) -> Any:
    """s_ij for every pair, admitted or not."""
    with call.xp.quiet():
        reading = Reading.of(call)
        s = reading.whole(fold(call.formula.score.node, reading, reading.memo))
        _check_ranges(call, reading, _admitted(call, reading))
        return s


@dataclass(frozen=True)
class Steps:
    """The forward pass, step by step. Arrays are (B, H, N, n) unless said otherwise."""

    call: Call
    reading: Reading
    score: Any
    admitted: Any | None  # None: every pair
    shift: Any  # m, with size 1 along the index that shares; 0 where ψ has no exponential
    psi: Any  # ψ · exp(−m)
    total: Any | None  # Z · exp(−m); None where nothing is shared
    weights: Any
    y: Any | None  # (B, H, N, E)

    @property
    def log_total(self) -> Any:
        """log Z where ψ is exponential, otherwise Z; without the axis that shares."""
        weight, xp = self.call.formula.weight, self.call.xp
        if weight.over is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {weight!r}")
        with xp.quiet():
            value = xp.log(self.total) + self.shift if weight.is_exponential else self.total
        return xp.squeeze(value, axis=AXIS[weight.over.node.name])


# -- forward ---------------------------------------------------------------------------------------------------


def _attend(call: Call) -> Steps:
    xp, weight = call.xp, call.formula.weight
    raw = Reading.of(call)
    admitted = _admitted(call, raw)
    counted = admitted if weight.among is None else raw.mask(weight.among.node)
    reading = raw.where(_either(admitted, counted))
    _check_ranges(call, raw, admitted)
    score = reading.whole(fold(call.formula.score.node, reading, reading.memo))
    reading.memo[SCORE] = score

    if weight.over is None:
        psi = reading.whole(fold(weight.psi.node, reading, reading.memo))
        shift, total, weights = 0.0, None, _keep(xp, admitted, psi)
    else:
        axis = AXIS[weight.over.node.name]
        shift = _shift(reading, weight.terms, weight.sink_terms, _either(admitted, counted), axis)
        psi = reading.whole(reading.scaled(weight.terms, shift))
        total = xp.sum(_keep(xp, counted, psi), axis=axis, keepdims=True)
        if weight.sink is not None:
            total = total + reading.scaled(weight.sink_terms, shift)
        weights = _quotient(xp, _keep(xp, admitted, psi), total)
    y = None if call.v is None else _mix(xp, weights, reading.v, admitted)
    return Steps(call, reading, score, admitted, shift, psi, total, weights, y)


def _shift(reading: Reading, terms: tuple[Term, ...], sink: tuple[Term, ...], live: Any | None, axis: int) -> Any:
    """m: the largest exponent a that counts along the axis, or 0 where ψ is no exponential."""
    xp = reading.xp
    if all(a == 0 for _, a in terms):
        return 0.0
    heights = []
    for r, a in terms:
        height = reading.whole(reading.real(fold(a, reading, reading.memo)))
        if not r.is_Number:
            height = xp.where(reading.whole(reading.real(fold(r, reading, reading.memo))) == 0, -math.inf, height)
        heights.append(_highest(xp, _keep(xp, live, height, -math.inf), axis))
    heights += [reading.array(reading.real(fold(a, reading, reading.memo))) for _, a in sink]
    highest = reduce(lambda x, y: xp.where(y > x, y, x), heights)
    return xp.constant(xp.where(highest == -math.inf, xp.zeros_like(highest), highest))


def _highest(xp: Library, values: Any, axis: int) -> Any:
    if values.shape[axis] == 0:
        shape = tuple(1 if place == axis else size for place, size in enumerate(values.shape))
        return xp.full(shape, -math.inf, dtype=values.dtype)
    return xp.max(values, axis=axis, keepdims=True)


def _quotient(xp: Library, psi: Any, total: Any) -> Any:
    """ψ / Z, and 0 where Z is 0."""
    empty = total == 0
    return xp.where(empty, xp.zeros_like(psi), psi / xp.where(empty, xp.ones_like(total), total))


def _keep(xp: Library, admitted: Any | None, values: Any, other: float = 0.0) -> Any:
    """The values where a pair is admitted; `other` elsewhere, whatever stood there."""
    return values if admitted is None else xp.where(admitted, values, xp.full_like(values, other))


def _either(a: Any | None, b: Any | None) -> Any | None:
    return None if a is None or b is None else a | b


def _admitted(call: Call, reading: Reading) -> Any | None:
    return None if call.formula.mask is None else reading.mask(call.formula.mask.node)


def _mix(xp: Library, weights: Any, values: Any, admitted: Any | None) -> Any:
    """Σ_j w_ij v_j over the admitted j: a value that is not read cannot spoil the row, even if it is NaN."""
    if admitted is None or not xp.known(values) or bool(xp.all(xp.isfinite(values))):
        return weights @ values
    finite = xp.isfinite(values)
    total = weights @ xp.where(finite, values, xp.zeros_like(values))
    for j in range(values.shape[2]):
        if not bool(xp.all(finite[:, :, j, :])):
            wild = xp.where(finite[:, :, j, :], xp.zeros_like(values[:, :, j, :]), values[:, :, j, :])
            product = weights[:, :, :, j, None] * wild[:, :, None, :]
            reads = admitted[:, :, :, j, None] & ~finite[:, :, None, j, :]
            total = total + xp.where(reads, product, xp.zeros_like(product))
    return total


# -- backward --------------------------------------------------------------------------------------------------


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, by the algebra's own derivative."""
    with steps.call.xp.quiet():
        return _Backward(steps, dy).run()


class _Backward:
    def __init__(self, steps: Steps, dy: Any) -> None:
        self.steps, self.call, self.reading = steps, steps.call, steps.reading
        self.xp, self.dy = steps.call.xp, self.reading.real(dy)
        self.gradients: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        xp, steps, weight = self.xp, self.steps, self.call.formula.weight
        g = _keep(xp, steps.admitted, self.dy @ xp.matrix_transpose(self.reading.v))
        dpsi = self._through_total(g)
        ds = dpsi * self.reading.scaled(weight.slope_terms, steps.shift)
        live = self.reading.live
        self._add("v", _mix_back(xp, steps.weights, self.dy, steps.admitted))
        self._through(self.call.formula.score.node, _keep(xp, live, ds), 0.0)
        self._through(weight.psi.node, dpsi, steps.shift)
        self._add("q", xp.zeros_like(self.reading.q))
        self._add("k", xp.zeros_like(self.reading.k))
        return {name: self._fitted(name, gradient) for name, gradient in self.gradients.items()}

    def _through_total(self, g: Any) -> Any:
        """dψ · exp(m) from dw: g where nothing is shared, otherwise (g − Σ g w) / Z."""
        xp, steps, weight = self.xp, self.steps, self.call.formula.weight
        if weight.over is None:
            return g
        axis = AXIS[weight.over.node.name]
        delta = xp.sum(_keep(xp, steps.admitted, g * steps.weights), axis=axis, keepdims=True)
        if weight.sink is not None:
            self._through(weight.sink.node, -_quotient(xp, delta, steps.total), steps.shift)
        counted = steps.admitted if weight.among is None else self.reading.mask(weight.among.node)
        spread = _keep(xp, counted, xp.broadcast_to(delta, g.shape))
        return _quotient(xp, g - spread, steps.total)

    def _through(self, node: Any, gradient: Any, shift: Any) -> None:
        """Add gradient · ∂node/∂leaf to every leaf of `node`; exponentials are scaled by exp(−shift)."""
        for leaf, slope in partials(node).items():
            share = gradient * self.reading.scaled(exponential_terms(slope), shift)
            share = _keep(self.xp, self.reading.live, share) if share.shape == self.steps.weights.shape else share
            if isinstance(leaf, Pair):
                self._to_pair(leaf, self.reading.whole(share))
            else:
                self._to_table(leaf, share)

    def _to_pair(self, pair: Pair, g: Any) -> None:
        gradients = PAIRS[pair.word].backward(self.reading, pair, g)
        for name, gradient in zip(("q", "k"), gradients[:2], strict=True):
            self._add(name, gradient)
        if pair.metric is not None:
            self._to_metric(pair.metric, gradients[2])

    def _to_table(self, read: Read, g: Any) -> None:
        table = self.call.tables[read.table]
        if not self.xp.is_real(table):
            return
        places = [self.reading.place(read, axis) for axis in range(len(read.indices))]
        if not places:
            self._add(read.table, self.xp.sum(g))
            return
        places = [self.xp.broadcast_to(place, g.shape) for place in places]
        flat = tuple(self.xp.reshape(place, (-1,)) for place in places)
        self._add(read.table, self.xp.scatter(table.shape, flat, self.xp.reshape(g, (-1,))))

    def _to_metric(self, read: Read, g: Any) -> None:
        """`g` is (B, H, D, D): add it where this head and batch read their matrix."""
        table, xp = self.call.tables[read.table], self.xp
        if not read.indices:
            self._add(read.table, xp.sum(g, axis=(0, 1)))
            return
        places = [xp.broadcast_to(self.reading.place(read, axis), (*g.shape[:2], 1, 1)) for axis in range(len(read.indices))]
        flat = tuple(xp.reshape(place, (-1,)) for place in places)
        self._add(read.table, xp.scatter(table.shape, flat, xp.reshape(g, (-1, *g.shape[2:]))))

    def _add(self, name: str, gradient: Any) -> None:
        self.gradients[name] = self.gradients[name] + gradient if name in self.gradients else gradient

    def _fitted(self, name: str, gradient: Any) -> Any:
        """The gradient in the shape and dtype of its argument; heads that read one key head are summed."""
        if name in ("k", "v") and self.call.group > 1:
            batch, heads, length, width = gradient.shape
            grouped = (batch, heads // self.call.group, self.call.group, length, width)
            gradient = self.xp.sum(self.xp.reshape(gradient, grouped), axis=2)
        return self.call.fit(name, gradient)


def _mix_back(xp: Library, weights: Any, dy: Any, admitted: Any | None) -> Any:
    transposed = None if admitted is None else xp.matrix_transpose(admitted)
    return _mix(xp, xp.matrix_transpose(weights), dy, transposed)


# -- pairs of vectors ------------------------------------------------------------------------------------------


class Dot:
    """q·k, or qᵀ M k."""

    @staticmethod
    def forward(reading: Reading, pair: Pair) -> Any:
        q = reading.q if pair.metric is None else reading.q @ reading.metric(pair)
        return q @ reading.xp.matrix_transpose(reading.k)

    @staticmethod
    def backward(reading: Reading, pair: Pair, g: Any) -> tuple[Any, ...]:
        xp, q, k = reading.xp, reading.q, reading.k
        back = xp.matrix_transpose
        if pair.metric is None:
            return reading.mix(g, k), reading.mix_back(g, q)
        metric = reading.metric(pair)
        return reading.mix(g, k @ back(metric)), reading.mix_back(g, q @ metric), back(q) @ g @ k


class SqDist:
    """‖q − k‖², or (q−k)ᵀ P (q−k), from the differences themselves: exact also far from the origin."""

    @staticmethod
    def forward(reading: Reading, pair: Pair) -> Any:
        xp, q, k = reading.xp, reading.q, reading.k
        metric = None if pair.metric is None else reading.metric(pair)[:, :, None, :, :]
        step = max(1, ROWS // max(1, math.prod(k.shape)))
        blocks = []
        for first in range(0, max(q.shape[2], 1), step):
            difference = q[:, :, first : first + step, None, :] - k[:, :, None, :, :]
            other = difference if metric is None else difference @ metric
            blocks.append(xp.sum(difference * other, axis=-1))
        return xp.concat(blocks, axis=2)

    @staticmethod
    def backward(reading: Reading, pair: Pair, g: Any) -> tuple[Any, ...]:
        xp = reading.xp
        back = xp.matrix_transpose
        origin = reading.k[:, :, :1, :] if reading.k.shape[2] else 0.0  # differences do not see it; rounding does
        q, k = reading.q - origin, reading.k - origin
        rows, columns = xp.sum(g, axis=3)[..., None], xp.sum(g, axis=2)[..., None]
        dq, dk = rows * q - reading.mix(g, k), columns * k - reading.mix_back(g, q)
        if pair.metric is None:
            return 2 * dq, 2 * dk
        metric = reading.metric(pair)
        both = metric + back(metric)
        cross = back(q) @ g @ k
        return dq @ both, dk @ both, back(q) @ (rows * q) + back(k) @ (columns * k) - cross - back(cross)


class Cosine:
    """q·k / (‖q‖ ‖k‖), and 0 where either is the zero vector."""

    @staticmethod
    def forward(reading: Reading, pair: Pair) -> Any:
        xp = reading.xp
        (q, _), (k, _) = _unit(xp, reading.q), _unit(xp, reading.k)
        return xp.clip(q @ xp.matrix_transpose(k), -1.0, 1.0)

    @staticmethod
    def backward(reading: Reading, pair: Pair, g: Any) -> tuple[Any, ...]:
        xp = reading.xp
        (q, q_norm), (k, k_norm) = _unit(xp, reading.q), _unit(xp, reading.k)
        pull = g * (q @ xp.matrix_transpose(k))
        dq = reading.mix(g, k) - xp.sum(pull, axis=3)[..., None] * q
        dk = reading.mix_back(g, q) - xp.sum(pull, axis=2)[..., None] * k
        return _quotient(xp, dq, q_norm), _quotient(xp, dk, k_norm)


def _unit(xp: Library, x: Any) -> tuple[Any, Any]:
    """Vectors of length 1, and the lengths; the zero vector stays zero."""
    norm = Sqrt.array(xp, xp.sum(x * x, axis=-1, keepdims=True))
    return _quotient(xp, x, norm), norm


PAIRS: dict[str, Any] = {"dot": Dot, "sqdist": SqDist, "cosine": Cosine}


# -- the algebra of arrays ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """A formula read as arrays: what each symbol, table and function is for one call."""

    call: Call
    xp: Library
    q: Any
    k: Any
    v: Any | None
    symbols: Mapping[Any, Any]
    live: Any | None  # where leaves count; elsewhere they are 0, so that no gradient comes from there
    memo: dict[Any, Any]

    @classmethod
    def of(cls, call: Call) -> Reading:
        xp = call.xp
        q, k = xp.astype(call.q, call.working_dtype), _repeated(xp, call.k, call.group, call.working_dtype)
        v = None if call.v is None else _repeated(xp, call.v, call.group, call.working_dtype)
        device = xp.device(call.q)

        def count(size: int) -> Any:
            return xp.arange(size, device=device)

        symbols = {
            I: call.start[:, None, None, None] + count(call.queries)[None, None, :, None],
            J: count(call.keys)[None, None, None, :],
            HEAD: count(call.heads)[None, :, None, None],
            BATCH: count(call.batch)[:, None, None, None],
            HEADS: call.heads, WIDTH: call.width, KEYS: call.keys,
        }  # fmt: skip
        return cls(call, xp, q, k, v, symbols, None, {})

    def where(self, live: Any | None) -> Reading:
        """The same reading with leaves that count only where `live` holds."""
        return Reading(self.call, self.xp, self.q, self.k, self.v, self.symbols, live, {}) if live is not None else self

    # -- the fold ----------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Any:
        return float(value) if isinstance(value, Fraction) else value

    def symbol(self, symbol: Any) -> Any:
        return self.symbols[symbol]

    def pair(self, pair: Pair) -> Any:
        return _keep(self.xp, self.live, PAIRS[pair.word].forward(self, pair))

    def sum(self, terms: list[Any]) -> Any:
        return reduce(add, self._alike(terms))

    def product(self, coefficient: Number, above: list[Any], below: list[Any]) -> Any:
        coefficient = self.number(coefficient)
        if not below and all(map(self._is_integer, [coefficient, *above])):
            return reduce(mul, self._alike([coefficient, *above]))
        value = reduce(mul, map(self.real, above), 1.0) * float(coefficient)
        return reduce(lambda x, y: _divided(x, self.real(y)), below, value)

    def power(self, base: Any, exponent: Any) -> Any:
        base, exponent = self.real(base), self.real(exponent)
        if isinstance(base, float) and isinstance(exponent, float):
            base = self.array(base)
        return base**exponent

    def apply(self, function: type[Node], arguments: list[Any]) -> Any:
        assert issubclass(function, Elementary)
        truths, values = (arguments[:1], arguments[1:]) if function is Where else ([], arguments)
        values = self._alike(values) if function.keeps_integers else [self.real(value) for value in values]
        return function.array(self.xp, *map(self.array, truths), *map(self.array, values))

    def read(self, node: Read, indices: list[Any]) -> Any:
        table = self.call.tables[node.table]
        if not indices:
            return table
        value = table[tuple(self.place(node, axis) for axis in range(len(indices)))]
        if not self.xp.is_real(value) or self.live is None or value.shape != self._full:
            return value
        return _keep(self.xp, self.live, value)

    def truth(self, value: bool) -> Any:
        return value

    def compare(self, left: Any, relation: str, right: Any) -> Any:
        left, right = (self.array(side) for side in self._alike([left, right]))
        match relation:
            case "<=":
                return left <= right
            case "<":
                return left < right
            case ">=":
                return left >= right
            case ">":
                return left > right
            case _:
                return left == right

    def given(self, name: str) -> Any:
        return self.call.tables[name]

    def both(self, parts: list[Any]) -> Any:
        return reduce(lambda x, y: x & y, parts)

    def either(self, parts: list[Any]) -> Any:
        return reduce(lambda x, y: x | y, parts)

    def negation(self, part: Any) -> Any:
        return ~self.array(part)

    # -- helpers -------------------------------------------------------------------------------------------------

    @property
    def _full(self) -> tuple[int, ...]:
        call = self.call
        return call.batch, call.heads, call.queries, call.keys

    def mask(self, node: Any) -> Any:
        """A truth for every pair."""
        return self.xp.broadcast_to(self.array(fold(node, self, self.memo)), self._full)

    def whole(self, value: Any) -> Any:
        """A real number for every pair."""
        return self.xp.broadcast_to(self.array(self.real(value)), self._full)

    def scaled(self, terms: tuple[Term, ...], shift: Any) -> Any:
        """Σ r · exp(a − shift)."""
        total: Any = self.array(0.0)
        for r, a in terms:
            height = self.array(self.real(fold(a, self, self.memo))) - shift
            if self.live is not None and height.shape == self._full:
                height = _keep(self.xp, self.live, height)
            total = total + self.real(fold(r, self, self.memo)) * self.xp.exp(height)
        return total

    def metric(self, pair: Pair) -> Any:
        """The matrix between q and k, (B or 1, H or 1, D, D)."""
        assert pair.metric is not None
        table = self.call.tables[pair.metric.table]
        places = tuple(self.place(pair.metric, axis)[:, :, 0, 0] for axis in range(len(pair.metric.indices)))
        return table[places] if places else table[None, None, :, :]

    def place(self, read: Read, axis: int) -> Any:
        """Where a read stands along one axis of its table, kept inside; the check of ranges is made elsewhere."""
        size = self.call.tables[read.table].shape[axis]
        if size == 0:
            raise TableError(f"{read.table}: at least one entry along each axis; got none along axis {axis}")
        return self.xp.clip(self.index(read, axis), 0, size - 1)

    def index(self, read: Read, axis: int) -> Any:
        """The index as written, (B or 1, H or 1, N or 1, n or 1)."""
        value = self.array(fold(read.indices[axis], self, self.memo))
        value = value if self.xp.is_integer(value) else self.xp.astype(value, self.symbols[J].dtype)
        return self.xp.reshape(value, (1, 1, 1, 1)) if value.ndim == 0 else value

    def mix(self, g: Any, values: Any) -> Any:
        return _mix(self.xp, g, values, self.live)

    def mix_back(self, g: Any, values: Any) -> Any:
        return _mix_back(self.xp, g, values, self.live)

    def real(self, value: Any) -> Any:
        if isinstance(value, int | float):
            return float(value)
        return value if self.xp.is_real(value) else self.xp.astype(value, self.call.working_dtype)

    def array(self, value: Any) -> Any:
        if not isinstance(value, bool | int | float):
            return value
        dtype = self.call.working_dtype if isinstance(value, float) else None
        return self.xp.asarray(value, dtype=dtype, device=self.xp.device(self.q))

    def _is_integer(self, value: Any) -> bool:
        return isinstance(value, int) if isinstance(value, int | float) else not self.xp.is_real(value)

    def _alike(self, values: list[Any]) -> list[Any]:
        """All integers if all of them are, otherwise all real."""
        if not all(map(self._is_integer, values)):
            return [self.real(value) for value in values]
        return [value if isinstance(value, int) or self.xp.is_integer(value) else self.xp.astype(value, self.symbols[J].dtype) for value in values]


def _repeated(xp: Library, array: Any, group: int, dtype: Any) -> Any:
    """Keys or values with one head for each query head: head h reads head h // group."""
    array = xp.astype(array, dtype)
    return array if group == 1 else xp.repeat(array, group, axis=1)


def _divided(x: Any, y: Any) -> Any:
    """x / y by the rules of IEEE 754, also for two plain numbers."""
    if isinstance(x, float) and isinstance(y, float) and y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x)
    return x / y


def _check_ranges(call: Call, reading: Reading, admitted: Any | None) -> None:
    """Every read that counts stands inside its table."""
    xp = call.xp
    for guarded in call.formula.reads:
        sizes = call.tables[guarded.read.table].shape
        for axis in range(len(guarded.read.indices)):
            place = reading.index(guarded.read, axis)
            if not xp.known(place):
                continue
            outside = (place < 0) | (place >= sizes[axis])
            guard = admitted if guarded.guard == call.formula.admitted else reading.mask(guarded.guard)
            wrong = outside if guard is None else outside & guard
            if bool(xp.any(wrong)):
                places = xp.broadcast_to(place, wrong.shape)[wrong]
                refuse_range(call, guarded.read, axis, int(xp.min(places)), int(xp.max(places)))


__all__ = ["Reading", "Steps", "attend", "cost", "refusal", "scores", "vjp"]
