"""One walk over a formula, many readings of it.

`fold(node, algebra)` visits the tree once, bottom up, and lets `algebra` say what a sum, a product or a function
*is*: a float (the `python` engine), an array (`dense`), an interval (the laws), or a piece of text (every printer).
A construct that is added here reaches all of them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import sympy
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from .functions import Where
from .nodes import AtLeastZero, Given, IsZero, Node, Pair, Read, is_integral, is_truth

T = TypeVar("T")
Number = int | float | Fraction


class Algebra(Protocol[T]):
    """What each construct of a formula means in one reading of it."""

    def number(self, value: Number) -> T: ...
    def symbol(self, symbol: Any) -> T: ...
    def pair(self, pair: Pair) -> T: ...
    def sum(self, terms: list[T]) -> T: ...
    def product(self, coefficient: Number, above: list[T], below: list[T]) -> T: ...
    def power(self, base: T, exponent: T) -> T: ...
    def apply(self, function: type[Node], arguments: list[T]) -> T: ...
    def read(self, node: Read, indices: list[T]) -> T: ...
    def truth(self, value: bool) -> T: ...
    def compare(self, left: T, relation: str, right: T) -> T: ...
    def given(self, name: str) -> T: ...
    def both(self, parts: list[T]) -> T: ...
    def either(self, parts: list[T]) -> T: ...
    def negation(self, part: T) -> T: ...


def fold(node: Any, algebra: Algebra[T], memo: dict[Any, T] | None = None) -> T:
    """The value of `node` in `algebra`; equal parts are computed once."""
    memo = {} if memo is None else memo
    if node not in memo:
        memo[node] = _fold(node, algebra, memo)
    return memo[node]


def _fold(node: Any, algebra: Algebra[T], memo: dict[Any, T]) -> T:
    def each(nodes: Any) -> list[T]:
        return [fold(child, algebra, memo) for child in nodes]

    match node:
        case sympy.Number():
            return algebra.number(number(node))
        case Pair():
            return algebra.pair(node)
        case sympy.Symbol():
            return algebra.symbol(node)
        case sympy.Add():
            return algebra.sum(each(in_order(node.args)))
        case sympy.Mul():
            return _product(node, algebra, each)
        case sympy.Pow() if is_reciprocal(node):
            return _product(node, algebra, each)
        case sympy.Pow():
            base, exponent = each(node.args)
            return algebra.power(base, exponent)
        case Read():
            return algebra.read(node, each(node.indices))
        case Where() if hasattr(algebra, "choose"):
            chosen: T = algebra.choose(node, memo)  # an algebra may look at the condition before the branches
            return chosen
        case Node():
            return algebra.apply(node.func, each(node.args))
        case BooleanTrue() | BooleanFalse():
            return algebra.truth(bool(node))
        case AtLeastZero():
            return _compared(sides(node.args[0]), algebra, memo)
        case Not(args=(AtLeastZero() as inner,)):
            return _compared(sides(-inner.args[0], strict=True), algebra, memo)
        case IsZero():
            left, right = balance(node.args[0])
            return _compared((left, "==", right), algebra, memo)
        case Given():
            return algebra.given(node.table)
        case And():
            return algebra.both(each(in_order(node.args)))
        case Or():
            return algebra.either(each(in_order(node.args)))
        case Not():
            return algebra.negation(fold(node.args[0], algebra, memo))
    raise TypeError(f"{type(node).__name__} is no part of a formula: {node}")


def _compared(relation: tuple[Any, str, Any], algebra: Algebra[T], memo: dict[Any, T]) -> T:
    left, sign, right = relation
    return algebra.compare(fold(left, algebra, memo), sign, fold(right, algebra, memo))


def _product(node: Any, algebra: Algebra[T], each: Any) -> T:
    coefficient, above, below = fraction(node)
    return algebra.product(coefficient, each(above), each(below))


@lru_cache(maxsize=16384)
def fraction(node: Any) -> tuple[Number, tuple[Any, ...], tuple[Any, ...]]:
    """A product as coefficient · above / below."""
    coefficient, factors = node.as_coeff_mul(rational=False)
    below = tuple(1 / factor for factor in factors if is_reciprocal(factor))
    above = tuple(factor for factor in factors if not is_reciprocal(factor))
    return number(coefficient), in_order(above), in_order(below)


def number(value: Any) -> Number:
    """A SymPy number as a Python one: int, Fraction or float."""
    if value.is_Integer:
        return int(value)
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else float(value)


def is_reciprocal(node: Any) -> bool:
    """Whether the node is written below a fraction's bar: x⁻¹, x⁻²."""
    return isinstance(node, sympy.Pow) and bool(node.exp.is_Rational and node.exp < 0)


@lru_cache(maxsize=16384)
def in_order(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pairs of vectors first, then what depends on indices, numbers last; sums behind simple factors."""
    return tuple(sorted(nodes, key=_rank))


def _rank(node: Any) -> tuple[Any, ...]:
    has_pair = any(isinstance(part, Pair) for part in node.free_symbols)
    negative = not is_truth(node) and bool(node.could_extract_minus_sign())
    return (bool(node.is_Number), not has_pair, isinstance(node, sympy.Add), negative, sympy.default_sort_key(node))


@lru_cache(maxsize=16384)
def sides(node: Any, *, strict: bool = False) -> tuple[Any, str, Any]:
    """x ≥ 0 (or > 0) as people write it: `j <= i` for i − j ≥ 0, `i - j <= 127` for 127 − i + j ≥ 0."""
    less, more = ("<", ">") if strict else ("<=", ">=")
    constant, positive, negative = _by_sign(node)
    if constant == 0:
        return (positive, more, constant) if negative == 0 else (negative, less, positive)
    if constant == -1 and positive != 0 and negative != 0 and is_integral(node) and not strict:
        return negative, "<", positive
    if negative == 0 or (constant < 0 and positive != 0):
        return positive - negative, more, -constant
    return negative - positive, less, constant


@lru_cache(maxsize=16384)
def balance(node: Any) -> tuple[Any, Any]:
    """x = 0 as two sides without a leading minus: ids[i] = ids[j]."""
    constant, positive, negative = _by_sign(node)
    return (positive, negative) if constant == 0 else (positive - negative, -constant)


def _by_sign(node: Any) -> tuple[Any, Any, Any]:
    """node = constant + positive − negative."""
    constant, terms = node.as_coeff_add()
    negative = [term for term in terms if term.could_extract_minus_sign()]
    positive = [term for term in terms if term not in negative]
    return constant, sympy.Add(*positive), -sympy.Add(*negative)
