"""What can go wrong while a model learns."""

from __future__ import annotations

from typing import Any

from ..algebra.errors import RegardError


class TrainingError(RegardError):
    """A run that cannot start, or cannot go on."""


class Diverged(TrainingError):  # noqa: N818 - what happened, as one says it
    """A loss or a gradient that is no number any more. The parameters are still those before the step.

    step: at which it happened
    rows: the examples whose own loss is not finite; those of the whole batch where it is the gradient that is not
    """

    def __init__(self, step: int, what: str, rows: list[Any]) -> None:
        self.step, self.what, self.rows = step, what, rows
        shown = ", ".join(map(str, rows[:4])) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
        super().__init__(
            f"step {step}: {what}, on {shown}; the parameters stand as they were before it; "
            "take a smaller rate, a longer warm-up, or look at these examples"
        )
