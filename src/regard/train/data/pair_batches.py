"""Batches of pairs: each is a function of the seed and the step, so that a resumed run sees what it would have seen.

    source    s_1 … s_n                  read whole
    inputs    <start> t_1 … t_m          what a decoder has written
    outputs   t_1 … t_m <end>            what it has to write next

Shorter ones are filled with <pad> up to the longest of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...algebra.errors import CallError, KindError
from ...inputs.vocabularies import Vocabulary
from .order import Order, in_order
from .pairs import END, PAD, SPECIALS, START, Pairs, Texts


class PairBatch(NamedTuple):
    """Some pairs as ids; everything is int64."""

    source: Tensor  # (batch, longest source)
    source_lengths: Tensor  # (batch,)
    inputs: Tensor  # (batch, longest target + 1)
    outputs: Tensor  # (batch, longest target + 1)
    target_lengths: Tensor  # (batch,): of inputs and of outputs
    rows: Tensor  # (batch,): where they stand in their part


Ids = list[Any]  # an array for each text


@dataclass(frozen=True, eq=False)
class PairBatches:
    """The pairs to learn from, batch of them at a time; and those held out, in their order.

    >>> from regard.train.data.pairs import pair_vocabulary, read_pairs
    >>> pairs = read_pairs()
    >>> batches = PairBatches(pairs, pair_vocabulary(pairs), batch=3)
    >>> batch = batches[0]
    >>> batches.vocabulary.decode(batch.outputs[0])
    '1959-06-26<end>'
    """

    pairs: Pairs
    vocabulary: Vocabulary
    batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.pairs, Pairs):
            raise KindError(f"pairs: what read_pairs gives; got {type(self.pairs).__name__}")
        if not isinstance(self.vocabulary, Vocabulary):
            raise KindError(f"vocabulary: one such as Characters; got {type(self.vocabulary).__name__}")
        missing = [name for name in SPECIALS if name not in self.vocabulary]
        if missing:
            raise CallError(
                f"vocabulary: with {', '.join(SPECIALS)}; got one without {missing[0]}; use pair_vocabulary(pairs), "
                "or learn it with specials=SPECIALS"
            )
        _ = self.order  # refuses what is no batch and no seed

    @cached_property
    def order(self) -> Order:
        """Which rows each step sees."""
        return Order(len(self.pairs.training), self.batch, self.seed)

    @property
    def pad(self) -> int:
        """The id of <pad>: no text gives it, so a loss may ignore it."""
        return self.vocabulary.id(PAD)

    @property
    def longest(self) -> tuple[int, int]:
        """The most ids of a source, and of a target with <start>, of all pairs."""
        sources, targets = zip(self._training, self._held_out, strict=True)
        return max(len(ids) for part in sources for ids in part), max(len(ids) for part in targets for ids in part) - 1

    def __getitem__(self, step: int) -> PairBatch:
        """The pairs of a step."""
        return self._batch(self._training, self.order[step])

    def __iter__(self) -> Iterator[PairBatch]:
        raise KindError("batches: steps have no end; write batches[step]")

    def held_out(self, batch: int | None = None) -> Iterator[PairBatch]:
        """The pairs held out, each once."""
        return (
            self._batch(self._held_out, rows)
            for rows in in_order(len(self.pairs.held_out), self.batch if batch is None else batch)
        )

    @cached_property
    def _training(self) -> tuple[Ids, Ids]:
        return self._ids(self.pairs.training)

    @cached_property
    def _held_out(self) -> tuple[Ids, Ids]:
        return self._ids(self.pairs.held_out)

    def _ids(self, texts: Texts) -> tuple[Ids, Ids]:
        """Sources, and targets from <start> to <end>."""
        encode, start, end = self.vocabulary.encode, self.vocabulary.id(START), self.vocabulary.id(END)
        sources = [np.array(encode(text), dtype=np.int32) for text in texts.sources]
        return sources, [np.array([start, *encode(text), end], dtype=np.int32) for text in texts.targets]

    def _batch(self, part: tuple[Ids, Ids], rows: Any) -> PairBatch:
        sources, targets = ([side[row] for row in rows] for side in part)
        inputs, lengths = self._filled([ids[:-1] for ids in targets])
        outputs, _ = self._filled([ids[1:] for ids in targets])
        return PairBatch(*self._filled(sources), inputs, outputs, lengths, torch.from_numpy(rows))

    def _filled(self, texts: Sequence[Any]) -> tuple[Tensor, Tensor]:
        lengths = np.array([len(ids) for ids in texts], dtype=np.int64)
        filled = np.full((len(texts), lengths.max()), self.pad, dtype=np.int64)
        for row, ids in zip(filled, texts, strict=True):
            row[: len(ids)] = ids
        return torch.from_numpy(filled), torch.from_numpy(lengths)
