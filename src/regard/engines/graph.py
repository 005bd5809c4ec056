"""A call inside torch.compile: one node of its graph, which is not traced further than to PyTorch's operators.

Dynamo cannot follow the algebra, and need not: formulas and names are constants, only tensors flow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}  # by name; the node of a graph holds strings, numbers and tensors


def is_traced() -> bool:
    """Whether Dynamo is reading this very line."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_dynamo_compiling())


def be_ready() -> None:
    """Let Dynamo know of the node before it traces one: older ones do not hear of it while they trace."""
    if "torch" in sys.modules:
        from . import compiled  # noqa: F401 - its import is what Dynamo must hear of


def node(function: str, *arguments: Any, **options: Any) -> Any:
    """The result of a function that was entered into FUNCTIONS, as one node of the graph."""
    from .compiled import run

    names = [name for name, value in options.items() if value is not None]
    return run(function, names, arguments, [options[name] for name in names])
