"""Interval evaluation: what values an expression can take when its symbols run over ranges.

A number becomes (lowest, highest); a truth becomes (holds everywhere, holds somewhere).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .fold import Number
from .functions import Elementary, Interval
from .nodes import BATCH, HEAD, I, J, Node, Pair, Read

ANY: Interval = (-math.inf, math.inf)
SQUARES: Interval = (0.0, math.inf)
COSINES: Interval = (-1.0, 1.0)

TableRange = Callable[[str, list[Interval]], Interval]


class Intervals:
    """The algebra of intervals, given the range of each symbol and, where known, of each table."""

    def __init__(self, ranges: Mapping[Any, Interval], tables: TableRange | None = None) -> None:
        self.ranges = ranges
        self.tables = tables or (lambda name, indices: ANY)

    def number(self, value: Number) -> Interval:
        exact = float(value) if isinstance(value, Fraction) else value
        return exact, exact

    def symbol(self, symbol: Any) -> Interval:
        return self.ranges.get(symbol, ANY)

    def pair(self, pair: Pair) -> Interval:
        if pair.word == "cosine":
            return COSINES
        return SQUARES if pair.is_nonnegative else ANY

    def sum(self, terms: list[Interval]) -> Interval:
        return sum(low for low, _ in terms), sum(high for _, high in terms)

    def product(self, coefficient: Number, above: list[Interval], below: list[Interval]) -> Interval:
        total = self.number(coefficient)
        for factor in above:
            total = _times(total, factor)
        for factor in below:
            total = _times(total, _reciprocal(factor))
        return total

    def power(self, base: Interval, exponent: Interval) -> Interval:
        (low, high), (small, large) = base, exponent
        if small == large and float(small).is_integer():
            ends = [_power(low, small), _power(high, small)]
            return (0 if small % 2 == 0 and low <= 0 <= high else min(ends)), max(ends)
        if low <= 0:
            return (0.0, math.inf) if low == 0 else ANY
        corners = [_power(x, y) for x in base for y in exponent]
        return min(corners), max(corners)

    def apply(self, function: type[Node], arguments: list[Any]) -> Interval:
        assert issubclass(function, Elementary)
        return function.bounds(*arguments)

    def read(self, node: Read, indices: list[Interval]) -> Interval:
        return self.tables(node.table, indices)

    def truth(self, value: bool) -> Any:
        return value, value

    def compare(self, left: Interval, relation: str, right: Interval) -> Any:
        (a_low, a_high), (b_low, b_high) = left, right
        match relation:
            case "<=":
                return a_high <= b_low, a_low <= b_high
            case "<":
                return a_high < b_low, a_low < b_high
            case ">=" | ">":
                return self.compare(right, {">=": "<=", ">": "<"}[relation], left)
            case _:
                return a_low == a_high == b_low == b_high, a_low <= b_high and b_low <= a_high

    def given(self, name: str) -> Any:
        low, high = self.tables(name, [self.symbol(symbol) for symbol in (BATCH, HEAD, I, J)])
        return low >= 1, high > 0

    def both(self, parts: list[Any]) -> Any:
        return all(sure for sure, _ in parts), all(possible for _, possible in parts)

    def either(self, parts: list[Any]) -> Any:
        return any(sure for sure, _ in parts), any(possible for _, possible in parts)

    def negation(self, part: Any) -> Any:
        sure, possible = part
        return not possible, not sure


def _times(a: Interval, b: Interval) -> Interval:
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _reciprocal(x: Interval) -> Interval:
    low, high = x
    if low > 0 or high < 0:
        return 1 / high if high else math.inf, 1 / low if low else math.inf
    return (1 / high, math.inf) if low == 0 and high > 0 else ANY


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    except ZeroDivisionError:
        return math.inf
