"""The target as a function of problems: one reading, one process, arrays in the layout of problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .calling import Call, Calls, Outcome
from .problem import Array, Problem
from .reading import Reading
from .sandbox.process import Runner
from .search import Observation

RUNS = 400  # of a target that answers differently each time: its mean is looked at
SIGMAS = 6.0  # how far a mean of so many runs may be off


@dataclass(frozen=True)
class Subject:
    """Somebody's attention, ready to be asked."""

    runner: Runner
    reading: Reading
    random: bool = False
    loose: float = 0.0  # how far outputs may be off where the target computes in half precision

    @property
    def tolerance(self) -> float:
        """How far an output may be off."""
        return max(self.reading.tolerance, self.loose)

    def outcome(self, problem: Problem, about: str = "", **wants: Any) -> Outcome:
        """What a call came to."""
        found: Outcome = self.runner.ask(self.reading.call(problem, about, **wants))
        return found

    def outcomes(self, problems: Sequence[Problem], about: str = "") -> list[Outcome]:
        """What several calls came to."""
        calls: tuple[Call, ...] = tuple(self.reading.call(problem, about) for problem in problems)
        found: list[Outcome] = self.runner.ask(Calls(calls)) if calls else []
        return found

    def y(self, problem: Problem, about: str = "") -> Array | None:
        """The output; None where the call fails or gives another shape."""
        return self.reading.read(self.outcome(problem, about), problem)

    def observed(self, problem: Problem, about: str = "") -> Observation | None:
        """The output as an observation: of a target that answers at random, the mean of many runs."""
        if not self.random:
            y = self.y(problem, about)
            return None if y is None else Observation(problem, y, self.tolerance)
        outcome = self.outcome(problem, about, times=RUNS)
        runs = [made for run in outcome.runs if (made := self.reading.canonical(run, problem)) is not None]
        if not runs:
            return None
        spread = np.std(runs, axis=0).max() / len(runs) ** 0.5
        return Observation(problem, np.mean(runs, axis=0), self.tolerance + SIGMAS * float(spread))

    def read_as(self, reading: Reading) -> Subject:
        """The same target, called in another way."""
        return replace(self, reading=reading)
