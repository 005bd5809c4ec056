"""Two partners for each row: a row shows a key and a value, and asks for the values of two other keys at once.

    x_t = K[k_t] + V[v_t] + A[a_t] + B[b_t]        y = core(x)        logits_t = W_a y_t, W_b y_t

Which row is relevant to row t is said by a_t for one answer and by b_t for the other: two notions of relevance.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..train.batch import Batch
from .pairs import HELD_OUT, random

ROWS, VALUES = 17, 8


@dataclass(frozen=True)
class Partners:
    """Sequences of rows with keys in any order; each row asks for two others."""

    seed: int = 0
    examples: int = 32

    def batch(self, step: int) -> Batch:
        """The sequences of a step."""
        return self.sequences(step, self.examples)

    def sequences(self, step: int, examples: int) -> Batch:
        """So many of them; `places` says where the partners stand, and `answers` what they show, (…, rows, 2)."""
        draw = random(self.seed, step)
        keys = torch.rand(examples, ROWS, generator=draw).argsort(dim=1)
        values = torch.randint(VALUES, keys.shape, generator=draw)
        others = torch.rand(examples, ROWS, ROWS, generator=draw) - 2 * torch.eye(ROWS)  # a row itself comes last
        places = others.argsort(dim=2, descending=True)[..., :2]
        asked, answers = (row.gather(1, places.flatten(1)).view_as(places) for row in (keys, values))
        tensors = {"keys": keys, "values": values, "asked": asked, "places": places, "answers": answers}
        return Batch(tensors, answers.numel())

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Σ −ln p(answer), over both."""
        return cross_entropy(model(batch).flatten(0, 2), batch["answers"].flatten(), reduction="sum")

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Nats for each answer; the share of right ones, and of rows whose answers are both right."""
        batch = self.sequences(HELD_OUT, 256)
        right = (model(batch).argmax(dim=-1) == batch["answers"]).float()
        loss = float(self.loss(model, batch)) / batch.count
        return {"loss": loss, "right": float(right.mean()), "both": float(right.prod(dim=-1).mean())}


class Matcher(nn.Module):
    """Rows in, logits (batch, rows, 2, values) out, by way of a core."""

    def __init__(self, core: nn.Module, dim: int) -> None:
        super().__init__()
        self.keys, self.values = nn.Embedding(ROWS, dim), nn.Embedding(VALUES, dim)
        self.first, self.second = nn.Embedding(ROWS, dim), nn.Embedding(ROWS, dim)
        self.core, self.out = core, nn.Linear(dim, 2 * VALUES)

    def rows(self, batch: Batch) -> Tensor:
        """x (batch, rows, dim)."""
        asked = self.first(batch["asked"][..., 0]) + self.second(batch["asked"][..., 1])
        x: Tensor = self.keys(batch["keys"]) + self.values(batch["values"]) + asked
        return x

    def forward(self, batch: Batch) -> Tensor:
        logits: Tensor = self.out(self.core(self.rows(batch))).unflatten(-1, (2, VALUES))
        return logits
