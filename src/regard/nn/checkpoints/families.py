"""A family of checkpoints: which model of ours, by which names, made with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ...attention import Attention
from ...inputs.positions.added import Learned
from ..models import Model
from .config import Config
from .names import Names


@dataclass(frozen=True)
class Family:
    """What is common to the checkpoints of one model_type.

    arguments: what the model is made with, by a config
    """

    name: str
    model: type[Model]
    names: Names
    arguments: Callable[[Config], dict[str, Any]]


def formulas(layers: Iterable[Attention]) -> Attention | list[Attention]:
    """The formulas of all layers; one where they are equal."""
    each = list(layers)
    return each[0] if len(set(each)) == 1 else each


def unlearned(longest: int, dim: int) -> Learned:
    """A table of positions whose numbers are yet to come; it takes no memory."""
    return Learned(torch.zeros(()).expand(longest, dim))
