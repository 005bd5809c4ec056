"""Where a number comes from: the parts of a formula one after the other, each with its value for one pair.

    q·k = 25.6        √d = 8        q·k / √d = 25.6 / 8 = 3.2        j ≤ i: 5 ≤ 12 holds

The tree of the formula says which parts there are, a reading of the pair (`Steps.raw`) what each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import sympy
from sympy.logic.boolalg import And

from ...algebra.fold import Number, fold, fraction, in_order, is_reciprocal
from ...algebra.functions import Where
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, SCORE, WIDTH, I, J, Pair, Read, symbols, walk
from ...algebra.printing.mathml import mathml
from ...algebra.printing.text import ATOM, POWER, PRODUCT, SIGN, Piece, ratio
from ...algebra.printing.unicode import Unicode, unicode
from ..arrays import numpy_of

PAIRS = {"dot": "q·k", "sqdist": "‖q−k‖²", "cosine": "cos∠(q, k)"}
METRIC_PAIRS = {"dot": "qᵀ {0} k", "sqdist": "(q−k)ᵀ {0} (q−k)"}
MEANINGS = {
    I: "the place of the query", J: "the place of the key", HEAD: "the head", BATCH: "the batch item",
    HEADS: "the number of heads", WIDTH: "the width of a key", KEYS: "the number of keys",
}  # fmt: skip
LONGEST, LONGEST_INDEX = 80, 24  # characters of a name, and of a table's with its index
RESERVED = frozenset("score mask ψ sink Z weight".split())  # the steps that every formula may have

Step = dict[str, Any]


def finite(value: Any) -> float | None:
    """A number that JSON can hold; None for infinities and NaN."""
    return float(value) if math.isfinite(value) else None


def shown(value: float | None) -> str:
    """A number in a few digits, with the sign of mathematics."""
    return "no finite number" if value is None else f"{value:.5g}".replace("-", "−")


class Reasons:
    """The steps of one pair, in the order in which they are computed.

    reading: of a part that holds one pair, admitted or not
    """

    def __init__(self, reading: Any) -> None:
        self.reading = replace(reading, memo={})
        self.steps: list[Step] = []
        self._names: dict[Any, str] = {}

    # -- values ------------------------------------------------------------------------------------------------

    def value(self, node: Any) -> float:
        """The value of an expression for this pair; may be infinite or NaN, and is NaN where a table has no entry."""
        return math.nan if self._reads_nothing(node) else self._number(lambda: self.reading.value(node))

    def _number(self, compute: Callable[[], Any]) -> float:
        xp = self.reading.xp
        with xp.quiet(), xp.exact(self.reading.call.q):
            found = compute()
        return float(numpy_of(found).reshape(-1)[0]) if hasattr(found, "shape") else float(found)

    def holds(self, node: Any) -> bool:
        """Whether a truth holds for this pair."""
        return bool(self._number(lambda: self.reading.value(node)))

    def set_score(self, node: Any) -> float:
        """Let s stand for the score of this pair, which is given back."""
        score = self.value(node)
        self.reading.memo[SCORE] = self.reading.whole(score)
        return score

    def indices(self, read: Read) -> list[int]:
        """Where a table is read, as the formula writes it."""
        return [int(self._number(partial(self.reading.index, read, axis))) for axis in range(len(read.indices))]

    def outside(self, read: Read) -> bool:
        """Whether a read stands outside of its table, as it may for a pair that is not admitted."""
        sizes = self.reading.call.tables[read.table].shape
        return any(not 0 <= place < size for place, size in zip(self.indices(read), sizes, strict=False))

    def _reads_nothing(self, node: Any) -> bool:
        """Whether a read that the value depends on stands outside of its table."""
        if isinstance(node, Read):
            return self.outside(node)
        below = (node.args[0], self._taken(node)) if isinstance(node, Where) else node.args
        return any(map(self._reads_nothing, below))

    def filled(self, node: Any, known: dict[Any, Piece] | None = None) -> str:
        """The expression or truth with numbers in place of its letters."""
        piece: Piece = fold(node, Filled(self), dict(known or {}))
        return piece.text

    # -- steps -------------------------------------------------------------------------------------------------

    def add(self, name: str, set_: str, value: float | bool | None, says: str, sources: list[str]) -> str:
        """Add a step: its name, how mathematics writes it, its value, in words where it comes from, and what from."""
        self.steps.append({"name": name, "mathml": set_, "value": value, "says": says, "from": sources})
        return name

    def _add(self, node: Any, value: float | bool | None, says: str, sources: list[str]) -> str:
        """Add a step of the formula's own, under a name that no other step has."""
        name = named(node) if len(named(node)) <= LONGEST else f"{named(node)[: LONGEST - 1]}…"
        while name in RESERVED or any(one["name"] == name for one in self.steps):
            name += "′"
        return self.add(name, mathml(node), value, says, sources)

    def expression(self, node: Any) -> list[str]:
        """Steps of an expression and of all below it that is worth a line; the names of those that it is made of."""
        if node in self._names:
            return [self._names[node]]
        if node.is_Number or (node.is_Symbol and not isinstance(node, Pair)):
            return []
        below = self._below(node)
        sources = [name for child in below for name in self.expression(child)]
        self._names[node] = self._add(node, finite(self.value(node)), self.says(node), sources)
        return [self._names[node]]

    def parts(self, node: Any) -> list[str]:
        """The steps below an expression, without its own."""
        if isinstance(node, Pair | Read):
            return self.expression(node)
        return [name for child in self._below(node) for name in self.expression(child)]

    def _below(self, node: Any) -> tuple[Any, ...]:
        """The parts of an expression that get a line of their own."""
        if isinstance(node, Pair | Read) or node.is_Symbol or node.is_Number:
            return ()
        if node.is_Mul or is_reciprocal(node):
            _, above, below = fraction(node)
            factors = (*above, *below)
            return factors if len(factors) > 1 or _has_leaves(node) else ()
        if not _has_leaves(node):
            return ()
        if isinstance(node, Where):
            return (self._taken(node),)
        return in_order(node.args) if node.is_Add else tuple(node.args)

    def _taken(self, node: Any) -> Any:
        """The branch of a choice that this pair takes."""
        condition, a, b = node.args
        return a if self.holds(condition) else b

    def says(self, node: Any) -> str:
        """In words and numbers, what an expression is made of."""
        if isinstance(node, Pair):
            return pair_says(node, int(self.reading.q.shape[-1]))
        if isinstance(node, Read):
            return self._read_says(node)
        if isinstance(node, Where):
            return f"{self.filled(node.args[0])} {_verdict(self.holds(node.args[0]))}: {self.put_in(self._taken(node))}"
        return self.put_in(node)

    def put_in(self, node: Any) -> str:
        """The expression with the values of its parts put in, and what its letters mean where nothing else is."""
        known = {child: _piece(self.value(child)) for child in self._below(node)} if node.args else {}
        letters = [] if known else sorted(symbols(node) & set(MEANINGS), key=lambda symbol: str(symbol.name))
        meant = ", ".join(f"{letter.name} = {shown(self.value(letter))} is {MEANINGS[letter]}" for letter in letters)
        return self.filled(node, known) + (f", where {meant}" if meant else "")

    def _read_says(self, node: Read) -> str:
        places = ", ".join(map(str, self.indices(node)))
        where = f"{node.table}[{places}]" if places else node.table
        if self.outside(node):
            return f"{where} stands outside of the table, which counts for no admitted pair"
        return f"{where}, an entry of the layer's table {node.table}"

    # -- the mask ----------------------------------------------------------------------------------------------

    def mask(self, node: Any) -> tuple[bool, list[str]]:
        """Steps of a mask and of the rules that are joined in it; whether it holds, and the rules that do not."""
        if node == sympy.true:
            self.add("mask", mathml(node), True, "there is no mask: every pair is admitted", [])
            return True, []
        rules = in_order(node.args) if isinstance(node, And) else (node,)
        told = {unicode(rule): f"{self.filled(rule)} {_verdict(self.holds(rule))}" for rule in rules}
        broken = [unicode(rule) for rule in rules if not self.holds(rule)]
        sources = []
        if len(rules) > 1:
            sources = [self._add(rule, self.holds(rule), told[unicode(rule)], []) for rule in rules]
        says = "; ".join(f"{rule}: {told[rule]}" for rule in broken) or " and ".join(told.values())
        self.add("mask", mathml(node), not broken, says, sources)
        return not broken, [f"{rule}: {told[rule]}" for rule in broken]


