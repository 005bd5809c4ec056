"""Pairs that are shown, and questions about them: a row is a key, its value, and a key that is asked for.

    x_t = K[k_t] + V[v_t] + A[a_t]        y = core(x)        logits_t = W y_t        the answer at t: the value of a_t

A model is a core between two maps that are the same for all; a core reads rows (batch, rows, dim) in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..train.batch import Batch

KEYS, VALUES = 96, 8
NOTHING = KEYS  # a row that asks for no key
UNASKED = -100  # its answer, which the loss leaves out
HELD_OUT = 1_000_000  # a step that training never reaches


def random(seed: int, step: int) -> torch.Generator:
    """Random numbers of one step."""
    state = np.random.SeedSequence([seed, step, 0]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def asking(keys: Tensor, values: Tensor, asked: Tensor, answers: Tensor) -> Batch:
    """Rows as a batch; as many predictions as there are answers."""
    rows = {"keys": keys, "values": values, "asked": asked, "answers": answers}
    return Batch(rows, int((answers != UNASKED).sum()))


@dataclass(frozen=True)
class AtDistance:
    """Key 0 stands first and is asked for `distance` rows later, in the last row alone; noise stands between."""

    distance: int
    seed: int = 0
    examples: int = 32

    def batch(self, step: int) -> Batch:
        """Sequences of distance + 1 rows."""
        return self.sequences(step, self.examples)

    def sequences(self, step: int, examples: int) -> Batch:
        """So many of them."""
        draw, shape = random(self.seed, step), (examples, self.distance + 1)
        keys, values = torch.randint(1, KEYS, shape, generator=draw), torch.randint(VALUES, shape, generator=draw)
        keys[:, 0] = 0
        asked, answers = torch.full(shape, NOTHING), torch.full(shape, UNASKED)
        asked[:, -1], answers[:, -1] = 0, values[:, 0]
        return asking(keys, values, asked, answers)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Σ −ln p(answer)."""
        return surprise(model, batch)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Of sequences that were never trained on."""
        return measured(model, self.sequences(HELD_OUT, 512))


@dataclass(frozen=True)
class Held:
    """Keys 0, …, pairs − 1 stand anywhere among the rows, noise in all others; each row behind some asks for one.

    Short distances are asked for as often as long ones, so that a model may learn from the near to the far.
    """

    pairs: int
    rows: int = 65
    seed: int = 0
    examples: int = 16

    def batch(self, step: int) -> Batch:
        """Sequences, with a question in every row that can have one."""
        return self.sequences(step, self.examples)

    def sequences(self, step: int, examples: int) -> Batch:
        """So many of them."""
        draw, shape = random(self.seed, step), (examples, self.rows)
        places = torch.rand(shape, generator=draw).argsort(dim=1)[:, : self.pairs]  # of key 0, of key 1, …
        keys = torch.randint(self.pairs, KEYS, shape, generator=draw)
        values = torch.randint(VALUES, shape, generator=draw)
        keys.scatter_(1, places, torch.arange(self.pairs).expand(examples, -1))
        shown = places[:, None, :] < torch.arange(self.rows)[:, None]  # (examples, rows, pairs): before this row?
        asked = (torch.rand(shown.shape, generator=draw) * shown).argmax(dim=2)
        can = shown.any(dim=2)
        answers = values.gather(1, places).gather(1, asked)
        return asking(keys, values, torch.where(can, asked, NOTHING), torch.where(can, answers, UNASKED))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Σ −ln p(answer)."""
        return surprise(model, batch)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """In the last row alone, where every pair has been shown."""
        batch = self.sequences(HELD_OUT, 512)
        answers = batch["answers"].clone()
        answers[:, :-1] = UNASKED
        return measured(model, asking(batch["keys"], batch["values"], batch["asked"], answers))


def surprise(model: nn.Module, batch: Batch) -> Tensor:
    """Σ −ln p(answer) over a batch."""
    answers = batch["answers"].flatten()
    return cross_entropy(model(batch).flatten(0, 1), answers, ignore_index=UNASKED, reduction="sum")


def measured(model: nn.Module, batch: Batch) -> dict[str, float]:
    """The loss in nats for each answer, and the share that is right."""
    logits, answers = model(batch).flatten(0, 1), batch["answers"].flatten()
    there = answers != UNASKED
    right = logits[there].argmax(dim=1) == answers[there]
    return {"loss": float(cross_entropy(logits[there], answers[there])), "right": float(right.float().mean())}


class Recaller(nn.Module):
    """Rows of pairs and questions in, logits of values out, by way of a core."""

    def __init__(self, core: nn.Module, dim: int) -> None:
        super().__init__()
        self.keys, self.values, self.asked = (
            nn.Embedding(KEYS, dim),
            nn.Embedding(VALUES, dim),
            nn.Embedding(KEYS + 1, dim),
        )
        self.core, self.out = core, nn.Linear(dim, VALUES)

    def rows(self, batch: Batch) -> Tensor:
        """x (batch, rows, dim)."""
        x: Tensor = self.keys(batch["keys"]) + self.values(batch["values"]) + self.asked(batch["asked"])
        return x

    def read(self, x: Tensor) -> Tensor:
        """Logits (batch, rows, values) of rows."""
        logits: Tensor = self.out(self.core(x))
        return logits

    def forward(self, batch: Batch) -> Tensor:
        return self.read(self.rows(batch))


def count(module: nn.Module) -> int:
    """How many parameters there are."""
    return sum(parameter.numel() for parameter in module.parameters())
