"""What a fused kernel's mask reads of tables, and what it compares keys with: once for a row, or for a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy

from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, AtLeastZero, I, J, Pair, Read, is_integral, symbols, walk


def marks_in(mask: Any) -> dict[Kind, dict[Any, Any]]:
    """What a mask reads of tables for each row alone, and for each column alone: a symbol for each."""
    found: dict[Kind, dict[Any, Any]] = {Kind.ROW: {}, Kind.COLUMN: {}}
    for read in () if mask is None else _reads(mask):
        seen = symbols(read)
        kind = {(True, False): Kind.ROW, (False, True): Kind.COLUMN}.get((I in seen, J in seen))
        if kind is not None and not any(isinstance(part, Pair) for part in seen):
            found[kind].setdefault(read, sympy.Symbol(f"{kind}_mark{len(found[kind])}", real=True))
    return found


def ends_in(mask: Any) -> dict[Any, tuple[int, Any]]:
    """The order relations of a mask that say sign · (j − end) ≥ 0, where the end is made of a row's place: (sign, end).

    Compared with j alone, it is computed once for a row; i − j would be, for every pair.
    """
    found = {}
    for relation in () if mask is None else walk(mask):
        if isinstance(relation, AtLeastZero) and is_integral(relation.args[0]):
            (x,) = relation.args
            sign = x.coeff(J)
            end = J - sign * x  # not expanded: numbers beyond 32 bits would be written as real ones
            if sign in (1, -1) and I in symbols(end) and J not in symbols(end) and end != I:
                found[relation] = int(sign), end
    return found


def is_plain(read: Read) -> bool:
    """Whether a table is read at b, h, i and j themselves."""
    return all(index in (BATCH, HEAD, I, J) for index in read.indices)


def _reads(node: Any) -> Iterator[Read]:
    """The reads of tables, without those inside another's indices."""
    if isinstance(node, Read):
        yield node
    else:
        for part in node.args:
            yield from _reads(part)
