"""The picture of an outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..train.drawing import COLOURS, saved, styled
from .record import Experiment, Outcome

__all__ = ["COLOURS", "drawn"]


def drawn(experiment: Experiment, outcome: Outcome, path: Path) -> Path:
    """The picture of an outcome, as a file; its ending says which kind: .png, .svg, .pdf."""
    with styled():
        from matplotlib.figure import Figure

        figure: Any = Figure(figsize=experiment.size)
        experiment.draw(outcome, figure)
        figure.suptitle(experiment.asks, x=0.01, ha="left", fontsize=13)
        return saved(figure, path)
