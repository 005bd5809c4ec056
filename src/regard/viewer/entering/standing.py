"""What stands along the axes of each call: tokens, patches, or bare positions.

N queries, n keys        the tokens of the text where there are as many, those of the decoder on its side,
                         patches (and what stands before them) where the grid has as many, else 0, 1, 2, …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...algebra.errors import CallError
from ..record import Axis, Captured
from .tokens import Tokens

CROSS = re.compile(r"cross|encoder_attn|encdec|encoderdecoder|multihead_attn", re.IGNORECASE)
SEEING = re.compile(r"vision|visual|image|vit", re.IGNORECASE)
BEFORE = 16  # places before the patches, at most: a class token, registers


class Standing(Protocol):
    """What may stand along an axis, for each batch item."""

    def axes(self, size: int, batch: int) -> list[Axis] | None:
        """The axes of each batch item with so many places; None where it does not fit."""

    def suits(self, name: str, is_key: bool) -> bool:
        """Whether the queries or keys of a module by this name are most likely of this kind."""


@dataclass(frozen=True)
class Text:
    """Tokens of each batch item, or of all."""

    tokens: Sequence[Tokens]
    name: str = "tokens"
    decodes: bool = False

    def axes(self, size: int, batch: int) -> list[Axis] | None:
        if len(self.tokens[0]) != size or len(self.tokens) not in (1, batch):
            return None
        return [one.axis(self.name) for one in self.tokens] * (batch if len(self.tokens) == 1 else 1)

    def suits(self, name: str, is_key: bool) -> bool:
        decodes = "decoder" in name.lower() and not (is_key and CROSS.search(name) is not None)
        return decodes == self.decodes and SEEING.search(name) is None


@dataclass(frozen=True)
class Side:
    """Tokens of the queries alone, or of the keys alone."""

    text: Text
    is_key: bool

    def axes(self, size: int, batch: int) -> list[Axis] | None:
        return self.text.axes(size, batch)

    def suits(self, name: str, is_key: bool) -> bool:
        return is_key == self.is_key


@dataclass(frozen=True)
class Patches:
    """Patches of an image, row by row, with special places before them, and `behind` of them after."""

    grid: tuple[int, int]
    behind: int = 0

    def axes(self, size: int, batch: int) -> list[Axis] | None:
        rows, columns = self.grid
        before = size - rows * columns - self.behind
        if not 0 <= before <= BEFORE:
            return None
        first = ["[class]", *(f"[{place}]" for place in range(1, before))][:before]
        patches = [f"{row}, {column}" for row in range(rows) for column in range(columns)]
        last = [f"[{place}]" for place in range(self.behind)]
        special = frozenset(range(before)) | frozenset(range(size - self.behind, size))
        name = "patches" if not special else f"patches and {len(special)}"
        return [Axis(name, (*first, *patches, *last), special, self.grid)] * batch

    def suits(self, name: str, is_key: bool) -> bool:
        return SEEING.search(name) is not None


def placed(layers: Sequence[Captured], known: Sequence[Standing]) -> tuple[list[Captured], list[dict[str, Axis]]]:
    """The calls with the names of their axes, and the axes of each batch item by name."""
    axes: list[dict[str, Axis]] = [{} for _ in range(max((one.q.shape[0] for one in layers), default=0))]
    named = []
    for captured in layers:
        keys = _along(captured, known, is_key=True)
        queries = _along(captured, known, is_key=False) or _last_rows(captured, keys)
        standing = [queries or _positions(captured, 2), keys or _positions(captured, 3)]
        for along in standing:
            for own, axis in zip(axes, along, strict=False):
                own[axis.name] = axis
        named.append(replace(captured, query=standing[0][0].name, key=standing[1][0].name))
    return named, axes


def refuse_unused(layers: Sequence[Captured], told: Standing, name: str, got: object) -> None:
    """What someone handed in fits at least one call."""
    sizes = sorted({size for one in layers for size in (one.q.shape[2], one.k.shape[2])})
    batches = {one.q.shape[0] for one in layers}
    if not any(told.axes(size, batch) for size in sizes for batch in batches):
        counted = " or ".join(map(str, sizes[:4]))
        raise CallError(f"{name}: for each of {counted} places, special ones included; got {got}")


def _along(captured: Captured, known: Sequence[Standing], *, is_key: bool) -> list[Axis] | None:
    size, batch = (captured.k if is_key else captured.q).shape[2], captured.q.shape[0]
    fitting = [one for one in known if one.axes(size, batch) is not None]
    fitting = [one for one in fitting if not isinstance(one, Side) or one.is_key == is_key]
    fitting.sort(key=lambda one: not one.suits(captured.name, is_key))
    return fitting[0].axes(size, batch) if fitting else None


def _last_rows(captured: Captured, keys: list[Axis] | None) -> list[Axis] | None:
    """Queries that are some of the rows of the keys, as in a step with a cache."""
    count, start = captured.q.shape[2], _first(captured)
    if keys is None or start is None or not 0 <= start <= len(keys[0]) - count or count == len(keys[0]):
        return None
    span = range(start, start + count)
    name = f"{keys[0].name} from {start}"
    return [
        Axis(
            name,
            axis.labels[start : start + count],
            frozenset(place - start for place in axis.special if place in span),
        )
        for axis in keys
    ]


def _first(captured: Captured) -> int | None:
    """Where the first query stands; None where that differs from input to input."""
    start: Any = captured.start
    if start is None:
        return int(captured.k.shape[2] - captured.q.shape[2])
    return start if type(start) is int else None


def _positions(captured: Captured, axis: int) -> list[Axis]:
    size = captured.q.shape[2] if axis == 2 else captured.k.shape[2]
    return [Axis(f"{size} positions", tuple(map(str, range(size))))] * captured.q.shape[0]
