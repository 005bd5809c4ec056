"""One layer of attention that learns to match cards, in NumPy.

y_i = Σ_j w_ij v_j over the cards, or over all pairs of them, then a readout of two layers: does card i have a match?
The gradient of attention is the library's own; that of the readout is written out.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ....algebra.masks import given
from ....attention import Attention

WAVES = 3
ATTENTION = Attention(mask=given("others"))


def waves(numbers: Any, top: int) -> Any:
    """Cards as places on a clock of so many hours: cos and sin of 1, 2, 3 times the angle."""
    angles = 2 * np.pi * np.asarray(numbers)[..., None] * np.arange(1, WAVES + 1) / top
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


def groups(count: int, size: int) -> tuple[Any, Any]:
    """All groups of so many cards, and which of them each card may read: those that it is not in itself."""
    found = np.array(list(combinations(range(count), size)))
    return found, ~(found[None] == np.arange(count)[:, None, None]).any(-1)


def problem(rng: Any, hands: int, count: int, top: int, order: int) -> tuple[Any, Any]:
    """Hands of cards, and for each card whether `order` − 1 others complete it to 0."""
    cards = rng.integers(top, size=(hands, count))
    found, others = groups(count, order - 1)
    total = cards[:, :, None] + cards[:, found].sum(-1)[:, None]
    return cards, ((total % top == 0) & others).any(-1)


def rehearsed(order: int, reads: int, *, count: int, top: int, steps: int = 300, seed: int = 0) -> float:
    """The share of right answers, on new hands, of a layer that learned to find `order` cards that sum to 0.

    reads: 1 where the keys are cards, 2 where they are pairs of cards
    """
    rng = np.random.default_rng(seed)
    layer = Layer(rng, count, top, reads)
    for step in range(steps):
        layer.learn(*problem(rng, 64, count, top, order), rate=0.03 * (1 - step / steps))
    cards, match = problem(rng, 1000, count, top, order)
    return float(((layer(cards) > 0) == match).mean())


class Layer:
    """Queries from cards, keys and values from groups of cards, and a readout of what comes back."""

    def __init__(self, rng: Any, count: int, top: int, reads: int, width: int = 12, hidden: int = 48) -> None:
        self.top, (self.found, self.others) = top, groups(count, reads)
        sizes = {"q": (2 * WAVES, width), "k": (2 * WAVES, width), "v": (2 * WAVES, width),
                 "in": (2 * WAVES + width + 1, hidden), "out": (hidden + 1, 1)}  # fmt: skip
        self.W = {name: 1.5 * rng.standard_normal(size) / np.sqrt(size[0]) for name, size in sizes.items()}
        self.m = {name: np.zeros_like(one) for name, one in self.W.items()}
        self.s = {name: np.zeros_like(one) for name, one in self.W.items()}
        self.steps = 0

    def __call__(self, cards: Any) -> Any:
        """Above 0 where the layer believes in a match."""
        W, others = self.W, self.others
        self.x, self.z = waves(cards, self.top), waves(cards[:, self.found].sum(-1), self.top)
        self.q, self.k, self.v = self.x @ W["q"], self.z @ W["k"], self.z @ W["v"]
        self.read = _one_more(np.concatenate([self.x, ATTENTION(self.q, self.k, self.v, others=others)], axis=-1))
        self.held = _one_more(np.tanh(self.read @ W["in"]))
        return (self.held @ W["out"])[..., 0]

    def learn(self, cards: Any, match: Any, rate: float) -> None:
        """One step of Adam on the logistic loss."""
        off = (1 / (1 + np.exp(-self(cards))) - match)[..., None] / match.size
        back = (off @ self.W["out"].T * (1 - self.held**2))[..., :-1]
        dy = (back @ self.W["in"].T)[..., 2 * WAVES : -1]
        dq, dk, dv = ATTENTION.vjp(self.q, self.k, self.v, dy, others=self.others)
        pairs = {
            "q": (self.x, dq),
            "k": (self.z, dk),
            "v": (self.z, dv),
            "in": (self.read, back),
            "out": (self.held, off),
        }
        self.steps += 1
        for name, (given_, slope) in pairs.items():
            gradient = np.einsum("bic,bid->cd", given_, slope)
            self.m[name] = 0.9 * self.m[name] + 0.1 * gradient
            self.s[name] = 0.99 * self.s[name] + 0.01 * gradient**2
            mean, square = self.m[name] / (1 - 0.9**self.steps), self.s[name] / (1 - 0.99**self.steps)
            self.W[name] -= rate * mean / (np.sqrt(square) + 1e-8)


def _one_more(array: Any) -> Any:
    """A column of ones, for what is added whatever comes in."""
    return np.concatenate([array, np.ones_like(array[..., :1])], axis=-1)
