"""How large a step is, step by step: up in a straight line, then down along a cosine.

η_t = η · (t + 1) / w                                     for t < w
η_t = η · (f + (1 − f) · (1 + cos(π · (t − w) / (T − w))) / 2)     from there to T
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._checks import check_count, check_number
from ..algebra.errors import CallError


@dataclass(frozen=True)
class Schedule:
    """The rate of every step.

    steps:   T, how many there are
    rate:    η, the largest
    warmup:  w, after how many it is reached; at most a tenth of all where nothing is said
    floor:   f, the share of η that is left at the end

    >>> schedule = Schedule(steps=100, rate=0.1, warmup=4, floor=0.1)
    >>> [round(schedule(step), 4) for step in (0, 1, 3, 4, 52, 99)]
    [0.025, 0.05, 0.1, 0.1, 0.055, 0.01]
    """

    steps: int
    rate: float
    warmup: int | None = None
    floor: float = 0.1

    def __post_init__(self) -> None:
        check_count("steps", self.steps, 1)
        check_number("rate", self.rate, 0)
        if self.warmup is not None:
            check_count("warmup", self.warmup, 0)
        if self.warmed > self.steps:
            raise CallError(
                f"warmup: at most the steps, {self.steps}; got {self.warmup}; train longer, or warm up less"
            )
        if not 0 <= self.floor <= 1:
            raise CallError(f"floor: a share of the rate, 0 to 1; got {self.floor!r}")

    @property
    def warmed(self) -> int:
        """w."""
        return min(100, self.steps // 10) if self.warmup is None else self.warmup

    def __call__(self, step: int) -> float:
        """η_t; past the end it stays at the floor."""
        if step < self.warmed:
            return self.rate * (step + 1) / self.warmed
        passed = (step - self.warmed) / (self.steps - self.warmed) if step < self.steps else 1.0
        return self.rate * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * passed)) / 2)
