"""The text form: ordinary Python call syntax, which `parse` reads back to an equal formula."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from sympy.logic.boolalg import Not

from ..fold import Number, fold
from ..functions import Elementary, FloorDiv, Mod
from ..nodes import IsZero, Node, Pair, Read

if TYPE_CHECKING:
    from ..formula import Formula
    from ..weights import Weight

COMPARE, OR, AND, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)  # how tightly Python binds


class Piece(NamedTuple):
    """A part of a text and how tightly it binds."""

    text: str
    bond: int

    def within(self, bond: int) -> str:
        """The text, in brackets if it binds less tightly than its surroundings."""
        return self.text if self.bond >= bond else f"({self.text})"


class Text:
    """The algebra of pieces of text. Code flavours change the names of things."""

    def number(self, value: Number) -> Piece:
        if isinstance(value, Fraction):
            return Piece(f"{value.numerator} / {value.denominator}", PRODUCT)
        return Piece(repr(value), SIGN if value < 0 else ATOM)

    def symbol(self, symbol: Any) -> Piece:
        return Piece(symbol.name, ATOM)

    def pair(self, pair: Pair) -> Piece:
        if pair.metric is None:
            return Piece(pair.word, ATOM)
        return Piece(f"{pair.word}({fold(pair.metric, self).text})", ATOM)

    def sum(self, terms: list[Piece]) -> Piece:
        first, *rest = (term.within(SUM) for term in terms)
        signed = [f" - {term[1:]}" if term.startswith("-") else f" + {term}" for term in rest]
        return Piece(first + "".join(signed), SUM)

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        top, bottom = ratio(coefficient)
        sign = "-" if top < 0 else ""
        over = [factor.within(PRODUCT + (place > 0)) for place, factor in enumerate(above)]
        if abs(top) != 1 or not over:
            over = [repr(abs(top)), *(factor.within(PRODUCT + 1) for factor in above)]
        elif sign:
            over[0] = above[0].within(POWER)
        under = [factor.within(SIGN) for factor in below]
        text = sign + " * ".join(over)
        if bottom != 1:
            apart = any(factor.bond == SUM for factor in below)  # beside a sum, reading would multiply it in
            text, under = (f"{text} / {bottom}", under) if apart else (text, [repr(bottom), *under])
        if under:
            text += f" / {under[0]}" if len(under) == 1 else f" / ({' * '.join(under)})"
        return Piece(text, PRODUCT if len(over) + len(under) > 1 or bottom != 1 else SIGN)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"{base.within(ATOM)} ** {exponent.within(SIGN)}", POWER)

    def apply(self, function: type[Node], arguments: list[Piece]) -> Piece:
        assert issubclass(function, Elementary)
        if function in (FloorDiv, Mod):
            left, right = arguments
            first = f"({left.text})" if left.text.startswith("-") else left.within(PRODUCT)  # a sum would take the sign
            return Piece(f"{first} {function.name} {right.within(SIGN)}", PRODUCT)
        return Piece(f"{function.name}({', '.join(argument.text for argument in arguments)})", ATOM)

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        places = f"[{', '.join(place.text for place in indices)}]" if indices else ""
        return Piece(f'table("{node.table}"){places}', ATOM)

    def truth(self, value: bool) -> Piece:
        return Piece("everywhere", ATOM) if value else Piece("~everywhere", SIGN)

    def compare(self, left: Piece, relation: str, right: Piece) -> Piece:
        if relation == "==":
            return Piece(f"equal({left.text}, {right.text})", ATOM)
        return Piece(f"{left.within(SUM)} {relation} {right.within(SUM)}", COMPARE)

    def given(self, name: str) -> Piece:
        return Piece(f'given("{name}")', ATOM)

    def both(self, parts: list[Piece]) -> Piece:
        return Piece(" & ".join(part.within(AND) for part in parts), AND)

    def either(self, parts: list[Piece]) -> Piece:
        return Piece(" | ".join(part.within(OR) for part in parts), OR)

    def negation(self, part: Piece) -> Piece:
        return Piece(f"~{part.within(SIGN)}", SIGN)


def ratio(value: Number) -> tuple[int | float, int]:
    """A number as numerator and denominator; what is no fraction has denominator 1."""
    return (value.numerator, value.denominator) if isinstance(value, Fraction) else (value, 1)


def text(node: Any) -> str:
    """An expression or mask as `parse` reads it."""
    return fold(node, Text()).text


def weight_text(weight: Weight) -> str:
    """A weight: `softmax`, `share(relu(s) ** 2)`, `each(sigmoid(s))`."""
    from ..weights import softmax

    if weight == softmax:
        return "softmax"
    if weight.over is None:
        return f"each({weight.psi!r})"
    over = weight.over if weight.over != softmax.over else None
    options: list[tuple[str, object]] = [("sink", weight.sink), ("over", over), ("among", weight.among)]
    said = [f"{name}={value!r}" for name, value in options if value is not None]
    return f"share({', '.join([repr(weight.psi), *said])})"


def _mask_text(node: Any) -> str:
    """A mask where only a mask can stand: a table is one by itself, true where it is not 0."""
    if isinstance(node, Not) and isinstance(node.args[0], IsZero) and isinstance(node.args[0].args[0], Read):
        node = node.args[0].args[0]
    return text(node)


def formula_text(formula: Formula) -> str:
    """A whole attention: the weight called on the score, `softmax(dot / sqrt(d), mask=j <= i)`."""
    mask = "" if formula.mask is None else f", mask={_mask_text(formula.mask.node)}"
    return f"{weight_text(formula.weight)}({formula.score!r}{mask})"
