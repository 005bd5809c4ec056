"""One walk over a formula, many readings of it.

`fold(node, algebra)` visits the tree once, bottom up, and lets `algebra` say what a sum, a product or a function
*is*: a float (the `python` engine), an array (`dense`), an interval (the laws), or a piece of text (every printer).
A construct that is added here reaches all of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, TypeVar

import sympy
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from .nodes import AtLeastZero, Given, IsZero, Node, Pair, Read, is_integral

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
            return algebra.power(*each(node.args))
        case Read():
            return algebra.read(node, each(node.indices))
        case Node():
            return algebra.apply(node.func, each(node.args))
        case BooleanTrue() | BooleanFalse():
            return algebra.truth(bool(node))
        case AtLeastZero():
            left, relation, right = sides(node.args[0])
            return algebra.compare(*each([left]), relation, *each([right]))
        case Not(args=(AtLeastZero() as inner,)):
            left, relation, right = sides(-inner.args[0], strict=True)
            return algebra.compare(*each([left]), relation, *each([right]))
        case IsZero():
            left, right = balance(node.args[0])
            return algebra.compare(*each([left]), "==", *each([right]))
        case Given():
            return algebra.given(node.table)
        case And():
            return algebra.both(each(in_order(node.args)))
        case Or():
            return algebra.either(each(in_order(node.args)))
        case Not():
            return algebra.negation(*each(node.args))
    raise TypeError(f"{type(node).__name__} is no part of a formula: {node}")


def _product(node: Any, algebra: Algebra[T], each: Any) -> T:
    coefficient, factors = node.as_coeff_mul(rational=False)
    below = [1 / factor for factor in factors if is_reciprocal(factor)]
    above = [factor for factor in factors if not is_reciprocal(factor)]
    return algebra.product(number(coefficient), each(in_order(above)), each(in_order(below)))


def number(value: Any) -> Number:
    """A SymPy number as a Python one: int, Fraction or float."""
    if value.is_Integer:
        return int(value)
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else float(value)


def is_reciprocal(node: Any) -> bool:
    """Whether the node is written below a fraction's bar: x⁻¹, x⁻²."""
    return isinstance(node, sympy.Pow) and bool(node.exp.is_Rational and node.exp < 0)


def in_order(nodes: Any) -> list[Any]:
    """Pairs of vectors first, then what depends on indices, numbers last; sums behind simple factors."""
    return sorted(nodes, key=_rank)


def _rank(node: Any) -> tuple[Any, ...]:
    has_pair = any(isinstance(part, Pair) for part in node.free_symbols)
    negative = not isinstance(node, sympy.logic.boolalg.Boolean) and bool(node.could_extract_minus_sign())
    return (bool(node.is_Number), not has_pair, isinstance(node, sympy.Add), negative, sympy.default_sort_key(node))


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
