"""A call as nested lists, and the algebra of Python numbers at one place of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from ...algebra.fold import Number, fold
from ...algebra.functions import Elementary, Exp, Where
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Node, Pair, Read
from ...algebra.weights import Term
from ..call import Call
from .pairs import PAIRS, Matrix, Vector

Place = tuple[int, int, int, int]  # b, h, row, j


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
        factors = [(self.value(r, place, score), a) for r, a in terms]
        parts = (r * Exp.scalar(self.value(a, place, score) - shift) for r, a in factors if r != 0)
        return sum(parts, 0.0)

    def metric(self, read: Read, place: Place) -> Matrix:
        matrix: Matrix = _at(self.tables[read.table], self.entry(read, place))
        return matrix

    def entry(self, read: Read, place: Place, score: float = 0.0) -> tuple[int, ...]:
        """Where a read stands in its table, kept inside."""
        return self.inside(read, self.indices(read, place, score))

    def inside(self, read: Read, indices: Iterable[int]) -> tuple[int, ...]:
        """Indices kept inside their table; a metric has two axes more than indices."""
        sizes = self.call.tables[read.table].shape
        return tuple(min(max(where, 0), int(size) - 1) for where, size in zip(indices, sizes, strict=False))

    def indices(self, read: Read, place: Place, score: float = 0.0) -> tuple[int, ...]:
        return tuple(_whole(self.value(index, place, score)) for index in read.indices)

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
            value = _divided(float(value), float(divisor))
        return value

    def power(self, base: Any, exponent: Any) -> Any:
        if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
            return base**exponent
        return _raised(float(base), float(exponent))

    def apply(self, function: type[Node], arguments: list[Any]) -> Any:
        assert issubclass(function, Elementary)
        if function is Where or function.keeps_integers:
            return function.scalar(*arguments)
        return function.scalar(*map(float, arguments))

    def read(self, node: Read, indices: list[Any]) -> Any:
        value = _at(self.lists.tables[node.table], self.lists.inside(node, map(_whole, indices)))
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


def _whole(value: float) -> int:
    """An index; what is no number stands outside every table."""
    return int(value) if math.isfinite(value) else -(2**63)


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
