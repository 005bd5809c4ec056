"""What people write: expressions and masks, with the operators of Python, and the door that everything passes.

Only our own expressions, `int` and `float` come in. SymPy would evaluate a string and freeze a tensor into a
constant without a word; here both are refused, with the way to say what was meant.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import sympy
from sympy.logic.boolalg import And, Or

from .canonical import LARGEST_BITS, LARGEST_POWER, at_least_zero, canonical, is_zero, negation, real
from .errors import FormulaError, KindError
from .functions import FUNCTIONS, Abs, Floor, FloorDiv, Mod
from .nodes import Read, is_integral, is_whole, measure

DEEPEST, LARGEST = 40, 1000  # levels and parts of one expression
NUMPY_OPERATORS = {  # what NumPy calls the operators of Python
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


class Written:
    """What a person wrote, as a tree: it cannot be changed, prints as it is read, and travels as its text."""

    __slots__ = ("node",)
    node: Any

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("an expression or mask cannot be changed; write a new one")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from .parsing import parse

        return parse, (repr(self),)

    def __repr__(self) -> str:
        from .printing.text import text

        return text(self.node)

    def latex(self) -> str:
        """LaTeX of it."""
        from .printing.latex import latex

        return latex(self.node)


class Expression(Written):
    """A real number that depends on the query, the key and their places. Immutable, hashable, printable."""

    __slots__ = ()
    __iter__ = None

    def __init__(self, node: Any) -> None:
        if not isinstance(node, sympy.Basic):
            raise KindError(f"Expression: made by writing one, as in dot / sqrt(d); got {described(node)}")
        object.__setattr__(self, "node", node)

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

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy asks here for `array * expression` and for `np.sqrt(expression)`."""
        name = function.__name__
        if method == "__call__" and name in NUMPY_OPERATORS:
            left, right = (value if isinstance(value, Expression) else _number(value, name) for value in inputs)
            return NUMPY_OPERATORS[name](left, right)
        own = f"regard.{name}" if name in FUNCTIONS else "functions of its own, such as regard.sqrt"
        raise KindError(f"np.{name}: takes arrays; got {self!r}; for formulas regard has {own}")

    def __getitem__(self, index: object) -> Expression:
        raise KindError(f'[…]: only a table has entries, all indices at once: table("bias")[h, i - j]; got {self!r}[…]')

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


class Mask(Written):
    """Which pairs (i, j) are admitted. Immutable, hashable; join with `&`, `|`, `~`."""

    __slots__ = ()
    __array_ufunc__ = None

    def __init__(self, node: Any) -> None:
        object.__setattr__(self, "node", _bounded(canonical(node), "mask"))

    def __and__(self, other: object) -> Mask:
        return Mask(And(self.node, mask(other).node))

    __rand__ = __and__

    def __or__(self, other: object) -> Mask:
        return Mask(Or(self.node, mask(other).node))

    __ror__ = __or__

    def __invert__(self) -> Mask:
        return Mask(negation(self.node))

    def _no_number(self, other: object) -> NoReturn:
        operand(self, "+")  # refuses it, and says how to make a number of it
        raise KindError(f"mask: {self!r} is no number")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash((Mask, self.node))

    def __bool__(self) -> NoReturn:
        raise KindError(
            f"mask: {self!r} has no single truth value; write & | ~ for and, or, not, (a <= b) & (b <= c) for "
            "a <= b <= c, and where, minimum, maximum for if, min, max"
        )


# -- the door --------------------------------------------------------------------------------------------------


def expression(node: Any) -> Expression:
    """A SymPy tree as an expression in canonical form."""
    return Expression(_bounded(canonical(node), "expression"))


def _bounded(node: Any, place: str) -> Any:
    depth, size = measure(node)
    if depth > DEEPEST or size > LARGEST:
        raise FormulaError(
            f"{place}: at most {DEEPEST} levels and {LARGEST} parts; got {depth} and {size}; "
            "put what varies into a table"
        )
    return node


def operand(value: object, place: str) -> Any:
    """The SymPy tree of something that a person wrote at `place`, or an error that says what to write instead."""
    if isinstance(value, Expression):
        return value.node
    if isinstance(value, bool | Mask):
        whole = place in ("score", "weight")
        advice = "a mask goes in as mask=" if whole else "where(mask, 1, 0) makes a number of a mask"
        raise KindError(f"{place}: numbers and expressions go in; got {value!r}; {advice}")
    if isinstance(value, int):
        return canonical(sympy.Integer(value))
    if isinstance(value, float):
        return real(float(value))
    raise KindError(f"{place}: expressions, int and float go in; got {described(value)}; {_advice(value)}")


def _number(value: object, place: str) -> Expression:
    return Expression(operand(value, place))


def mask(value: object, place: str = "mask") -> Mask:
    """A mask that a person wrote at `place`, or an error that says what to write instead."""
    if isinstance(value, Mask):
        return value
    if isinstance(value, Expression) and isinstance(value.node, Read):
        return Mask(negation(is_zero(value.node)))
    if isinstance(value, bool):
        raise KindError(
            f"{place}: a relation between expressions, as in j <= i; got the plain bool {value}, which == and != give; "
            "write equal(a, b) for a = b, and ~equal(a, b) for a ≠ b"
        )
    if isinstance(value, Expression):
        raise KindError(f"{place}: a relation, as in j <= i; got the number {value!r}; write equal(…, 0) or compare it")
    advice = 'given("mask") admits pairs by a boolean array of the call' if hasattr(value, "shape") else "write j <= i"
    raise KindError(f"{place}: a relation between expressions, as in j <= i; got {described(value)}; {advice}")


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
            raise FormulaError(f"**: a negative number has whole powers only; got ({base}) ** ({exponent})")
        if base.is_Rational and (max(base.p.bit_length(), base.q.bit_length()) - 1) * abs(exponent) > LARGEST_BITS:
            raise FormulaError(f"**: the result has more than {LARGEST_BITS} bits; got ({base}) ** ({exponent})")
    return base**exponent


def described(value: object) -> str:
    """What was given, in a few words: an array by its shape, a string by its beginning."""
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    shape = getattr(value, "shape", None)
    module = type(value).__module__
    kind = type(value).__name__ if module == "builtins" else f"{module}.{type(value).__name__}"
    return f"a {kind} of shape {tuple(shape)}" if shape is not None else f"a {kind}"


def _advice(value: object) -> str:
    if isinstance(value, str):
        return (
            'table("name") reads an array of the call; regard.parse(text) reads a formula, regard.softmax is a weight'
        )
    if isinstance(value, sympy.Basic):
        return 'foreign symbols mean nothing here: use i, j, h, b, H, d, n, or table("name")'
    if getattr(value, "shape", None) == ():
        return 'int(x) or float(x) for a constant, or table("name") to pass it with the call'
    if hasattr(value, "shape"):
        return 'write table("name")[…] and pass the array by that name'
    return "use dot, sqdist, cosine, i, j, h, b, H, d, n, numbers and tables"
