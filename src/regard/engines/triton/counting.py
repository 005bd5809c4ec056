"""How wide a kernel's integers are: 32 bits, and 64 where numbers of the formula leave them for some pair."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ...algebra.fold import fold
from ...algebra.functions import Interval
from ...algebra.intervals import Intervals
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, is_integral, walk
from .program import Program

LIMIT = 2**31
USUAL, FEW = 2**20, 2**10  # positions; heads, batches and widths: where no call says how many there are


@lru_cache(maxsize=4096)
def is_long(made: Program, reach: int = USUAL, batch: int = FEW, heads: int = FEW) -> bool:
    """Whether an integer of the formula may not fit into 32 bits, with positions and sizes up to those given.

    What a table holds has 64 bits already, but numbers beside it may not.
    """
    ends = {I: reach, J: reach, KEYS: reach, BATCH: batch, HEAD: heads, HEADS: heads, WIDTH: FEW}
    known = Intervals({symbol: (0, most) for symbol, most in ends.items()})
    nodes = [node for term in made.terms for node in (term.r, term.exponent) if node is not None]
    nodes += [node for node in (made.height, made.mask) if node is not None]
    counted = (part for node in nodes for part in walk(node) if is_integral(part, reads=True) and not part.is_Number)
    return any(_size(part, known) >= LIMIT for part in counted)


def rounded_up(length: int) -> int:
    """The power of two beyond: one answer serves many lengths."""
    return 1 << length.bit_length()


def _size(node: Any, known: Intervals) -> float:
    """How large an integer, or a number in it, may be; of a sum, any part: a comparison has terms on both sides."""
    parts = node.args if node.is_Add else (node, *(arg for arg in node.args if arg.is_Number))
    ends: list[Interval] = [fold(part, known) for part in parts]
    sizes = [size for low, high in ends if math.isfinite(size := max(-low, high))]
    return sum(sizes) if node.is_Add else max(sizes, default=0)
