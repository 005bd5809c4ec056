"""Windows of a text of ids t: the inputs are context many ids, the targets are those one place further.

    inputs_b = t[s_b … s_b + context − 1]     targets_b = t[s_b + 1 … s_b + context]

To learn: s_b is drawn evenly from all places where inputs and targets lie in one span, as a function of the seed and
the step; so a run that goes on at some step sees what it would have seen.

To measure: each held-out id is the target that counts in exactly one window. Others are the context that it has: at
least context − stride ids, from before the span, too, if it begins there. Nothing after an id is ever its input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...algebra.errors import CallError, KindError
from .draws import Draws
from .splits import Span

IGNORED = -100  # a target that another window counts: what cross_entropy ignores unless told otherwise


class Windows(NamedTuple):
    """Windows side by side."""

    inputs: Tensor  # (batch, context), int64
    targets: Tensor  # (batch, context), int64
    positions: Tensor  # (batch), int64: where in the ids each window begins


@dataclass(frozen=True, eq=False)
class TextBatches:
    """batches[step]: windows of a text, as a function of the seed and the step.

    ids:     of a text, an array of integers
    context: how many ids a window shows
    batch:   how many windows there are at each step
    seed:    which windows
    spans:   where windows may lie, each in one of them; the whole text if none are given

    >>> batches = TextBatches(np.arange(100), context=5, batch=2, seed=3)
    >>> inputs, targets, positions = batches[7]
    >>> inputs.tolist(), targets.tolist()
    ([[59, 60, 61, 62, 63], [10, 11, 12, 13, 14]], [[60, 61, 62, 63, 64], [11, 12, 13, 14, 15]])
    """

    ids: Any
    context: int
    batch: int
    seed: int
    spans: Sequence[Span] | None = None
    _first: Any = field(init=False, repr=False)  # where the windows of each span begin
    _until: Any = field(init=False, repr=False)  # how many windows there are up to the end of each span

    def __post_init__(self) -> None:
        ids = _read_ids(self.ids)
        for name in ("context", "batch"):
            _whole(getattr(self, name), name, 1)
        Draws(self.seed, "windows")  # refuses what is no seed
        spans = [Span(0, len(ids))] if self.spans is None else self.spans
        room = [max(0, stop - start - self.context) for start, stop in spans]
        if not sum(room):
            longest = max((stop - start for start, stop in spans), default=0)
            raise CallError(
                f"context: at most {max(0, longest - 1)}, so that a window and the id after it fit into the longest "
                f"span; got {self.context} and spans of up to {longest} ids; give more text, or take a shorter context"
            )
        for name, value in (("ids", ids), ("_first", [start for start, _ in spans]), ("_until", np.cumsum(room))):
            object.__setattr__(self, name, value if name == "ids" else np.asarray(value, dtype=np.int64))

    @property
    def count(self) -> int:
        """How many windows there are to draw from."""
        return int(self._until[-1])

    def __getitem__(self, step: int) -> Windows:
        starts = self._starts(_whole(step, "step", 0))
        inside = _gathered(self.ids, starts, self.context + 1)
        return Windows(inside[:, :-1].contiguous(), inside[:, 1:].contiguous(), torch.from_numpy(starts))

    def _starts(self, step: int) -> Any:
        drawn = Draws(self.seed, "windows", step).integers(0, self.count - 1, self.batch)
        span = np.searchsorted(self._until, drawn, side="right")
        return self._first[span] + drawn - np.concatenate([[0], self._until])[span]


@dataclass(frozen=True, eq=False)
class HeldOutWindows:
    """Batches of windows in which every id of the spans is the target that counts exactly once; others are −100.

    ids:     of the whole text
    context: how many ids a window shows
    batch:   how many windows there are in a batch; the last may have fewer
    spans:   what is held out; an id that stands first in the text has nothing before it, and is refused
    stride:  how many targets a window counts, half of the context if not given

    >>> held_out = HeldOutWindows(np.arange(100), context=4, batch=2, spans=[Span(50, 55)], stride=3)
    >>> [windows.targets.tolist() for windows in held_out]
    [[[-100, 50, 51, 52], [-100, -100, 53, 54]]]
    """

    ids: Any
    context: int
    batch: int
    spans: Sequence[Span]
    stride: int | None = None
    _counted: Any = field(init=False, repr=False)  # (windows, 2): from which id on, and up to which

    def __post_init__(self) -> None:
        ids = _read_ids(self.ids)
        for name in ("context", "batch"):
            _whole(getattr(self, name), name, 1)
        stride = max(1, self.context // 2) if self.stride is None else _whole(self.stride, "stride", 1)
        if stride > self.context:
            raise CallError(f"stride: at most the context, {self.context}; got {stride}; ids between would not count")
        if len(ids) <= self.context:
            raise CallError(
                f"context: below the {len(ids)} ids of the text; got {self.context}; "
                "give more text, or take a shorter context"
            )
        if not self.spans or min(start for start, _ in self.spans) < 1:
            raise CallError(f"spans: at least one, none from the first id on: it has no context; got {self.spans}")
        counted = [(at, min(at + stride, stop)) for start, stop in self.spans for at in range(start, stop, stride)]
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "_counted", np.asarray(counted, dtype=np.int64).reshape(-1, 2))

    @property
    def count(self) -> int:
        """How many targets count."""
        return int((self._counted[:, 1] - self._counted[:, 0]).sum())

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return len(self._counted)

    def part(self, windows: int) -> HeldOutWindows:
        """At most so many of the windows, evenly spread: for an estimate between two steps."""
        most = min(_whole(windows, "windows", 1), self.windows)
        chosen = replace(self)
        object.__setattr__(chosen, "_counted", self._counted[np.arange(most) * self.windows // most])
        return chosen

    def __len__(self) -> int:
        return math.ceil(self.windows / self.batch)

    def __iter__(self) -> Iterator[Windows]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> Windows:
        if not 0 <= place < len(self):
            raise IndexError(f"batch {place} of {len(self)}")
        counted = self._counted[place * self.batch : (place + 1) * self.batch]
        starts = np.maximum(0, counted[:, 1] - 1 - self.context)
        inside = _gathered(self.ids, starts, self.context + 1)
        at = torch.from_numpy(starts[:, None] + np.arange(1, self.context + 1))
        first, until = torch.from_numpy(counted)[:, :1], torch.from_numpy(counted)[:, 1:]
        targets = inside[:, 1:].masked_fill((at < first) | (at >= until), IGNORED)
        return Windows(inside[:, :-1].contiguous(), targets, torch.from_numpy(starts))


def _gathered(ids: Any, starts: Any, length: int) -> Tensor:
    """(starts, length): the ids from each start on."""
    return torch.from_numpy(ids[starts[:, None] + np.arange(length)].astype(np.int64))


def _read_ids(ids: Any) -> Any:
    """An array of integers with one axis, as it is: a large one is not copied."""
    array = np.asarray(ids)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise KindError(
            f"ids: integers in an array with one axis; got dtype {array.dtype} and shape {array.shape}; "
            "encode the text first"
        )
    return array


def _whole(value: object, argument: str, least: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise KindError(f"{argument}: an integer; got {value!r}")
    if value < least:
        raise CallError(f"{argument}: at least {least}; got {value}")
    return int(value)
