"""What captures change in PyTorch and transformers while they watch: once for all of them, and given back by the last.

Captures may run in several threads, and end in any order.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

GiveBack = Callable[[], None]
MODULES = ("torch.nn.modules.transformer", "torch.nn.modules.activation")
_LOCK = threading.RLock()


class Shared:
    """A change of the process, made by the first that enters and given back by the last that leaves."""

    def __init__(self, change: Callable[[], GiveBack]) -> None:
        self._change, self._inside = change, 0
        self._give_back: GiveBack | None = None

    def __enter__(self) -> Shared:
        with _LOCK:
            if not self._inside:
                self._give_back = self._change()
            self._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _LOCK:
            self._inside -= 1
            if not self._inside and self._give_back is not None:
                self._give_back()


def replaced(owner: Any, name: str, value: Any) -> GiveBack:
    """Another value under a name, and the way back."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


def _run_as_written() -> GiveBack:
    """Compiled code runs as it was written, where anything was compiled: a graph would hide its calls."""
    if "torch._dynamo" not in sys.modules:
        return lambda: None
    stance = torch.compiler.set_stance("force_eager")
    stance.__enter__()
    return lambda: stance.__exit__(None, None, None)


class Looking(TorchFunctionMode):
    """A mode that only looks: PyTorch's modules take the same way as without it."""


def _unhindered() -> GiveBack:
    """PyTorch's fused layers run where no one overrides functions; one who only looks does not count."""
    before = torch.overrides.has_torch_function

    @functools.wraps(before)
    def has_torch_function(tensors: Any) -> bool:
        stack = _get_current_function_mode_stack()
        asks = sys._getframe(1).f_globals.get("__name__")
        if asks not in MODULES or not stack or not isinstance(stack[-1], Looking):
            return bool(before(tensors))
        mode = _pop_mode()
        try:
            return bool(before(tensors))
        finally:
            _push_mode(mode)

    return replaced(torch.overrides, "has_torch_function", has_torch_function)


as_written, unhindered = Shared(_run_as_written), Shared(_unhindered)
