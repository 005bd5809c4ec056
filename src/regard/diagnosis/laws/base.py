"""What a law is given, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..description import Description
from ..families import with_numbers
from ..matching import Match
from ..problem import Array, Problem
from ..report import Example
from ..search import Observation, Search
from ..steps import State, Steps
from ..subject import Subject

UNKNOWN = "fits nothing in the catalogue"
"""The name of a difference that no mistake explains."""


@dataclass(frozen=True)
class Suspicion:
    """A bug by its name, with what was measured."""

    name: str
    evidence: str
    severity: str = ""  # "" for the catalogue's own
    example: Example | None = None


@dataclass(frozen=True)
class Verdict:
    """What trying a law came to. `holds` is None where it says nothing here, and `measured` why."""

    law: str
    holds: bool | None
    measured: str
    suspicions: tuple[Suspicion, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examination:
    """The target, what it was found to compute, and what it should."""

    subject: Subject
    description: Description
    match: Match | None
    right: Steps  # without mistakes: of the formula that it was found to compute, or else of the one asked for
    named: frozenset[str] = frozenset()  # the mistakes that are known already
    mask: str | None = None  # what the user says that True means in a mask

    @property
    def model(self) -> Steps | None:
        """What predicts the target, mistakes and all."""
        return None if self.match is None else self.match.steps

    @property
    def vectors(self) -> bool:
        """Whether the target takes q, k and v themselves."""
        return self.subject.reading.form == "vectors"

    def expected(self, problem: Problem) -> Array | None:
        """What the target should return, as far as its known mistakes allow; None where that cannot be said."""
        return self.predicted(self.model or self.right, problem)

    def predicted(self, steps: Steps, problem: Problem) -> Array | None:
        """What a chain of steps returns."""
        state = self.state(steps, problem)
        return None if state is None else np.asarray(state.y)

    def state(self, steps: Steps, problem: Problem) -> State | None:
        """Where a chain of steps ends."""
        return Search([Observation(self.numbered(problem), np.empty(0), 0.0)]).state(steps)

    def numbered(self, problem: Problem) -> Problem:
        """The problem with the numbers that were fitted, where some were."""
        fitted = None if self.match is None else self.match.fitted
        return problem if fitted is None else with_numbers(problem, dict(fitted.numbers))

    def explains(self, problem: Problem, y: Array) -> bool:
        """Whether what is known of the target, mistakes and all, predicts this output."""
        predicted = None if self.model is None else self.predicted(self.model, problem)
        return predicted is not None and predicted.shape == y.shape and not self.differs(y, predicted)

    def differs(self, y: Array, other: Array, times: float = 1.0) -> bool:
        """Whether two outputs differ by more than rounding; entries that are open in the second do not count."""
        told = ~np.isnan(other)
        if not told.any():
            return False
        with np.errstate(invalid="ignore"):
            error = np.abs(y - other)[told]
        size = max(1.0, float(np.abs(other[told]).max()))
        return not bool(error.max() <= times * self.subject.tolerance * size)
