"""The keys and values of the rows so far, so that a new row costs one row.

    K ← [K; W_k x]    V ← [V; W_v x]        y = attention(W_q x, K, V)

The first pass over a prompt and every step after it are the same call. Each text has its own count of rows, and row r
of a text stands at place r whatever its neighbours in the batch: prompts of unequal length are filled at their end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..algebra.errors import CallError, KindError

LEAST = 64  # rows of a first room that may grow


@dataclass
class Kept:
    """What one layer keeps: (batch, heads, room, width) each."""

    keys: Tensor
    values: Tensor


class Cache:
    """Keys and values of the rows so far, for every layer of a model.

    length: how many rows a text may have, whose room is taken at once; without it the room doubles when it is full

        cache = Cache()
        logits = model(prompt, cache=cache)         # (batch, rows, tokens)
        logits = model(next_ids, cache=cache)       # (batch, 1, tokens)
    """

    def __init__(self, length: int | None = None) -> None:
        if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
            raise CallError(f"length: how many rows a text may have, at least 1; got {length!r}")
        self.length = length
        self.most = 0  # the rows of the longest text
        self._lengths: Tensor | None = None  # (batch), where texts differ
        self._kept: dict[Any, Kept] = {}  # by the layer itself
        self._once: dict[Any, tuple[Tensor, Tensor]] = {}

    # -- rows ------------------------------------------------------------------------------------------------------

    @property
    def start(self) -> int | Tensor:
        """The place of the next row; one for each text where they differ."""
        return self.most if self._lengths is None else self._lengths

    @property
    def lengths(self) -> list[int] | int:
        """The rows of each text; one number where all have as many."""
        return self.most if self._lengths is None else self._lengths.tolist()

    def advance(self, rows: int, lengths: Tensor | None = None) -> None:
        """Count the rows of a pass, which all layers have kept: `rows` of each text, or `lengths` where they differ."""
        if lengths is not None:
            self._count(self.start + lengths)
            return
        self.most += rows
        self._lengths = None if self._lengths is None else self._lengths + rows

    def _count(self, lengths: Tensor) -> None:
        low, high = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        self.most = high
        self._lengths = None if low == high else lengths

    # -- keys and values -------------------------------------------------------------------------------------------

    def append(self, layer: Any, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of a layer, the new ones among them."""
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise CallError("cache: keeps numbers and no gradients; got keys that require them; use torch.no_grad()")
        rows = self.most + k.shape[2]
        kept = self._kept.get(layer)
        if kept is None and self.most:
            raise CallError(
                f"cache: holds {self.most} rows of other layers; got a layer that it has not seen; "
                "each model, and each layer by itself, has its own Cache()"
            )
        kept = self._kept[layer] = Kept(
            self._room(None if kept is None else kept.keys, k, rows),
            self._room(None if kept is None else kept.values, v, rows),
        )
        self._write(kept.keys, k)
        self._write(kept.values, v)
        return kept.keys[:, :, :rows], kept.values[:, :, :rows]

    def once(self, layer: Any, made: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values that stay the same for the whole text: those of the memory that a decoder reads."""
        if layer not in self._once:
            self._once[layer] = made()
        return self._once[layer]

    def _room(self, buffer: Tensor | None, new: Tensor, rows: int) -> Tensor:
        """A buffer with room for so many rows, the old ones in it."""
        if self.length is not None and rows > self.length:
            raise CallError(
                f"cache: room for {self.length} rows of a text; got {rows}; make a longer Cache(length={rows})"
            )
        batch, heads, _, width = new.shape
        if buffer is not None and (buffer.shape[0], buffer.shape[1], buffer.shape[3]) != (batch, heads, width):
            raise CallError(
                f"cache: holds {buffer.shape[0]} texts in {buffer.shape[1]} heads of width {buffer.shape[3]}; "
                f"got rows of {batch} texts in {heads} heads of width {width}; each batch has its own Cache()"
            )
        if buffer is not None and buffer.shape[2] >= rows:
            frozen = buffer.is_inference() and not torch.is_inference_mode_enabled()
            return buffer.clone() if frozen else buffer  # what inference mode has made cannot be written outside of it
        room = self.length or max(LEAST, 2 * rows)
        larger = new.new_zeros((batch, heads, room, width))
        if buffer is not None:
            larger[:, :, : self.most] = buffer[:, :, : self.most]
        return larger

    def _write(self, buffer: Tensor, new: Tensor) -> None:
        if self._lengths is None:
            buffer[:, :, self.most : self.most + new.shape[2]] = new
            return
        texts = torch.arange(new.shape[0], device=new.device)[:, None]
        places = self._lengths[:, None] + torch.arange(new.shape[2], device=new.device)
        buffer[texts, :, places] = new.transpose(1, 2)

    # -- the whole -------------------------------------------------------------------------------------------------

    def keep(self, texts: Any) -> None:
        """The texts of these numbers, in this order; one may be kept twice."""
        texts = torch.as_tensor(texts)
        texts = texts if texts.numel() else texts.to(torch.int64)  # an empty list is of no kind
        if texts.ndim != 1 or texts.is_floating_point() or texts.dtype == torch.bool:
            raise KindError(
                f"texts: the numbers of those to keep, integers in one row; got dtype {texts.dtype}, "
                f"shape {tuple(texts.shape)}"
            )
        for kept in self._kept.values():
            kept.keys, kept.values = kept.keys[texts], kept.values[texts]
        self._once = {layer: (k[texts], v[texts]) for layer, (k, v) in self._once.items()}
        if self._lengths is not None:
            self._count(self._lengths[texts])

    @property
    def bytes(self) -> int:
        """The memory that is taken."""
        pairs = [(kept.keys, kept.values) for kept in self._kept.values()] + list(self._once.values())
        return sum(x.numel() * x.element_size() for pair in pairs for x in pair)

    def __repr__(self) -> str:
        room = "" if self.length is None else f" of {self.length}"
        return f"Cache({self.most}{room} rows, {len(self._kept)} layers, {self.bytes / 2**20:.1f} MiB)"


def check_cache(cache: Any) -> None:
    """Refuse what is no cache of ours."""
    if cache is not None and not isinstance(cache, Cache):
        raise KindError(
            f"cache: a Cache(), the same one in every call of a text; got {cache!r}; make it before the first: "
            "cache = Cache()"
        )
