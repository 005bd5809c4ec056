"""A copy of a module that can be asked: in evaluation, on the CPU, in float32, with every size settled."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from ..words import letters
from .inspection import is_norm
from .tensors import named


def prepared(module: nn.Module) -> nn.Module:
    """A deep copy in evaluation mode, on the CPU, in float32; lazy layers have their sizes."""
    results = {id(tensor): tensor.detach().clone() for _, tensor, _ in named(module) if not tensor.is_leaf}
    copy: nn.Module = deepcopy(module, dict(results))  # PyTorch refuses to copy what came out of a computation
    _settle(copy)
    return copy.cpu().float().eval()


def set_aside(module: nn.Module) -> list[str]:
    """Puts the identity in the place of every norm, in the module itself; returns their names."""
    names = [name for name, part in module.named_modules(remove_duplicate=False) if name and is_norm(part)]
    outer = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    for name in outer:
        parent, _, last = name.rpartition(".")
        module.get_submodule(parent)._modules[last] = nn.Identity()
    return outer


def _settle(module: nn.Module) -> None:
    """Calls each lazy layer once: an output projection on the width of values, others on the width of the model."""
    lazy = {name: part for name, part in module.named_modules() if isinstance(part, LazyModuleMixin)}
    lazy = {name: part for name, part in lazy.items() if part.has_uninitialized_params()}
    outs = {letters(name.rpartition(".")[2]): int(getattr(part, "out_features", 1)) for name, part in lazy.items()}
    for name, part in lazy.items():
        own = int(getattr(part, "out_features", 1))
        width = outs.get("v", own) if letters(name.rpartition(".")[2]) == "o" else outs.get("o", own)
        with torch.no_grad():
            part(torch.zeros(1, width))