class Filled(Unicode):
    """The algebra of Unicode pieces in which every letter is a number: 5 ≤ 12 for j ≤ i."""

    def __init__(self, reasons: Reasons) -> None:
        self.reasons = reasons

    def symbol(self, symbol: Any) -> Piece:
        return _piece(self.reasons.value(symbol))

    def pair(self, pair: Pair) -> Piece:
        return _piece(self.reasons.value(pair))

    def read(self, node: Read, indices: list[Piece]) -> Piece:
        return Piece("nothing", ATOM) if self.reasons.outside(node) else _piece(self.reasons.value(node))

    def product(self, coefficient: Number, above: list[Piece], below: list[Piece]) -> Piece:
        top, bottom = ratio(coefficient)
        over = ([self.number(abs(top))] if abs(top) != 1 or not above else []) + above
        under = ([self.number(bottom)] if bottom != 1 else []) + below
        text = ("−" if coefficient < 0 else "") + " · ".join(piece.within(POWER) for piece in over)
        joined = " · ".join(piece.within(POWER) for piece in under)
        return Piece(text + (f" / {joined if len(under) == 1 else f'({joined})'}" if under else ""), PRODUCT)

    def given(self, name: str) -> Piece:
        held = self.reasons.reading.given(name)
        return Piece(f"{name}ᵢⱼ = {'true' if bool(numpy_of(held).reshape(-1)[0]) else 'false'}", ATOM)

    def choose(self, node: Any, memo: dict[Any, Piece]) -> Piece:
        """The branch that is taken."""
        condition, a, b = node.args
        return fold(a if self.reasons.holds(condition) else b, self, memo)


