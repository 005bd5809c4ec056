"""What a model learns on: a device and a precision. PyTorch is loaded when it is asked for, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from .._checks import check_count
from ..algebra.errors import CallError

PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Machine:
    """Where the numbers are.

    device:    "cpu", "cuda", "cuda:1", "mps"; "auto" for the fastest that is there
    precision: float32; bfloat16 or float16 for products, with the parameters in float32 (mixed precision)
    compiled:  whether torch.compile goes over the model
    threads:   of the processor; sums come out the same, bit for bit, for the same number of them
    """

    device: str = field(default="cpu", metadata={"help": "cpu, cuda, cuda:1, mps; auto for the fastest that is there."})
    precision: str = field(default="float32", metadata={"help": "float32; bfloat16 or float16 for mixed precision."})
    compiled: bool = field(default=False, metadata={"help": "Go over the model with torch.compile."})
    threads: int | None = field(default=None, metadata={"help": "Of the processor; all that there are without."})

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise CallError(f"precision: one of {', '.join(PRECISIONS)}; got {self.precision!r}")
        if self.threads is not None:
            check_count("threads", self.threads, 1)

    @property
    def place(self) -> Any:
        """The device itself, as PyTorch has it."""
        import torch

        from .processes import PROCESSES

        name = fastest() if self.device == "auto" else self.device
        try:
            found = torch.device(name)
            torch.empty(0, device=found)
        except (RuntimeError, AssertionError) as error:
            raise CallError(f"device: one that PyTorch has here; got {name!r}: {str(error).splitlines()[0]}") from None
        if found.type == "cuda" and found.index is None and PROCESSES.several:
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return found

    def casting(self) -> AbstractContextManager[Any]:
        """Products in the precision."""
        if self.precision == "float32":
            return nullcontext()
        import torch

        cast: AbstractContextManager[Any] = torch.autocast(self.place.type, getattr(torch, self.precision))
        return cast

    def scaler(self) -> Any:
        """What keeps small gradients of float16 from vanishing; idle in the other precisions."""
        import torch

        return torch.amp.GradScaler(self.place.type, enabled=self.precision == "float16")

    def prepared(self, model: Any) -> Any:
        """The model as steps call it: compiled, and tied to those of the other processes."""
        import torch

        from .processes import PROCESSES

        seen = torch.compile(model) if self.compiled else model
        if PROCESSES.several:
            return torch.nn.parallel.DistributedDataParallel(seen)
        return seen


def fastest() -> str:
    """The fastest kind of device that is there."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def compiler_errors(machine: Machine) -> tuple[type[Exception], ...]:
    """What torch.compile raises, where it was asked for."""
    if not machine.compiled:
        return ()
    from torch._dynamo.exc import TorchDynamoException

    return (TorchDynamoException,)


def check_products(precision: str, device: Any) -> None:
    """Refuse a precision whose products end the process: some machines announce instructions that they do not have."""
    if device.type != "cpu" or precision == "float32":
        return
    product = f"import torch; a = torch.ones(256, 256, dtype=torch.{precision}); a @ a"
    ended = subprocess.run([sys.executable, "-c", product], capture_output=True, check=False)  # noqa: S603 - our own
    if ended.returncode:
        raise CallError(
            f"precision: one whose products this processor can do; got {precision}, and a product of it ends a process "
            f"with {ended.returncode}; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment, or float32"
        )
