"""The bugs that implementations of attention are found with, by name, in the order of the computation."""

from __future__ import annotations

from collections.abc import Iterable

from ...algebra.errors import KindError
from ..bugs import Bug
from .behaviour import BUGS as BEHAVIOUR
from .heads import BUGS as HEADS
from .masks import BUGS as MASKS
from .numbers import BUGS as NUMBERS
from .positions import BUGS as POSITIONS
from .projections import BUGS as PROJECTIONS
from .scale import BUGS as SCALE
from .weights import BUGS as WEIGHTS

GROUPS: dict[str, tuple[Bug, ...]] = {
    "scale": SCALE,
    "weights": WEIGHTS,
    "masks": MASKS,
    "heads": HEADS,
    "projections": PROJECTIONS,
    "positions": POSITIONS,
    "numbers": NUMBERS,
    "behaviour": BEHAVIOUR,
}


def joined(groups: Iterable[Iterable[Bug]]) -> dict[str, Bug]:
    """All groups in one table; a name that comes twice is refused."""
    table: dict[str, Bug] = {}
    for bug in (bug for group in groups for bug in group):
        if bug.name in table:
            raise KindError(f"catalogue: one bug to a name; got {bug.name!r} twice")
        table[bug.name] = bug
    return table


CATALOGUE = joined(GROUPS.values())

__all__ = ["CATALOGUE", "GROUPS"]
