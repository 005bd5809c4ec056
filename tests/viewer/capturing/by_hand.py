"""Attention as people write it in their own modules, and what looks like it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

HEADS, WIDTH, LENGTH, BATCH = 3, 7, 11, 2
Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Hand(nn.Module):
    """Projections, and between them a function from q, k, v to y and its weights; both (batch, heads, …)."""

    def __init__(self, attend: Callable[..., Any]) -> None:
        super().__init__()
        self.num_heads, self.attend = HEADS, attend
        self.inner, self.outer = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH), nn.Linear(HEADS * WIDTH, 5)
        self.register_buffer("past", torch.ones(61, 61).tril().bool())
        self.weights: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.inner(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in parts)
        y, self.weights = self.attend(self, q, k, v)
        return F.softmax(self.outer(y.transpose(1, 2).flatten(2)), dim=-1) @ self.outer.weight  # a classifier


def nano(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(WIDTH))
    scores = scores.masked_fill(~self.past[: q.shape[2], : k.shape[2]], float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return F.dropout(weights, 0.25, self.training) @ v, weights


def letters(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) / WIDTH**0.5).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v).transpose(1, 2), weights


def dots(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = torch.einsum("...id,...jd->...ij", q * WIDTH**-0.5, k).softmax(dim=-1)
    return torch.einsum("...ij,...jd->...id", weights, v), weights


def folded(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.bmm(q, k.mT) / WIDTH**0.5 + torch.full((q.shape[1], k.shape[1]), -1e9).triu(1)
    weights = torch.softmax(scores, -1)
    return (y.unflatten(0, (-1, HEADS)) for y in (torch.bmm(weights, v), weights))


def capped(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    scores = 3 * torch.tanh(q @ k.mT / 3)
    scores += torch.arange(float(k.shape[2])) * torch.tensor([0.5, 0.25, 0.125])[:, None, None]
    weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
    return weights @ v, weights


def chosen(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    least = torch.finfo(q.dtype).min
    weights = nn.Softmax(-1)(torch.where(self.past[: q.shape[2], : k.shape[2]], q @ k.mT, least))
    return weights @ v, weights


def turned(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = (q @ k.mT / WIDTH**0.5).softmax(-1)
    return (v.mT @ weights.transpose(2, 3)).mT, weights


def cosines(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    scale = torch.tensor([2.0, 3.0, 5.0])[:, None, None]
    weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * scale).softmax(-1)
    return weights @ v, weights


def shared(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = (q @ k[:, :1].mT).softmax(-1)  # one head of keys and values for all
    return weights @ v[:, :1], weights


FOLLOWED = {
    one.__name__: one for one in (nano, letters, dots, folded, capped, chosen, turned, cosines, shared)
}  # fmt: skip


def mixed(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = torch.einsum("bhij,gh->bgij", (q @ k.mT).softmax(-1), torch.eye(HEADS) + 0.25)
    return weights @ v, weights


def halved(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = (q @ k.mT).softmax(-1) * 0.5
    return weights @ v, weights


def added(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    weights = torch.tanh(q[:, :, :, None] + k[:, :, None]).sum(-1).softmax(-1)
    return weights @ v, weights


def sunk(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    scores = torch.cat([q @ k.mT, torch.ones(*q.shape[:3], 1)], -1)
    weights = scores.softmax(-1)[..., :-1]
    return weights @ v, weights


BY_WEIGHTS = {one.__name__: one for one in (mixed, halved, added, sunk)}


def linear(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return q.softmax(-1) @ (k.softmax(-2).mT @ v), None


def routed(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    gates = self.outer(q.transpose(1, 2).flatten(2)).softmax(-1)
    best, which = gates.topk(2, -1)
    return v * best.sum(-1)[:, None, :, None] + which.sum() * 0, None


def codebook(self: Hand, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    book = self.inner.weight[:13, :WIDTH].detach().clone()
    return (q @ book.T).softmax(-1) @ book, None


NO_ATTENTION = {one.__name__: one for one in (linear, routed, codebook)}


def made(attend: Callable[..., Any]) -> tuple[nn.Module, torch.Tensor]:
    """A model with one such module, and its input."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Identity(), Hand(attend)).eval(), torch.randn(BATCH, LENGTH, HEADS * WIDTH)
