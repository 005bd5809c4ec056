"""A party: every guest has a name, a guest to ask for, and a story; each wants the story of the guest asked for.

x_i = (name, asked name, story), one-hot        y_i = Σ_j w_ij v_j        answer_i = story of j, where name_j = asked_i

The guests ask around a ring, so that no two ask for each other: what a guest asks, what it is found by and what it
tells are three things, and whether i asks for j says nothing about whether j asks for i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name

from ..attention import Attention
from ..train.batch import Batch
from ..train.learner import seed_of

GUESTS, NAMES, STORIES = 8, 16, 16
SHOWN = NAMES + NAMES + STORIES  # D, the width of x
WIDTH = 32  # d, of queries, keys and values
PARTIES = 32  # in a batch


def parties(count: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Guests x (count, guests, D), whom each asks and whose story it wants: index and story (count, guests)."""
    names = torch.rand(count, NAMES, generator=generator).argsort(1)[:, :GUESTS]
    ring = torch.rand(count, GUESTS, generator=generator).argsort(1)
    asked = torch.empty_like(ring).scatter_(1, ring, ring.roll(-1, 1))  # each asks the next of the ring
    stories = torch.randint(STORIES, (count, GUESTS), generator=generator)
    parts = ((names, NAMES), (names.gather(1, asked), NAMES), (stories, STORIES))
    x = torch.cat([F.one_hot(part, size).float() for part, size in parts], -1)
    return {"x": x, "asked": asked, "story": stories.gather(1, asked)}


class Guest(nn.Module):
    """One attention by which every guest reads all: q = W_q x, k = W_k x, v = W_v x."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(SHOWN, WIDTH, bias=False) for _ in range(3))
        self.attention = Attention()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.attention(self.query(x), self.key(x), self.value(x))
        return y

    def weights(self, x: Tensor) -> Tensor:
        """w_ij."""
        weights: Tensor = self.attention.weights(self.query(x), self.key(x))
        return weights


class Listener(nn.Module):
    """Scores of all stories from what a guest has heard.

    learned: whether the map from y to stories is learned; else it is drawn once and stays
    """

    def __init__(self, guest: Guest, learned: bool) -> None:
        super().__init__()
        self.guest = guest
        heard = SHOWN if isinstance(guest.value, nn.Identity) else WIDTH
        self.hears = nn.Linear(heard, STORIES, bias=False)
        nn.init.orthogonal_(self.hears.weight)
        self.hears.weight.requires_grad_(learned)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.hears(self.guest(x))
        return scores


@dataclass
class Party:
    """The task: parties by their step, and as many others to be measured on."""

    seed: int = 0
    measured: int = 512

    def batch(self, step: int) -> Batch:
        """Parties of a step."""
        return Batch(parties(PARTIES, self._generator(step)), PARTIES * GUESTS)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """−Σ log p(story)."""
        return F.cross_entropy(model(batch["x"]).flatten(0, 1), batch["story"].flatten(), reduction="sum")

    def evaluate(self, model: Any) -> dict[str, float]:
        """The share of guests that hear the right story; how much they read of whom."""
        held_out = parties(self.measured, self._generator(0, held_out=1))
        scores, weights = model(held_out["x"]), model.guest.weights(held_out["x"])
        nats = float(F.cross_entropy(scores.flatten(0, 1), held_out["story"].flatten()))
        right = (scores.argmax(-1) == held_out["story"]).float().mean()
        return {"loss": nats, "right": float(right), **readings(weights, held_out["asked"])}

    def _generator(self, step: int, held_out: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(self.seed, step, held_out))


def readings(weights: Tensor, asked: Tensor) -> dict[str, float]:
    """The mean weight on the guest asked for, on the one who asks, and on oneself."""
    askers = asked.argsort(1)  # a permutation's inverse
    selves = torch.arange(weights.shape[-1]).expand_as(asked)
    places = {"asked": asked, "asker": askers, "self": selves}
    return {name: float(weights.gather(2, place[..., None]).mean()) for name, place in places.items()}
