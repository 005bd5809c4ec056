"""How a run begins, and begins again.

    run = start(settings, "runs/mine")          a new folder, with settings, data and vocabulary in it
    run = resume("runs/mine")                   the same run, from its last checkpoint
    run = repeated("runs/mine", "runs/again")   the same run from its first step, in a folder of its own

What the folder holds decides every number that follows: a run that was ended at any moment and resumed writes the same
rows, bit for bit, as one that was not, on the same machine with the same number of threads.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from ..algebra.errors import CallError, KindError
from ..inputs.vocabularies import Vocabulary
from ..nn.models import Model
from ..nn.storage import load
from .disk import spoken
from .folder import Folder, write_json
from .machine import check_products
from .processes import PROCESSES
from .run import Run
from .settings import Settings
from .state import load_state
from .tasks import kind_of


def start(settings: Settings, path: str | os.PathLike[str], *, parent: str | os.PathLike[str] | None = None) -> Run:
    """A new run in a new folder.

    parent: the folder of a run whose best model it begins with, vocabulary and all
    """
    prepare(settings)
    known = _parent(parent, settings) if parent is not None else None
    task = kind_of(settings.task).read(settings, **_vocabulary(known))
    model = _model(task, settings) if known is None else _begun(_model(task, settings), known)
    return _settled(Run(Folder(path), settings, task, model))


def repeated(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Run:
    """The run of a folder from its first step, in a folder of its own."""
    old = Folder(path)
    settings = old.read_settings()
    prepare(settings)
    return _settled(Run(Folder(out), settings, *_kept(old, settings)))


def _settled(run: Run) -> Run:
    """A new run with its folder: settings last, so that a folder with settings is whole."""
    if PROCESSES.first:
        with spoken(f"out: a folder that can be written to, {str(run.folder)!r}", "mend that, or name another"):
            run.folder.begin()
            run.task.keep(run.folder)
            run.learner.model.save(run.folder.first)
            write_json(run.folder / "machine.json", surroundings())
            run.folder.settle(run.settings)
    PROCESSES.wait()
    return run


def resume(path: str | os.PathLike[str], *, steps: int | None = None) -> Run:
    """The run of a folder, from its last checkpoint; from its first step where there is none.

    steps: another number of steps; the rate then falls along the longer cosine from here on
    """
    folder = Folder(path)
    settings = folder.read_settings()
    if steps is not None:
        settings = lengthened(settings, steps)
    prepare(settings)
    run = Run(folder, settings, *_kept(folder, settings))
    if folder.checkpoint.exists():
        run.progress = load_state(folder.checkpoint, run.learner)
    if run.learner.step > run.steps:
        raise CallError(f"steps: at least the {run.learner.step} that were taken; got {run.steps}")
    if PROCESSES.first:
        with spoken(f"folder: one that can be written to, {str(folder)!r}", "mend that"):
            folder.tidy()
            folder.diverged.unlink(missing_ok=True)
            if run.learner.step < run.steps:  # a result that stands here is that of fewer steps
                folder.result.unlink(missing_ok=True)
            write_json(folder.settings, settings.plain())
    PROCESSES.wait()
    return run


def lengthened(settings: Settings, steps: int) -> Settings:
    """The same with another number of steps."""
    told = settings.plain()
    return Settings.of({**told, "learning": {**told["learning"], "steps": steps}})


def prepare(settings: Settings) -> None:
    """The machine as the settings ask for it; refuse what it cannot do before anything is written."""
    machine = settings.machine
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    check_products(machine.precision, machine.place)


def surroundings() -> dict[str, Any]:
    """Versions and machine: what else decides the last bit."""
    from .. import __version__

    return {
        "regard": __version__, "torch": torch.__version__, "python": platform.python_version(),
        "system": platform.platform(), "processor": platform.machine(), "threads": torch.get_num_threads(),
        "processes": PROCESSES.world, "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }  # fmt: skip


def _model(task: Any, settings: Settings) -> Model:
    """New parameters, drawn from the seed."""
    torch.manual_seed(settings.learning.seed)
    model: Model = task.model()
    return model


def _kept(folder: Folder, settings: Settings) -> tuple[Any, Model]:
    """The task of a folder, and the parameters that its run began with."""
    with spoken(f"folder: one whose files can be read, {str(folder)!r}", "mend that"):
        folder.check_unchanged()
        task = kind_of(settings.task).kept(folder, settings)
        return task, _filled(_model(task, settings), folder.first, "folder", "was settings.json changed?")


def _begun(model: Model, parent: Folder) -> Model:
    """A model with the parameters of a run that went before."""
    path = parent.best if parent.best.exists() else parent.model
    if not path.exists():
        raise CallError(f"start: a run that was measured at least once; got {str(parent)!r}; train it first")
    return _filled(model, path, "start", "the shape is taken from it where no option says another")


def _filled(model: Model, path: Path, argument: str, advice: str) -> Model:
    try:
        model.load_state_dict(load(path).state_dict())
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip()
        raise CallError(
            f"{argument}: a model of the same shape; got another in {str(path)!r}: {first}; {advice}"
        ) from None
    return model


def _parent(path: str | os.PathLike[str], settings: Settings) -> Folder:
    folder = Folder(path)
    task = folder.read_settings().task
    if task != settings.task:
        raise KindError(f"start: a run of the task {settings.task}; got one of {task} in {str(folder)!r}")
    return folder


def _vocabulary(parent: Folder | None) -> dict[str, Any]:
    """The vocabulary that a parent's model knows, where it has one."""
    if parent is None or not parent.vocabulary.exists():
        return {}
    return {"vocabulary": Vocabulary.load(parent.vocabulary)}
