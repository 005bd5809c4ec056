"""What the model is fed at each step, and what it says of the next token.

    with a cache       the prompts, then one new id of each text:  O(N) for each step
    without            all ids of each text, again at each step:   O(N²)

Texts of unequal length are filled at their end, which no row before it reads; a text that is complete leaves the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ...algebra.errors import CallError, KindError
from ..cache import Cache

Model = Callable[..., Any]  # (ids (B, N), lengths=(B) or None[, cache=Cache]) → logits (B, N, V)


class Feed(Protocol):
    """Texts on their way through the model."""

    def logits(self) -> Tensor:
        """What the model says of the next token of each text, (B, V)."""

    def extend(self, ids: Tensor, kept: list[int] | None) -> None:
        """One more id of each text, (B); then only these texts stay, all if None."""


class Cached:
    """Each row goes through the model once; the cache keeps what later ones read of it."""

    def __init__(self, model: Model, prompts: list[list[int]], new: int, device: torch.device) -> None:
        self._model = model
        self._ids, self._lengths = rectangle(prompts, device)
        self._cache = Cache(length=self._ids.shape[1] + new)

    def logits(self) -> Tensor:
        with at_rest(self._model):
            return _after(self._model, self._ids, lengths=self._lengths, cache=self._cache)

    def extend(self, ids: Tensor, kept: list[int] | None) -> None:
        if kept is not None:
            rows = torch.tensor(kept, device=ids.device)
            ids = ids[rows]
            self._cache.keep(rows.to(self._ids.device))
            _keep(self._model, kept, self._ids.device)
        self._ids, self._lengths = ids.to(self._ids.device)[:, None], None


class Whole:
    """All rows go through the model at each step."""

    def __init__(self, model: Model, prompts: list[list[int]], device: torch.device) -> None:
        self._model, self._texts, self._device = model, [list(prompt) for prompt in prompts], device

    def logits(self) -> Tensor:
        ids, lengths = rectangle(self._texts, self._device)
        with at_rest(self._model):
            return _after(self._model, ids, lengths=lengths)

    def extend(self, ids: Tensor, kept: list[int] | None) -> None:
        longer = [[*text, number] for text, number in zip(self._texts, ids.tolist(), strict=True)]
        self._texts = longer if kept is None else [longer[row] for row in kept]
        if kept is not None:
            _keep(self._model, kept, self._device)


def _keep(model: Model, kept: list[int], device: torch.device) -> None:
    """A model that holds something for each text, such as what it translates, lets go of the others."""
    if hasattr(model, "keep"):
        model.keep(torch.tensor(kept, device=device))


def rectangle(texts: list[list[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Ids (B, N), shorter texts filled at their end, and lengths (B); None where all are equal."""
    lengths = [len(text) for text in texts]
    longest = max(lengths)
    ids = torch.tensor([text + text[-1:] * (longest - len(text)) for text in texts], device=device)
    return ids, None if min(lengths) == longest else torch.tensor(lengths, device=device)


@contextmanager
def at_rest(model: Model) -> Iterator[None]:
    """No gradients, and every part of the model out of training; after it, each is as it was.

    Not PyTorch's inference mode: what a module keeps from this call could never be used in training.
    """
    training = [part for part in model.modules() if part.training] if isinstance(model, nn.Module) else []
    try:
        for part in training:
            part.training = False
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


def _after(model: Model, ids: Tensor, lengths: Tensor | None, **cache: Cache) -> Tensor:
    """The logits after the last id of each text, (B, V); a model with `after` computes no others."""
    if hasattr(model, "after"):
        return model.after(ids, lengths=lengths, **cache)
    return _last(model(ids, lengths=lengths, **cache), ids, lengths)


def _last(logits: Any, ids: Tensor, lengths: Tensor | None) -> Tensor:
    if not isinstance(logits, Tensor):
        hint = "; pass lambda ids, **_: model(ids).logits, with cache=False" if hasattr(logits, "logits") else ""
        raise KindError(f"model: called on ids it gives a tensor of logits; got {type(logits).__name__}{hint}")
    if logits.ndim != 3 or logits.shape[:2] != ids.shape:
        raise CallError(
            f"model: called on ids {tuple(ids.shape)} it gives logits ({ids.shape[0]}, {ids.shape[1]}, V), "
            f"one row for each id; got {tuple(logits.shape)}"
        )
    if lengths is None:
        return logits[:, -1]
    return logits[torch.arange(len(lengths), device=logits.device), lengths.to(logits.device) - 1]
