"""The loss curve as a picture: curve.png, drawn anew at each measurement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..drawing import COLOURS, saved, styled
from .base import Measured, Watcher
from .tables import columns_of

if TYPE_CHECKING:
    from ..run import Run

SMOOTH = 0.05  # of the curve, over which the loss of batches is averaged


class Curve(Watcher):
    """Training and held-out loss against steps, with what counting reaches where that is known."""

    def __init__(self) -> None:
        with styled():  # a package that is missing is missed here, and not at the first measurement
            pass

    def began(self, run: Run) -> None:
        self.run = run

    def measured(self, measured: Measured) -> None:
        draw_curve(self.run.folder.path, self.run.task.unit)


def draw_curve(folder: Path, unit: str) -> Path:
    """The curve of a run, from its tables."""
    steps, held_out = columns_of(folder / "metrics.csv"), columns_of(folder / "held_out.csv")
    with styled():
        from matplotlib.figure import Figure

        figure: Any = Figure(figsize=(8, 4.6))
        axes = figure.add_subplot()
        axes.plot(steps["step"], steps["loss"], color=COLOURS[0], alpha=0.2, linewidth=0.8)
        axes.plot(steps["step"], smoothed(steps["loss"]), color=COLOURS[0], label="training (batches, smoothed)")
        axes.plot(held_out["step"], held_out["loss"], "o-", color=COLOURS[1], label="held out")
        best = min(range(len(held_out["loss"])), key=held_out["loss"].__getitem__)
        axes.annotate(
            f"{held_out['loss'][best]:.3f}", (held_out["step"][best], held_out["loss"][best]),
            textcoords="offset points", xytext=(0, 10), ha="center", color=COLOURS[1],
        )  # fmt: skip
        axes.set(xlabel="step", ylabel=f"loss ({unit})", title=folder.name)
        axes.set_ylim(*_range(steps["loss"], held_out["loss"]))
        axes.legend(loc="upper right")
        return saved(figure, folder / "curve.png")


def smoothed(numbers: list[float]) -> list[float]:
    """The mean over the steps around each, fewer at the ends."""
    reach = max(1, round(len(numbers) * SMOOTH / 2))
    sums = [0.0]
    for number in numbers:
        sums.append(sums[-1] + number)
    spans = ((max(0, at - reach), min(len(numbers), at + reach + 1)) for at in range(len(numbers)))
    return [(sums[stop] - sums[start]) / (stop - start) for start, stop in spans]


def _range(losses: list[float], held_out: list[float]) -> tuple[float, float]:
    """From the lowest to the first, so that a peak on the way does not flatten the rest."""
    low, high = min([*losses, *held_out]), max([losses[0], *held_out])
    return max(0.0, low - 0.08 * (high - low)), high + 0.08 * (high - low)
