"""All that is known of a module without calling it; runs in the child process, where PyTorch is loaded anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ..description import Description, source
from .inspection import facts
from .instance import Instance, module_of
from .places import Projections
from .search import ways
from .tensors import tensors


def projections(
    module: nn.Module, names: Mapping[str, str] | None = None, heads: int | None = None
) -> list[Projections]:
    """The ways to read a module's parameters as projections, best first; empty where there are none.

    `names` says where they are, by path: {"q": "a.weight", "k": "b.weight", "v": "c.weight", "o": "d.weight"}; also
    "kv" and "qkv" for what lies in one parameter, and "bq" … "bo", "bqkv" for biases that do not lie beside the weight.
    """
    return ways(tensors(module), facts(module), names, heads)


def described(target: Any, init: Mapping[str, Any] | None, names: Mapping[str, str] | None) -> Description:
    """What a module holds, and how to call it."""
    module = module_of(target, dict(init or {}))
    known = facts(module)
    text, line = source(target)
    return Description(
        known.name,
        known.arguments,
        ("torch",),
        text,
        line,
        module=known,
        projections=tuple(projections(module, names)),
        instance=Instance(tuple((init or {}).items())),
        aside=known.norms,
    )
