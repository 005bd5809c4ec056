"""Step after step in memory, for experiments and for a first try: no folder, no file.

>>> import torch
>>> from regard.train import Schedule, fit
>>> history = fit(torch.nn.Linear(2, 1), task, Schedule(100, 1e-2))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from torch import nn

from .batch import Task
from .learner import Learner, Taken
from .schedule import Schedule


@dataclass
class History:
    """What was seen on the way.

    losses:   of each step's batch, in nats for each prediction
    measures: what evaluation said, by the number of steps before it
    seconds:  how long all took
    """

    losses: list[float] = field(default_factory=list)
    measures: dict[int, dict[str, float]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def last(self) -> dict[str, float]:
        """The measures at the end."""
        return self.measures[max(self.measures)]

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """Steps, and a measure at each of them: a curve."""
        return list(self.measures), [measures[name] for measures in self.measures.values()]


def fit(
    model: nn.Module,
    task: Task,
    schedule: Schedule,
    *,
    every: int | None = None,
    told: Callable[[Taken], Any] = lambda taken: None,
    **options: Any,
) -> History:
    """Train a model to the end of its schedule, where it stands.

    every:   after how many steps it is measured on what was held out; at the end alone where nothing is said
    told:    is called with each step
    options: optimiser, machine, accumulate and seed, as in `Learner`
    """
    learner, history, began = Learner(model, task, schedule, **options), History(), perf_counter()
    while learner.step < schedule.steps:
        taken = learner.advance()
        history.losses.append(taken.loss)
        told(taken)
        if learner.step == schedule.steps or (every and learner.step % every == 0):
            history.measures[learner.step] = learner.evaluate()
    history.seconds = perf_counter() - began
    model.eval()
    return history
