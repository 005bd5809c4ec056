"""What a mask says, as a formula where it can be said so.

    j ≤ i          i − j < w          keys that any query reads, one truth for each          any truths

A mask of N × n truths that is one of these, or two of them together, is kept as such; any other as it is. Numbers near
the least of their dtype mean "not admitted"; a row in which all are so reads every key alike, and stays numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.expressions import Mask
from ...algebra.masks import causal, given, window
from ...algebra.symbols import i, j

TABLE = "attention_mask"
LOW = -9e3  # exp(LOW) is 0, also beside large scores
MOST = 4  # masks of one model, remembered


@dataclass(frozen=True)
class Seen:
    """A mask as a formula with its truths, and numbers that are added to the score; where the first query stands."""

    mask: Mask | None = None
    truths: torch.Tensor | None = None
    numbers: torch.Tensor | None = None
    start: int | None = None


class Masks:
    """Reads masks, each once: layers are handed the same one."""

    def __init__(self) -> None:
        self._known: OrderedDict[Any, tuple[torch.Tensor, Seen]] = OrderedDict()

    def read(self, four: torch.Tensor) -> Seen:
        """A mask of four axes (b, h, i, j), each of its size or 1: truths, or numbers to add."""
        key = identity(four)
        if key not in self._known:
            self._known[key] = (four, _read(four.detach()))
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return self._known[key][1]


def identity(tensor: torch.Tensor) -> Any:
    """What tells the numbers of a tensor from all others, as long as it is held and not written to."""
    version = None if tensor.is_inference() else tensor._version
    return (
        tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, str(tensor.device), version
    )  # fmt: skip


def split(four: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """A mask as truths, and as numbers to add; None where it has no such part."""
    if four.dtype == torch.bool:
        return four, None
    numbers = four if four.is_floating_point() else four.float()
    admitted = _admitted(numbers)
    if bool((~admitted.any(-1)).any()) and bool(torch.isfinite(numbers).all()):
        return None, numbers
    rest = numbers.masked_fill(~admitted, 0.0)
    return None if bool(admitted.all()) else admitted, rest if bool(rest.any()) else None


def _admitted(numbers: torch.Tensor) -> torch.Tensor:
    """Where numbers leave a weight: not at the least of their dtype, nor at one number that is as good as that."""
    low = numbers <= LOW
    lows = numbers[low]
    if lows.numel() and bool(lows.min() == lows.max()):
        return ~low
    return numbers > torch.finfo(numbers.dtype).min / 2


def _read(four: torch.Tensor) -> Seen:
    truths, numbers = split(four)
    return Seen(numbers=numbers) if truths is None else _said(truths, numbers)


def _said(truths: torch.Tensor, numbers: torch.Tensor | None) -> Seen:
    """Truths as the shortest formula that says them."""
    if bool(truths.all()):
        return Seen(numbers=numbers)
    for axis in (0, 1):
        if truths.shape[axis] > 1 and bool((truths == truths.narrow(axis, 0, 1)).all()):
            truths = truths.narrow(axis, 0, 1)
    rows = truths[:, :, :1]
    if bool((truths == rows).all()):
        last = truths.any(0).any(0).nonzero()
        start = int(last[:, 1].max()) if truths.shape[2] == 1 and len(last) else None
        return Seen(given(TABLE), rows, numbers, start)
    if truths.shape[1] == 1 and truths.shape[3] > 1:
        for mask, kept, start, said in _candidates(truths):
            if bool((said == truths).all()):
                return Seen(mask, kept, numbers, start)
    return Seen(given(TABLE), truths, numbers)


def _candidates(truths: torch.Tensor) -> Iterator[tuple[Mask, torch.Tensor | None, int | None, torch.Tensor]]:
    """Masks that may be this one: the formula, the truths that it reads, the first query, and all that it says."""
    queries, keys = truths.shape[2:]
    row, column = (torch.arange(size, device=truths.device) for size in (queries, keys))
    ahead = column[None, :] - row[:, None]  # j − i, both counted from 0
    furthest = int(ahead.where(truths, -queries).max())
    read = truths.any(2, keepdim=True)
    for mask, start, said in _options(truths, ahead, furthest, keys - queries):
        yield mask, None, start, said
        yield mask & given(TABLE), read, start, said & read


def _options(
    truths: torch.Tensor, ahead: torch.Tensor, furthest: int, most: int
) -> Iterator[tuple[Mask, int | None, torch.Tensor]]:
    """Causal, the last positions only, or near on both sides."""
    start = furthest if 0 <= furthest <= most else max(most, 0)
    back = start - ahead  # i − j, with i on the axis of keys
    behind, before = int(back.where(truths, -1).max()), int((-back).where(truths, -1).max())
    if before <= 0:
        yield causal, start, back >= 0
        yield window(behind + 1), start, (back >= 0) & (back <= behind)
    elif before == behind:
        yield (i - j <= behind) & (j - i <= behind), start, (back <= behind) & (back >= -behind)
