"""The node that stands for a call in a graph of torch.compile. Imported while Dynamo traces, not before."""

from __future__ import annotations

from typing import Any

import torch

from .graph import FUNCTIONS


def _run(function: str, names: list[str], arguments: tuple[Any, ...], values: list[Any]) -> Any:
    return FUNCTIONS[function](*arguments, **dict(zip(names, values, strict=True)))


run = torch.compiler.allow_in_graph(_run)
