"""A model whose logits tell everything: a function of the whole history of a text, and of nothing else.

Any id that is lost, doubled, out of place or of another text changes all numbers that follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

TOKENS = 11


def logits_of(history: tuple[int, ...], tokens: int = TOKENS) -> Any:
    """Normal numbers, other ones for every history."""
    digest = hashlib.sha256(repr(history).encode()).digest()
    return 2 * np.random.default_rng(int.from_bytes(digest[:8], "little")).standard_normal(tokens)


class Histories:
    """A cache that keeps the ids of each text, and how it was used."""

    made: list[Histories] = []

    def __init__(self, length: int | None = None) -> None:
        self.length, self.texts, self.calls = length, None, 0
        self.made.append(self)

    def keep(self, texts: Tensor) -> None:
        assert texts.dtype == torch.int64
        self.texts = [list(self.texts[row]) for row in texts]


class Historian:
    """The model; rows behind the end of a text are NaN."""

    def __init__(self, tokens: int = TOKENS) -> None:
        self.tokens, self.shapes = tokens, []

    def __call__(self, ids: Tensor, *, lengths: Tensor | None = None, cache: Histories | None = None) -> Tensor:
        assert not torch.is_grad_enabled()
        assert ids.dtype == torch.int64
        self.shapes.append(tuple(ids.shape))
        assert lengths is None or (lengths.shape == ids.shape[:1] and len(set(lengths.tolist())) > 1)
        counts = [ids.shape[1]] * len(ids) if lengths is None else lengths.tolist()
        texts: Any = [[] for _ in ids] if cache is None or cache.texts is None else cache.texts
        assert len(texts) == len(ids)
        logits = torch.full((*ids.shape, self.tokens), torch.nan, dtype=torch.float64)
        for row, (text, count) in enumerate(zip(texts, counts, strict=True)):
            for place in range(count):
                text.append(int(ids[row, place]))
                logits[row, place] = torch.from_numpy(logits_of(tuple(text), self.tokens))
            assert cache is None or cache.length is None or len(text) <= cache.length
        if cache is not None:
            assert lengths is None or cache.texts is None
            cache.texts, cache.calls = texts, cache.calls + 1
        return logits


def greedily(prompt: list[int], new: int, ends: tuple[int, ...] = (), tokens: int = TOKENS) -> list[int]:
    """What is written greedily, by the definition."""
    ids: list[int] = []
    while len(ids) < new and not (ids and ids[-1] in ends):
        ids.append(int(np.argmax(logits_of((*prompt, *ids), tokens))))
    return ids


@pytest.fixture(autouse=True, scope="module")
def histories() -> Iterator[type[Histories]]:
    """`generate` makes this cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.nn.generation.rows.Cache", Histories)
        yield Histories
