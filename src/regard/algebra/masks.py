"""Masks with names. Each is an expression that could be written out, and prints so."""

from __future__ import annotations

import sympy
from sympy.core.symbol import Str

from .errors import FormulaError
from .expressions import Expression, Mask, equal, expression, operand
from .nodes import Given
from .symbols import b, i, j, table

causal = j <= i
"""A query reads itself and what came before."""

everywhere = Mask(sympy.true)
"""Every pair."""


def window(width: object) -> Mask:
    """The last `width` positions, the query's own among them: j ≤ i < j + width."""
    return causal & (i - j < _count(width, "window", 1))


def prefix(length: object) -> Mask:
    """All of the first `length` positions, and from there on causally."""
    return causal | (j < _count(length, "prefix", 0))


def documents(name: str) -> Mask:
    """Positions of one document read each other: `ids` holds a number for each position, (n) or (batch, n)."""
    ids = table(name)
    return equal(ids[b, i], ids[b, j])


def padding(name: str) -> Mask:
    """Keys within the length of their sequence: `lengths` holds one integer for each batch."""
    return j < table(name)[b]


def given(name: str) -> Mask:
    """A boolean array of the call, true where a pair is admitted; it broadcasts to (batch, heads, queries, keys)."""
    table(name)  # refuses a name that cannot be one
    return Mask(Given(Str(name)))


def _count(value: object, place: str, least: int) -> Expression:
    """A number of positions: an expression, or an integer that makes sense."""
    number = expression(operand(value, place))
    if number.node.is_Number and not (number.node.is_Integer and number.node >= least):
        raise FormulaError(f"{place}: an integer of at least {least}, or an expression; got {value!r}")
    return number
