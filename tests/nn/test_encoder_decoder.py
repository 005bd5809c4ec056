"""From one text to another: the equation, the memory that is mapped once, and a target written row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from layers import BATCH, CLOSE, DIM, EXACT, HEADS, ROWS, WIDTH, loud, whole
from regard import Attention, sigmoid, window
from regard.algebra.errors import CallError, KindError
from regard.inputs import Characters
from regard.inputs.positions import ALiBi, Learned, Rotary
from regard.nn import Cache, EncoderDecoder, Style

SOURCES, TARGETS, KEYS = 17, 19, 7
SOURCE, TARGET = whole(BATCH, KEYS, below=SOURCES), whole(BATCH, ROWS, below=TARGETS, seed=1)
SOURCE_COUNTS, TARGET_COUNTS = [7, 4, 1], [5, 2, 1]
POSITIONS = {"sinusoidal": None, "rotary": Rotary(), "learned": Learned.random(ROWS, DIM), "alibi": ALiBi()}


def model_of(position: str = "sinusoidal", **options: Any) -> EncoderDecoder:
    where = {} if POSITIONS[position] is None else {"position": POSITIONS[position]}
    return loud(EncoderDecoder((SOURCES, TARGETS), DIM, 2, HEADS, width=WIDTH, **where, **options))


@pytest.mark.parametrize("position", POSITIONS)
def test_the_model_is_its_equation(position: str) -> None:
    model = model_of(position)
    memory = model.encoder(model.source.weight[SOURCE])
    x = model.decoder(model.target.weight[TARGET], memory)
    torch.testing.assert_close(model(SOURCE, TARGET), x @ model.target.weight.T, **CLOSE)


def test_the_target_sees_the_whole_source_and_what_came_before() -> None:
    model = model_of()
    expected = model(SOURCE, TARGET)
    target, source = TARGET.clone(), SOURCE.clone()
    target[:, 6] = (target[:, 6] + 1) % TARGETS
    source[:, -1] = (source[:, -1] + 1) % SOURCES
    changed = (model(SOURCE, target) - expected).abs().amax(-1)
    assert (changed[:, :6] < 1e-9).all()
    assert (changed[:, 6:] > 1e-9).all()
    assert ((model(source, TARGET) - expected).abs().amax(-1) > 1e-9).all()


def test_filling_changes_nothing() -> None:
    model = model_of("rotary")
    y = model(SOURCE, TARGET[:, :5], source_lengths=SOURCE_COUNTS, target_lengths=TARGET_COUNTS)
    for text, (keys, rows) in enumerate(zip(SOURCE_COUNTS, TARGET_COUNTS, strict=True)):
        alone = model(SOURCE[text : text + 1, :keys], TARGET[text : text + 1, :rows])
        torch.testing.assert_close(y[text, :rows], alone[0], **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
def test_row_by_row_is_one_pass_and_the_memory_is_mapped_once(position: str) -> None:
    model, mapped = model_of(position, cross=Attention(weight=sigmoid)), []
    for block in model.decoder.blocks:
        for linear in (block.cross.key, block.cross.value):
            linear.register_forward_hook(lambda *_: mapped.append(1))
    with torch.no_grad():
        memory = model.encode(SOURCE, lengths=SOURCE_COUNTS)
        expected = model.decode(TARGET, memory, memory_lengths=SOURCE_COUNTS)
        mapped.clear()
        cache = Cache()
        parts = [
            model.decode(part, memory, memory_lengths=SOURCE_COUNTS, cache=cache)
            for part in TARGET.split([4, 1, 1, 5], dim=1)
        ]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, **CLOSE)
    assert len(mapped) == 2 * 2, "keys and values of two blocks"


def test_targets_of_unequal_length_in_another_order() -> None:
    model, cache, order = model_of(), Cache(), torch.tensor([2, 0, 0])
    with torch.no_grad():
        memory = model.encode(SOURCE)
        expected = model.decode(TARGET, memory)
        model.decode(TARGET[:, :5], memory, lengths=TARGET_COUNTS, cache=cache)
        cache.keep(order)
        ids = torch.stack([TARGET[text, TARGET_COUNTS[text]] for text in order])
        step = model.decode(ids[:, None], memory[order], cache=cache)
    for row, text in enumerate(order.tolist()):
        torch.testing.assert_close(step[row, 0], expected[text, TARGET_COUNTS[text]], **CLOSE)


def test_one_vocabulary_or_two() -> None:
    shared, own = EncoderDecoder(SOURCES, 12, 1, 3), EncoderDecoder((SOURCES, TARGETS), 12, 1, 3)
    assert shared.source is shared.target
    assert shared.head.weight is shared.source.weight
    assert own.head.weight is own.target.weight is not own.source.weight
    assert own.count() - shared.count() == TARGETS * 12
    assert own(SOURCE, TARGET).shape == (BATCH, ROWS, TARGETS)
    again = EncoderDecoder(**own.made_of)
    again.load_state_dict(own.state_dict())
    torch.testing.assert_close(again(SOURCE, TARGET), own(SOURCE, TARGET), **EXACT)


def test_a_formula_for_each_reading() -> None:
    model = model_of(attention=Attention(mask=window(3)), cross=Attention(weight=sigmoid))
    block = model.decoder.blocks[0]
    assert isinstance(block, nn.Module)
    assert block.cross.attention == Attention(weight=sigmoid)
    assert block.attention.attention == model.encoder.blocks[1].attention.attention == Attention(mask=window(3))


def test_refusals() -> None:
    model = model_of("learned")
    with pytest.raises(CallError, match=r"source: from 0 to 16, as many as the model knows; got 1[78]"):
        model(SOURCE + 2, TARGET)
    with pytest.raises(CallError, match="target: from 0 to 18, as many as the model knows; got -"):
        model(SOURCE, TARGET - 20)
    with pytest.raises(KindError, match="target: a tensor of integers"):
        model(SOURCE, TARGET.double())
    with pytest.raises(CallError, match=r"^source_lengths: from 0 to the 7 rows of source; got 8"):
        model(SOURCE, TARGET, source_lengths=[8, 1, 1])
    with pytest.raises(CallError, match=r"^source_lengths: from 0 to the 7 rows of source; got 8"):
        model.generate(SOURCE, [1], source_lengths=[8, 1, 1])
    with pytest.raises(CallError, match=rf"^target_lengths: from 0 to the {TARGET.shape[1]} rows of target; got -1"):
        model(SOURCE, TARGET, target_lengths=[-1, 1, 1])
    with pytest.raises(CallError, match=r"^memory_lengths: from 0 to the 7 rows of memory; got 8"):
        model.decode(TARGET[:, :2], model.encode(SOURCE), memory_lengths=[8, 1, 1])
    with pytest.raises(CallError, match=r"^prompt: one for all, or one for each of 3 sources; got a list of 2"):
        model.generate(SOURCE, [[1], [2]])
    with pytest.raises(CallError, match=r"^source: one at a time, \(1, keys\); got 3; stream each, or call generate"):
        model.stream(SOURCE, [1])
    with pytest.raises(CallError, match=r"^tokens: one size .*, or two, \(source, target\); got \(20, 30, 40\)"):
        EncoderDecoder((20, 30, 40), 12, 1, 3)
    with pytest.raises(CallError, match="tokens: an integer of at least 1; got 0"):
        EncoderDecoder((5, 0), 12, 1, 3)
    assert model.longest == ROWS


def test_another_memory_needs_another_cache() -> None:
    model, cache = model_of(), Cache()
    with torch.no_grad():
        memory = model.encode(SOURCE)
        model.decode(TARGET[:, :1], memory, cache=cache)
        text = (
            r"memory: the cache holds one of 3 texts and 7 rows; got shape \(3, 5, 13\); each memory has its own Cache"
        )
        with pytest.raises(CallError, match=text):
            model.decode(TARGET[:, 1:2], memory[:, :5], cache=cache)


@pytest.mark.parametrize("cache", [True, False])
def test_translations_are_those_of_each_source_by_itself(cache: bool) -> None:
    """Texts that end early leave the batch, and their sources with them; no dropout, whatever the mode."""
    model = loud(EncoderDecoder((17, 19), 12, 2, 3, style=Style(dropout=0.5)), 1.0, seed=8).train()
    source, lengths = torch.randint(0, 17, (5, 7), generator=torch.Generator().manual_seed(3)), [7, 3, 5, 2, 6]
    endless = model.generate(source, [1], source_lengths=lengths, new=9)
    end = 5  # which the first writes, and the others do not
    assert [end in text.ids for text in endless] == [True, False, False, False, False]
    found = model.generate(source, [1], source_lengths=lengths, new=9, end=end, cache=cache)
    for row, length, text in zip(source, lengths, found, strict=True):
        assert model.generate(row[None, :length], [1], new=9, end=end)[0].ids == text.ids
    assert len({len(text.ids) for text in found}) > 1, "some end before others"
    assert all(part.training for part in model.modules())


def test_one_prompt_for_all_sources_or_one_for_each() -> None:
    model = loud(EncoderDecoder((17, 19), 12, 2, 3), 1.0, seed=8)
    prompts = [[1], [2, 3], [5]]
    found = model.generate(SOURCE, prompts, new=5)
    for row, prompt, text in zip(SOURCE, prompts, found, strict=True):
        (alone,) = model.generate(row[None], prompt, new=5)
        assert (alone.ids, alone.prompt) == (text.ids, prompt)
    letters = Characters.of("abcdefghijklmnopqrs")
    texts = model.generate(SOURCE, ["b", "cd", "f"], new=5, vocabulary=letters)
    assert [text.ids for text in texts] == [text.ids for text in found]


@pytest.mark.parametrize("cache", [True, False])
def test_a_stream_writes_what_generate_writes(cache: bool) -> None:
    model, lengths = loud(EncoderDecoder((17, 19), 12, 2, 3), 1.0, seed=8), [5]
    (whole,) = model.generate(SOURCE[:1], [1, 2], new=7, source_lengths=lengths)
    assert [*model.stream(SOURCE[:1], [1, 2], new=7, source_lengths=lengths, cache=cache)] == whole.ids
