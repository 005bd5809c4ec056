"""The formula read as Python source: the algebra that all code flavours share, which is also the `python` flavour.

Only + − * // % and table indices are integers; all else is printed as floating. In the `python` flavour that is how
Python counts anyway; the array flavours (see `arrays`) add casts. Where a function is not defined everywhere, and
the interval of its argument does not keep it away from there, a helper gives what IEEE 754 says, without an exception.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...fold import Number, fold
from ...functions import Elementary, Exp, FloorDiv, Log, Mod, Sqrt, Where
from ...intervals import Intervals
from ...nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Node, Pair, Read
from .parts import (
    ATOM,
    BOTH,
    COMPARE,
    EITHER,
    NOT,
    POWER,
    PRODUCT,
    SIGN,
    SUM,
    TERNARY,
    Kind,
    Part,
    atom,
    joined,
    raised,
)

COUNTS = (0, math.inf)
SIZES = (1, math.inf)
RANGES = {I: COUNTS, J: COUNTS, HEAD: COUNTS, BATCH: COUNTS, HEADS: SIZES, WIDTH: SIZES, KEYS: SIZES}
LARGEST_EXPONENT = 709.0  # exp of it is the largest float, nearly


class Source:
    """The algebra of pieces of plain Python: every value is a number."""

    flavour = "python"

    def __init__(self, place: str, *, clip: bool = False) -> None:
        self.given_place = place  # where a pair stands in a mask of the call
        self.clip = clip  # whether reads may stand outside their table: in masks, which see every pair
        self.intervals = Intervals(RANGES)

    def fold(self, node: Any) -> Part:
        return fold(node, self)

    # -- numbers -------------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Part:
        bounds = self.intervals.number(value)
        if isinstance(value, Fraction):
            unsigned = f"{-value.numerator} / {value.denominator}" if value < 0 else None
            return Part(f"{value.numerator} / {value.denominator}", PRODUCT, Kind.FLOAT, bounds, unsigned)
        value = float(value) if abs(value) >= 2**63 else value  # no array holds such an integer
        kind = Kind.INT if isinstance(value, int) else Kind.FLOAT
        unsigned = literal(-value) if value < 0 else None
        return Part(literal(value), SIGN if value < 0 else ATOM, kind, bounds, unsigned)

    def symbol(self, symbol: Any) -> Part:
        if symbol == SCORE:
            return atom("s", Kind.FLOAT)
        return atom(symbol.name, Kind.INT, self.intervals.symbol(symbol))

    def pair(self, pair: Pair) -> Part:
        words = {"dot": "bilinear", "sqdist": "mahalanobis"}
        if pair.metric is None:
            text = f"{pair.word}(query, key)"
        else:
            text = f"{words[pair.word]}(query, {fold(pair.metric, self).text}, key)"
        return atom(text, Kind.FLOAT, self.intervals.pair(pair))

    def sum(self, terms: list[Part]) -> Part:
        kind = self.alike(terms)
        first, *rest = (self.countable(self.as_kind(term, kind)) for term in terms)
        pieces = [first.within(SUM)]
        pieces += [f"+ {term.within(SUM)}" if term.unsigned is None else f"- {term.unsigned}" for term in rest]
        bounds = self.intervals.sum([term.bounds for term in terms])
        return Part(" ".join(pieces), SUM, kind, bounds, pieces=tuple(pieces))

    def countable(self, term: Part) -> Part:
        """A term of a sum; arrays of truths would be joined by or, so a table that may hold them is counted."""
        return term

    def product(self, coefficient: Number, above: list[Part], below: list[Part]) -> Part:
        bounds = self.intervals.product(coefficient, [x.bounds for x in above], [x.bounds for x in below])
        top, bottom = ratio(coefficient)
        kind = self.alike([*above, self.number(top)], real=bool(below) or bottom != 1)
        above = [self.as_kind(factor, kind) for factor in above]
        below = [self.divisor(self.as_kind(factor, kind), above) for factor in below]
        if any(not factor.is_scalar for factor in below):
            kind = self.alike([*above, *below], real=True)
        if abs(top) != 1 or not above:
            above = [self.number(abs(top)), *above]
        under = ([self.number(bottom)] if bottom != 1 else []) + below
        unsafe = self.flavour == "python" and any(factor.may_be_zero for factor in below)
        quotient = self._helped_quotient if unsafe else self._quotient
        return replace(quotient(above, under, top < 0), kind=kind, bounds=bounds)

    def _quotient(self, above: list[Part], under: list[Part], negative: bool) -> Part:
        over = [factor.within(PRODUCT + (place > 0)) for place, factor in enumerate(above)]
        below = [factor.within(SIGN) for factor in under]
        if len(below) > 1:
            below = [f"({' * '.join(below)})"]
        pieces = [over[0], *(f"* {factor}" for factor in over[1:]), *(f"/ {factor}" for factor in below)]
        plain = " ".join(pieces)
        bond = PRODUCT if len(pieces) > 1 else (above[0].bond if above[0].bond >= PRODUCT else ATOM)
        if not negative:
            return Part(plain, bond, Kind.FLOAT, pieces=tuple(pieces))
        pieces[0] = f"-{above[0].within(ATOM)}"
        return Part(" ".join(pieces), min(bond, SIGN), Kind.FLOAT, unsigned=plain, pieces=tuple(pieces))

    def _helped_quotient(self, above: list[Part], under: list[Part], negative: bool) -> Part:
        over, below = self._quotient(above, [], negative), self._quotient(under, [], False)
        return atom(f"divide({over.text}, {below.text})", Kind.FLOAT)

    def divisor(self, part: Part, above: list[Part]) -> Part:
        """What stands below the bar; array flavours keep it away from 0 where no pair counts."""
        return part

    def power(self, base: Part, exponent: Part) -> Part:
        bounds = self.intervals.power(base.bounds, exponent.bounds)
        if self.flavour == "python" and not is_tame(base, exponent, bounds):
            return atom(f"power({base.text}, {exponent.text})", Kind.FLOAT, bounds)
        return Part(raised(base.within(ATOM), exponent.within(SIGN)), POWER, Kind.FLOAT, bounds)

    # -- functions -----------------------------------------------------------------------------------------------

    def apply(self, function: type[Node], arguments: list[Part]) -> Part:
        assert issubclass(function, Elementary)
        bounds = self.intervals.apply(function, [argument.bounds for argument in arguments])
        if function is Where:
            return replace(self.where(*arguments), bounds=bounds)
        if function in (FloorDiv, Mod):
            return replace(self.whole_quotient(function, *arguments), bounds=bounds)
        whole = function.keeps_integers and all(argument.kind is Kind.INT for argument in arguments)
        texts = [argument.text for argument in arguments]
        text = f"{function.name}({texts[0]})" if needs_help(function, arguments) else None
        return atom(text or function.source["python"].format(*texts), Kind.INT if whole else Kind.FLOAT, bounds)

    def where(self, condition: Part, a: Part, b: Part) -> Part:
        kind = Kind.INT if {a.kind, b.kind} == {Kind.INT} else Kind.FLOAT
        text = f"{a.within(TERNARY + 1)} if {condition.within(TERNARY + 1)} else {b.text}"
        return Part(text, TERNARY, kind)

    def whole_quotient(self, function: type[Elementary], a: Part, b: Part) -> Part:
        if b.may_be_zero:
            return atom(f"{WHOLE_HELPERS[function]}({a.text}, {b.text})", Kind.INT)
        return joined([a.within(PRODUCT), b.within(SIGN)], function.name, SUM, Kind.INT, a.bounds)

    # -- tables --------------------------------------------------------------------------------------------------

    def read(self, node: Read, indices: list[Part]) -> Part:
        text = f"‹{node.table}›"
        for axis, index in enumerate(indices):
            text += f"[{self.place(text, axis, index)}]"
        return atom(text, Kind.FLOAT)

    def place(self, table: str, axis: int, index: Part) -> str:
        """One index of a read."""
        if not self.clip or index.text in ("i", "j", "h", "b") or index.bounds[0] == index.bounds[1]:
            return index.text
        return f"min(max({index.text}, 0), len({table}) - 1)"

    # -- truths --------------------------------------------------------------------------------------------------

    def truth(self, value: bool) -> Part:
        return atom(repr(value), Kind.FLAG, (value, value))

    def compare(self, left: Part, relation: str, right: Part) -> Part:
        a, b = left.within(SUM), right.within(SUM)
        bounds = self.intervals.compare(left.bounds, relation, right.bounds)
        inverse = f"{a} != {b}" if relation == "==" else None
        kind = Kind.FLAG if left.is_scalar and right.is_scalar else Kind.MASK
        made = joined([a, b], relation, COMPARE, kind, bounds)
        return replace(made, inverse=inverse)

    def given(self, name: str) -> Part:
        return atom(f"‹{name}›{self.given_place}", Kind.FLAG, (False, True))

    def both(self, parts: list[Part]) -> Part:
        bounds = self.intervals.both([part.bounds for part in parts])
        return joined([part.within(BOTH) for part in parts], "and", BOTH, Kind.FLAG, bounds)

    def either(self, parts: list[Part]) -> Part:
        bounds = self.intervals.either([part.bounds for part in parts])
        return joined([part.within(NOT) for part in parts], "or", EITHER, Kind.FLAG, bounds)

    def negation(self, part: Part) -> Part:
        bounds = self.intervals.negation(part.bounds)
        if part.inverse is not None:
            return Part(part.inverse, COMPARE, part.kind, bounds)
        return Part(f"not {part.within(NOT)}", NOT, Kind.FLAG, bounds)

    # -- kinds ---------------------------------------------------------------------------------------------------

    def alike(self, parts: list[Part], *, real: bool = False) -> Kind:
        """The one kind that the parts of a sum or product take."""
        return Kind.INT if not real and all(part.kind is Kind.INT for part in parts) else Kind.FLOAT

    def as_kind(self, part: Part, kind: Kind) -> Part:
        """The part as it must be written to meet others of that kind."""
        return part

    def real(self, part: Part) -> Part:
        return part


WHOLE_HELPERS: dict[Any, str] = {FloorDiv: "floor_divide", Mod: "remainder"}


def literal(value: float) -> str:
    """A number as formatters write it: 1e16, not 1e+16."""
    return repr(value).replace("e+", "e")


def ratio(value: Number) -> tuple[int | float, int]:
    return (value.numerator, value.denominator) if isinstance(value, Fraction) else (value, 1)


def is_tame(base: Part, exponent: Part, bounds: Any) -> bool:
    """Whether Python's ** gives a real number here, and no exception."""
    small, large = exponent.bounds
    if small == large:
        return bool(float(small).is_integer() and (small >= 0 or not base.may_be_zero)) or base.bounds[0] >= 0 < small
    return bool(base.bounds[0] > 0 and bounds[1] < math.inf)


def needs_help(function: type[Elementary], arguments: list[Part]) -> bool:
    """Whether the standard library's function could raise an exception here."""
    low, high = arguments[0].bounds
    if function is Exp:
        return not high <= LARGEST_EXPONENT
    return (function is Log and not low > 0) or (function is Sqrt and not low >= 0)
