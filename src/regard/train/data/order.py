"""In which order a run sees its examples: a function of the seed and the step, without a state to save.

    epoch e        a permutation π_e of the rows, drawn from (seed, e)
    stream         π_0, π_1, π_2, …      one after the other
    batch of step  stream[step · B : (step + 1) · B]

So every batch has B rows, each epoch has every row once, and a batch may end one epoch and begin the next.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...algebra.errors import CallError, KindError
from .draws import Draws


@dataclass(frozen=True)
class Order:
    """The rows of each step: count examples, batch of them at a time.

    >>> order = Order(5, batch=2, seed=3)
    >>> sorted(row for step in range(5) for row in order[step].tolist())  # ten rows: two epochs
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    >>> order.epoch(5), order.steps(epochs=3)
    (2.0, 8)
    """

    count: int
    batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        _at_least_one("count", self.count)
        _at_least_one("batch", self.batch)
        Draws(self.seed, "order")  # refuses what is no seed

    def __getitem__(self, step: int) -> Any:
        """The rows (batch,) of a step, int64."""
        start = _step(step) * self.batch
        place, epochs = start % self.count, range(start // self.count, (start + self.batch - 1) // self.count + 1)
        return np.concatenate([_permutation(self.seed, self.count, e) for e in epochs])[place : place + self.batch]

    def __iter__(self) -> Iterator[Any]:
        raise KindError("order: steps have no end; write order[step], or for step in range(order.steps(epochs))")

    def epoch(self, step: int) -> float:
        """How often every example has been seen before the step."""
        return _step(step) * self.batch / self.count

    def steps(self, epochs: float) -> int:
        """How many steps see every example so often."""
        return math.ceil(epochs * self.count / self.batch)


def in_order(count: int, batch: int) -> Iterator[Any]:
    """The rows 0 … count − 1 once, batch of them at a time; the last batch has what is left."""
    _at_least_one("batch", batch)
    return (np.arange(start, min(start + batch, count)) for start in range(0, count, batch))


@lru_cache(maxsize=4)  # the steps of an epoch share it
def _permutation(seed: int, count: int, epoch: int) -> Any:
    return Draws(seed, "order", epoch).order(count)


def _at_least_one(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise KindError(f"{name}: an integer; got {value!r}")
    if value < 1:
        raise CallError(f"{name}: at least 1; got {value}")


def _step(step: Any) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise KindError(f"step: an integer; got {step!r}") from None
    if number < 0:
        raise CallError(f"step: counted from 0; got {number}")
    return number
