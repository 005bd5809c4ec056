"""One step of learning, and nothing that a later step could not know.

loss_t = Σ loss(batch_t) / count        g = ∇ loss_t, cut to `clip`        θ ← AdamW(θ, g, η_t)

Batches and random numbers are functions of (seed, step): a learner that is made again from its parameters, moments and
step goes on bit for bit as if it had never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import check_count
from .averaged import Averaged
from .batch import Batch, Task
from .errors import Diverged
from .machine import Machine
from .optimiser import AdamW, moments, remember
from .processes import PROCESSES
from .schedule import Schedule


@dataclass(frozen=True)
class Taken:
    """A step that was taken.

    loss:     of its batch before the step, in nats for each prediction
    gradient: its length before it was cut
    rate:     η_t
    count:    how many predictions it learned from
    """

    step: int
    loss: float
    gradient: float
    rate: float
    count: int


class Learner:
    """A model on its way.

    accumulate: in how many parts a batch is gone through, where it does not fit into memory at once
    average:    what is left at each step of the mean over all before, which is what is measured; 0 for none
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        schedule: Schedule,
        optimiser: AdamW = AdamW(),  # noqa: B008 - a value that never changes
        machine: Machine = Machine(),  # noqa: B008
        *,
        accumulate: int = 1,
        average: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_count("accumulate", accumulate, 1)
        check_count("seed", seed, 0)
        self.task, self.schedule, self.recipe, self.machine = task, schedule, optimiser, machine
        self.accumulate, self.seed, self.step = accumulate, seed, 0
        self.place = machine.place
        self.model = model.to(self.place).train()
        self.optimiser = optimiser.of(model)
        self.scaler = machine.scaler()
        self.averaged = Averaged(self.model, average)
        self.seen = machine.prepared(model)

    def advance(self) -> Taken:
        """Take the next step."""
        batch = self.task.batch(self.step)
        loss = self._gradient(batch)
        self.scaler.unscale_(self.optimiser)
        length = self.recipe.clipped(self.model)
        self._check(loss, length, batch)
        taken = Taken(self.step, loss, length, self.schedule(self.step), batch.count)
        for group in self.optimiser.param_groups:
            group["lr"] = taken.rate
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        self.averaged.follow(self.step)
        self.step += 1
        return taken

    def _gradient(self, batch: Batch) -> float:
        """∇ loss_t, part by part; the loss of all of them."""
        parts = self.accumulate * PROCESSES.world
        mine = range(PROCESSES.rank, parts, PROCESSES.world)
        total = torch.zeros((), device=self.place)
        for at in mine:
            with nullcontext() if at == mine[-1] else PROCESSES.apart(self.seen):  # gradients are averaged once a step
                total += self._part(batch.part(at, parts), at)
        return float(PROCESSES.sum(total))

    def _part(self, part: Batch, at: int) -> Tensor:
        """The loss of one part, with its gradient added to the others."""
        torch.manual_seed(seed_of(self.seed, self.step, at))
        with self.machine.casting():
            loss = self.task.loss(self.seen, part.to(self.place)) / part.count
        self.scaler.scale(loss * PROCESSES.world).backward()
        return loss.detach()

    def _check(self, loss: float, length: float, batch: Batch) -> None:
        """Refuse a step that would leave no number in the parameters."""
        if not math.isfinite(loss):
            self.optimiser.zero_grad(set_to_none=True)
            raise Diverged(self.step, f"the loss is {loss}", self._bad(batch))
        if not math.isfinite(length) and not self.scaler.is_enabled():  # a scaler skips such a step by itself
            self.optimiser.zero_grad(set_to_none=True)
            raise Diverged(self.step, f"the gradient's length is {length}", batch.rows)

    def _bad(self, batch: Batch) -> list[Any]:
        """The rows of those examples whose own loss is not finite."""
        with torch.no_grad(), self.machine.casting():
            losses = [self.task.loss(self.model, batch.part(at, len(batch)).to(self.place)) for at in range(len(batch))]
        bad = [row for row, loss in zip(batch.rows, losses, strict=True) if not math.isfinite(float(loss))]
        return bad or batch.rows

    def evaluate(self) -> dict[str, float]:
        """Measures on what was held out."""
        measures: dict[str, float] = self.at_rest(self.task.evaluate)
        return measures

    @property
    def measured(self) -> nn.Module:
        """The model that is measured and kept: the mean over the last steps, or the model itself."""
        return self.averaged.model

    def at_rest(self, measure: Callable[[nn.Module], Any]) -> Any:
        """What is measured on a model while it does not learn."""
        self.measured.eval()
        try:
            with torch.no_grad(), self.machine.casting():
                return measure(self.measured)
        finally:
            self.model.train()

    # -- what it goes on from ----------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Parameters and moments, by name."""
        kept = {
            "model": self.model.state_dict(),
            "average": self.averaged.tensors(),
            "optimiser": moments(self.model, self.optimiser),
        }
        return {f"{part}.{name}": tensor for part, tensors in kept.items() for name, tensor in tensors.items()}

    def restore(self, tensors: dict[str, Tensor], step: int, scaler: dict[str, Any]) -> None:
        """Go on from what `tensors` told at a step."""
        self.model.load_state_dict(_under("model.", tensors))
        self.averaged.restore(_under("average.", tensors))
        remember(self.model, self.optimiser, _under("optimiser.", tensors))
        if scaler:
            self.scaler.load_state_dict(scaler)
        self.step = step


def seed_of(seed: int, step: int, part: int) -> int:
    """A seed for the random numbers of one part of one step."""
    return int(np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
