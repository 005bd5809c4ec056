"""A run from its first step to its last.

    run = start(settings, "runs/mine")          a new folder, with settings, data and vocabulary in it
    run = resume("runs/mine")                   the same run, from its last checkpoint
    result = run.go(watchers)

What the folder holds decides every number that follows: a run that was ended at any moment and resumed writes the same
rows, bit for bit, as one that was not, on the same machine with the same number of threads.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ..algebra.errors import CallError, KindError
from ..inputs.vocabularies import Vocabulary
from ..nn.models import Model
from ..nn.storage import load
from .errors import Diverged, TrainingError
from .folder import Folder, write_json
from .learner import Learner
from .machine import check_products
from .processes import PROCESSES
from .settings import Settings
from .state import Progress, load_state, save_state
from .tasks import kind_of
from .watchers.base import Measured, Watcher


class Run:
    """A run in its folder.

    task:     what is learned;  learner: the model on its way
    progress: how far it is
    """

    def __init__(self, folder: Folder, settings: Settings, task: Any, model: Model) -> None:
        learning, machine = settings.learning, settings.machine
        self.folder, self.settings, self.task = folder, settings, task
        self.learner = Learner(
            model, task, learning.schedule, learning.optimiser, machine,
            accumulate=learning.accumulate, average=learning.average, seed=learning.seed,
        )  # fmt: skip
        self.progress = Progress()
        self.stopped = False

    @property
    def steps(self) -> int:
        """How many there are in all."""
        return self.settings.learning.steps

    def go(self, watchers: Iterable[Watcher] = ()) -> dict[str, Any]:
        """Step after step to the end; what came of it, as in result.json."""
        told = Watchers(watchers if PROCESSES.first else ())
        told.began(self)
        try:
            with self._interrupted():
                self._learn(told)
            return self._end(told)
        except Diverged as error:
            self._diverged(error)
            raise
        except OSError as error:
            raise TrainingError(
                f"step {self.learner.step}: a file of the run could not be written: {error}; "
                f"mend that, then go on with regard train resume {self.folder}"
            ) from error
        finally:
            told.closed()

    # -- steps --------------------------------------------------------------------------------------------------

    def _learn(self, told: Watchers) -> None:
        every = self.settings.watching.every(self.steps)
        saves = self.settings.watching.save or every
        began = perf_counter() - self.progress.seconds
        while self.learner.step < self.steps:
            taken = self.learner.advance()
            self.progress.seconds = perf_counter() - began
            told.stepped(taken, self.progress.seconds)
            step, last = self.learner.step, self.learner.step == self.steps
            if last or step % every == 0:
                self._measure(told)
            if last or step % saves == 0 or step % every == 0 or self._asked_to_stop():
                self._save(told)
            if self.stopped and not last:
                raise Interrupted(self.folder, step)

    def _measure(self, told: Watchers) -> None:
        """On what was held out; one process measures, the others wait."""
        if PROCESSES.first:
            measures = self.learner.evaluate()
            step = self.learner.step
            told.measured(Measured(step, measures, self.progress.seconds))
            if self.progress.best is None or measures["loss"] < self.progress.best[0]:
                self.progress.best = (measures["loss"], step)
                self.learner.measured.save(self.folder.best)
            length = self.settings.watching.sample
            if length:
                told.sampled(step, self.learner.at_rest(lambda model: self.task.sample(model, length)))
        PROCESSES.wait()

    def _save(self, told: Watchers) -> None:
        if PROCESSES.first:
            save_state(self.folder.checkpoint, self.learner, self.progress)
            told.saved(self.learner.step)
        PROCESSES.wait()

    # -- how it ends --------------------------------------------------------------------------------------------

    def _end(self, told: Watchers) -> dict[str, Any]:
        """Measure the last and the best model on all that was held out."""
        result: dict[str, Any] = {}
        if PROCESSES.first:
            self.learner.measured.save(self.folder.model)
            result = {"steps": self.steps, "seconds": round(self.progress.seconds, 3), "best": self._best()}
            result["last"] = self.learner.at_rest(self.task.final)
            write_json(self.folder.result, result)
            told.ended(result)
        PROCESSES.wait()
        return result

    def _best(self) -> dict[str, float]:
        step = self.progress.best[1] if self.progress.best else self.steps
        model = load(self.folder.best, device=self.learner.place)
        return {"step": step, **self.learner.at_rest(lambda _: self.task.final(model))}

    def _diverged(self, error: Diverged) -> None:
        """Leave word of it, and the parameters as they were before the step."""
        if PROCESSES.first:
            told = {"step": error.step, "what": error.what, "examples": [str(row) for row in error.rows]}
            write_json(self.folder / "diverged.json", told)
            save_state(self.folder.checkpoint, self.learner, self.progress)

    def _asked_to_stop(self) -> bool:
        """Whether any of the processes was told to end."""
        if PROCESSES.several:
            asked = torch.tensor(float(self.stopped), device=self.learner.place)
            self.stopped = bool(PROCESSES.sum(asked) > 0)
        return self.stopped

    @contextmanager
    def _interrupted(self) -> Iterator[None]:
        """The first Ctrl-C, or a request to end, ends the run after the step, with a checkpoint; the second at once."""

        def stop(*_: Any) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True

        try:
            before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread, where signals come
            yield
            return
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


class Interrupted(TrainingError):  # noqa: N818 - what happened, as one says it
    """A run that was asked to end, and did, with a checkpoint."""

    def __init__(self, folder: Folder, step: int) -> None:
        super().__init__(f"interrupted after {step} steps, with a checkpoint; go on with: regard train resume {folder}")


class Watchers(Watcher):
    """Several as one: each is told in turn."""

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        self.all = list(watchers)

    def __getattribute__(self, name: str) -> Any:
        if name in TOLD:
            return lambda *what: [getattr(one, name)(*what) for one in self.all]
        return super().__getattribute__(name)


TOLD = {name for name in vars(Watcher) if not name.startswith("_")}


# -- how it begins ---------------------------------------------------------------------------------------------


def start(settings: Settings, path: str | os.PathLike[str], *, parent: str | os.PathLike[str] | None = None) -> Run:
    """A new run in a new folder.

    parent: the folder of a run whose best model it begins with, vocabulary and all
    """
    folder = Folder(path)
    prepare(settings)
    known = _parent(parent, settings) if parent is not None else None
    task = kind_of(settings.task).read(settings, **_vocabulary(known))
    return _settled(Run(folder, settings, task, _first_model(task, settings, known)))


def repeated(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Run:
    """The run of a folder from its first step, in a folder of its own."""
    old = Folder(path)
    settings = old.read_settings()
    prepare(settings)
    task = kind_of(settings.task).kept(old, settings)
    return _settled(Run(Folder(out), settings, task, _first_model(task, settings, None)))


def _settled(run: Run) -> Run:
    """A new run with its folder: data first, settings last, so that a folder with settings is whole."""
    if PROCESSES.first:
        run.folder.begin()
        run.task.keep(run.folder)
        write_json(run.folder / "machine.json", surroundings())
        run.learner.model.save(run.folder / "first.safetensors")
        write_json(run.folder.settings, run.settings.plain())
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
    task = kind_of(settings.task).kept(folder, settings)
    run = Run(folder, settings, task, _first_model(task, settings, None))
    if folder.checkpoint.exists():
        run.progress = load_state(folder.checkpoint, run.learner)
    if run.learner.step > run.steps:
        raise CallError(f"steps: at least the {run.learner.step} that were taken; got {run.steps}")
    if PROCESSES.first:
        folder.tidy()
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


def _first_model(task: Any, settings: Settings, parent: Folder | None) -> Model:
    """New parameters, drawn from the seed; or those of a parent."""
    torch.manual_seed(settings.learning.seed)
    model: Model = task.model()
    if parent is not None:
        old = load(parent.best if parent.best.exists() else parent.model)
        try:
            model.load_state_dict(old.state_dict())
        except RuntimeError as error:
            first = str(error).splitlines()[1].strip()
            raise CallError(
                f"start: a model of the same shape; got another in {str(parent)!r}: {first}; "
                "leave out --dim, --depth, --heads and the like: they are taken from it"
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
