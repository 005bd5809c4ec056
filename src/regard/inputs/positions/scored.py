"""Positions that are added to the score: s_ij + bias(i − j), as expressions of the algebra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..._arrays import as_array, library
from ..._checks import check_count
from ...algebra.errors import CallError, KindError
from ...algebra.expressions import Expression
from ...algebra.symbols import H, h, i, j, maximum, minimum, table, where
from .added import drawn
from .base import Position, replaced, same_shape


@dataclass(frozen=True)
class ALiBi(Position):
    """A penalty that grows with distance, steeper or flatter by head (Press et al.: Train Short, Test Long).

        s_ij − slope_h · (i − j)        slope_h = 2^(−8 (h + 1) / H)

    heads:    H. Where it is no power of two, the published rule takes the slopes of the power of two below, m, and
              goes on with every second slope of 2m heads: 2^(−4 (2 (h − m) + 1) / m) for h ≥ m.
              Without it the formula above holds for any H.
    distance: what grows: `i - j` for causal attention, `abs(i - j)` where keys after the query are read too

    >>> from regard.algebra.symbols import d, dot, sqrt
    >>> ALiBi().score(dot / sqrt(d))
    dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j)
    >>> ALiBi(12).slope
    where(h <= 7, 2 ** (-h - 1), 2 ** (-h + 15 / 2))
    """

    heads: int | None = None
    distance: Expression = i - j

    def __post_init__(self) -> None:
        if self.heads is not None:
            check_count("heads", self.heads, 1)
        if not isinstance(self.distance, Expression):
            raise KindError(f"distance: an expression, as in i - j or abs(i - j); got {self.distance!r}")

    @property
    def slope(self) -> Expression:
        """slope_h."""
        heads = self.heads
        if heads is None or heads & (heads - 1) == 0:
            return 2 ** (-8 * (h + 1) / H)
        m = 1 << (heads.bit_length() - 1)
        return where(h < m, 2 ** (-8 * (h + 1) / m), 2 ** (-4 * (2 * (h - m) + 1) / m))

    def score(self, score: Expression) -> Expression:
        return score - self.slope * self.distance


# -- which entry an offset reads -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Offsets:
    """An entry for each offset i − j, the same beyond `reach` (Shaw et al.: Relative Position Representations).

    sides: 2 for keys before and after the query, 2 · reach + 1 entries from −reach on;
           1 for those before it, reach + 1 entries from 0 on
    """

    reach: int
    sides: int = 2

    def __post_init__(self) -> None:
        check_count("reach", self.reach, 0)
        check_sides(self.sides)

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self.sides * self.reach + 1

    @property
    def least(self) -> int:
        """The offset of the first entry."""
        return -self.reach if self.sides == 2 else 0

    def spread(self, table: Any) -> Any:
        """The table itself: one column for each offset from `least` to `reach`."""
        return table


@dataclass(frozen=True)
class Buckets:
    """Offsets in buckets: one each when near, wider and wider when far (Raffel et al.: T5).

        bucket = x                                 where x = |i − j| is below e, half of the buckets of its side
        bucket = e + ⌊e' · log_(reach/e) (x/e)⌋    beyond, up to the last of e + e'

    count: of all buckets; with two sides, the first half is for i − j ≥ 0, the second for keys after the query
    reach: the distance from which on all share the last bucket
    """

    count: int = 32
    reach: int = 128
    sides: int = 2

    def __post_init__(self) -> None:
        check_sides(self.sides)
        check_count("count", self.count, 2 * self.sides)
        if self.count % self.sides:
            raise CallError(f"count: as many buckets before as after, an even number; got {self.count}")
        check_count("reach", self.reach, self.count // self.sides // 2 + 1)

    @property
    def least(self) -> int:
        """The offset of the first entry."""
        return -self.reach if self.sides == 2 else 0

    def entries(self) -> list[int]:
        """The bucket of each offset from `least` to `reach`.

        >>> Buckets(8, 6).entries()
        [7, 7, 7, 6, 6, 5, 0, 1, 2, 2, 3, 3, 3]
        """
        side = self.count // self.sides
        before = _buckets(side, self.reach)
        after = [side + bucket for bucket in before[:0:-1]] if self.sides == 2 else []
        return after + before

    def spread(self, table: Any) -> Any:
        """The table with one column for each offset from `least` to `reach`: those of one bucket are equal."""
        xp = library(table)
        return xp.take(table, xp.asarray(self.entries(), device=xp.device(table)), axis=1)


def _buckets(side: int, reach: int) -> list[int]:
    """The bucket of each distance from 0 to reach, in integers, where no logarithm can fall on the wrong side.

    b ≤ e' log_(reach/e) (x/e)  is  reach^b · e^(e' − b) ≤ x^e'
    """
    e, b = side // 2, 0
    rest = side - e
    found = list(range(e))
    for x in range(e, reach + 1):
        while b < rest - 1 and reach ** (b + 1) * e ** (rest - b - 1) <= x**rest:
            b += 1
        found.append(e + b)
    return found


def check_sides(sides: object) -> None:
    """Refuse what is neither 1 nor 2."""
    if sides not in (1, 2) or isinstance(sides, bool):
        raise CallError(f"sides: 1 for keys before the query, 2 for those after it, too; got {sides!r}")


# -- learned tables --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Relative(Position):
    """A learned number for each head and offset: s_ij + table[h, entry(i − j)].

    table: (H, entries), of the library of the queries; under PyTorch a gradient flows to it. The embedding of a T5
           checkpoint, (buckets, H), goes in transposed.
    bins:  which entry an offset reads: Offsets(reach), Buckets(count, reach); without, Offsets of the table's size
    name:  under which the call takes the table

    >>> from regard.algebra.symbols import dot
    >>> Relative([[0.0, 0.5, 1.0, 1.5, 2.0]]).score(dot)
    dot + table("relative")[h, maximum(-2, minimum(2, i - j)) + 2]
    """

    table: Any
    bins: Offsets | Buckets | None = None
    name: str = "relative"

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", as_array(self.table, "table"))
        table(self.name)  # refuses a name that cannot be one
        if self.table.ndim != 2:
            raise CallError(f"table: (heads, entries); got shape {tuple(self.table.shape)}")
        if not library(self.table).is_real(self.table):
            raise KindError(f"table: real floating numbers; got dtype {self.table.dtype}; convert it")
        entries = int(self.table.shape[1])
        if self.bins is None:
            object.__setattr__(self, "bins", _offsets_of(entries))
        if not isinstance(self.bins, Offsets | Buckets):
            raise KindError(f"bins: Offsets(reach) or Buckets(count, reach); got {self.bins!r}")
        if self.bins.count != entries:
            raise CallError(f"table: (heads, {self.bins.count}) for {self.bins}; got shape {tuple(self.table.shape)}")

    @classmethod
    def random(
        cls, heads: int, bins: Offsets | Buckets, seed: int = 0, *, spread: float = 0.02, like: Any = None
    ) -> Relative:
        """Normal numbers of that spread, as before training; an array of the library and dtype of `like`, or NumPy."""
        check_count("heads", heads, 1)
        return cls(drawn((heads, bins.count), seed, spread, like), bins)

    def __repr__(self) -> str:
        return f"Relative(table {tuple(self.table.shape)}, {self.bins}, name={self.name!r})"

    @property
    def parameters(self) -> dict[str, Any]:
        return {self.name: self.table}

    @property
    def heads(self) -> int:
        """How many heads the table has."""
        return int(self.table.shape[0])

    def with_parameters(self, arrays: Mapping[str, Any]) -> Self:
        return replaced(self, "table", same_shape(arrays.get(self.name, self.table), self.table))

    def score(self, score: Expression) -> Expression:
        assert self.bins is not None
        least, reach = self.bins.least, self.bins.reach
        return score + table(self.name)[h, maximum(least, minimum(reach, i - j)) - least]

    def tables(self) -> dict[str, Any]:
        assert self.bins is not None
        return {self.name: self.bins.spread(self.table)}


def _offsets_of(entries: int) -> Offsets:
    if entries % 2 == 0:
        raise CallError(
            f"table: (heads, 2 · reach + 1), an odd number of entries; got {entries}; "
            f"for keys before the query alone pass bins=Offsets({max(entries - 1, 0)}, sides=1)"
        )
    return Offsets(entries // 2)
