"""A run from its first step to its last.

run = start(settings, "runs/mine")          as in `beginning`
result = run.go(watchers)

step, step, …, measure, checkpoint, step, …        each told to the watchers
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any

import torch

from ..nn.models import Model
from ..nn.storage import load
from .disk import spoken
from .errors import Diverged, TrainingError
from .folder import Folder, write_json
from .learner import Learner
from .machine import compiler_errors
from .processes import PROCESSES
from .settings import Settings
from .state import Progress, save_state
from .watchers.base import Measured, Watcher, Watchers


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
        try:
            with self._spoken():
                told.began(self)
                with self._interrupted():
                    self._learn(told)
                return self._end(told)
        except Diverged as error:
            self._diverged(error)
            raise
        except compiler_errors(self.settings.machine) as error:
            raise TrainingError(
                f"compiled: a model that torch.compile can go over; got this: {str(error).splitlines()[0]}; "
                f'leave out --compiled, or set "compiled" to false in {self.folder.settings} and resume'
            ) from error
        finally:
            told.closed()

    def _spoken(self) -> AbstractContextManager[None]:
        return spoken(
            f"folder: one that can be written to, {str(self.folder)!r}",
            f"mend that, then go on with: regard train resume {self.folder}",
        )

    # -- steps --------------------------------------------------------------------------------------------------

    def _learn(self, told: Watchers) -> None:
        every = self.settings.watching.every(self.steps)
        saves = self.settings.watching.save or every
        began = perf_counter() - self.progress.seconds
        while self.learner.step < self.steps:
            taken = self.learner.advance()
            self.progress.seconds = perf_counter() - began
            told.stepped(taken, self.progress.seconds)
            step, last, ending = self.learner.step, self.learner.step == self.steps, self._asked_to_stop()
            if last or step % every == 0:
                self._measure(told)
            if last or step % saves == 0 or step % every == 0 or ending:
                self._save(told)
            if ending and not last:
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
            told.saving(self.learner.step)
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
            write_json(self.folder.diverged, told)
            save_state(self.folder.checkpoint, self.learner, self.progress)

    def _asked_to_stop(self) -> bool:
        """Whether any of the processes was told to end: all hear the same, after the same step."""
        if not PROCESSES.several:
            return self.stopped
        asked = torch.tensor(float(self.stopped), device=self.learner.place)
        return bool(PROCESSES.sum(asked) > 0)

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
