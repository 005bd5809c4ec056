"""Random numbers as a function: the same (seed, purpose, place) gives the same numbers, whatever was drawn before.

    r_0, r_1, …  =  Philox(key = (seed, purpose), counter = place)        64 bits each
    u = ⌊r / 2¹¹⌋ / 2⁵³  in [0, 1)          z = √(−2 ln(1 − u)) cos(2π u')          order = the ranks of r

Only the raw bits are NumPy's, which it promises never to change; so a run can be resumed with another version.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from ...algebra.errors import CallError, KindError

SEEDS = 2**64


@dataclass(frozen=True)
class Draws:
    """The numbers of one purpose at one place, a step or an epoch for example.

    >>> Draws(0, "order", place=1).order(5).tolist() == Draws(0, "order", place=1).order(5).tolist()
    True
    """

    seed: int
    purpose: str
    place: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool):
            raise KindError(f"seed: an integer; got {self.seed!r}")
        if not 0 <= self.seed < SEEDS:
            raise CallError(f"seed: from 0 to 2⁶⁴ − 1; got {self.seed}")

    def apart(self, purpose: object) -> Draws:
        """Numbers for a part of the purpose, independent of those of the others."""
        return replace(self, purpose=f"{self.purpose}/{purpose}")

    def order(self, count: int) -> Any:
        """A permutation of 0 … count − 1."""
        return np.argsort(self._raw(count), kind="stable")

    def uniform(self, *shape: int) -> Any:
        """Float64 from 0 to below 1."""
        return ((self._raw(math.prod(shape)) >> np.uint64(11)) * 2.0**-53).reshape(shape)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        """Integers from low to high, both included."""
        return low + np.floor(self.uniform(*shape) * (high - low + 1)).astype(np.int64)

    def normal(self, *shape: int) -> Any:
        """Float64 of mean 0 and variance 1 (Box and Muller)."""
        u, v = self.uniform(2, *shape)
        return np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)

    def _raw(self, count: int) -> Any:
        key = np.array([self.seed, crc32(self.purpose.encode())], dtype=np.uint64)
        counter = np.array([0, 0, 0, self.place], dtype=np.uint64)  # the lowest word counts the numbers
        return np.random.Philox(key=key, counter=counter).random_raw(count)
