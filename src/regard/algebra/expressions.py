"""What people write: expressions and masks, with the operators of Python, and the door that everything passes.

Only our own expressions, `int` and `float` come in. SymPy would evaluate a string and freeze a tensor into a
constant without a word; here both are refused, with the way to say what was meant.
"""

from __future__ import annotations

from typing import Any, NoReturn

import sympy
from sympy.logic.boolalg import And, Or

from .canonical import at_least_zero, canonical, is_zero, negation, real
from .errors import FormulaError, KindError
from .functions import Abs, Floor, FloorDiv, Mod
from .nodes import Read, is_integral, is_whole, measure, symbols

LARGEST_POWER = 1024
DEEPEST, LARGEST = 100, 4000  # levels and parts of one expression


class Expression:
    """A real number that depends on the query, the key and their places. Immutable, hashable, printable."""

    __slots__ = ("node",)
    __array_ufunc__ = None  # NumPy then leaves `array * expression` to us, and we refuse it
    __iter__ = None
    node: Any

    def __init__(self, node: Any) -> None:
        object.__setattr__(self, "node", node)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("an expression cannot be changed; write a new one")

    def __add__(self, other: object) -> Expression:
        return expression(self.node + operand(other, "+"))

    def __radd__(self, other: object) -> Expression:
        return expression(operand(other, "+") + self.node)

    def __sub__(self, other: object) -> Expression:
        return expression(self.node - operand(other, "-"))

    def __rsub__(self, other: object) -> Expression:
        return expression(operand(other, "-") - self.node)

    def __mul__(self, other: object) -> Expression:
        return expression(self.node * operand(other, "*"))

    def __rmul__(self, other: object) -> Expression:
        return expression(operand(other, "*") * self.node)

    def __truediv__(self, other: object) -> Expression:
        return expression(_quotient(self.node, operand(other, "/")))

    def __rtruediv__(self, other: object) -> Expression:
        return expression(_quotient(operand(other, "/"), self.node))

    def __floordiv__(self, other: object) -> Expression:
        return expression(_floor_quotient(self.node, operand(other, "//")))

    def __rfloordiv__(self, other: object) -> Expression:
        return expression(_floor_quotient(operand(other, "//"), self.node))

    def __mod__(self, other: object) -> Expression:
        return expression(_remainder(self.node, operand(other, "%")))

    def __rmod__(self, other: object) -> Expression:
        return expression(_remainder(operand(other, "%"), self.node))

    def __pow__(self, other: object) -> Expression:
        return expression(_power(self.node, operand(other, "**")))

    def __rpow__(self, other: object) -> Expression:
        return expression(_power(operand(other, "**"), self.node))

    def __neg__(self) -> Expression:
        return expression(-self.node)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return expression(Abs(self.node))

    def __le__(self, other: object) -> Mask:
        return Mask(at_least_zero(operand(other, "<=") - self.node))

    def __ge__(self, other: object) -> Mask:
        return Mask(at_least_zero(self.node - operand(other, ">=")))

    def __lt__(self, other: object) -> Mask:
        return ~(self >= other)

    def __gt__(self, other: object) -> Mask:
        return ~(self <= other)

    def __and__(self, other: object) -> Mask:
        return mask(self) & other

    __rand__ = __and__

    def __or__(self, other: object) -> Mask:
        return mask(self) | other

    __ror__ = __or__

    def __invert__(self) -> Mask:
        return ~mask(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash((Expression, self.node))

    def __bool__(self) -> NoReturn:
        raise KindError(f"condition: {self!r} has no truth value; compare it, as in j <= i, and join with & | ~")

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from .parsing import parse

        return parse, (repr(self),)

    def __repr__(self) -> str:
        from .printing.text import text

        return text(self.node)

    def latex(self) -> str:
        """The expression as LaTeX."""
        from .printing.latex import latex

        return latex(self.node)


class Mask:
    """Which pairs (i, j) are admitted. Immutable, hashable; join with `&`, `|`, `~`."""

    __slots__ = ("node",)
    __array_ufunc__ = None
    node: Any

    def __init__(self, node: Any) -> None:
        object.__setattr__(self, "node", canonical(node))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a mask cannot be changed; write a new one")

    def __and__(self, other: object) -> Mask:
        return Mask(And(self.node, mask(other).node))

    __rand__ = __and__

    def __or__(self, other: object) -> Mask:
        return Mask(Or(self.node, mask(other).node))

    __ror__ = __or__

    def __invert__(self) -> Mask:
        return Mask(negation(self.node))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash((Mask, self.node))

    def __bool__(self) -> NoReturn:
        raise KindError(
            f"mask: {self!r} has no single truth value; write & | ~ for and, or, not, "
            "and (a <= b) & (b <= c) for a <= b <= c"
        )

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from .parsing import parse

        return parse, (repr(self),)

    def __repr__(self) -> str:
        from .printing.text import text

        return text(self.node)

    def latex(self) -> str:
        """The mask as LaTeX."""
        from .printing.latex import latex

        return latex(self.node)


# -- the door --------------------------------------------------------------------------------------------------


def expression(node: Any) -> Expression:
    """A SymPy tree as an expression in canonical form."""
    made = canonical(node)
    depth, size = measure(made)
    if depth > DEEPEST or size > LARGEST:
        raise FormulaError(
            f"expression: at most {DEEPEST} levels and {LARGEST} parts; got {depth} and {size}; "
            "put what varies into a table"
        )
    return Expression(made)


def operand(value: object, place: str) -> Any:
    """The SymPy tree of something that a person wrote at `place`, or an error that says what to write instead."""
    if isinstance(value, Expression):
        return value.node
    if isinstance(value, bool | Mask):
        raise KindError(f"{place}: numbers and expressions go in; got {value!r}; where(mask, 1, 0) makes a number of a mask")
    if isinstance(value, int):
        return canonical(sympy.Integer(value))
    if isinstance(value, float):
        return real(float(value))
    raise KindError(f"{place}: expressions, int and float go in; got {_described(value)}; {_advice(value)}")


def mask(value: object) -> Mask:
    """A mask that a person wrote, or an error that says what to write instead."""
    if isinstance(value, Mask):
        return value
    if isinstance(value, Expression) and isinstance(value.node, Read):
        return Mask(negation(is_zero(value.node)))
    if isinstance(value, bool):
        raise KindError(
            f"mask: a relation between expressions, as in j <= i; got the plain bool {value}, which == gives; "
            "write equal(a, b) for a = b"
        )
    if isinstance(value, Expression):
        raise KindError(f"mask: a relation, as in j <= i; got the number {value!r}; write equal(…, 0) or a comparison")
    advice = 'given("mask") admits pairs by a boolean array of the call' if hasattr(value, "shape") else "write j <= i"
    raise KindError(f"mask: a relation between expressions, as in j <= i; got {_described(value)}; {advice}")


def index(value: object, place: str) -> Any:
    """The SymPy tree of a table index: an integer, or a table that holds integers, or a floor."""
    node = operand(value, place)
    if is_whole(node):
        return node
    shown = repr(Expression(node))
    raise FormulaError(f"{place}: an index is an integer made with + - * // %; got {shown}; write floor({shown})")


def equal(a: object, b: object) -> Mask:
    """The pairs where a = b. (`==` compares formulas, and gives a plain bool.)"""
    return Mask(is_zero(operand(a, "equal") - operand(b, "equal")))


def depends_on(value: Expression | Mask, *nodes: Any) -> bool:
    """Whether any of the symbols stands in the expression."""
    return not symbols(value.node).isdisjoint(nodes)


def _quotient(a: Any, b: Any) -> Any:
    if b == 0:
        raise FormulaError(f"/: the divisor is 0; got {Expression(a)!r} / 0")
    return a / b


def _floor_quotient(a: Any, b: Any) -> Any:
    integers = is_integral(a, reads=True) and is_integral(b, reads=True)
    return FloorDiv(a, b) if integers else Floor(canonical(_quotient(a, b)))


def _remainder(a: Any, b: Any) -> Any:
    integers = is_integral(a, reads=True) and is_integral(b, reads=True)
    return Mod(a, b) if integers else a - b * Floor(canonical(_quotient(a, b)))


def _power(base: Any, exponent: Any) -> Any:
    if exponent.is_Number and abs(exponent) > LARGEST_POWER:
        raise FormulaError(f"**: exponents up to {LARGEST_POWER}; got {Expression(exponent)!r}; write exp(…)")
    if base.is_Number and exponent.is_Number:
        if base == 0 and exponent < 0:
            raise FormulaError(f"**: 0 has no negative power; got 0 ** {Expression(exponent)!r}")
        if base < 0 and not exponent.is_Integer:
            raise FormulaError(f"**: a negative number has whole powers only; got {Expression(base**1)!r} ** {exponent}")
        if base.is_Rational and max(base.p.bit_length(), base.q.bit_length()) * abs(exponent) > LARGEST_POWER + 1:
            raise FormulaError(f"**: the result has more than {LARGEST_POWER} bits; got {base} ** {exponent}")
    return base**exponent


def _described(value: object) -> str:
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    shape = getattr(value, "shape", None)
    kind = f"{type(value).__module__}.{type(value).__name__}"
    return f"a {kind} of shape {tuple(shape)}" if shape is not None else f"a {kind}"


def _advice(value: object) -> str:
    if isinstance(value, str):
        return 'table("name") reads an array of the call; regard.parse(text) reads a formula'
    if isinstance(value, sympy.Basic):
        return 'foreign symbols mean nothing here: use i, j, h, b, H, d, n, or table("name")'
    if getattr(value, "shape", None) == ():
        return 'float(x) for a constant, or table("name") to pass it with the call'
    if hasattr(value, "shape"):
        return 'write table("name")[…] and pass the array by that name'
    return "use dot, sqdist, cosine, i, j, h, b, H, d, n, numbers and tables"
