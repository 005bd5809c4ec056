"""Pretrained models to be asked: MiniLM, an encoder, and SmolLM2, a decoder, with the weights of heads on a text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..viewer.capturing import capture
from ..viewer.models.finding import located
from ..viewer.models.pretrained import pretrained

TEXTS = (
    "The animal didn't cross the street because it was too tired.",
    "Two dogs, running over a green field in the morning sun, chased a ball that nobody had thrown.",
    (
        "When the rain had stopped, the children went back to the garden; the chairs were wet, and so were the books "
        "that somebody had left under the old tree the evening before."
    ),
    (
        "The value of a variable is looked up in the scope in which it was defined, and if it is not found there, in "
        "the scope around it; an error is raised when no scope has a variable of that name."
    ),
)


@dataclass(frozen=True)
class Read:
    """A text as a model read it: the weights (layers, heads, n, n), and where each token stands in the text."""

    weights: Tensor
    spans: tuple[tuple[int, int], ...]
    causal: bool

    def token_at(self, place: int) -> int:
        """The token that holds the character at a place: its last one, where several pieces make a word's beginning."""
        return next(at for at, (start, end) in enumerate(self.spans) if start <= place < end)


@dataclass(frozen=True)
class Reader:
    """A pretrained model with its tokenizer."""

    model: Any
    tokenizer: Any
    causal: bool

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def read(self, text: str) -> Read:
        """The weights of every head on a text."""
        told = self.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        spans = tuple((int(start), int(end)) for start, end in told.pop("offset_mapping")[0])
        with capture(self.model, values=False) as seen:
            self.model(**told)
        weights = torch.stack([captured.parts.weights()[0] for captured in seen.layers])
        return Read(weights, spans, self.causal)

    @cached_property
    def embeddings(self) -> Tensor:
        """One vector for each token of the vocabulary."""
        vectors: Tensor = self.model.get_input_embeddings().weight.detach()
        return vectors


def minilm() -> Reader:
    """MiniLM-L6, an encoder of 6 layers with 12 heads."""
    found = pretrained(located("minilm"))
    return Reader(found.model, found.tokenizer, causal=False)


def smollm2() -> Reader:
    """SmolLM2-135M, a decoder of 30 layers with 9 heads."""
    found = pretrained(located("smollm2"))
    return Reader(found.model, found.tokenizer, causal=True)
