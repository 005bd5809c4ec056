"""A formula as one line of Unicode, for a terminal."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..fold import Number, fold
from ..functions import Abs, Elementary, Floor, FloorDiv, Sqrt, Where
from ..nodes import Node, Pair, Read
from .mathematics import equations
from .text import AND, ATOM, COMPARE, OR, POWER, PRODUCT, SIGN, SUM, Piece, Text, ratio

if TYPE_CHECKING:
    from ..formula import Formula

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SUBSCRIPTS = str.maketrans("ijhb", "ᵢⱼₕ_")
RELATIONS = {"<=": "≤", "<": "<", ">=": "≥", ">": ">", "==": "="}


def unicode(node: Any) -> str:
    """An expression or mask."""
    return fold(node, Unicode()).text


def formula_unicode(formula: Formula) -> str:
    """The equations of a formula, one after the other."""
    return ",  ".join(piece.text for piece in equations(formula, Unicode()))


class Unicode(Text):
    """The algebra of Unicode pieces: as the text form, in the signs of mathematics."""

    def number(self, value: Number) -> Piece:
        if isinstance(value, Fraction):
            return Piece(f"{value.numerator}/{value.denominator}".replace("-", "−"), PRODUCT)
        return Piece(repr(value).replace("-", "−"), SIGN if value < 0 else ATOM)

    def pair(self, pair: Pair) -> Piece:
        between = "" if pair.metric is None else fold(pair.metric, self).text
        if pair.word == "dot":
            return Piece(f"qᵢᵀ {between} kⱼ", PRODUCT) if between else Piece("qᵢ·kⱼ", SIGN)
        if pair.word == "cosine":
            return Piece("cos∠(qᵢ, kⱼ)", ATOM)
        return Piece(f"(qᵢ−kⱼ)ᵀ {between} (qᵢ−kⱼ)", PRODUCT) if between else Piece("‖qᵢ−kⱼ‖²", POWER)

    def sum(self, terms: list[Piece]) -> Piece:
        first, *rest = (term.within(SUM) for term in terms)
        return Piece(first + "".join(f" − {t[1:]}" if t.startswith("−") else f" + {t}" for t in rest), SUM)

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        top, bottom = ratio(coefficient)
        over = ([self.number(abs(top))] if abs(top) != 1 or not above else []) + above
        under = ([self.number(bottom)] if bottom != 1 else []) + below
        text = ("−" if coefficient < 0 else "") + " ".join(piece.within(PRODUCT) for piece in over)
        if under:
            joined = " ".join(piece.within(SIGN) for piece in under)
            text += f" / {joined}" if len(under) == 1 else f" / ({joined})"
        return Piece(text, PRODUCT)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        raised = exponent.text.translate(SUPERSCRIPTS) if exponent.text.isdigit() else f"^{exponent.within(ATOM)}"
        return Piece(base.within(ATOM) + raised, POWER)

    def apply(self, function: type[Node], arguments: list[Piece]) -> Piece:
        assert issubclass(function, Elementary)
        texts = [argument.text for argument in arguments]
        if function is Sqrt:
            return Piece(f"√{arguments[0].within(ATOM)}", ATOM)
        if function is Abs:
            return Piece(f"|{texts[0]}|", ATOM)
        if function is Floor:
            return Piece(f"⌊{texts[0]}⌋", ATOM)
        if function is FloorDiv:
            return Piece(f"⌊{arguments[0].within(PRODUCT)} / {arguments[1].within(SIGN)}⌋", ATOM)
        if function is Where:
            return Piece(f"({texts[1]} if {texts[0]} else {texts[2]})", ATOM)
        return super().apply(function, arguments)

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        places = f"[{', '.join(place.text for place in indices)}]" if indices else ""
        return Piece(node.table + places, ATOM)

    def compare(self, left: Piece, relation: str, right: Piece) -> Piece:
        return Piece(f"{left.text} {RELATIONS[relation]} {right.text}", COMPARE)

    def given(self, name: str) -> Piece:
        return Piece(f"{name}ᵢⱼ", ATOM)

    def both(self, parts: list[Piece]) -> Piece:
        return Piece(" and ".join(part.text if part.bond != OR else f"({part.text})" for part in parts), AND)

    def either(self, parts: list[Piece]) -> Piece:
        return Piece(" or ".join(part.text for part in parts), OR)

    def negation(self, part: Piece) -> Piece:
        return Piece(f"not {part.within(ATOM)}", SIGN)

    # -- equations -----------------------------------------------------------------------------------------------

    def indexed(self, name: str, indices: str) -> Piece:
        return Piece(name + indices.translate(SUBSCRIPTS), ATOM)

    def total(self, index: str, condition: Piece | None, body: Piece) -> Piece:
        under = index.translate(SUBSCRIPTS) if condition is None else f"[{index}: {condition.text}]"
        return Piece(f"Σ{under} {body.within(PRODUCT)}", PRODUCT)

    def softmax(self, score: Piece) -> Piece:
        return Piece(f"softmaxⱼ({score.text})", ATOM)

    def called(self, name: str, argument: Piece) -> Piece:
        return Piece(f"{name}({argument.text})", ATOM)

    def ratio(self, above: Piece, below: Piece) -> Piece:
        return Piece(f"{above.within(PRODUCT)} / {below.within(SIGN)}", PRODUCT)

    def beside(self, left: Piece, right: Piece) -> Piece:
        factor = f"({left.text})" if "/" in left.text and left.bond == PRODUCT else left.within(PRODUCT)
        return Piece(f"{factor} {right.text}", PRODUCT)

    def equation(self, left: Piece, right: Piece) -> Piece:
        return Piece(f"{left.text} = {right.text}", COMPARE)
