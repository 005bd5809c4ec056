"""One process, or several that learn one model.

    torchrun --nproc-per-node 2 -m regard train text

Under torchrun every process takes its share of each batch, and gradients are averaged; without, there is one.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn

from .machine import fastest


class Processes:
    """Which of the processes this one is: `rank` of `world`."""

    @property
    def rank(self) -> int:
        return torch.distributed.get_rank() if self.several else 0

    @property
    def world(self) -> int:
        return torch.distributed.get_world_size() if self.several else 1

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return bool(torch.distributed.is_available() and torch.distributed.is_initialized())

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def sum(self, number: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.several:
            torch.distributed.all_reduce(number)
        return number

    def wait(self) -> None:
        """Until all are here."""
        if self.several:
            torch.distributed.barrier()

    def apart(self, model: nn.Module) -> AbstractContextManager[Any]:
        """Gradients stay here for now: more of them follow in this step."""
        return model.no_sync() if self.several else nullcontext()


PROCESSES = Processes()


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, joined; one alone where it did not.

    What was tied to the others must be let go inside: PyTorch's threads between the processes end with the last thing
    that holds them, and one that ends as late as the interpreter may wait for it forever.
    """
    started = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not PROCESSES.several
    if started:
        name = fastest() if device == "auto" else device
        if name.startswith("cuda"):
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.distributed.init_process_group("nccl" if name.startswith("cuda") else "gloo")
    try:
        yield PROCESSES
    finally:
        if started:
            gc.collect()  # a model that is tied to others holds itself, in circles
            torch.distributed.destroy_process_group()
