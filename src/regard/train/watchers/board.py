"""The numbers of a run for TensorBoard: tensorboard --logdir runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...algebra.errors import MissingExtra
from ..learner import Taken
from .base import Measured, Watcher

if TYPE_CHECKING:
    from ..run import Run


class Board(Watcher):
    """Scalars by step, and the samples as text. A run that goes on takes back what came after its checkpoint."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtra("tensorboard", "train") from None
        self.make: Any = SummaryWriter

    def began(self, run: Run) -> None:
        after = run.learner.step + 1  # what was measured after the checkpoint's own step still holds
        self.writer = self.make(str(run.folder / "tensorboard"), purge_step=after)

    def stepped(self, taken: Taken, seconds: float) -> None:
        for name in ("loss", "gradient", "rate"):
            self.writer.add_scalar(f"train/{name}", getattr(taken, name), taken.step)

    def measured(self, measured: Measured) -> None:
        for name, value in measured.measures.items():
            self.writer.add_scalar(f"held out/{name}", value, measured.step)

    def sampled(self, step: int, text: str) -> None:
        self.writer.add_text("sample", "\n".join(f"    {line}" for line in text.splitlines()), step)

    def saved(self, step: int) -> None:
        self.writer.flush()

    def closed(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
