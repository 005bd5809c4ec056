"""How large a model is and what a pass costs, part by part.

    operations = 2 · Σ multiplications in products of matrices
    linear map      2 · rows · in · out
    attention       2 · rows · keys · heads · (d · pairs + d)        every pair counts, admitted or not

Norms, activations and the softmax are left out, as is usual: they are a few percent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from torch import nn

from .attention import CrossAttention, Projected, SelfAttention
from .blocks import Block
from .stacks import Stack


@dataclass(frozen=True)
class Sizes:
    """Of one pass: rows that are computed, keys that they read, rows of the memory that they read."""

    rows: int
    keys: int
    memory: int = 0


@dataclass(frozen=True)
class Part:
    """Modules of one role: how many there are, and what they hold and cost together."""

    name: str
    count: int
    parameters: int
    operations: int


@dataclass(frozen=True)
class Summary:
    """Parameters and operations of a model. Prints as a table."""

    kind: str
    parts: tuple[Part, ...]
    rows: int
    bytes: int  # of the parameters
    cache: int  # bytes that a row of text adds to a cache

    @property
    def parameters(self) -> int:
        """All of them; one that is used twice counts once."""
        return sum(part.parameters for part in self.parts)

    @property
    def operations(self) -> int:
        """Multiplications and additions of a forward pass over one text of `rows`."""
        return sum(part.operations for part in self.parts)

    def __str__(self) -> str:
        lines = [("part", "parameters", "operations")]
        for part in self.parts:
            times = f" × {part.count}" if part.count > 1 else ""
            lines.append((part.name + times, f"{part.parameters:,}", f"{part.operations:,}"))
        lines.append((f"{self.kind}, {self.rows} rows", f"{self.parameters:,}", f"{self.operations:,}"))
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        table = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines]
        table[-1:-1] = table[1:1] = ["─" * len(table[0])]
        kept = f", and {self.cache:,} bytes of cache for each row" if self.cache else ""
        return "\n".join([*table, f"{self.bytes / 2**20:,.1f} MiB of parameters{kept}"])


def summary(model: Any, rows: int) -> Summary:
    """The summary of a model for one text of so many rows."""
    found: dict[str, Part] = {}
    seen: set[int] = set()
    for name, module in _parts(model):
        role = re.sub(r"\.\d+\.", ".", name)
        old = found.get(role, Part(role, 0, 0, 0))
        fresh = [p for p in module.parameters() if id(p) not in seen]
        seen.update(map(id, fresh))
        count = old.parameters + sum(p.numel() for p in fresh)
        found[role] = Part(role, old.count + 1, count, old.operations + operations(module, model.sizes(name, rows)))
    found |= {name: Part(name, 1, p.numel(), 0) for name, p in model.named_parameters(recurse=False)}
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    parts = tuple(part for part in found.values() if part.parameters or part.operations)
    return Summary(type(model).__name__, parts, rows, size, _cache(model))


def _parts(module: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The parts of a model, in the order of its equation: stacks and blocks are taken apart."""
    for child_name, child in module.named_children():
        full = f"{name}{child_name}"
        if isinstance(child, Stack | Block | nn.ModuleList):
            yield from _parts(child, f"{full}.")
        else:
            yield full, child


def _cache(model: nn.Module) -> int:
    """Bytes of keys and values of one row."""
    layers = [module for module in model.modules() if isinstance(module, SelfAttention) and module.uncachable is None]
    return sum(2 * layer.kv_heads * layer.width * layer.key.weight.element_size() for layer in layers)


# -- operations ------------------------------------------------------------------------------------------------


@singledispatch
def operations(module: nn.Module, sizes: Sizes) -> int:
    """Multiplications and additions of one pass through a module: those of its parts."""
    return sum(operations(child, sizes) for child in module.children())


@operations.register
def _linear(module: nn.Linear, sizes: Sizes) -> int:
    return int(2 * sizes.rows * module.in_features * module.out_features)


@operations.register
def _self(module: SelfAttention, sizes: Sizes) -> int:
    maps = sum(_linear(one, sizes) for one in (module.query, module.key, module.value, module.out))
    return maps + _read(module, sizes.rows, sizes.keys)


@operations.register
def _cross(module: CrossAttention, sizes: Sizes) -> int:
    offered = Sizes(sizes.memory, sizes.memory)
    maps = _linear(module.query, sizes) + _linear(module.out, sizes)
    maps += _linear(module.key, offered) + _linear(module.value, offered)
    return maps + _read(module, sizes.rows, sizes.memory)


def _read(module: Projected, rows: int, keys: int) -> int:
    """Scores, and values by their weights."""
    compared = len(module.attention.pairs) * module.width
    return 2 * rows * keys * module.heads * (compared + module.width)
