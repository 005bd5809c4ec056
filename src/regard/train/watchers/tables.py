"""The numbers of a run as CSV: every step in metrics.csv, every measurement in held_out.csv.

A run that goes on first takes back the rows after its checkpoint: they will come again, the same.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..folder import write_text
from ..learner import Taken
from .base import Measured, Watcher

if TYPE_CHECKING:
    from ..run import Run

STEPS = ("step", "loss", "gradient", "rate", "count", "seconds")


class Tables(Watcher):
    """Two files, row after row; numbers are written so that they are read back exactly."""

    def __init__(self) -> None:
        self.open: list[TextIO] = []

    def began(self, run: Run) -> None:
        step, folder = run.learner.step, run.folder
        self.steps = self._appended(folder / "metrics.csv", step - 1)
        self.held_out = self._appended(folder / "held_out.csv", step)
        self._head(self.steps, STEPS)

    def stepped(self, taken: Taken, seconds: float) -> None:
        row = (taken.step, taken.loss, taken.gradient, taken.rate, taken.count, round(seconds, 3))
        self._row(self.steps, row)

    def measured(self, measured: Measured) -> None:
        self._head(self.held_out, ("step", *measured.measures, "seconds"))
        self._row(self.held_out, (measured.step, *measured.measures.values(), round(measured.seconds, 3)))

    def saving(self, step: int) -> None:
        for file in self.open:
            file.flush()
            os.fsync(file.fileno())

    def closed(self) -> None:
        for file in self.open:
            file.close()
        self.open.clear()

    def _appended(self, path: Path, last: int) -> TextIO:
        """A file to write at its end, after the rows up to a step."""
        kept = rows_until(path, last) if path.exists() else []
        write_text(path, "".join(f"{','.join(row)}\n" for row in kept))
        file = path.open("a", encoding="utf-8", newline="")
        self.open.append(file)
        return file

    def _head(self, file: TextIO, names: tuple[str, ...]) -> None:
        """The names of the columns, where none stand yet."""
        if not os.fstat(file.fileno()).st_size:
            self._row(file, names)

    @staticmethod
    def _row(file: TextIO, cells: tuple[Any, ...]) -> None:
        csv.writer(file, lineterminator="\n").writerow(
            [repr(cell) if isinstance(cell, float) else cell for cell in cells]
        )
        file.flush()


def rows_until(path: Path, last: int) -> list[list[str]]:
    """The heading, and the whole rows of steps up to the last; none where there is none."""
    with path.open(encoding="utf-8", newline="") as file:
        whole = [line for line in file if line.endswith("\n")]  # a process that was ended leaves half a line
    rows = list(csv.reader(whole))
    kept = [row for row in rows[1:] if len(row) == len(rows[0]) and row[0].isdigit() and int(row[0]) <= last]
    return [rows[0], *kept] if rows else []


def columns_of(path: Path) -> dict[str, list[float]]:
    """A file of numbers, column by column."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {name: [float(row[at]) for row in rows[1:]] for at, name in enumerate(rows[0])} if rows else {}
