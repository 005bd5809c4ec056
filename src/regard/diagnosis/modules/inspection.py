"""What a module says of itself: heads, the longest sequence, norms, dropout, and the roles of forward's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..signature import parameters
from ..words import words
from .known import Facts, whole
from .usual import CONFIGS, HEAD_WIDTHS, HEADS, KEY_HEADS, LENGTHS

RESETS = {"reset", "clear", "empty", "flush"}
CAUSAL = {"causal", "masked", "autoregressive", "unidirectional"}


def facts(module: nn.Module) -> Facts:
    """Reads a module's attributes, its configuration, its buffers and its signature; runs nothing of it."""
    triangles, holders = dict(_triangles(module)), list(_holders(module))
    batch_first = getattr(module, "batch_first", None)
    return Facts(
        name=type(module).__name__,
        heads=whole(holders, HEADS) or _listed(module),
        key_heads=whole(holders, KEY_HEADS),
        head_width=whole(holders, HEAD_WIDTHS),
        longest=min([*triangles.values(), *filter(None, [whole(holders, LENGTHS)])], default=None),
        causal=_causal(module, triangles),
        batch_first=batch_first if isinstance(batch_first, bool) else None,
        norms=tuple(name for name, part in module.named_modules() if name and is_norm(part)),
        dropouts=tuple(_dropouts(module)),
        resets=tuple(_resets(module)),
        arguments=parameters(module),
        images=any(isinstance(part, nn.Conv2d) for part in module.modules()),
    )


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm: its class is called so, its forward takes x alone, and nothing else is inside it."""
    if "norm" not in type(module).__name__.lower() or not all(map(is_norm, module.children())):
        return False
    return sum(one.required for one in parameters(module)) == 1


# -- attributes --------------------------------------------------------------------------------------------------


def _holders(module: nn.Module) -> Iterator[Any]:
    """The module, its configuration, then those inside it."""
    for part in module.modules():
        yield part
        yield from (vars(part)[name] for name in CONFIGS if name in vars(part))


def _listed(module: nn.Module) -> int | None:
    """The length of a list with a module for each head."""
    named = {name: part for one in module.modules() for name, part in [*one.named_children(), *vars(one).items()]}
    lists = (part for name, part in named.items() if "heads" in words(name) and isinstance(part, list | nn.ModuleList))
    return next((len(part) for part in lists if len(part)), None)


def _causal(module: nn.Module, triangles: dict[str, int]) -> str:
    if triangles:
        return f"{next(iter(triangles))}, a triangle"
    for part in module.modules():
        if any(getattr(part, name, None) is True for name in ("causal", "is_causal", "masked", "use_causal_mask")):
            return "an attribute"
        if CAUSAL & set(words(type(part).__name__)):
            return "the class's name"
    return ""


def _triangles(module: nn.Module) -> Iterator[tuple[str, int]]:
    """Square buffers, and plain tensors, that differ above and below the diagonal: a causal mask."""
    for prefix, part in module.named_modules():
        held = {**part._buffers, **{name: own for name, own in vars(part).items() if isinstance(own, torch.Tensor)}}
        for name, tensor in held.items():
            if tensor is not None and (size := _triangle(tensor)):
                yield f"{prefix}.{name}" if prefix else name, size


def _triangle(tensor: torch.Tensor) -> int:
    """The side of a causal mask; 0 for anything else."""
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return 0
    if tensor.numel() != tensor.shape[-1] ** 2 or tensor.is_complex():
        return 0
    square = tensor.reshape(tensor.shape[-2:])
    above = square[torch.ones_like(square, dtype=torch.bool).triu(1)]
    below = square[torch.ones_like(square, dtype=torch.bool).tril(-1)]
    is_mask = bool((above == above[0]).all()) and bool((below == below[0]).all()) and bool(above[0] != below[0])
    return tensor.shape[-1] if is_mask else 0


def _dropouts(module: nn.Module) -> Iterator[tuple[str, float]]:
    """Modules of dropout with their share, and attributes that hold one: `dropout_p = 0.1`."""
    for prefix, part in module.named_modules():
        if prefix and "drop" in type(part).__name__.lower():
            yield prefix, float(getattr(part, "p", getattr(part, "drop_prob", 0.0)) or 0.0)
            continue
        for name, value in vars(part).items():
            if "drop" in name and isinstance(value, float | int) and not isinstance(value, bool):
                yield f"{prefix}.{name}" if prefix else name, float(value)


def _resets(module: nn.Module) -> Iterator[str]:
    own = {name for kind in type(module).__mro__ if kind.__module__ != "torch.nn.modules.module" for name in vars(kind)}
    for name in sorted(own):
        said = set(words(name))
        if said & RESETS and {"cache", "kv", "state", "past"} & said and callable(getattr(module, name, None)):
            yield name
