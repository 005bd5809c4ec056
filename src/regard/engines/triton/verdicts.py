"""What a mask says of every tile of pairs, by intervals of tensors.

A number is (low, high) over the pairs of a tile, a truth is (sure, possible): it holds for every pair, for some pair.
Each end is a plain number where it is the same for all tiles, or a tensor that broadcasts over (B, H, T, S).

Integers are exact. Real numbers are float64 and reach outwards by more than the rounding of whoever computes the mask
in the call's dtype: a verdict holds there too. NaN is an end of which nothing is known: what it is compared with is
possible and never sure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from ...algebra.arithmetic import Arithmetic
from ...algebra.fold import Number, fold
from ...algebra.functions import Elementary, Maximum, Minimum, Where
from ...algebra.intervals import COSINES, SQUARES
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Node, Pair, Read
from ..call import Call
from .extremes import Tiles, extremes, mask_extremes

Ends = tuple[Any, Any]

SLACK = 2**4  # roundings of one operation that an interval allows for: other orders of sums, approximate functions


def verdicts(tiles: Tiles) -> Ends:
    """(sure, possible) of the call's mask, boolean (B or 1, H or 1, T, S); rows and keys outside do not count."""
    sure, possible = fold(tiles.call.formula.admitted, TileIntervals(tiles))
    shape = (1, 1, tiles.down, tiles.across)
    return _spread(sure, shape, tiles.device), _spread(possible, shape, tiles.device)


def _spread(truth: Any, shape: tuple[int, ...], device: Any) -> Any:
    if isinstance(truth, bool):
        return torch.full(shape, truth, device=device)
    return truth.expand(torch.broadcast_shapes(truth.shape, shape))


# -- one end ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers(Arithmetic):
    """The arithmetic of one end: plain numbers, or tensors of int64 and float64."""

    call: Call
    real_dtype = torch.float64
    integer_dtype = torch.int64

    @property
    def xp(self) -> Any:
        return self.call.xp

    @property
    def device(self) -> Any:
        return self.call.q.device

    def array(self, value: Any) -> Any:
        """A number as a tensor, made on the device: a copy from the host would wait for it."""
        if not isinstance(value, bool | int | float):
            return value
        dtype = {bool: torch.bool, int: torch.int64}.get(type(value), torch.float64)
        return torch.full((), value, dtype=dtype, device=self.device)

    def are_whole(self, *values: Any) -> bool:
        return all(map(self._is_integer, values))

    def at(self, function: type[Elementary], *values: Any) -> Any:
        """The function's value; a condition that is known chooses its branch without a tensor."""
        if isinstance(values[0], bool) or all(isinstance(value, int | float) for value in values):
            return function.scalar(*values)
        return self.apply(function, list(values))

    def lowest(self, *values: Any) -> Any:
        return reduce(lambda x, y: self.at(Minimum, x, y), values)

    def highest(self, *values: Any) -> Any:
        return reduce(lambda x, y: self.at(Maximum, x, y), values)


# -- both ends -------------------------------------------------------------------------------------------------


