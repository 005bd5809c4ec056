"""What was read of a module, or of an object that is none, as plain values; needs no library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..signature import Parameter


@dataclass(frozen=True)
class Facts:
    """What was read of a module; plain values alone."""

    name: str  # of its class
    heads: int | None
    key_heads: int | None
    head_width: int | None
    longest: int | None  # how many positions it can take
    causal: str  # what says that it is causal: "the class's name", "tril, a triangle"; "" when nothing does
    batch_first: bool | None
    norms: tuple[str, ...]
    dropouts: tuple[tuple[str, float], ...]
    resets: tuple[str, ...]  # methods that forget a cache
    arguments: tuple[Parameter, ...]  # of forward
    images: bool = False  # whether its layers are convolutions over images

    def argument(self, role: str) -> Parameter | None:
        """The argument of forward with this role, if there is one."""
        return next((one for one in self.arguments if one.role == role), None)


def whole(holders: Iterable[Any], names: Iterable[str]) -> int | None:
    """The first whole number that goes by one of the names."""
    wanted = tuple(names)
    for holder in holders:
        for name in wanted:
            value = _get(holder, name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _get(holder: Any, name: str) -> Any:
    if isinstance(holder, dict):
        return dict.get(holder, name)  # of a configuration of ours: only what was asked for
    return getattr(holder, name, None)
