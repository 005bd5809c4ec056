"""Where an element stands, as a value: one interface for all that can be done with it.

    add     x_i + p_i            to the vectors, before they become queries and keys
    turn    R_i q_i, R_j k_j     applied to queries and keys
    score   s_ij + bias(i − j)   to the score, as an expression; the arrays it reads are the `tables` of the call

Each value does one of them and leaves the other two as they are; a sum of values does what each of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self, TypeVar

from ...algebra.errors import CallError, KindError
from ...algebra.expressions import Expression
from ...algebra.formula import Formula

AnyFormula = TypeVar("AnyFormula", bound=Formula)
AnyPosition = TypeVar("AnyPosition", bound="Position")
Turning = Callable[[Any], Any]


class Position:
    """Where an element stands. Rows are (…, positions, width); `at` says where they stand.

    at: the position of the first row, an integer; or one for each entry of the batch, which may be negative for rows
        of padding; or the position of every row, (batch, rows)
    """

    def add(self, x: Any, at: Any = 0) -> Any:
        """x_r + p(at + r): the vectors with their positions. All axes before the last two are the batch."""
        return x

    def turn(self, x: Any, at: Any = 0) -> Any:
        """R(at + r) x_r: queries or keys, turned. Axis −3 is the head where there are four axes or more."""
        return x

    def turns(self, like: Any, at: Any = 0) -> Turning:
        """The function that turns arrays of the rows, batch, library and dtype of `like`, with any number of heads.

        One serves the queries and keys of all layers, where `turn` would work out the angles for each.
        """
        return _unchanged

    def turn_pair(self, q: Any, k: Any, start: Any = None) -> tuple[Any, Any]:
        """Queries and keys of one attention, turned: the keys stand at 0, 1, …, the queries are the last of them.

        start: the position of the first query, as in the call of an Attention: an integer, or one for each batch
        """
        return q, k

    def score(self, score: Expression) -> Expression:
        """The score with what the position adds to it."""
        return score

    def tables(self) -> dict[str, Any]:
        """The arrays that the added score reads: arguments of the call, by name."""
        return {}

    def join(self, attention: AnyFormula) -> AnyFormula:
        """The same attention with the score completed: `position.join(att)(q, k, v, **position.tables())`."""
        if not isinstance(attention, Formula):
            raise KindError(f"join: an Attention, as in Attention(mask=causal); got {attention!r}")
        score = self.score(attention.score)
        return attention if score == attention.score else type(attention)(score, attention.weight, attention.mask)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arrays that training changes, by name."""
        return {}

    @property
    def heads(self) -> int | None:
        """For how many heads it is made; None for any."""
        return None

    @property
    def longest(self) -> int | None:
        """How many rows a text may have; None for any."""
        return None

    @property
    def dynamic(self) -> bool:
        """Whether what it does to a row depends on the length of the text."""
        return False

    def with_parameters(self, arrays: Mapping[str, Any]) -> Self:
        """The same position with other arrays in place of its parameters, by name."""
        return self

    def settled(self, length: int) -> Self:
        """The same for texts of one length: what it does to a row does not depend on the length any more."""
        return self

    def __add__(self, other: object) -> Position:
        if not isinstance(other, Position):
            return NotImplemented
        parts = [part for one in (self, other) for part in (one.parts if isinstance(one, Sum) else (one,))]
        parts = [part for part in parts if not isinstance(part, NoPosition)]
        return Sum(tuple(parts)) if len(parts) > 1 else next(iter(parts), NoPosition())


@dataclass(frozen=True)
class NoPosition(Position):
    """Elements without an order: a set. The neutral element of `+`."""


@dataclass(frozen=True, repr=False)
class Sum(Position):
    """Several positions at once, as in `Learned(table) + ALiBi()`: each does its part."""

    parts: tuple[Position, ...]

    def __post_init__(self) -> None:
        names = [name for part in self.parts for name in {**part.tables(), **part.parameters}]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise CallError(f"tables: one name for each; got {', '.join(twice)} twice; pass one of them another name=")
        made = sorted({part.heads for part in self.parts if part.heads is not None})
        if len(made) > 1:
            raise CallError(f"heads: all parts are made for as many; got {' and '.join(map(str, made))}")

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def add(self, x: Any, at: Any = 0) -> Any:
        return reduce(lambda x, part: part.add(x, at), self.parts, x)

    def turn(self, x: Any, at: Any = 0) -> Any:
        return reduce(lambda x, part: part.turn(x, at), self.parts, x)

    def turns(self, like: Any, at: Any = 0) -> Turning:
        found = [part.turns(like, at) for part in self.parts]
        return lambda x: reduce(lambda x, turn: turn(x), found, x)

    def turn_pair(self, q: Any, k: Any, start: Any = None) -> tuple[Any, Any]:
        return reduce(lambda pair, part: part.turn_pair(*pair, start), self.parts, (q, k))

    def score(self, score: Expression) -> Expression:
        return reduce(lambda score, part: part.score(score), self.parts, score)

    def tables(self) -> dict[str, Any]:
        return {name: array for part in self.parts for name, array in part.tables().items()}

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: array for part in self.parts for name, array in part.parameters.items()}

    @property
    def heads(self) -> int | None:
        return _least(part.heads for part in self.parts)

    @property
    def longest(self) -> int | None:
        return _least(part.longest for part in self.parts)

    @property
    def dynamic(self) -> bool:
        return any(part.dynamic for part in self.parts)

    def with_parameters(self, arrays: Mapping[str, Any]) -> Self:
        return replaced(self, "parts", tuple(part.with_parameters(arrays) for part in self.parts))

    def settled(self, length: int) -> Self:
        return replace(self, parts=tuple(part.settled(length) for part in self.parts))


def replaced(position: AnyPosition, field: str, value: Any) -> AnyPosition:
    """The same position with one field replaced: by what was checked before, where a compiler can follow."""
    other = copy(position)
    object.__setattr__(other, field, value)
    return other


def same_shape(table: Any, own: Any) -> Any:
    """The table that replaces `own`."""
    if tuple(table.shape) != tuple(own.shape):
        raise CallError(f"table: has the shape that it had, {tuple(own.shape)}; got shape {tuple(table.shape)}")
    return table


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _unchanged(x: Any) -> Any:
    return x
