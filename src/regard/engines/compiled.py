"""The node that stands for a call in a graph of torch.compile. Imported while Dynamo traces, not before."""

from __future__ import annotations

from typing import Any

import torch

from .graph import FUNCTIONS

PLAIN = {torch.SymBool: bool, torch.SymInt: int, torch.SymFloat: float}


def _run(function: str, names: list[str], arguments: tuple[Any, ...], values: list[Any]) -> Any:
    return FUNCTIONS[function](*arguments, **dict(zip(names, map(_plain, values), strict=True)))


def _plain(value: Any) -> Any:
    """A number that the compiler holds open, settled: as in PyTorch's own attention, another one is another graph."""
    return PLAIN.get(type(value), lambda x: x)(value)


run = torch.compiler.allow_in_graph(_run)
