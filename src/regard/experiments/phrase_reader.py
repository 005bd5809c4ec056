"""A reader of one layer, what it is asked, and how weights are taken from it.

x_i = E[t_i] + p_i        y = block(x), of one head        logits = W y_i    for i at “cat”, and at the last word

One layer, so that a weight that is taken away cannot come back by way of another word. `removed` takes weights away and
lets the others share what they held: w_ij ∝ exp(s_ij) over the words that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from ..attention import Attention
from ..inputs.positions.added import Learned
from ..nn.models import drawn_seed
from ..nn.stacks import Encoder
from ..nn.style import Style
from ..train.batch import Batch
from .looking import weights_while
from .phrase_family import ANSWERS, LONGEST, WORDS, Family, Phrase

DIM, BATCH = 32, 96
ALIKE = Attention(score=0)  # every word is read as much as every other
PLACES = ("cat", "last")


class NoNorm(nn.Identity):
    """x as it is: a norm before the values would bind a word to its place, and equal weights could tell whose it is."""

    def __init__(self, dim: int, epsilon: float, bias: bool) -> None:
        super().__init__()


class Reader(nn.Module):
    """Words in; at each of them the logits of what comes after the phrase."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(len(WORDS), DIM), nn.Linear(DIM, len(ANSWERS))
        position = Learned.random(LONGEST, DIM, seed=drawn_seed(), spread=1.0)  # as wide as the words'
        self.encoder = Encoder(DIM, 1, 1, attention=attention, position=position, style=Style(norm=NoNorm))

    def forward(self, batch: Batch, mask: Tensor | None = None) -> Tensor:
        """(phrases, words, answers)."""
        logits: Tensor = self.head(self.encoder(self.embedding(batch["ids"]), lengths=batch["lengths"], mask=mask))
        return logits


def asked(logits: Tensor, batch: Batch) -> Tensor:
    """Of each phrase the rows at “cat” and at the last word: (phrases, 2, answers)."""
    rows = torch.stack([batch[place] for place in PLACES], dim=1)
    return logits.gather(1, rows[..., None].expand(-1, -1, logits.shape[2]))


def batch_of(phrases: Sequence[Phrase]) -> Batch:
    """Phrases as tensors, filled up to one length."""
    index = {word: at for at, word in enumerate(WORDS)}
    ids = torch.zeros(len(phrases), LONGEST, dtype=torch.int64)
    for row, phrase in zip(ids, phrases, strict=True):
        row[: len(phrase.words)] = torch.tensor([index[word] for word in phrase.words])
    facts = {
        "lengths": [len(phrase.words) for phrase in phrases],
        "cat": [phrase.cat for phrase in phrases],
        "last": [phrase.last for phrase in phrases],
        "decisive": [phrase.decisive for phrase in phrases],
        "answer": [ANSWERS.index(phrase.answer) for phrase in phrases],
    }
    return Batch({"ids": ids, **{name: torch.tensor(fact) for name, fact in facts.items()}}, len(PLACES) * len(phrases))


class Next:
    """What comes next, asked at “cat” and at the last word of each phrase."""

    def __init__(self, family: Family, seed: int) -> None:
        self.family, self.seed = family, seed

    def batch(self, step: int) -> Batch:
        """New phrases of the part that is learned from."""
        return batch_of(self.family.draw(BATCH, np.random.default_rng([self.seed, step])))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Cross-entropy at both places."""
        answers = batch["answer"].repeat_interleave(len(PLACES))
        return cross_entropy(asked(model(batch), batch).flatten(0, 1), answers, reduction="sum")

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Nothing on the way: what was learned is looked at afterwards."""
        return {}


# -- what is taken away ----------------------------------------------------------------------------------------


def removed(batch: Batch, gone: Tensor) -> Tensor:
    """A mask (phrases, 1, rows, keys): “cat” and the last word do not read what is gone, (phrases, 2, keys)."""
    mask = torch.ones(len(batch), 1, LONGEST, LONGEST, dtype=torch.bool)
    each = torch.arange(len(batch))
    for at, place in enumerate(PLACES):
        mask[each, 0, batch[place]] &= ~gone[:, at]  # both places may be one row
    return mask


def decisive(batch: Batch) -> Tensor:
    """The word that decides."""
    return one_hot(batch["decisive"], LONGEST).bool()[:, None].expand(-1, len(PLACES), -1)


def others(batch: Batch) -> Tensor:
    """Every word but the one that decides and the one that asks."""
    asks = torch.stack([one_hot(batch[place], LONGEST).bool() for place in PLACES], dim=1)
    there = (torch.arange(LONGEST) < batch["lengths"][:, None])[:, None]
    return there & ~asks & ~decisive(batch)


def one_other(batch: Batch) -> Tensor:
    """One of these, drawn at random."""
    drawn = torch.rand(others(batch).shape, generator=torch.Generator().manual_seed(0)) * others(batch)
    return one_hot(drawn.argmax(-1), LONGEST).bool()


REMOVED: dict[str, Callable[[Batch], Tensor]] = {
    "the deciding word": decisive,
    "one other word": one_other,
    "all other words": others,
}


# -- what is left without it -----------------------------------------------------------------------------------


def right(model: nn.Module, batch: Batch, gone: Tensor | None = None) -> list[float]:
    """The share of right answers at each place."""
    mask = None if gone is None else removed(batch, gone)
    with torch.no_grad():
        found = asked(model(batch, mask), batch).argmax(-1) == batch["answer"][:, None]
    return found.double().mean(0).tolist()  # type: ignore[no-any-return]


def read(model: nn.Module, batch: Batch) -> Tensor:
    """What each place reads: weights (phrases, 2, keys)."""
    (weights,) = weights_while(model, lambda: model(batch))
    return asked(weights[:, 0], batch)
