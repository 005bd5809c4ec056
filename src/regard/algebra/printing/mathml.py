"""A formula as MathML, which browsers set without a library."""

from __future__ import annotations

from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from ..fold import Number, fold
from ..functions import Elementary
from ..nodes import Node, Pair, Read
from .mathematics import equations
from .text import AND, ATOM, COMPARE, OR, POWER, PRODUCT, SIGN, SUM, Piece, ratio

if TYPE_CHECKING:
    from ..formula import Formula

RELATIONS = {"<=": "≤", "<": "<", ">=": "≥", ">": ">", "==": "="}
Q, K = "<msub><mi>q</mi><mi>i</mi></msub>", "<msub><mi>k</mi><mi>j</mi></msub>"
QT = "<msubsup><mi>q</mi><mi>i</mi><mo>⊤</mo></msubsup>"
THIN = '<mspace width="0.17em"/>'


def mathml(node: Any) -> str:
    """An expression or mask, as a <math> element."""
    return _page(fold(node, MathML()).text)


def formula_mathml(formula: Formula) -> str:
    """The equations of a formula, one below the other, as a <math> element."""
    set_ = equations(formula, MathML())
    if len(set_) == 1:
        return _page(set_[0].text)
    rows = "".join(f'<mtr><mtd style="text-align: left">{piece.text}</mtd></mtr>' for piece in set_)
    return _page(f'<mtable displaystyle="true">{rows}</mtable>')


def _page(inside: str) -> str:
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{inside}</math>'


class MathML:
    """The algebra of MathML pieces; each text is one element."""

    def number(self, value: Number) -> Piece:
        if isinstance(value, Fraction):
            over = f"<mfrac>{_n(abs(value.numerator))}{_n(value.denominator)}</mfrac>"
            return Piece(_row(_o("−"), over), SIGN) if value < 0 else Piece(over, PRODUCT)
        return Piece(_row(_o("−"), _n(-value)), SIGN) if value < 0 else Piece(_n(value), ATOM)

    def symbol(self, symbol: Any) -> Piece:
        return Piece(_i(symbol.name), ATOM)

    def pair(self, pair: Pair) -> Piece:
        metric = "" if pair.metric is None else fold(pair.metric, self).text
        if pair.word == "dot":
            return Piece(_row(QT, metric, K), PRODUCT)
        if pair.word == "cosine":
            return Piece(_row(_i("cos"), _o("∠"), _bracket(_row(Q, _o(","), K))), PRODUCT)
        difference = _row(Q, _o("−"), K)
        if metric:
            return Piece(_row(f"<msup>{_bracket(difference)}{_o('⊤')}</msup>", metric, _bracket(difference)), PRODUCT)
        return Piece(f"<msup>{_row(_o('‖'), difference, _o('‖'))}{_n(2)}</msup>", POWER)

    def sum(self, terms: list[Piece]) -> Piece:
        minus, end = f"<mrow>{_o('−')}", "</mrow>"
        parts = [terms[0].text]
        for term in terms[1:]:
            negative = term.text.startswith(minus)  # the sign then stands between the terms
            parts += [_o("−"), term.text[len(minus) : -len(end)]] if negative else [_o("+"), term.text]
        return Piece(_row(*parts), SUM)

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        top, bottom = ratio(coefficient)
        over = _factors(([self.number(abs(top))] if abs(top) != 1 or not above else []) + above)
        under = _factors(([self.number(bottom)] if bottom != 1 else []) + below)
        whole = f"<mfrac>{over}{under}</mfrac>" if under else over
        return Piece(_row(_o("−"), whole), SIGN) if coefficient < 0 else Piece(whole, PRODUCT)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"<msup>{_within(base, ATOM)}{exponent.text}</msup>", POWER)

    def apply(self, function: type[Node], arguments: list[Piece]) -> Piece:
        assert issubclass(function, Elementary)
        texts = [argument.text for argument in arguments]
        if function.mathml is not None:
            return Piece(function.mathml.format(*texts), ATOM)
        return Piece(_row(_i(function.name), _o("&#x2061;"), _bracket(_o(",").join(texts))), ATOM)

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        places = _o(",").join(place.text for place in indices)
        return Piece(f"<msub>{_i(node.table)}{_row(places)}</msub>" if places else _i(node.table), ATOM)

    def truth(self, value: bool) -> Piece:
        return Piece(_o("⊤" if value else "⊥"), ATOM)

    def compare(self, left: Piece, relation: str, right: Piece) -> Piece:
        return Piece(_row(left.text, _o(escape(RELATIONS[relation])), right.text), COMPARE)

    def given(self, name: str) -> Piece:
        return Piece(f"<msub>{_i(name)}{_row(_i('i'), _i('j'))}</msub>", ATOM)

    def both(self, parts: list[Piece]) -> Piece:
        return Piece(_row(_o("∧").join(_within(part, COMPARE) for part in parts)), AND)

    def either(self, parts: list[Piece]) -> Piece:
        return Piece(_row(_o("∨").join(part.text for part in parts)), OR)

    def negation(self, part: Piece) -> Piece:
        return Piece(_row(_o("¬"), _within(part, ATOM)), SIGN)

    # -- equations -----------------------------------------------------------------------------------------------

    def indexed(self, name: str, indices: str) -> Piece:
        return Piece(f"<msub>{_i(name)}{_row(*map(_i, indices))}</msub>", ATOM)

    def total(self, index: str, condition: Piece | None, body: Piece) -> Piece:
        under = _i(index) if condition is None else _row(_i(index), _o(":"), condition.text)
        return Piece(_row(f'<munder><mo movablelimits="false">∑</mo>{under}</munder>', _within(body, PRODUCT)), PRODUCT)

    def softmax(self, score: Piece) -> Piece:
        return Piece(_row(f"<msub>{_i('softmax')}{_i('j')}</msub>", _o("&#x2061;"), _bracket(score.text)), ATOM)

    def called(self, name: str, argument: Piece) -> Piece:
        return Piece(_row(_i(name), _o("&#x2061;"), _bracket(argument.text)), ATOM)

    def ratio(self, above: Piece, below: Piece) -> Piece:
        return Piece(f"<mfrac>{above.text}{below.text}</mfrac>", PRODUCT)

    def beside(self, left: Piece, right: Piece) -> Piece:
        return Piece(_row(_within(left, PRODUCT), THIN, right.text), PRODUCT)

    def equation(self, left: Piece, right: Piece) -> Piece:
        return Piece(_row(left.text, _o("="), right.text), COMPARE)


def _factors(pieces: list[Piece]) -> str:
    """Factors side by side as one element; nothing for none."""
    texts = [_within(piece, PRODUCT) for piece in pieces]
    return texts[0] if len(texts) == 1 else _row(THIN.join(texts)) if texts else ""


def _within(piece: Piece, bond: int) -> str:
    return piece.text if piece.bond >= bond else _bracket(piece.text)


def _bracket(inside: str) -> str:
    return _row(_o("("), inside, _o(")"))


def _row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _i(name: str) -> str:
    return f"<mi>{escape(name)}</mi>"


def _n(value: object) -> str:
    return f"<mn>{value}</mn>"


def _o(mark: str) -> str:
    return f"<mo>{mark}</mo>"
