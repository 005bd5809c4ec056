"""What stands in the ledger: a claim, what was measured for it, and how that came out.

claim     a sentence of a text, in our own words, with a verdict and a function that measures
measured  a number, and the bounds that it must keep
figure    a picture or a small table of such numbers, for the page
result    a claim that was run: passed, failed, skipped or broken off by an error
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from ..algebra.errors import RegardError


class LedgerError(RegardError):
    """A claim that cannot stand in the ledger, or is not there."""


class Verdict(Enum):
    """What became of a claim when it was measured."""

    HOLDS = "holds"
    CONDITION = "holds with a condition"
    WRONG = "wrong as stated"
    ILLUSTRATION = "illustration"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Measured:
    """at_least ≤ value ≤ at_most. `what` says what the number is, `detail` what else there is to see.

    Without a bound it could not fail, and is refused. NaN keeps no bound.
    """

    value: float
    what: str
    at_most: float | None = None
    at_least: float | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        if self.at_most is None and self.at_least is None:
            raise LedgerError(f"measured: at_most=, at_least= or both; got neither for {self.what!r}")
        object.__setattr__(self, "value", float(self.value))

    @property
    def kept(self) -> bool:
        """Whether the number keeps its bounds."""
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.value <= high

    @property
    def expected(self) -> str:
        """The bounds in words."""
        if self.at_least is None:
            return f"at most {self.at_most:g}"
        if self.at_most is None:
            return f"at least {self.at_least:g}"
        same = self.at_least == self.at_most
        return f"exactly {self.at_most:g}" if same else f"{self.at_least:g} to {self.at_most:g}"

    def __str__(self) -> str:
        shown = f"{self.what}: {self.value:.4g}, expected {self.expected}"
        return f"{shown} ({self.detail})" if self.detail else shown


@dataclass(frozen=True)
class Figure:
    """What the numbers look like: SVG or HTML that `plots` wrote, and a sentence on what there is to see."""

    markup: str
    caption: str


Measurements = Iterator[Measured | Figure]
"""What a row yields: numbers with their bounds, the telling one first, and figures where there is something to see."""


@dataclass(frozen=True)
class Claim:
    """A claim of the texts.

    id:       its name in the ledger, such as G2
    sources:  the letters of the texts that make it
    sentence: what is claimed, in our own words
    verdict:  what became of it
    measure:  yields numbers with their bounds, the telling one first
    needs:    packages without which it cannot be measured
    """

    id: str
    sources: str
    sentence: str
    verdict: Verdict
    measure: Callable[[], Measurements]
    needs: tuple[str, ...] = ()

    @property
    def formula(self) -> str:
        """The claim as mathematics: how the function that measures it opens."""
        return (self.measure.__doc__ or "").strip().partition("\n\n")[0]


@dataclass(frozen=True)
class Result:
    """A claim that was run. `error` and `skipped` say why there is no number, where there is none.

    stored: whether it is from an earlier run of the same code; `seconds` are those of that run
    """

    claim: Claim
    measurements: tuple[Measured, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    skipped: str | None = None
    figures: tuple[Figure, ...] = ()
    stored: bool = False

    @property
    def measured(self) -> float | None:
        """The telling number: the first that breaks its bounds, or else the first."""
        return None if self.telling is None else self.telling.value

    @property
    def telling(self) -> Measured | None:
        """The first measurement that breaks its bounds, or else the first."""
        broken = (part for part in self.measurements if not part.kept)
        return next(broken, self.measurements[0] if self.measurements else None)

    @property
    def expected(self) -> str:
        """The bounds of the telling number, in words."""
        return "" if self.telling is None else self.telling.expected

    @property
    def passed(self) -> bool:
        """Whether there are numbers and all of them keep their bounds."""
        ended = self.error is None and self.skipped is None
        return ended and bool(self.measurements) and all(part.kept for part in self.measurements)

    @property
    def status(self) -> str:
        """passed, failed, skipped or error."""
        if self.error is not None:
            return "error"
        return "skipped" if self.skipped is not None else "passed" if self.passed else "failed"

    @property
    def detail(self) -> str:
        """Every number with its bounds, or why there is none; one line each."""
        reason = self.error or self.skipped
        return "\n".join([*map(str, self.measurements), *([reason] if reason else [])])
