"""What modules of transformers ask for: the function that they call, with a look at its arguments on the way.

A module asks the AttentionInterface for a function by the name in its config. While a capture watches, what it gets
notes the call and then runs that very function. Eager and SDPA attention are read here, where scale, mask, soft-cap,
sinks, bias and shared heads have names; other functions are seen by the kernels that they call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol

import torch

from .shared import GiveBack, Shared, replaced

_WATCHING: list[Asking] = []


class Sight(Protocol):
    """What a look at a call needs of the capture."""

    def owns(self, module: torch.nn.Module) -> bool: ...

    def interface(self, kind: str, module: torch.nn.Module, arrays: Any, mask: Any, options: dict[str, Any]) -> Any: ...


class Asking:
    """While it is entered, calls through transformers' interface are looked at."""

    def __init__(self, sight: Sight) -> None:
        self.sight = sight

    def __enter__(self) -> Asking:
        _LOOKED_AT.__enter__()
        _WATCHING.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _WATCHING.remove(self)
        _LOOKED_AT.__exit__(kind, error, traceback)


def _change() -> GiveBack:
    utilities = sys.modules.get("transformers.modeling_utils")  # who never loaded it runs no model of it
    interface: Any = getattr(utilities, "AttentionInterface", object)
    before = vars(interface).get("get_interface")
    if before is None:  # older ones name eager attention in each file: it is seen as written out
        return lambda: None

    @functools.wraps(before)
    def get_interface(self: Any, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
        function = before(self, name, default)
        return _looked_at(function, _kind(function, default))

    return replaced(interface, "get_interface", get_interface)


_LOOKED_AT = Shared(_change)


def _kind(function: Any, default: Any) -> str:
    for kind in ("sdpa", "flex"):
        home = sys.modules.get(f"transformers.integrations.{kind}_attention")
        if function is getattr(home, f"{kind}_attention_forward", None):
            return kind
    return "eager" if function is default else "other"


def _looked_at(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def attend(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, *more: Any, **options: Any
    ) -> Any:
        with ExitStack() as stack:
            for watching in list(_WATCHING) if not more else []:
                if watching.sight.owns(module):
                    arrays = (query, key, value)
                    stack.enter_context(watching.sight.interface(kind, module, arrays, attention_mask, options))
            return function(module, query, key, value, attention_mask, *more, **options)

    return attend
