"""Expressions of a block as source for a kernel, in the words that Triton and Gluon share.

Only + − * // % and the indices of tables are integers; all else is real, and an integer that meets a real is made one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...algebra.fold import Number, fold
from ...algebra.functions import Elementary, Sigmoid, Tanh, Where
from ...algebra.functions.kernels import kernels
from ...algebra.nodes import Node, Pair, Read

SUM, PRODUCT, ATOM = range(3)  # how tightly a piece binds; truths stand in brackets
SINGLE, ROWS, COLUMNS, PAIRS = range(4)  # one number for all pairs of a head, of a row, of a column, for each
LONGEST_POWER = 8  # written as a product


@dataclass(frozen=True)
class Piece:
    """Source text, how tightly it binds, and whether it is an integer."""

    text: str
    bond: int = ATOM
    whole: bool = False
    value: float | None = None  # of a plain number
    spread: int = PAIRS

    def within(self, bond: int) -> str:
        return self.text if self.bond >= bond else f"({self.text})"


def _joint(pieces: list[Piece]) -> int:
    """What a piece made of others is one number for."""
    spreads = {piece.spread for piece in pieces} - {SINGLE}
    return PAIRS if len(spreads) > 1 else max(spreads, default=SINGLE)


class Writer:
    """The algebra of pieces of kernel source.

    names:   how symbols and products are written; a name in `integers` is one
    spreads: symbols that are one number for many pairs: products begin with them, so that a kernel multiplies them once
    table:   writes a read of a table, given its name and the texts of its indices
    given:   writes a mask of the call
    flavour: "triton", or "triton_fast" with approximate functions
    long:    integers have 64 bits
    """

    def __init__(
        self,
        names: Mapping[Any, str],
        integers: frozenset[Any],
        spreads: Mapping[Any, int],
        table: Callable[[str, list[str]], tuple[str, bool]],
        given: Callable[[str], str],
        flavour: str,
        *,
        long: bool = False,
    ) -> None:
        self.names, self.integers, self.spreads = names, integers, spreads
        self.table, self.mask, self.flavour, self.long = table, given, flavour, long
        self.helpers: dict[str, str] = {}

    def write(self, node: Any) -> str:
        """The text of a node, as a real number or a truth."""
        return self.real(fold(quick(node) if self.flavour == "triton_fast" else node, self)).text

    # -- numbers ------------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Piece:
        if isinstance(value, int) and abs(value) < (2**63 if self.long else 2**31):
            text = str(abs(value)) if abs(value) < 2**31 else f"tl.cast({abs(value)}, tl.int64)"
            return Piece(text if value >= 0 else f"-{text}", ATOM if value >= 0 else SUM, True, float(value), SINGLE)
        value = float(value) if isinstance(value, Fraction | int) else value
        value = math.copysign(1.0, value) if abs(abs(value) - 1.0) < 1e-15 else value  # ln 2 · log₂ e
        return Piece(repr(value), ATOM if value >= 0 else SUM, False, value, SINGLE)

    def symbol(self, symbol: Any) -> Piece:
        return Piece(self.names[symbol], ATOM, symbol in self.integers, spread=self.spreads.get(symbol, PAIRS))

    def pair(self, pair: Pair) -> Piece:
        return Piece(self.names[pair])

    def sum(self, terms: list[Piece]) -> Piece:
        whole = all(term.whole for term in terms)
        terms = terms if whole else [self.real(term) for term in terms]
        text = terms[0].text
        for term in terms[1:]:
            negative = term.text.startswith("-") and (term.bond >= PRODUCT or term.value is not None)
            text += f" - {term.text[1:]}" if negative else f" + {term.within(SUM)}"
        return Piece(text, SUM, whole, spread=_joint(terms))

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        front = self.number(coefficient)
        if front.whole and not below and all(factor.whole for factor in above):
            return self._times(front, above, whole=True)
        made = self._times(front, [self.real(factor) for factor in above], whole=False)
        if not below:
            return made
        under = [self.real(factor).within(ATOM) for factor in below]
        divisor = under[0] if len(under) == 1 else f"({' * '.join(under)})"
        return Piece(f"{made.within(PRODUCT)} / {divisor}", PRODUCT, spread=_joint([made, *below]))

    def _times(self, front: Piece, factors: list[Piece], *, whole: bool) -> Piece:
        front = front if whole else self.real(front)
        if not factors:
            return front
        factors = sorted(factors, key=lambda factor: factor.spread)
        first, rest = factors[0], "".join(f" * {factor.within(ATOM)}" for factor in factors[1:])
        spread = _joint(factors)
        match front.value:
            case 1:
                bond = PRODUCT if rest else first.bond
                return Piece(f"{first.within(PRODUCT) if rest else first.text}{rest}", bond, whole, spread=spread)
            case -1:
                return Piece(f"-{first.within(ATOM)}{rest}", PRODUCT, whole, spread=spread)
        return Piece(f"{front.text} * {first.within(ATOM)}{rest}", PRODUCT, whole, spread=spread)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        if exponent.value is not None and exponent.value.is_integer() and 1 < exponent.value <= LONGEST_POWER:
            return Piece(" * ".join([base.within(ATOM)] * int(exponent.value)), PRODUCT, base.whole)
        if base.value == 2:
            return Piece(f"tl.exp2({self.real(exponent).text})")
        if exponent.value is not None and exponent.value.is_integer():
            self.helpers["power"] = POWER
            return Piece(f"power({self.real(base).text}, {self.real(exponent).text}, {int(exponent.value) % 2})")
        if base.value is not None and base.value > 0:
            return Piece(f"tl.exp2({self.real(exponent).within(ATOM)} * {math.log2(base.value)!r})")
        if exponent.value is not None:
            return Piece(f"tl.exp2({self.real(exponent).within(PRODUCT)} * tl.log2({self.real(base).text}))")
        self.helpers["raised"] = RAISED
        return Piece(f"raised({self.real(base).text}, {self.real(exponent).text})")

    def apply(self, function: type[Node], arguments: list[Piece]) -> Piece:
        assert issubclass(function, Elementary)
        truths, values = (arguments[:1], arguments[1:]) if function is Where else ([], arguments)
        whole = function.keeps_integers and all(value.whole for value in values)
        values = values if whole else [self.real(value) for value in values]
        definition = function.helpers.get(self.flavour, function.helpers.get("triton"))
        if definition is not None:
            self._help(definition)
        source = function.source.get(self.flavour, function.source["triton"])
        return Piece(source.format(*(piece.text for piece in (*truths, *values))), ATOM, whole)

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        text, whole = self.table(node.table, [index.text for index in indices])
        return Piece(text, ATOM, whole)

    # -- truths -------------------------------------------------------------------------------------------------

    def truth(self, value: bool) -> Piece:
        return Piece("(0 == 0)" if value else "(0 == 1)")

    def compare(self, left: Piece, relation: str, right: Piece) -> Piece:
        return Piece(f"({left.text} {relation} {right.text})")

    def given(self, name: str) -> Piece:
        return Piece(self.mask(name))

    def both(self, parts: list[Piece]) -> Piece:
        return Piece(f"({' & '.join(part.text for part in parts)})")

    def either(self, parts: list[Piece]) -> Piece:
        return Piece(f"({' | '.join(part.text for part in parts)})")

    def negation(self, part: Piece) -> Piece:
        return Piece(f"({part.text} == 0)")

    # -- helpers ------------------------------------------------------------------------------------------------

    def _help(self, text: str) -> None:
        """Take a small function in, and those that it calls."""
        self.helpers[text] = text
        for name in re.findall(r"(?<![\w.])(\w+)\(", text):
            for found in (helper(name, self.flavour), helper(name, "triton")):
                if found is not None and found not in self.helpers:
                    self._help(found)
                if found is not None:
                    break

    def real(self, piece: Piece) -> Piece:
        if not piece.whole:
            return piece
        if piece.value is not None:
            return Piece(repr(piece.value), piece.bond, False, piece.value, SINGLE)
        return Piece(f"{piece.within(PRODUCT)} * 1.0", PRODUCT, spread=piece.spread)


def quick(node: Any) -> Any:
    """The same with σ(x) as ½ + ½ tanh(½ x), which is how the chip makes it: the halves meet other numbers here."""

    def product(whole: Any) -> Any:
        """σ(x) σ(−x) = ¼ − ¼ tanh²(½ x): one tanh for both."""
        inside = {factor.args[0] for factor in whole.args if isinstance(factor, Sigmoid)}
        both = next((x for x in inside if -x in inside), None)
        if both is None:
            return whole
        square = (1 - Tanh(both / 2) ** 2) / 4
        return whole / (Sigmoid(both) * Sigmoid(-both)) * square

    node = node.replace(lambda part: part.is_Mul, product)
    return node.replace(Sigmoid, lambda x: (1 + Tanh(x / 2)) / 2)


def helper(name: str, flavour: str) -> str | None:
    """The definition of a small function by its name."""
    return kernels(name).get(flavour)


POWER = '''
@jit
def power(x, exponent, odd):
    """x to a whole power."""
    size = tl.exp2(exponent * tl.log2(tl.abs(x)))
    return tl.where((odd != 0) & (x < 0.0), -size, size)
'''

RAISED = '''
@jit
def raised(x, exponent):
    """x to any power, 2^(e k) 2^(e log₂ m) with |x| = m 2^k and m near 1; NaN below 0 unless the power is whole."""
    a = tl.abs(x)
    bits = tl.cast(a, tl.int32, bitcast=True)
    k = (bits - 0x3F3504F3) >> 23
    m = tl.cast(bits - (k << 23), tl.float32, bitcast=True)
    n = tl.floor(exponent * k + 0.5)
    near = tl.exp2((exponent * k - n) + exponent * tl.log2(m)) * tl.exp2(n)
    far = tl.where(exponent == 0.0, 1.0, tl.exp2(exponent * tl.log2(a)))
    size = tl.where((a > 1e-30) & (a < 1e30), near, far)
    whole = tl.floor(exponent) == exponent
    odd = tl.floor(exponent * 0.5) * 2.0 != exponent
    return tl.where(x < 0.0, tl.where(whole, tl.where(odd, -size, size), float("nan")), size)
'''
