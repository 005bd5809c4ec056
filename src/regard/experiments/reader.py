"""A language model that takes any formula as it is, one that reads the future too, and what it is worth when it writes.

x = E[t]        x ← block_1(x), …, block_L(x)        logits = norm(x) Eᵀ

Held-out text is measured twice: windows seen as a whole, as in training, and windows cut behind each character that is
asked for, as in writing. In a model that reads no future, both are the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..algebra.masks import causal
from ..attention import Attention
from ..inputs.positions.rotary import Rotary
from ..nn.blocks import Block
from ..nn.initial import initialise
from ..nn.placement import Placement
from ..nn.style import Style
from ..train.data.windows import IGNORED, HeldOutWindows, Windows
from .language import DEPTH, DIM, HEADS, WINDOW, characters, nats

Model = Callable[[Tensor], Tensor]


class Reader(nn.Module):
    """Tokens in, logits of the next token out.

    attention: the formula of every block: nothing makes it causal
    style:     what the blocks are made of beside attention
    """

    def __init__(
        self,
        tokens: int,
        depth: int = DEPTH,
        attention: Attention = Attention(mask=causal),  # noqa: B008 - a value that never changes
        style: Style = Style(),  # noqa: B008
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, DIM)
        self.placement = Placement(Rotary(), HEADS)
        self.blocks = nn.ModuleList(Block(DIM, HEADS, attention=attention, style=style) for _ in range(depth))
        self.norm = style.last_norm_of(DIM)
        self.head = nn.Linear(DIM, tokens, bias=False)
        initialise(self, depth)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor, *, lengths: Any = None) -> Tensor:
        x = self.embedding(ids)
        rows = self.placement.rows(x, DIM // HEADS, lengths=lengths)
        for block in self.blocks:
            x = block(x, rows)
        logits: Tensor = self.head(self.norm(x))
        return logits


def reader(seed: int, **options: Any) -> Reader:
    """A reader of the default text, its first parameters a function of the seed; `options` as in Reader."""
    torch.manual_seed(seed)
    return Reader(characters().vocabulary_size, **options)


def size(model: nn.Module) -> int:
    """How many numbers are learned; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


# -- what it is worth ------------------------------------------------------------------------------------------


def held_out_windows(count: int) -> HeldOutWindows:
    """So many windows of held-out text, spread evenly, in which every character is asked for."""
    tokens = characters()
    return HeldOutWindows(tokens.ids, WINDOW, 64, tokens.held_out, stride=WINDOW).part(count)


def as_whole(model: Model, held_out: Iterable[Windows], places: Sequence[int] = range(WINDOW)) -> float:
    """Mean nats of the characters behind these places of windows that the model sees as a whole."""
    with torch.no_grad():
        told = [(model(inputs)[:, list(places)], targets[:, list(places)]) for inputs, targets, _ in held_out]
    return _mean(told)


def one_by_one(
    model: Model, held_out: Iterable[Windows], places: Sequence[int] = range(WINDOW), together: int = 64
) -> float:
    """Mean nats of the same characters, each behind a window that ends there: what the model knows when it writes.

    together: how many texts it is given at a time
    """
    told = []
    for inputs, targets, _ in held_out:
        for place in places:
            parts = inputs[:, : place + 1].split(together)
            with torch.no_grad():
                logits = torch.cat([model(part)[:, -1:] for part in parts])
            told.append((logits, targets[:, place : place + 1]))
    return _mean(told)


def _mean(told: Sequence[tuple[Tensor, Tensor]]) -> float:
    total = sum(float(nats(logits, targets)) for logits, targets in told)
    return total / sum(int((targets != IGNORED).sum()) for _, targets in told)