class TileIntervals:
    """The algebra of intervals over tiles."""

    def __init__(self, tiles: Tiles) -> None:
        call, device = tiles.call, tiles.device
        self.tiles, self.on = tiles, Numbers(call)
        facts = torch.finfo(call.working_dtype)
        self.step, self.slack, self.least, self.most = facts.eps, SLACK * facts.eps, facts.tiny, facts.max
        heads, batch = torch.arange(call.heads, device=device), torch.arange(call.batch, device=device)
        h, b = heads[None, :, None, None], batch[:, None, None, None]
        self.ranges: dict[Any, Ends] = {I: tiles.positions(), J: tiles.keys(), HEAD: (h, h), BATCH: (b, b)}
        self.ranges |= {HEADS: (call.heads,) * 2, WIDTH: (call.width,) * 2, KEYS: (call.keys,) * 2}

    # -- numbers -------------------------------------------------------------------------------------------------

    def number(self, value: Number) -> Ends:
        exact = self.on.number(value)
        return (exact, exact) if isinstance(exact, int) or self._has(exact) else self._widened(exact, exact)

    def symbol(self, symbol: Any) -> Ends:
        return self.ranges[symbol]

    def pair(self, pair: Pair) -> Ends:
        if pair.word == "cosine":
            return self._widened(*COSINES)
        return SQUARES if pair.is_nonnegative else (math.nan, math.nan)

    def sum(self, terms: list[Ends]) -> Ends:
        lows, highs = zip(*self._alike(terms), strict=True)
        low, high = self.on.sum(list(lows)), self.on.sum(list(highs))
        if self.on.are_whole(low, high):
            return low, high
        sizes = [self.on.highest(abs(x), abs(y)) for x, y in zip(lows, highs, strict=True)]
        return self._widened(low, high, self.on.sum(sizes))  # terms may cancel, their roundings do not

    def product(self, coefficient: Number, above: list[Ends], below: list[Ends]) -> Ends:
        factors = [self.number(coefficient), *above]
        whole = not below and self.on.are_whole(*(end for factor in factors for end in factor))
        factors = factors if whole else [self._real(factor) for factor in factors] + list(map(self._inverse, below))
        low, high = reduce(self._times, factors)
        if whole:
            return low, high
        alone = len(above) == 1 and not below and abs(math.frexp(coefficient)[0]) == 0.5
        return self._widened(low, high, 0.0 if alone else None)  # −x and 2x are not rounded

    def power(self, base: Ends, exponent: Ends) -> Ends:
        if isinstance(exponent[0], int) and exponent[0] == exponent[1] > 0:
            return self._repeated(base, exponent[0])
        (low, high), (small, large) = (tuple(map(self.on.array, self._real(side))) for side in (base, exponent))
        corners = [x**y for x in (low, high) for y in (small, large)]
        fits = (low > 0) | ((low == 0) & (small > 0))
        ends = self.on.lowest(*corners), self.on.highest(*corners)
        return self._widened(*(self.on.at(Where, fits, end, math.nan) for end in ends))

    def apply(self, function: type[Node], arguments: list[Ends]) -> Ends:
        assert issubclass(function, Elementary)
        truths, numbers = [x for x in arguments if _is_truth(x)], [x for x in arguments if not _is_truth(x)]
        numbers = self._alike(numbers) if function.keeps_integers else [self._real(number) for number in numbers]
        low, high = function.image(self.on.at, *truths, *numbers)  # a condition stands before the numbers
        is_exact = function.keeps_integers or function.gives_integers
        return (low, high) if is_exact else self._widened(low, high)

    def read(self, node: Read, indices: list[Ends]) -> Ends:
        return extremes(self.tiles, node)

    # -- truths --------------------------------------------------------------------------------------------------

    def truth(self, value: bool) -> Ends:
        return value, value

    def compare(self, left: Ends, relation: str, right: Ends) -> Ends:
        (a_low, a_high), (b_low, b_high) = self._alike([left, right])
        match relation:
            case "<=":
                return a_high <= b_low, (a_low > b_high) ^ True  # so that NaN is possible
            case "<":
                return a_high < b_low, (a_low >= b_high) ^ True
            case ">=" | ">":
                return self.compare(right, {">=": "<=", ">": "<"}[relation], left)
            case _:
                same = (a_low == a_high) & (b_low == b_high) & (a_low == b_low)
                return same, ((a_low > b_high) | (b_low > a_high)) ^ True

    def given(self, name: str) -> Ends:
        return mask_extremes(self.tiles, name)

    def both(self, parts: list[Ends]) -> Ends:
        return reduce(lambda x, y: (x[0] & y[0], x[1] & y[1]), parts)

    def either(self, parts: list[Ends]) -> Ends:
        return reduce(lambda x, y: (x[0] | y[0], x[1] | y[1]), parts)

    def negation(self, part: Ends) -> Ends:
        sure, possible = part
        return possible ^ True, sure ^ True

    # -- helpers -------------------------------------------------------------------------------------------------

    def _has(self, value: float) -> bool:
        """Whether the call's dtype holds the number itself."""
        return bool(abs(value) <= self.most and (2 * math.frexp(value)[0] / self.step).is_integer())

    def _widened(self, low: Any, high: Any, size: Any | None = None) -> Ends:
        """Real ends moved outwards by their rounding, and to infinity where the call's dtype has no such number."""
        low_size, high_size = (abs(low), abs(high)) if size is None else (size, size)
        low, high = low - (self.slack * low_size + self.least), high + (self.slack * high_size + self.least)
        low = self.on.at(Where, low < -self.most, -math.inf, low)
        high = self.on.at(Where, high > self.most, math.inf, high)
        lost = low + high != low + high  # NaN, or any number at all: then it may be NaN for some pair
        return self.on.at(Where, lost, math.nan, low), self.on.at(Where, lost, math.nan, high)

    def _real(self, ends: Ends) -> Ends:
        """The ends as real numbers; integers that the call's dtype would round are widened."""
        low, high = map(self.on.real, ends)
        if not self.on.are_whole(*ends):
            return low, high
        limit = 2 / self.step
        low = self.on.at(Where, abs(low) <= limit, low, low - self.slack * abs(low))
        return low, self.on.at(Where, abs(high) <= limit, high, high + self.slack * abs(high))

    def _alike(self, terms: list[Ends]) -> list[Ends]:
        """All integers if all of them are, otherwise all real."""
        whole = self.on.are_whole(*(end for term in terms for end in term))
        return terms if whole else [self._real(term) for term in terms]

    def _times(self, a: Ends, b: Ends) -> Ends:
        if isinstance(a[0], int | float) and a[0] == a[1]:  # a coefficient
            return (a[0] * b[0], a[0] * b[1]) if a[0] >= 0 else (a[0] * b[1], a[0] * b[0])
        corners = [x * y for x in a for y in b]
        return self.on.lowest(*corners), self.on.highest(*corners)

    def _inverse(self, ends: Ends) -> Ends:
        """1 / x; nothing is known where x may be 0."""
        low, high = map(self.on.array, self._real(ends))
        apart = (low > 0) | (high < 0)
        return self.on.at(Where, apart, 1 / high, math.nan), self.on.at(Where, apart, 1 / low, math.nan)

    def _repeated(self, base: Ends, times: int) -> Ends:
        """xⁿ."""
        whole = self.on.are_whole(*base)
        low, high = base if whole else map(self.on.array, self._real(base))
        ends = low**times, high**times
        if times % 2 == 0:
            least = self.on.at(Where, (low <= 0) & (high >= 0), 0, self.on.lowest(*ends))
            ends = least, self.on.highest(*ends)
        return ends if whole else self._widened(*ends)


def _is_truth(ends: Ends) -> bool:
    return isinstance(ends[0], bool) or getattr(ends[0], "dtype", None) == torch.bool
