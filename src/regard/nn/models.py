"""What all models share: they remember what they were made of, count themselves, and save themselves."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from ..algebra.errors import CallError, KindError
from .calls import bound_to
from .style import check_style

if TYPE_CHECKING:
    from .summary import Sizes, Summary


def remembered(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor whose arguments are kept, so that the model can be saved and made again."""
    signature = inspect.signature(init)

    @wraps(init)
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        bound = bound_to(signature, type(self).__name__, (self, *arguments), options)
        check_style(bound.arguments["style"])
        given = {**bound.arguments, **bound.arguments.get("options", {})}
        nn.Module.__init__(self)
        self.made_of = {name: value for name, value in given.items() if name not in ("self", "options")}
        init(self, *arguments, **options)

    return made


class Model(nn.Module):
    """A whole model. `made_of` holds the arguments that it was made with."""

    made_of: dict[str, Any]

    @property
    def device(self) -> torch.device:
        """Where its parameters lie."""
        return next(self.parameters()).device

    def count(self) -> int:
        """How many parameters it has; one that is used twice counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def summary(self, rows: int | None = None) -> Summary:
        """Parameters and operations part by part, for one text of so many rows; prints as a table."""
        from .summary import summary

        return summary(self, self._rows(rows))

    def sizes(self, part: str, rows: int) -> Sizes:
        """How many rows and keys a part sees in a pass over a text of so many rows."""
        from .summary import Sizes

        return Sizes(rows, rows)

    def _rows(self, rows: int | None) -> int:
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise CallError(f"rows: how long the text is, at least 1; got {rows!r}")
        return rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and description as one safetensors file, which replaces an older one when it is whole."""
        from .storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | torch.device = "cpu") -> Self:
        """The model that `save` wrote, on a device."""
        from .storage import load

        model = load(path, device=device)
        if not isinstance(model, cls):
            kind = type(model).__name__
            raise KindError(f"path: holds a {cls.__name__}; got a {kind} in {os.fspath(path)!r}; use {kind}.load")
        return model


def drawn_seed() -> int:
    """A seed from PyTorch's random state, for arrays that NumPy draws."""
    return int(torch.randint(2**31, (), device="cpu"))


def check_ids(ids: Any, tokens: int, name: str = "ids") -> Tensor:
    """Ids (batch, rows) as integers from 0 to tokens − 1."""
    if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        what = f"dtype {ids.dtype}" if isinstance(ids, Tensor) else type(ids).__name__
        raise KindError(f"{name}: a tensor of integers, (batch, rows); got {what}")
    if ids.ndim != 2:
        hint = f"; add the axis of the batch: {name}[None]" if ids.ndim == 1 else ""
        raise CallError(f"{name}: (batch, rows); got shape {tuple(ids.shape)}{hint}")
    if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= tokens:
            raise CallError(
                f"{name}: from 0 to {tokens - 1}, as many as the model knows; got {low if low < 0 else high}; "
                "are they its own?"
            )
    return ids.to(torch.int64)
