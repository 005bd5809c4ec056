"""The next character of Python's language reference, as a task: what several experiments learn.

loss = −Σ log p(t_{s+1} | t_1 … t_s)        in nats; held out, for each character

Models that are compared see the same windows at the same steps, and begin with the same parameters where they have them
in common: what differs is what an experiment varies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..nn.gpt import GPT
from ..nn.stacks import Encoder
from ..train.batch import Batch
from ..train.data.corpora import read_text
from ..train.data.splits import split
from ..train.data.tokens import Tokens, encoded, vocabulary_of
from ..train.data.windows import IGNORED, HeldOutWindows, TextBatches, Windows
from ..train.fitting import History, fit
from ..train.learner import Taken
from ..train.schedule import Schedule

WINDOW = 64  # characters in a window of text
BATCH = 8  # windows at each step: many short steps teach a small model more than few long ones
DIM, DEPTH, HEADS = 64, 2, 4
RATE = 6e-3


@cache
def characters() -> Tokens:
    """The default text, character by character, a tenth of it held out."""
    parts = split(read_text())
    return encoded(parts, vocabulary_of(parts.training_texts))


@dataclass
class NextCharacter:
    """What comes next.

    measured: how many held-out windows it is measured on, evenly spread; all of them where nothing is said
    """

    seed: int = 0
    tokens: Tokens = field(default_factory=characters)
    measured: int | None = None

    def __post_init__(self) -> None:
        tokens = self.tokens
        self.batches = TextBatches(tokens.ids, WINDOW, BATCH, self.seed, tokens.training)
        held_out = HeldOutWindows(tokens.ids, WINDOW, 4 * BATCH, tokens.held_out)
        self.held_out = held_out if self.measured is None else held_out.part(self.measured)

    def batch(self, step: int) -> Batch:
        """Windows of the text."""
        return as_batch(self.batches[step])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The sum over the characters that count."""
        return nats(model(batch["inputs"]), batch["targets"])

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Nats for each held-out character."""
        total = sum(float(self.loss(model, as_batch(windows))) for windows in self.held_out)
        return {"loss": total / self.held_out.count}


def as_batch(windows: Windows) -> Batch:
    """Windows as what a step learns from."""
    targets = windows.targets
    return Batch({"inputs": windows.inputs, "targets": targets}, int((targets != IGNORED).sum()))


def nats(logits: Tensor, targets: Tensor) -> Tensor:
    """−Σ log p(target), over those that count."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def small_gpt(tokens: int, *, seed: int, **options: Any) -> GPT:
    """The model of these experiments; `options` as in GPT."""
    torch.manual_seed(seed)
    return GPT(tokens, DIM, DEPTH, HEADS, **options)


def trained(
    model: nn.Module,
    task: Any,
    steps: int,
    *,
    rate: float = RATE,
    seed: int = 0,
    every: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> History:
    """A model fitted for so many steps; `tell` hears the share of them that is done."""

    def told(taken: Taken) -> None:
        if taken.step % 10 == 0:
            tell((taken.step + 1) / steps)

    return fit(model, task, Schedule(steps, rate), every=every, told=told, seed=seed)


# -- hidden characters, for models that read on both sides -------------------------------------------------------


class Filler(nn.Module):
    """Ids in, of which some are hidden; logits of what stands there out. No mask: every row reads every row."""

    def __init__(self, tokens: int, *, seed: int, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(tokens + 1, DIM)  # the last one is what is hidden
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.encoder = Encoder(DIM, DEPTH, HEADS, **options)

    def forward(self, ids: Tensor) -> Tensor:
        return self.encoder(self.embedding(ids)) @ self.embedding.weight[:-1].T


@dataclass
class HiddenCharacters(NextCharacter):
    """What stands where characters are hidden: every fifth, drawn at random for each window."""

    share: float = 0.2

    def batch(self, step: int) -> Batch:
        """Windows with holes."""
        return self._hidden(self.batches[step], step)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Nats for each hidden character of the held-out windows."""
        batches = [self._hidden(windows, -1 - place) for place, windows in enumerate(self.held_out)]
        total = sum(float(self.loss(model, batch)) for batch in batches)
        return {"loss": total / sum(batch.count for batch in batches)}

    def _hidden(self, windows: Windows, draw: int) -> Batch:
        """The inputs themselves are the targets, where they are hidden: a function of the seed and the draw."""
        drawn = np.random.default_rng([self.seed, abs(draw), draw < 0]).random(tuple(windows.inputs.shape))
        hidden = torch.from_numpy(drawn < self.share)
        targets = windows.inputs.masked_fill(~hidden, IGNORED)
        inputs = windows.inputs.masked_fill(hidden, self.tokens.vocabulary_size)
        return Batch({"inputs": inputs, "targets": targets}, int(hidden.sum()))
