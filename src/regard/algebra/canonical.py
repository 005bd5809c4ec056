"""Canonical form: two ways to write one formula become one tree, so that equality and hashing mean something.

SymPy orders sums and products and collects equal terms. Added here: floats that a short decimal writes exactly
become rationals; half powers become our `sqrt`; a sum inside a product gives up its common factor and its sign;
order relations become x ≥ 0, in lowest terms where x is an integer; negation moves inward to the relations.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from sympy.logic.boolalg import And, Boolean, Not, Or

from .errors import FormulaError
from .functions import Abs, Exp, Log, Sigmoid, Sqrt
from .nodes import AtLeastZero, IsZero, is_integral

LARGEST_POWER = 1024
LARGEST_BITS = 1023  # a number beyond this has no float
LARGEST_EXPANSION = 256  # terms that multiplying out may give


def real(value: float) -> Any:
    """A float as SymPy sees it: rational if its shortest decimal is exact (0.5, 0.375), else itself (0.1)."""
    if not math.isfinite(value):
        advice = "what must not count belongs in mask=, anything else in a table"
        raise FormulaError(f"number: a formula holds finite numbers; got {value!r}; {advice}")
    exact = Fraction(value)
    return sympy.Rational(exact.numerator, exact.denominator) if Fraction(repr(value)) == exact else sympy.Float(value)


@lru_cache(maxsize=16384)
def canonical(node: Any) -> Any:
    """The one tree that stands for all ways to write `node`."""
    if node.args and not node.is_Symbol:
        rebuilt = node.func(*(canonical(arg) if isinstance(arg, sympy.Expr | Boolean) else arg for arg in node.args))
        if rebuilt != node:
            return canonical(rebuilt)
    settled = _settle(node)
    return node if settled == node and settled.func == node.func else canonical(settled)


def _settle(node: Any) -> Any:
    """One step towards canonical form at the top of the tree."""
    match node:
        case sympy.Float():
            return real(float(node))
        case sympy.Number() if node.is_Rational:
            return _bounded(node)
        case sympy.Pow():
            return _settle_power(node)
        case sympy.Mul():
            return _settle_product(node)
        case sympy.Abs():
            return Abs(*node.args)
        case sympy.log():
            return Log(*node.args)
        case sympy.exp():
            return Exp(*node.args)
        case AtLeastZero():
            return at_least_zero(node.args[0])
        case IsZero():
            return is_zero(node.args[0])
        case Not():
            return negation(node.args[0])
    if node in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I):
        raise FormulaError(f"number: a formula holds finite real numbers; its constants give {node}")
    return node


def _bounded(value: Any) -> Any:
    bits = max(abs(value.p).bit_length(), value.q.bit_length())
    if bits > LARGEST_BITS:
        raise FormulaError(f"number: at most {LARGEST_BITS} bits; got one of {bits}")
    return value


def _settle_power(node: Any) -> Any:
    base, exponent = node.args
    if exponent.is_Number and abs(exponent) > LARGEST_POWER:
        raise FormulaError(f"**: exponents up to {LARGEST_POWER}; got {exponent}; write exp(…)")
    if base.is_Rational and not base.is_Integer and not exponent.is_Number:
        return base.p**exponent * base.q**-exponent
    if abs(exponent) == sympy.Rational(1, 2):
        return Sqrt(base) ** sympy.sign(exponent)
    if isinstance(base, Sqrt) and exponent.is_Integer and exponent % 2 == 0 and base.args[0].is_nonnegative:
        return base.args[0] ** (exponent / 2)
    if exponent == -1 and base.is_Add and len(base.args) == 2 and base.args[0] == 1 and isinstance(base.args[1], Exp):
        return Sigmoid(-base.args[1].args[0])  # 1 / (1 + eˣ), which does not overflow
    if base.is_Add and exponent.is_Integer:
        content, primitive = _primitive(base)
        return node if content == 1 else content**exponent * primitive**exponent
    if base == sympy.E:
        return Exp(exponent)
    return node


def _settle_product(node: Any) -> Any:
    """A sum inside a product gives up its common factor: y (2x + 2) = 2 y (x + 1)."""
    coefficient, factors = node.as_coeff_mul(rational=False)
    if coefficient != 1 and len(factors) == 1:
        return node
    for factor in factors:
        if isinstance(factor, Exp) and Sigmoid(-factor.args[0]) in factors:  # eˣ σ(−x) = σ(x)
            rest = (other for other in factors if other not in (factor, Sigmoid(-factor.args[0])))
            return sympy.Mul(coefficient, Sigmoid(factor.args[0]), *rest)
    if abs(coefficient) != 1:
        rounded = [factor for factor in factors if factor.is_Add and (coefficient.is_Float or _has_floats(factor))]
        if rounded:  # a float gives no common factor up, so it takes the number in
            first = min(rounded, key=sympy.default_sort_key)
            return sympy.Mul(coefficient * first, *(factor for factor in factors if factor != first))
    split = [_primitive(factor) if factor.is_Add else (sympy.S.One, factor) for factor in factors]
    if all(content == 1 for content, _ in split):
        return node
    return sympy.Mul(coefficient, *(content for content, _ in split), *(part for _, part in split))


def _has_floats(total: Any) -> bool:
    return any(term.as_coeff_Mul()[0].is_Float for term in total.args)


def _primitive(node: Any) -> tuple[Any, Any]:
    content, primitive = (sympy.S.One, node) if _has_floats(node) else node.primitive()
    return (-content, -primitive) if primitive.could_extract_minus_sign() else (content, primitive)


# -- truths ----------------------------------------------------------------------------------------------------


def at_least_zero(x: Any) -> Any:
    """x ≥ 0, in lowest terms where x is an integer: 2i − 2j + 1 ≥ 0 is i − j ≥ 0."""
    x = _over_integers(x)
    if x.is_Number:
        return sympy.true if x >= 0 else sympy.false
    if not is_integral(x):
        return AtLeastZero(x if x.is_Add and _has_floats(x) else x.primitive()[1])
    constant, rest = x.as_coeff_Add()
    content, primitive = rest.primitive()
    return AtLeastZero(primitive + sympy.Integer(constant // content))


def is_zero(x: Any) -> Any:
    """x = 0, with one sign of the two."""
    x = _over_integers(x)
    if x.is_Number:
        return sympy.true if x == 0 else sympy.false
    if is_integral(x):
        constant, rest = x.as_coeff_Add()
        content, primitive = rest.primitive()
        if constant % content:
            return sympy.false  # 2i − 2j = 1 has no solution
        x = primitive + constant / content
    return IsZero(-x if x.could_extract_minus_sign() else x)


def negation(truth: Any) -> Any:
    """Not, moved inward as far as it goes."""
    match truth:
        case And():
            return Or(*(negation(part) for part in truth.args))
        case Or():
            return And(*(negation(part) for part in truth.args))
        case Not():
            return truth.args[0]
        case AtLeastZero() if is_integral(truth.args[0]):
            return at_least_zero(-truth.args[0] - 1)
        case _:
            return Not(truth)


def _over_integers(x: Any) -> Any:
    """x multiplied out, and by its denominators where that makes it an integer: i/2 − j becomes i − 2j."""
    x = multiplied_out(x)
    scale = math.lcm(*(term.as_coeff_Mul()[0].q for term in x.as_ordered_terms() if term.as_coeff_Mul()[0].is_Rational))
    scaled = multiplied_out(x * scale)
    return scaled if is_integral(scaled) else x


def multiplied_out(x: Any, *, powers: bool = False) -> Any:
    """Products of sums as sums of products (with `powers`, powers of sums too), unless that would be very many.

    What stands below a fraction's bar or inside a function is left alone.
    """
    terms = _terms(x, powers=powers)
    return x if terms is None else sympy.Add(*terms)


def _terms(x: Any, *, powers: bool) -> list[Any] | None:
    """The terms of x multiplied out; None where they are too many."""
    if x.is_Add:
        parts = [_terms(arg, powers=powers) for arg in x.args]
        return None if any(part is None for part in parts) else [term for part in parts if part for term in part]
    factors = [x]
    if x.is_Mul:
        factors = list(x.args)
    elif powers and x.is_Pow and x.base.is_Add and x.exp.is_Integer and 0 < x.exp <= LARGEST_EXPANSION:
        factors = [x.base] * int(x.exp)
    if factors == [x]:
        return [x]
    product = [sympy.S.One]
    for factor in factors:
        inside = _terms(factor, powers=powers)
        if inside is None or len(product) * len(inside) > LARGEST_EXPANSION:
            return None
        collected = sympy.Add(*(a * b for a in product for b in inside))
        product = list(sympy.Add.make_args(collected))
    return product
