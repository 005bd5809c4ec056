"""What the model wrote on the way: samples/000500.txt after 500 steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..folder import write_text
from .base import Watcher

if TYPE_CHECKING:
    from ..run import Run


class Samples(Watcher):
    """A file for each measurement; one that comes again is written again, the same."""

    def began(self, run: Run) -> None:
        self.path = run.folder / "samples"

    def sampled(self, step: int, text: str) -> None:
        self.path.mkdir(exist_ok=True)
        write_text(self.path / f"{step:06}.txt", text.rstrip("\n") + "\n")
