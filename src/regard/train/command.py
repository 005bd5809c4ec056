"""`regard train`: what the command does once its options are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..algebra.errors import CallError
from ..nn.storage import load
from .folder import Folder, usual
from .processes import PROCESSES, joined
from .run import Run, repeated, resume, start
from .settings import Settings
from .tasks import kind_of
from .watchers.base import Watcher
from .watchers.board import Board
from .watchers.curve import Curve
from .watchers.samples import Samples
from .watchers.tables import Tables
from .watchers.terminal import Terminal


def begin(
    console: Any, settings: Settings, out: Path | None, *, again: bool = False, parent: Path | None = None
) -> None:
    """A new run; with `again` the one that stands in its folder, if there is one."""
    with joined(settings.machine.device):
        folder = out or usual(settings.task)
        if again and Folder(folder).holds_run:
            return _go(console, resume(folder))
        Folder(folder).check_free()
        run = start(settings, folder, parent=parent)
        if PROCESSES.first:
            for note in run.task.notes:
                console.print(note, highlight=False, markup=False, soft_wrap=True)
        return _go(console, run)


def go_on(console: Any, folder: Path, steps: int | None) -> None:
    """The run of a folder, from its last checkpoint."""
    settings = Folder(folder).read_settings()
    with joined(settings.machine.device):
        _go(console, resume(folder, steps=steps))


def repeat(console: Any, folder: Path, out: Path | None) -> None:
    """The run of a folder once more from its first step, in another folder: its settings, its data."""
    settings = Folder(folder).read_settings()
    with joined(settings.machine.device):
        _go(console, repeated(folder, out or usual(settings.task)))


def try_out(console: Any, folder: Path, given: list[str], length: int) -> None:
    """What the best model of a run makes of texts or images; of what was held out where none is given."""
    where = Folder(folder)
    settings = where.read_settings()
    if not where.best.exists():
        raise CallError(f"folder: a run that was measured at least once; got {str(where)!r}; train it first")
    task, model = kind_of(settings.task).kept(where, settings), load(where.best)
    with torch.no_grad():
        answers = [task.answer(model, one, length) for one in given] or [task.sample(model, length)]
    for answer in answers:
        console.print(answer, highlight=False, markup=False, soft_wrap=True)


def _go(console: Any, run: Run) -> None:
    if run.learner.step == run.steps and run.folder.result.exists():
        console.print(f"{run.folder} is done: {run.steps} steps; --steps asks for more", highlight=False, markup=False)
        return
    watchers: list[Watcher] = [Tables(), Samples(), Curve(), Board(), Terminal(console)] if PROCESSES.first else []
    run.go(watchers)
