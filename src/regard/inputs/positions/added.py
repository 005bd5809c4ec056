"""Positions that are added to the vectors: x_i + p_i."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..._arrays import Library, as_array, library
from ..._checks import check_count, check_number
from ...algebra.errors import CallError, KindError
from .angles import PAIRS, check_pairs, cos_sin, geometric
from .base import Position, replaced, same_shape
from .places import as_integer, handed_back, places, real_rows


@dataclass(frozen=True)
class Sinusoidal(Position):
    """Waves of the position, one frequency for each pair of features (Vaswani et al.: Attention Is All You Need).

        p_i = sin(i · ω_m), cos(i · ω_m)        ω_m = base^(−2m / D),  m = 0 … D/2

    base:  the longest wave is 2π · base positions long
    pairs: "interleaved" puts sin and cos of one frequency side by side, as in the paper;
           "halves" puts all sines first, then all cosines

    An odd width has one sine more than cosines.

    >>> Sinusoidal().add([[0.0, 0.0, 0.0, 0.0]])
    [[0.0, 1.0, 0.0, 1.0]]
    >>> Sinusoidal(pairs="halves").add([[0.0, 0.0, 0.0]])
    [[0.0, 0.0, 1.0]]
    """

    base: float = 10000.0
    pairs: str = "interleaved"

    def __post_init__(self) -> None:
        check_number("base", self.base, 0, above=True)
        check_pairs(self.pairs)

    def add(self, x: Any, at: Any = 0) -> Any:
        array = as_array(x, "x")
        xp, width = real_rows(array), int(array.shape[-1])
        cos, sin = cos_sin(xp, places(xp, array, at), geometric(self.base, width), xp.working_dtype(array.dtype))
        return handed_back(_added(xp, array, PAIRS[self.pairs].join(sin, cos[..., : width // 2])), x)


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Position):
    """A vector for each position: p_i = table[i], up to the longest that was learned.

    table: (longest, D), of the library of x; under PyTorch a gradient flows to it

    >>> Learned([[1.0, 2.0], [3.0, 4.0]]).add([[0.5, 0.5]], at=1)
    [[3.5, 4.5]]
    """

    table: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", as_array(self.table, "table"))
        if self.table.ndim != 2:
            raise CallError(f"table: (longest, width), a vector for each position; got shape {tuple(self.table.shape)}")
        if not library(self.table).is_real(self.table):
            raise KindError(f"table: real floating numbers; got dtype {self.table.dtype}; convert it")

    @classmethod
    def random(cls, longest: int, width: int, seed: int = 0, *, spread: float = 0.02, like: Any = None) -> Learned:
        """Normal numbers of that spread, as before training; an array of the library and dtype of `like`, or NumPy."""
        check_count("longest", longest, 0)
        check_count("width", width, 1)
        return cls(drawn((longest, width), seed, spread, like))

    def __repr__(self) -> str:
        return f"Learned(table {tuple(self.table.shape)})"

    @property
    def longest(self) -> int:
        """How many positions the table has."""
        return int(self.table.shape[0])

    @property
    def parameters(self) -> dict[str, Any]:
        return {"position": self.table}

    def with_parameters(self, arrays: Mapping[str, Any]) -> Self:
        return replaced(self, "table", same_shape(arrays.get("position", self.table), self.table))

    def add(self, x: Any, at: Any = 0) -> Any:
        array = as_array(x, "x")
        xp = real_rows(array)
        self._check(xp, array)
        first = as_integer(at)
        vectors = self._gathered(xp, array, at) if first is None else self._cut(first, int(array.shape[-2]))
        return handed_back(_added(xp, array, vectors), x)

    def _check(self, xp: Library, x: Any) -> None:
        if library(self.table).name != xp.name:
            raise KindError(
                f"table: comes from the library of x, {xp.name}; got {library(self.table).name}; convert it"
            )
        if xp.device(self.table) != xp.device(x):
            raise CallError(f"device: table lies where x lies, on {xp.device(x)}; got it on {xp.device(self.table)}")
        if self.table.shape[1] != x.shape[-1]:
            raise CallError(
                f"table: vectors of the width of x, {x.shape[-1]}; got {self.table.shape[1]}, "
                f"shape {tuple(self.table.shape)}"
            )

    def _cut(self, first: int, count: int) -> Any:
        if count and not 0 <= first <= first + count <= self.longest:
            self._refuse(first, first + count - 1)
        return self.table[first : first + count, :]

    def _gathered(self, xp: Library, x: Any, at: Any) -> Any:
        found = places(xp, x, at)
        inside = xp.clip(found, 0, max(self.longest - 1, 0))
        if xp.is_true(xp.any(found != inside)):
            self._refuse(int(xp.min(found)), int(xp.max(found)))
        return xp.reshape(xp.take(self.table, xp.reshape(inside, (-1,)), axis=0), (*found.shape, self.table.shape[1]))

    def _refuse(self, low: int, high: int) -> None:
        advice = "padding may stand at 0" if low < 0 else "shorten the text, or learn a longer table"
        raise CallError(f"at: the table has positions 0 to {self.longest - 1}; got rows from {low} to {high}; {advice}")


def drawn(shape: tuple[int, ...], seed: int, spread: float, like: Any = None) -> Any:
    """Normal numbers from a seed: the same in every library."""
    values = spread * np.random.default_rng(seed).standard_normal(shape)
    if like is None:
        return values
    xp = library(like)
    return xp.asarray(values, dtype=like.dtype, device=xp.device(like))


def _added(xp: Library, x: Any, p: Any) -> Any:
    """x + p in at least float32, rounded once to the dtype of x."""
    working = xp.working_dtype(x.dtype)
    return xp.astype(xp.astype(x, working, copy=False) + xp.astype(p, working, copy=False), x.dtype, copy=False)