def named(node: Any) -> str:
    """The short name of an expression."""
    if isinstance(node, Pair):
        return PAIRS[node.word] if node.metric is None else METRIC_PAIRS[node.word].format(unicode(node.metric))
    if isinstance(node, Read) and len(unicode(node)) > LONGEST_INDEX:
        return f"{node.table}[…]"
    return unicode(node).replace("qᵢ", "q").replace("kⱼ", "k")


def pair_says(pair: Pair, width: int) -> str:
    """What a pair of vectors is summed from."""
    metric = "M" if pair.metric is None else pair.metric.table
    summed = {
        ("dot", False): "q_c k_c", ("dot", True): f"q_c ({metric} k)_c", ("sqdist", False): "(q_c − k_c)²",
        ("sqdist", True): f"(q − k)_c ({metric} (q − k))_c", ("cosine", False): "q_c k_c / (‖q‖ ‖k‖)",
    }[pair.word, pair.metric is not None]  # fmt: skip
    return f"the sum of {summed} over the {width} dimensions of the query"


def _has_leaves(node: Any) -> bool:
    """Whether vectors, tables or the score stand in an expression."""
    return any(isinstance(part, Pair | Read) or part == SCORE for part in walk(node))


def _piece(value: float) -> Piece:
    return Piece(shown(finite(value)), SIGN if value < 0 else ATOM)


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"
