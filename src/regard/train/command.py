"""`regard train`: what the command does once its options are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..algebra.errors import CallError, KindError
from ..nn.storage import load
from .beginning import repeated, resume, start
from .folder import Folder, usual
from .options import settings_of
from .processes import PROCESSES, joined
from .run import Run
from .settings import Settings
from .tasks import kind_of
from .watchers.base import Watcher
from .watchers.board import Board
from .watchers.curve import Curve
from .watchers.samples import Samples
from .watchers.tables import Tables
from .watchers.terminal import Terminal


def begin(
    console: Any,
    task: str,
    given: dict[str, Any],
    *,
    out: Path | None = None,
    again: bool = False,
    parent: Path | None = None,
) -> None:
    """A new run from options; with `again` the one that stands in its folder, if there is one."""
    settings = settings_of(task, given, _settings_of_parent(parent, task))
    with joined(settings.machine.device):
        folder = out or usual(task)
        if again and Folder(folder).holds_run:
            _note_others(console, settings, Folder(folder))
            _go(console, resume(folder))
        else:
            Folder(folder).check_free()
            _go(console, start(settings, folder, parent=parent), news=True)


def _settings_of_parent(parent: Path | None, task: str) -> Settings | None:
    if parent is None:
        return None
    settings = Folder(parent).read_settings()
    if settings.task != task:
        raise KindError(f"start: a run of the task {task}; got one of {settings.task} in {str(parent)!r}")
    return settings


def _note_others(console: Any, asked: Settings, folder: Folder) -> None:
    """Say that a run keeps its own settings, where others were asked for."""
    if asked != folder.read_settings():
        _say(console, f"{folder} goes on with its own settings; options that say others are left out")


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
        _say(console, *([task.answer(model, one, length) for one in given] or [task.sample(model, length)]))


def _go(console: Any, run: Run, *, news: bool = False) -> None:
    """The run to its end; a new one first says what its task has to say. No one else holds it: see `joined`."""
    if news:
        _say(console, *run.task.notes)
    if run.learner.step == run.steps and run.folder.result.exists():
        _say(console, f"{run.folder} is done, after {run.steps} steps; resume it with --steps to go on")
        return
    watchers: list[Watcher] = [Tables(), Samples(), Curve(), Board(), Terminal(console)] if PROCESSES.first else []
    run.go(watchers)


def _say(console: Any, *lines: str) -> None:
    if PROCESSES.first:
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
