"""Which module of a model runs: its name, told where every module of PyTorch is called.

Hooks on modules would show in them, and take nn.MultiheadAttention off its fast path.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import torch

from .shared import GiveBack, Shared, replaced

HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead", "num_head")


class Places:
    """The modules of a model by name, and those that run now, the innermost last."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.names: dict[int, str] = {}
        for name, module in model.named_modules():
            self.names.setdefault(id(module), readable(name) or type(module).__name__)
        self.modules = {id(module): module for module in model.modules()}  # so that no id is given to another
        owned = [*model.parameters(), *(buffer for buffer in model.buffers() if buffer.ndim <= 2)]
        self._owned = {_storage(tensor) for tensor in owned}
        self.ran: set[int] = set()
        self.served: set[int] = set()  # those inside of which a call was seen
        self._running: list[int] = []
        self._thread = threading.get_ident()

    def __enter__(self) -> Places:
        self._thread = threading.get_ident()
        _CALLED.__enter__()
        _WATCHING.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _WATCHING.remove(self)
        _CALLED.__exit__(kind, error, traceback)
        self._running.clear()

    @property
    def is_here(self) -> bool:
        """Whether this is the thread that is watched, and no backward pass, which may run layers again."""
        return threading.get_ident() == self._thread and torch._C._current_graph_task_id() == -1

    def knows(self, module: torch.nn.Module) -> bool:
        """Whether a module is part of the model."""
        return id(module) in self.names

    def made(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor was made by the model's run, and is no weight of it."""
        return not isinstance(tensor, torch.nn.Parameter) and _storage(tensor) not in self._owned

    @property
    def name(self) -> str | None:
        """The innermost module that runs; None outside of the model."""
        return self.names[self._running[-1]] if self._running else None

    def serve(self) -> None:
        """A call of attention was seen, inside of the modules that run."""
        self.served.update(self._running)

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """As if a part of the module that runs ran itself: some call the kernel for a part of theirs."""
        inner = getattr(self.modules[self._running[-1]], part, None) if self._running else None
        with self.inside(inner):
            yield

    @contextmanager
    def inside(self, module: Any) -> Iterator[None]:
        """While a module runs."""
        if id(module) not in self.names or not self.is_here:
            yield
            return
        self._running.append(id(module))
        self.ran.add(id(module))
        try:
            yield
        finally:
            self._running.pop()

    def heads(self, width: int) -> int:
        """How many heads the module that runs says that it has, each of a width; 1 where it does not tell."""
        for key in reversed(self._running[-2:]):
            module = self.modules[key]
            for name in HEADS:
                found = getattr(module, name, None)
                if isinstance(found, int) and found > 0 and _fits(module, found, width):
                    return found
        return 1


_WATCHING: list[Places] = []


def _change() -> GiveBack:
    before = torch.nn.Module.__call__

    @functools.wraps(before)
    def call(self: torch.nn.Module, *arguments: Any, **options: Any) -> Any:
        with ExitStack() as stack:
            for places in _WATCHING:
                stack.enter_context(places.inside(self))
            return before(self, *arguments, **options)

    return replaced(torch.nn.Module, "__call__", call)


_CALLED = Shared(_change)


def readable(name: str) -> str:
    """The name of a module without what torch.compile puts around it."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def _storage(tensor: torch.Tensor) -> int:
    """What tensors share that are views of each other; 0 where there is no storage to tell."""
    try:
        return tensor.untyped_storage().data_ptr() or id(tensor)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _fits(module: torch.nn.Module, heads: int, width: int) -> bool:
    """Whether vectors of a width are those of one head, as far as the module tells."""
    for name in ("head_dim", "attention_head_size", "dim_head", "head_size", "d_head"):
        said = getattr(module, name, None)
        if isinstance(said, int):
            return said == width
    for name in ("embed_dim", "hidden_size", "d_model", "n_embd", "dim"):
        said = getattr(module, name, None)
        if isinstance(said, int):
            return said == width * heads
    return True
