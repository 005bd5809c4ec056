"""What one step learns from: tensors whose first axis counts examples, and how many predictions they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ..algebra.errors import CallError


@dataclass(frozen=True)
class Batch:
    """Examples.

    tensors: by name, each (examples, …)
    count:   how many predictions are asked for: the loss is a sum over them
    rows:    where the examples come from, one entry each, for whoever has to look at them
    """

    tensors: dict[str, Tensor]
    count: int
    rows: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def part(self, at: int, parts: int) -> Batch:
        """Examples at, at + parts, at + 2 · parts, …: every part has its share of the long and the short ones."""
        if len(self) < parts:
            raise CallError(
                f"batch: at least one example for each of {parts} parts (accumulate × processes); got {len(self)}; "
                "make it larger, or accumulate less"
            )
        return Batch(
            {name: tensor[at::parts] for name, tensor in self.tensors.items()}, self.count, self.rows[at::parts]
        )

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return Batch({name: tensor.to(device) for name, tensor in self.tensors.items()}, self.count, self.rows)


class Task(Protocol):
    """What is learned: batches by their step, the loss on one, and the measure on what was held out."""

    def batch(self, step: int) -> Batch:
        """The examples of a step: the same whenever it is asked for."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The sum over the batch's predictions, in nats."""

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measures on what was held out; `loss` first, in nats for each prediction."""
