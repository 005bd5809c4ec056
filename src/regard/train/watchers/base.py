"""What a watcher is told, and when. Each does what it needs and leaves out the rest."""

from __future__ import annotations

from collections.abc import Iterable
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

    def saving(self, step: int) -> None:
        """A checkpoint will stand: what was told up to here must be on the disk first."""

    def saved(self, step: int) -> None:
        """A checkpoint stands."""

    def ended(self, result: dict[str, Any]) -> None:
        """The last step was taken."""

    def closed(self) -> None:
        """Nothing follows, however it ended."""


class Watchers(Watcher):
    """Several as one: each is told in turn."""

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        self.all = list(watchers)

    def __getattribute__(self, name: str) -> Any:
        if name in TOLD:
            return lambda *what: [getattr(one, name)(*what) for one in self.all]
        return super().__getattribute__(name)


TOLD = {name for name in vars(Watcher) if not name.startswith("_")}
