"""What an experiment is, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..algebra.errors import CallError, KindError

Cell = str | float | int
Tell = Callable[[str, float], None]
"""Is called with what is going on and the share of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run: all of it, or a small share to see that it works.

    >>> Scale(0.1).steps(500), Scale(0.001).steps(500), Scale().steps(500)
    (50, 2, 500)
    """

    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise CallError(f"share: of the whole experiment, above 0 to 1; got {self.share!r}")

    def steps(self, steps: int, least: int = 2) -> int:
        """So many steps in the whole experiment, and a share of them in this."""
        return max(least, round(steps * self.share))


def shown(cell: Cell) -> str:
    """A cell as a table shows it.

    >>> shown(2.0 / 3), shown(12), shown("mean")
    ('0.6667', '12', 'mean')
    """
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class Table:
    """Rows under columns; numbers stay numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise CallError(f"rows: a cell for each of {', '.join(self.columns)}; got {wrong[0]!r}")

    def column(self, name: str) -> list[Cell]:
        """The cells under a column."""
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: plain data, which JSON can hold.

    says:    the answer in one or two sentences, made of the numbers
    table:   what a teacher would put on a slide
    numbers: what the ledger reads, by name
    series:  what the picture is drawn from
    """

    says: str
    table: Table
    numbers: dict[str, float]
    series: dict[str, Any] = field(default_factory=dict)

    def json(self) -> str:
        """As text."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1)

    @classmethod
    def of_json(cls, text: str) -> Outcome:
        """What `json` wrote."""
        told = json.loads(text)
        if not isinstance(told, dict) or {"says", "table", "numbers", "series"} - told.keys():
            raise KindError("outcome: what Outcome.json wrote; got other JSON")
        rows = tuple(tuple(row) for row in told["table"]["rows"])
        return cls(told["says"], Table(tuple(told["table"]["columns"]), rows), told["numbers"], told["series"])


@dataclass(frozen=True)
class Experiment:
    """A question, and how it is answered.

    name:    as in `regard experiment recall`
    asks:    the question
    claims:  the rows of the ledger that its numbers decide
    minutes: about how long it takes on two cores
    run:     measures: run(scale, tell) -> Outcome
    draw:    draw(outcome, figure): the picture, on an empty matplotlib figure
    size:    of the figure, in inches
    """

    name: str
    asks: str
    claims: tuple[str, ...]
    minutes: float
    run: Callable[[Scale, Tell], Outcome]
    draw: Callable[[Outcome, Any], None]
    size: tuple[float, float] = (10.0, 4.5)


def silent(what: str, share: float) -> None:
    """Tells nobody."""


def shares(parts: Sequence[str], tell: Tell) -> Callable[[str, float], None]:
    """A `tell` for one of several parts that take about as long: tell(part, share of the part)."""
    places = {part: at for at, part in enumerate(parts)}
    return lambda part, share: tell(part, (places[part] + share) / len(parts))
