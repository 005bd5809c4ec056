"""Attention in four steps that are written out, so that each of them can be got wrong.

q, k, v = split(W_q x), split(W_k x), split(W_v x)        s = scores(q, k)        w = share(s)        y = W_o join(w v)

These are the mistakes that no formula can make: a wrong layout of axes, a missing maximum. Those that a formula can
make are values of `regard.algebra.mistakes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..nn.attention import SelfAttention, heads, joined
from ..nn.placement import Rows


def scaled(q: Tensor, k: Tensor) -> Tensor:
    """q kᵀ / √d."""
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def exchanged(q: Tensor, k: Tensor) -> Tensor:
    """k qᵀ / √d: the two are taken for each other."""
    return scaled(k, q)


def reshaped(q: Tensor, k: Tensor) -> Tensor:
    """q times k in the shape of kᵀ, with its numbers in the order of k."""
    return q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) / math.sqrt(q.shape[-1])


def before(scores: Tensor) -> Tensor:
    """True where j ≤ i."""
    return torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()


def softmax(scores: Tensor) -> Tensor:
    """exp(s − max s) / Σ_j, over j ≤ i."""
    return scores.masked_fill(~before(scores), -math.inf).softmax(-1)


def unguarded(scores: Tensor) -> Tensor:
    """exp(s) / Σ_j, over j ≤ i: nothing keeps exp from overflowing."""
    e = scores.exp() * before(scores)
    return e / e.sum(-1, keepdim=True)


def viewed(x: Tensor, width: int) -> Tensor:
    """(batch, rows, heads · width) taken for (batch, heads, rows, width): no axes change places."""
    return x.reshape(x.shape[0], x.shape[2] // width, x.shape[1], width)


def flattened(y: Tensor) -> Tensor:
    """(batch, heads, rows, width) taken for (batch, rows, heads · width): no axes change places."""
    return y.reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])


@dataclass(frozen=True)
class Steps:
    """The four steps; all of them right unless said otherwise."""

    split: Callable[[Tensor, int], Tensor] = heads
    scores: Callable[[Tensor, Tensor], Tensor] = scaled
    share: Callable[[Tensor], Tensor] = softmax
    join: Callable[[Tensor], Tensor] = joined


class Rewired(nn.Module):
    """The matrices of a layer, with these steps between them."""

    def __init__(self, layer: SelfAttention, steps: Steps) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = layer.query, layer.key, layer.value, layer.out
        self.width, self.steps = layer.width, steps

    def forward(self, x: Tensor, rows: Rows) -> Tensor:
        steps = self.steps
        q, k, v = (steps.split(part(x), self.width) for part in (self.query, self.key, self.value))
        weights = steps.share(steps.scores(rows.turn(q), rows.turn(k)))
        y: Tensor = self.out(steps.join(weights @ v))
        return y


class Nothing(nn.Module):
    """0 in the shape of x, in place of attention or of a feed-forward, however these are made and called."""

    def __init__(self, *described: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor, *told: Any) -> Tensor:
        return torch.zeros_like(x)
