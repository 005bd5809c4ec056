"""A small GPT that learns to write: a text, its characters, and a training of a few seconds.

loss = −mean log p(c_{t+1} | c_1 … c_t)        in nats, on a part of the text that is never learned from
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ....train import ngrams

if TYPE_CHECKING:
    from ....nn.gpt import GPT

WINDOW, BATCH, HELD, MOST = 64, 8, 20_000, 220_000
RATE = 8e-3


@dataclass(frozen=True)
class Text:
    """Characters as numbers: what is learned from, and what is held out."""

    letters: str
    learned: Any
    held: Any

    def ids(self, text: str) -> list[int]:
        """A text as numbers."""
        return [self.letters.index(letter) for letter in text]

    def says(self, ids: Sequence[int]) -> str:
        """Numbers as a text."""
        return "".join(self.letters[number] for number in ids)


@cache
def help_pages() -> Text:
    """What Python says of itself in `help()`: small letters and a few marks; no paragraph twice."""
    from pydoc_data.topics import topics

    paragraphs = dict.fromkeys(part for name in sorted(topics) for part in topics[name].split("\n\n"))
    text = re.sub(r"[^a-z .,;:()'-]", " ", "\n".join(paragraphs).lower())
    text = re.sub(r" +", " ", text)[:MOST]
    letters = "".join(sorted(set(text)))
    ids = np.array([letters.index(letter) for letter in text])
    return Text(letters, ids[:-HELD], ids[-HELD:])


def counted(text: Text, orders: Sequence[int] = (1, 2, 3)) -> dict[int, float]:
    """Nats of n-grams on what is held out."""
    table = ngrams.best(text.learned, _windows(text).reshape(-1), orders, vocabulary_size=len(text.letters)).table
    return {order: min(row.nats for row in table if row.order == order) for order in orders}


SEEN = {1: "no context", 2: "one character", 3: "two characters"}  # by the order of counting


def against_counts(nats: float, counts: Mapping[int, float]) -> str:
    """What a model beats, and what it does not.

    >>> against_counts(2.0, {1: 2.9, 2: 2.4, 3: 1.9})
    'It beats counting with no context or one character; with two characters, counting is still ahead.'
    """
    beaten = [SEEN[order] for order in counts if nats < counts[order]]
    ahead = [SEEN[order] for order in counts if nats >= counts[order]]
    if not beaten:
        return "Counting is still ahead, even with no context."
    rest = f"; with {_listed(ahead)}, counting is still ahead" if ahead else ""
    return f"It beats counting with {_listed(beaten)}{rest}."


def fresh(text: Text, **options: Any) -> GPT:
    """A model that knows nothing."""
    import torch

    from .... import nn

    torch.manual_seed(0)
    model: GPT = nn.GPT(len(text.letters), dim=64, depth=2, heads=4, **options)
    return model


@dataclass(frozen=True)
class Training:
    """Moments of one training: nats on held-out text and the parameters, by the number of steps."""

    nats: dict[int, float]
    states: dict[int, dict[str, Any]]
    losses: list[float]


def train_writer(model: GPT, text: Text, steps: int, every: int, told: Callable[[], Any] = lambda: None) -> Training:
    """So many steps of Adam on windows of the text."""
    import torch

    ids, rng = torch.from_numpy(text.learned), np.random.default_rng(0)
    adam = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    nats, states, losses = {0: measured(model, text)}, {0: _copied(model)}, []
    for step in range(1, steps + 1):
        for group in adam.param_groups:  # small steps first, then ever smaller ones
            group["lr"] = RATE * min(1.0, step / 10) * (1 - 0.9 * step / steps)
        starts = rng.integers(len(ids) - WINDOW - 1, size=BATCH)
        windows = torch.stack([ids[start : start + WINDOW + 1] for start in starts])
        loss = _loss(model, windows)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
        told()
        if step % every == 0:
            nats[step], states[step] = measured(model, text), _copied(model)
    return Training(nats, states, losses)


def measured(model: GPT, text: Text) -> float:
    """Nats for each held-out character."""
    import torch

    with torch.no_grad():
        return float(_loss(model, torch.from_numpy(_windows(text))))


def written_by(model: GPT, state: dict[str, Any], text: Text, start: str, length: int, temperature: float) -> str:
    """What a model with these parameters writes after a beginning."""
    from ....nn import Sampling

    model.load_state_dict(state)
    drawn = model.generate(text.ids(start), new=length, sampling=Sampling(temperature=temperature), seed=0)
    return text.says(drawn.ids)


def _listed(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _windows(text: Text, count: int = 64) -> Any:
    size = WINDOW + 1
    return text.held[: count * size].reshape(count, size)


def _loss(model: GPT, windows: Any) -> Any:
    from torch.nn.functional import cross_entropy

    return cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def _copied(model: GPT) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}
