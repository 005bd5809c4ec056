"""`regard experiment`: a list, or a run with its table and its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import rich.box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from .picture import drawn
from .record import Outcome, Scale, Table, Tell, shown
from .registry import EXPERIMENTS, find
from .store import known, measured


def list_all(console: Console) -> None:
    """Every experiment: its name, its question, its rows of the ledger, how long it takes."""
    grid = Grid(box=rich.box.SIMPLE_HEAD, show_edge=False)
    for column in ("name", "question", "claims", "minutes"):
        grid.add_column(column, justify="right" if column == "minutes" else "left", overflow="fold")
    for experiment in map(find, EXPERIMENTS):
        grid.add_row(experiment.name, experiment.asks, " ".join(experiment.claims), f"{experiment.minutes:g}")
    console.print(grid)
    console.print("regard experiment NAME runs one, --all runs all; --share 0.1 is a first look.", style="dim")


def run_all(console: Console, names: Sequence[str], out: Path, scale: Scale, *, again: bool = False) -> None:
    """Those named, or all of them: table, answer and picture of each."""
    experiments = [find(name) for name in names or EXPERIMENTS]
    for experiment in experiments:
        console.print(Text(experiment.asks, style="bold"))
        began, found = perf_counter(), None if again else known(experiment.name, scale)
        if found is None:
            with _bar(console, experiment.name) as tell:
                found = measured(experiment.name, scale, tell)
            took = f"{perf_counter() - began:.0f} s"
        else:
            took = "known from before; --again measures anew"
        _report(console, experiment.name, found, out, took)


def run_quietly(console: Console, names: Sequence[str]) -> None:
    """Those named that are not known, with a bar and nothing else."""
    for name in names:
        if known(name) is None:
            with _bar(console, name) as tell:
                measured(name, tell=tell)


def _report(console: Console, name: str, found: Outcome, out: Path, took: str) -> None:
    console.print(grid_of(found.table))
    console.print(Text(found.says))
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(found.json(), encoding="utf-8")
    picture = drawn(find(name), found, out / f"{name}.png")
    console.print(Text(f"{picture}   {took}\n", style="dim"), soft_wrap=True)


def grid_of(table: Table) -> Grid:
    """A table for the terminal; numbers stand right."""
    grid = Grid(box=rich.box.SIMPLE_HEAD, show_edge=False)
    for at, column in enumerate(table.columns):
        numbers = all(isinstance(row[at], int | float) for row in table.rows)
        grid.add_column(Text(column), justify="right" if numbers else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(shown(cell)) for cell in row))
    return grid


@contextmanager
def _bar(console: Console, name: str) -> Iterator[Tell]:
    """A bar that tells what is going on."""
    columns: tuple[Any, ...] = (
        BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)
