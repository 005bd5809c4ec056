"""A formula as LaTeX."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..fold import Number, fold
from ..functions import Elementary
from ..nodes import Node, Pair, Read
from .mathematics import equations
from .text import AND, ATOM, COMPARE, OR, POWER, PRODUCT, SIGN, SUM, Piece, ratio

if TYPE_CHECKING:
    from ..formula import Formula

RELATIONS = {"<=": r"\le", "<": "<", ">=": r"\ge", ">": ">", "==": "="}
GREEK = {"ψ": r"\psi"}


def latex(node: Any) -> str:
    """An expression or mask."""
    return fold(node, Latex()).text


def formula_latex(formula: Formula) -> str:
    """The equations of a formula, one after the other."""
    return r",\quad ".join(piece.text for piece in equations(formula, Latex()))


class Latex:
    """The algebra of LaTeX pieces."""

    def number(self, value: Number) -> Piece:
        if isinstance(value, Fraction):
            sign = "-" if value < 0 else ""
            return Piece(rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}", SIGN if sign else PRODUCT)
        mantissa, _, power = repr(value).partition("e")
        text = rf"{mantissa} \cdot 10^{{{int(power)}}}" if power else mantissa
        return Piece(text, SIGN if value < 0 else PRODUCT if power else ATOM)

    def symbol(self, symbol: Any) -> Piece:
        return Piece(symbol.name, ATOM)

    def pair(self, pair: Pair) -> Piece:
        between = "" if pair.metric is None else " " + fold(pair.metric, self).text
        if pair.word == "dot":
            return Piece(rf"q_i^\top{between} k_j", PRODUCT)
        if pair.word == "cosine":
            return Piece(r"\cos\angle\left(q_i, k_j\right)", PRODUCT)
        if between:
            return Piece(rf"\left(q_i - k_j\right)^\top{between} \left(q_i - k_j\right)", PRODUCT)
        return Piece(r"\left\lVert q_i - k_j \right\rVert^2", POWER)

    def sum(self, terms: list[Piece]) -> Piece:
        first, *rest = (term.within(SUM) for term in terms)
        return Piece(first + "".join(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in rest), SUM)

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        top, bottom = ratio(coefficient)
        over = _row(([self.number(abs(top))] if abs(top) != 1 or not above else []) + above)
        under = _row(([self.number(bottom)] if bottom != 1 else []) + below)
        sign = "-" if coefficient < 0 else ""
        if under:
            return Piece(rf"{sign}\frac{{{over}}}{{{under}}}", SIGN if sign else PRODUCT)
        return Piece(sign + over, SIGN if sign else PRODUCT)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"{_bracketed(base, ATOM)}^{{{exponent.text}}}", POWER)

    def apply(self, function: type[Node], arguments: list[Piece]) -> Piece:
        assert issubclass(function, Elementary)
        return Piece(function.latex.format(*(argument.text for argument in arguments)), ATOM)

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        name = node.table if len(node.table) == 1 else rf"\mathrm{{{_escaped(node.table)}}}"
        places = r",\,".join(place.text for place in indices)
        return Piece(f"{name}_{{{places}}}" if places else name, ATOM)

    def truth(self, value: bool) -> Piece:
        return Piece(r"\top" if value else r"\bot", ATOM)

    def compare(self, left: Piece, relation: str, right: Piece) -> Piece:
        return Piece(f"{left.text} {RELATIONS[relation]} {right.text}", COMPARE)

    def given(self, name: str) -> Piece:
        return Piece(rf"\mathrm{{{_escaped(name)}}}_{{ij}}", ATOM)

    def both(self, parts: list[Piece]) -> Piece:
        return Piece(r" \wedge ".join(_bracketed(part, COMPARE) for part in parts), AND)

    def either(self, parts: list[Piece]) -> Piece:
        return Piece(r" \vee ".join(_bracketed(part, COMPARE) if part.bond != AND else part.text for part in parts), OR)

    def negation(self, part: Piece) -> Piece:
        return Piece(rf"\neg {_bracketed(part, ATOM)}", SIGN)

    # -- equations -----------------------------------------------------------------------------------------------

    def indexed(self, name: str, indices: str) -> Piece:
        return Piece(f"{name}_{{{indices}}}" if len(indices) > 1 else f"{name}_{indices}", ATOM)

    def total(self, index: str, condition: Piece | None, body: Piece) -> Piece:
        under = index if condition is None else rf"{index} \,:\, {condition.text}"
        return Piece(rf"\sum_{{{under}}} {body.within(PRODUCT)}", PRODUCT)

    def softmax(self, score: Piece) -> Piece:
        return Piece(rf"\operatorname{{softmax}}_j\left({score.text}\right)", ATOM)

    def called(self, name: str, argument: Piece) -> Piece:
        return Piece(rf"{GREEK.get(name, name)}\left({argument.text}\right)", ATOM)

    def ratio(self, above: Piece, below: Piece) -> Piece:
        return Piece(rf"\frac{{{above.text}}}{{{below.text}}}", PRODUCT)

    def beside(self, left: Piece, right: Piece) -> Piece:
        return Piece(rf"{_bracketed(left, PRODUCT)}\, {right.text}", PRODUCT)

    def equation(self, left: Piece, right: Piece) -> Piece:
        return Piece(f"{left.text} = {right.text}", COMPARE)


def _row(pieces: list[Piece]) -> str:
    """Factors side by side; a product inside keeps its own bracket only where it would be read wrongly."""
    return r" \, ".join(_bracketed(piece, PRODUCT) for piece in pieces)


def _bracketed(piece: Piece, bond: int) -> str:
    return piece.text if piece.bond >= bond else rf"\left({piece.text}\right)"


def _escaped(name: str) -> str:
    return name.replace("_", r"\_")
