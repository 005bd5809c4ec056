"""A piece of source, and what is known of the value it stands for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

Interval = tuple[Any, Any]  # lowest and highest value of a number; surely and possibly of a truth
ANY: Interval = (-math.inf, math.inf)

# how tightly Python binds
TERNARY, EITHER, BOTH, NOT, COMPARE, OR, AND, SUM, PRODUCT, SIGN, POWER, ATOM = range(12)

_SIMPLE = re.compile(r"-?(\d[\d.]*(e-?\d+)?|[^\W\d]\w*(\.[^\W\d]\w*)*|‹\w+›)")


class Kind(Enum):
    """What Python sees when the piece is evaluated."""

    INT = "a Python int"
    FLOAT = "a Python float"
    INDEX = "an array of integers"
    TABLE = "an array of the caller's own kind, integer or real"
    REAL = "an array of the dtype of q"
    FLAG = "a Python bool"
    MASK = "an array of truths"


SCALARS = frozenset({Kind.INT, Kind.FLOAT, Kind.FLAG})
WHOLE = frozenset({Kind.INT, Kind.INDEX, Kind.TABLE})


@dataclass(frozen=True)
class Part:
    """Source text, how tightly it binds, its kind, and the interval of its values."""

    text: str
    bond: int
    kind: Kind
    bounds: Interval = ANY
    unsigned: str | None = None  # the text behind the minus, where it starts with one
    inverse: str | None = None  # the text of the contrary: x != 0 for x == 0
    pieces: tuple[str, ...] = ()  # where a long text may be broken: a, + b, - c

    def within(self, bond: int) -> str:
        """The text, in brackets if it binds less tightly than its surroundings."""
        return self.text if self.bond >= bond else f"({self.text})"

    @property
    def is_scalar(self) -> bool:
        return self.kind in SCALARS

    @property
    def may_be_zero(self) -> bool:
        low, high = self.bounds
        return not (low > 0 or high < 0)

    def atom(self, text: str, kind: Kind | None = None) -> Part:
        """The same value, written as `text`, which needs no brackets."""
        return replace(self, text=text, bond=ATOM, kind=kind or self.kind, unsigned=None, inverse=None, pieces=())


def atom(text: str, kind: Kind, bounds: Interval = ANY) -> Part:
    return Part(text, ATOM, kind, bounds)


def joined(parts: list[str], operator: str, bond: int, kind: Kind, bounds: Interval) -> Part:
    """Parts with one operator between them."""
    first, *rest = parts
    pieces = (first, *(f"{operator} {part}" for part in rest))
    return Part(" ".join(pieces), bond, kind, bounds, pieces=pieces)


def raised(base: str, exponent: str) -> str:
    """baseᵉ with the spaces that formatters put: x**2, but f(x) ** 2."""
    simple = _SIMPLE.fullmatch(base) and _SIMPLE.fullmatch(exponent)
    return f"{base}**{exponent}" if simple else f"{base} ** {exponent}"
