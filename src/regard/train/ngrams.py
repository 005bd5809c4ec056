"""What counting reaches: the ids before, looked up in a table. A model that learns has to do better.

    p(t_i | t_1 … t_{i−1}) ≈ p_n(t_i | t_{i−n+1} … t_{i−1})          smoothing: how p_n comes from counts

and the p_n of an order is made of the counts of all k-grams with k ≤ n, so that nothing has probability 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..algebra.errors import CallError
from .grams import START, Found, Level, all_levels, joined, looked_up, measured, sequences
from .smoothing import KneserNey, Smoothing, Weights, WittenBell


@dataclass(frozen=True, eq=False)
class NGrams:
    """A model that looks at the order − 1 ids before.

    >>> from regard.inputs import Characters
    >>> text = "the cat sat on the mat. the rat sat on the hat. the cat ate the rat. "
    >>> letters = Characters.of(text)
    >>> model = fit(letters.encode(text), 4, len(letters), WittenBell())
    >>> round(float(model.nats(letters.encode("the cat on the mat")).mean()), 2)
    0.42
    >>> letters.decode(model.sample(np.random.default_rng(0), 40, start=letters.encode("the")))
    ' cat sat sate cat on the crsat on the ma'
    """

    levels: tuple[Level, ...] = field(repr=False)
    vocabulary_size: int
    smoothing: Smoothing
    weights: tuple[Weights, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        longest = self.levels[-1]
        made = (self.smoothing.weights(level, self.vocabulary_size, longest=level is longest) for level in self.levels)
        object.__setattr__(self, "weights", tuple(made))

    @property
    def order(self) -> int:
        """n: how many ids a gram has, the predicted one among them."""
        return len(self.levels)

    def nats(self, ids: Any, first: int = 0) -> Any:
        """−ln p of each id after those before it, of which there are fewer at the start.

        Of one sequence of ids, or of several, one after the other; the first ids of each are context alone.
        """
        texts = sequences(ids, "ids")
        p = self._probabilities(joined(texts, self.vocabulary_size, "ids"))
        return -np.log(p[measured(texts, first)])

    def distribution(self, context: Any) -> Any:
        """(V): the probability of every id after these."""
        before = joined(sequences(context, "context"), self.vocabulary_size, "context")[-self.order :]
        every = np.arange(self.vocabulary_size)
        rows = np.column_stack([np.broadcast_to([START, *before], (len(every), len(before) + 1)), every])
        return self._probabilities(rows.reshape(-1)).reshape(rows.shape)[:, -1]

    def sample(self, rng: np.random.Generator, length: int, start: Any = ()) -> Any:
        """So many ids to follow the start, each drawn after the ones before."""
        ids = [int(number) for number in start]
        for _ in range(length):
            below = np.cumsum(self.distribution(ids[-self.order :]))
            ids.append(int(np.searchsorted(below, rng.random() * below[-1], side="right")))
        return np.asarray(ids[len(ids) - length :], dtype=np.int64)

    def _probabilities(self, stream: Any) -> Any:
        p = np.full(len(stream), 1 / self.vocabulary_size)
        for weights, found in zip(self.weights, looked_up(self.levels, stream), strict=True):
            p = _interpolated(weights, found, p)
        return p


def fit(ids: Any, order: int, vocabulary_size: int, smoothing: Smoothing | None = None) -> NGrams:
    """Count the k-grams of one sequence of ids, or of several, for k = 1 … order; Kneser–Ney unless told otherwise."""
    stream = joined(sequences(ids, "ids"), vocabulary_size, "ids")
    return NGrams(all_levels(stream, order), vocabulary_size, smoothing or KneserNey())


# -- the best of them ------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One of the models that were tried: nats is the mean over the held-out ids."""

    order: int
    smoothing: str
    nats: float


@dataclass(frozen=True, eq=False)
class Best:
    """The model with the lowest loss on what was held out, and what all of them reached.

    The order and the smoothing are chosen by the held-out text itself, so this is a little better than it should be:
    what learns has to beat it all the same.
    """

    model: NGrams
    nats: float
    table: tuple[Row, ...]

    @property
    def order(self) -> int:
        """n of the best model."""
        return self.model.order

    @property
    def smoothing(self) -> str:
        """The name of the best way to smooth."""
        return self.model.smoothing.name

    def __str__(self) -> str:
        names = list(dict.fromkeys(row.smoothing for row in self.table))
        lines = ["order  " + "  ".join(f"{name:>12}" for name in names)]
        for order in sorted({row.order for row in self.table}):
            nats = {row.smoothing: row.nats for row in self.table if row.order == order}
            lines.append(f"{order:>5}  " + "  ".join(f"{nats[name]:>12.4f}" for name in names))
        return "\n".join(lines)


def best(
    training: Any,
    held_out: Any,
    orders: Sequence[int] = range(1, 11),
    *,
    vocabulary_size: int | None = None,
    first: int = 0,
    smoothings: Sequence[Smoothing] = (KneserNey(), WittenBell()),
) -> Best:
    """Of all orders and smoothings, what predicts the held-out ids best after counting the training ids.

    Both are one sequence of ids, or several. The first ids of each that is held out are context alone.

    >>> text = np.frombuffer(b"the cat sat on the mat. the rat sat on the hat. ", np.uint8)
    >>> found = best(text, np.frombuffer(b"the cat on the hat", np.uint8), orders=(1, 2, 3))
    >>> found.order, found.smoothing
    (3, 'Witten–Bell')
    """
    learned, tested = sequences(training, "training"), sequences(held_out, "held_out")
    largest = max(int(text.max(initial=0)) for text in (*learned, *tested))
    size = 1 + largest if vocabulary_size is None else vocabulary_size
    levels = all_levels(joined(learned, size, "training"), max(orders, default=0))
    stream = joined(tested, size, "held_out")
    counted = measured(tested, first)
    if not counted.any():
        raise CallError(f"held_out: at least one id after the first {first}; got none")
    found = list(looked_up(levels, stream))
    table = tuple(
        Row(order, smoothing.name, float(-np.log(p[counted]).mean()))
        for smoothing in smoothings
        for order, p in _of_every_order(levels, found, smoothing, size)
        if order in orders
    )
    winner = min(table, key=lambda row: row.nats)
    smoothing = next(one for one in smoothings if one.name == winner.smoothing)
    return Best(NGrams(levels[: winner.order], size, smoothing), winner.nats, table)


def _of_every_order(
    levels: tuple[Level, ...], found: list[Found], smoothing: Smoothing, size: int
) -> Iterator[tuple[int, Any]]:
    """The probabilities that each order gives: all but its longest context they have in common."""
    p = np.full(len(found[0].grams), 1 / size)
    for order, (level, place) in enumerate(zip(levels, found, strict=True), start=1):
        yield order, _interpolated(smoothing.weights(level, size, longest=True), place, p)
        if order < len(levels):
            p = _interpolated(smoothing.weights(level, size, longest=False), place, p)


def _interpolated(weights: Weights, found: Found, p: Any) -> Any:
    """α_k(hw) + γ_k(h) p_{k−1}(w | h′)."""
    alpha = np.where(found.grams != START, weights.alpha[found.grams], 0.0)
    gamma = np.where(found.contexts != START, weights.gamma[found.contexts], 1.0)
    return alpha + gamma * p
