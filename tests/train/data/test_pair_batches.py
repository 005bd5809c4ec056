"""Batches of pairs: inputs and outputs one step apart, filled to one length; a function of the seed and the step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.algebra.errors import CallError, KindError
from regard.inputs.text import Characters
from regard.train.data.pair_batches import PairBatch, PairBatches
from regard.train.data.pairs import END, PAD, START, Pairs, Texts, pair_vocabulary, read_pairs

DATES = read_pairs()
LETTERS = pair_vocabulary(DATES)


def uneven(count: int = 29) -> Pairs:
    """Texts of one to seven letters."""
    sources = tuple("abcdefg"[: 1 + row % 7] for row in range(count))
    targets = tuple(chr(104 + row % 11) * (1 + row % 5) for row in range(count))
    return Pairs(Texts(sources, targets), Texts(sources[:5], targets[:5]), "uneven")


def batches(pairs: Pairs = DATES, batch: int = 13, seed: int = 0, **options: Any) -> PairBatches:
    return PairBatches(pairs, options.get("vocabulary") or pair_vocabulary(pairs), batch, seed)


def check(batch: PairBatch, texts: Texts, vocabulary: Any) -> None:
    for place, row in enumerate(batch.rows.tolist()):
        n, m = int(batch.source_lengths[place]), int(batch.target_lengths[place])
        assert vocabulary.decode(batch.source[place, :n]) == texts.sources[row]
        assert vocabulary.decode(batch.inputs[place, :m]) == START + texts.targets[row]
        assert vocabulary.decode(batch.outputs[place, :m]) == texts.targets[row] + END
        assert set(batch.source[place, n:].tolist()) <= {vocabulary.id(PAD)}
        assert set(batch.inputs[place, m:].tolist()) | set(batch.outputs[place, m:].tolist()) <= {vocabulary.id(PAD)}


@pytest.mark.parametrize("pairs", [uneven(), DATES], ids=repr)
def test_a_batch_holds_its_pairs(pairs: Pairs) -> None:
    made = batches(pairs)
    for step in (0, 1, 5):
        batch = made[step]
        check(batch, pairs.training, made.vocabulary)
        assert batch.source.shape == (13, batch.source_lengths.max())
        assert batch.inputs.shape == batch.outputs.shape == (13, batch.target_lengths.max())
        assert all(tensor.dtype == torch.int64 for tensor in batch)
        assert made.pad not in [batch.outputs[b, m - 1] for b, m in enumerate(batch.target_lengths)]


def test_a_resumed_run_sees_the_same() -> None:
    straight, resumed = batches(seed=3), batches(read_pairs(), seed=3)
    seen = [straight[step] for step in range(9)]
    assert all(torch.equal(one, other) for one, other in zip(resumed[8], seen[8], strict=True))
    assert not torch.equal(batches(seed=4)[8].rows, seen[8].rows)


def test_an_epoch_has_every_pair_once() -> None:
    made = batches(uneven(), 29)
    assert made[7].rows.sort().values.tolist() == list(range(29))


def test_held_out_pairs_come_once_in_order() -> None:
    made = batches(uneven(), 3)
    parts = list(made.held_out())
    for part in parts:
        check(part, made.pairs.held_out, made.vocabulary)
    assert [part.rows.tolist() for part in parts] == [[0, 1, 2], [3, 4]]
    assert len(list(made.held_out(5))) == 1


def test_the_longest_is_known_before() -> None:
    made = batches(uneven())
    assert made.longest == (7, 6)
    source, target = batches().longest
    assert source == max(map(len, (*DATES.training.sources, *DATES.held_out.sources)))
    assert target == 11


def test_refusals() -> None:
    with pytest.raises(KindError, match="pairs: what read_pairs gives; got tuple"):
        PairBatches(("a", "b"), LETTERS, 3)  # type: ignore[arg-type]
    with pytest.raises(KindError, match="vocabulary: one such as Characters; got str"):
        PairBatches(DATES, "characters", 3)  # type: ignore[arg-type]
    with pytest.raises(
        CallError, match="vocabulary: with <pad>, <start>, <end>; got one without <start>; use pair_vocab"
    ):
        PairBatches(DATES, Characters.of("abc", specials=("<pad>",)), 3)
    with pytest.raises(CallError, match="batch: at least 1; got 0"):
        PairBatches(DATES, LETTERS, 0)
    with pytest.raises(CallError, match="batch: at least 1; got 0"):
        PairBatches(DATES, LETTERS, 3).held_out(0)
    with pytest.raises(KindError, match=r"steps have no end; write batches\[step\]"):
        iter(PairBatches(DATES, LETTERS, 3))
