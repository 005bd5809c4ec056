"""What a watcher is told, and when. Each does what it needs and leaves out the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..learner import Taken

if TYPE_CHECKING:
    from ..run import Run


@dataclass(frozen=True)
class Measured:
    """What was measured after so many steps, and how long they took."""

    step: int
    measures: dict[str, float]
    seconds: float


class Watcher:
    """Is told what happens. A run that goes on from step s says so by `began`: what came after s will come again."""

    def began(self, run: Run) -> None:
        """The run begins, or goes on, at run.learner.step."""

    def stepped(self, taken: Taken, seconds: float) -> None:
        """A step was taken; seconds since the first of all."""

    def measured(self, measured: Measured) -> None:
        """What was held out was measured."""

    def sampled(self, step: int, text: str) -> None:
        """The model wrote something."""

    def saved(self, step: int) -> None:
        """A checkpoint stands."""

    def ended(self, result: dict[str, Any]) -> None:
        """The last step was taken."""

    def closed(self) -> None:
        """Nothing follows, however it ended."""
