"""Every tensor that a module holds, by path, with what its name says: parameters, buffers, plain attributes, lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from ...algebra.errors import CallError
from ..words import is_bias
from .found import REFUSED, Found, said_by, sizes_of

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def tensors(module: nn.Module) -> list[Found]:
    """All tensors of floats with at least one axis, in the order of definition."""
    return [_found(path, tensor, owner) for path, tensor, owner in named(module) if _is_real(path, tensor)]


# -- walking -----------------------------------------------------------------------------------------------------


def named(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, nn.Module]]:
    """Path, tensor and the module that holds it; lists that PyTorch does not know of are walked too."""
    yield from _walk(module, "", module, set())


def _walk(value: Any, path: str, owner: nn.Module, seen: set[int]) -> Iterator[tuple[str, torch.Tensor, nn.Module]]:
    if isinstance(value, torch.Tensor):
        yield path, value, owner
    elif id(value) not in seen and isinstance(value, nn.Module | list | tuple | Mapping):
        seen.add(id(value))
        inside = value if isinstance(value, nn.Module) else owner
        for name, part in _parts(value):
            yield from _walk(part, f"{path}.{name}" if path else name, inside, seen)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, nn.Module):
        own = {name: part for name, part in vars(value).items() if not name.startswith("_")}
        parts = {**value._parameters, **value._buffers, **value._modules, **own}
    elif isinstance(value, Mapping):
        parts = {name: part for name, part in value.items() if isinstance(name, str) and "." not in name}
    else:
        parts = dict(enumerate(value)) if len(value) < 1000 else {}
    return [(str(name), part) for name, part in parts.items() if isinstance(part, _HOLDERS)]


_HOLDERS = (torch.Tensor, nn.Module, list, tuple, Mapping)


def _is_real(path: str, tensor: Any) -> bool:
    if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
        raise CallError(
            f"module: every parameter has a size; got the lazy {path}; call the module once, or read prepared(module)"
        )
    return bool(tensor.is_floating_point()) and tensor.ndim > 0


# -- what one tensor is ------------------------------------------------------------------------------------------


def _found(path: str, tensor: torch.Tensor, owner: nn.Module) -> Found:
    said, sure = said_by(path, owner)
    bias = is_bias(path.rpartition(".")[2])
    axes = "" if bias else _axes(tensor, owner)
    return Found(path, sizes_of(tuple(tensor.shape), bias), said, bias, sure, axes, isinstance(tensor, nn.Parameter))


def _axes(tensor: torch.Tensor, owner: nn.Module) -> str:
    """(out, in) or (in, out), by the kind of module or by trying; "" for a bare parameter."""
    if tensor is not getattr(owner, "weight", None) and len(list(owner.parameters())) > 2:
        return ""
    if isinstance(owner, (nn.Linear, *CONVOLUTIONS)):
        return "oi"
    return _tried(tensor, owner) if tensor.ndim == 2 and not list(owner.children()) else ""


def _tried(weight: torch.Tensor, owner: nn.Module) -> str:
    """Calls a small module of unknown kind on both widths: is it x W or x Wᵀ?"""
    fits = [axes for axes, matrix in (("io", weight), ("oi", weight.T)) if _is_product(owner, matrix)]
    return fits[0] if len(fits) == 1 else ""


def _is_product(owner: nn.Module, matrix: torch.Tensor) -> bool:
    x = torch.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)[None]
    try:
        with torch.no_grad():
            y, rest = owner(x), owner(0 * x)
            return bool(y.shape == (1, *matrix.shape) and torch.allclose(y - rest, x @ matrix, rtol=1e-3, atol=1e-5))
    except REFUSED:
        return False
