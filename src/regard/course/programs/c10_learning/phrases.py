"""A reader of one look, in NumPy alone: “cat” reads its phrase, and the next word is named from what it read.

x_j = E[word j] + P[j]        y = attention(x_cat W_Q, x W_K, x W_V)        logits = y W_O

Its phrases are those of the experiment `phrases`; a quarter of them is never learned from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....algebra.masks import padding
from ....attention import Attention
from ....experiments.phrase_family import ANSWERS, LONGEST, WORDS, Family, Phrase

ATTENTION = Attention(mask=padding("lengths"))
WIDTH, BATCH, RATE, TESTED = 32, 64, 0.01, 300
INDEX = {word: at for at, word in enumerate(WORDS)}
Weights = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """The reader after so many steps.

    three:   the weights of “cat” in the three phrases;  on: its mean weight on the deciding word, in phrases held out
    right:   the share of those that end right;          without: the same when that one weight is taken away
    """

    step: int
    three: list[Any]
    on: float
    right: float
    without: float


def learn_phrases(steps: int = 160, every: int = 5, seed: int = 2) -> list[Moment]:
    """Moments of one training, the first before it."""
    family, rng = Family(), np.random.default_rng(seed)
    W = first(rng)
    mean, square = ({name: np.zeros_like(w) for name, w in W.items()} for _ in range(2))
    held = Texts(family.draw(TESTED, np.random.default_rng(9), held_out=True, alone=0))
    moments = [looked_at(W, held, family, 0)]
    for step in range(1, steps + 1):
        slopes = gradients(W, Texts(family.draw(BATCH, rng)))
        for name, slope in slopes.items():  # Adam: each number at a pace of its own
            mean[name] = 0.9 * mean[name] + 0.1 * slope
            square[name] = 0.99 * square[name] + 0.01 * slope**2
            along, size = mean[name] / (1 - 0.9**step), np.sqrt(square[name] / (1 - 0.99**step))
            W[name] = W[name] - RATE * along / (size + 1e-8)
        if step % every == 0:
            moments.append(looked_at(W, held, family, step))
    return moments


def first(rng: np.random.Generator) -> Weights:
    """Matrices and vectors that know nothing."""

    def drawn(*shape: int, spread: float) -> Any:
        return spread * rng.standard_normal(shape)

    small = 1 / np.sqrt(WIDTH)
    W = {"E": drawn(len(WORDS), WIDTH, spread=0.5), "P": drawn(LONGEST, WIDTH, spread=0.5)}
    W |= {name: drawn(WIDTH, WIDTH, spread=small) for name in "QKV"}
    return W | {"O": drawn(WIDTH, len(ANSWERS), spread=small)}


class Texts:
    """Phrases as numbers, filled up to one length."""

    def __init__(self, phrases: list[Phrase]) -> None:
        self.ids = np.zeros((len(phrases), LONGEST), int)
        for row, phrase in zip(self.ids, phrases, strict=True):
            row[: len(phrase.words)] = [INDEX[word] for word in phrase.words]
        self.rows = np.arange(len(phrases))
        self.lengths = np.array([len(phrase.words) for phrase in phrases])
        self.cat = np.array([phrase.cat for phrase in phrases])
        self.decisive = np.array([phrase.decisive for phrase in phrases])
        self.answers = np.array([ANSWERS.index(phrase.answer) for phrase in phrases])


def seen(W: Weights, texts: Texts) -> tuple[Any, ...]:
    """x, x of the cat, and q, k, v."""
    x = W["E"][texts.ids] + W["P"]
    cat = x[texts.rows, texts.cat][:, None]
    return x, cat, cat @ W["Q"], x @ W["K"], x @ W["V"]


def gradients(W: Weights, texts: Texts) -> Weights:
    """∂L/∂W of the mean cross-entropy; attention's own part is `vjp`."""
    x, cat, q, k, v = seen(W, texts)
    y = ATTENTION(q, k, v, lengths=texts.lengths)
    p = chances(y[:, 0] @ W["O"])
    p[texts.rows, texts.answers] -= 1
    dlogits = p / len(texts.rows)
    dq, dk, dv = ATTENTION.vjp(q, k, v, (dlogits @ W["O"].T)[:, None], lengths=texts.lengths)[:3]
    dx = dk @ W["K"].T + dv @ W["V"].T
    dx[texts.rows, texts.cat] += (dq @ W["Q"].T)[:, 0]
    dE = np.zeros_like(W["E"])
    np.add.at(dE, texts.ids, dx)
    each = {name: np.einsum("bnD,bnd->Dd", rows, dz) for name, rows, dz in (("Q", cat, dq), ("K", x, dk), ("V", x, dv))}
    return each | {"E": dE, "P": dx.sum(0), "O": y[:, 0].T @ dlogits}


def chances(logits: Any) -> Any:
    """Softmax of each row."""
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def looked_at(W: Weights, held: Texts, family: Family, step: int) -> Moment:
    """What the reader reads, and what it gets right, with the deciding weight and without."""
    _, _, q, k, v = seen(W, held)
    w = ATTENTION.weights(q, k, lengths=held.lengths)[:, 0]
    on = float(w[held.rows, held.decisive].mean())
    less = w.copy()
    less[held.rows, held.decisive] = 0
    less /= less.sum(-1, keepdims=True)
    named = [(np.einsum("bn,bnd->bd", each, v) @ W["O"]).argmax(-1) for each in (w, less)]
    right, without = (float(np.mean(answers == held.answers)) for answers in named)
    three = Texts(family.three())
    _, _, q, k, _ = seen(W, three)
    shares = ATTENTION.weights(q, k, lengths=three.lengths)[:, 0]
    return Moment(step, [row[:n] for row, n in zip(shares, three.lengths, strict=True)], on, right, without)
