"""`stream`: the same text as `generate`, as soon as it is certain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn.generation.histories import Historian, greedily, histories
from nn.generation.spelling import VOCABULARIES
from regard.inputs import Characters
from regard.nn.generation import Sampling, generate, greedy, stream

__all__ = ["histories"]  # a fixture

MODELS = {name: Historian(len(vocabulary)) for name, vocabulary in VOCABULARIES.items()}
LETTERS = Characters.of("abcdefghi j")


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=40)
@given(data=st.data())
def test_pieces_together_are_the_text(name: str, data: Any) -> None:
    vocabulary, model = VOCABULARIES[name], MODELS[name]
    ids = data.draw(st.lists(st.integers(0, len(vocabulary) - 1), min_size=1, max_size=5))
    options: Any = {
        "vocabulary": vocabulary,
        "new": data.draw(st.integers(1, 13)),
        "seed": data.draw(st.integers(0, 99)),
        "sampling": data.draw(st.sampled_from([greedy, Sampling(), Sampling(0.7, 5)])),
        "end": tuple(data.draw(st.sets(st.integers(0, len(vocabulary) - 1), max_size=3))),
        "cache": data.draw(st.booleans()),
    }
    written = generate(model, ids, **options)
    before, whole = vocabulary.decode(ids), written.text
    if name != "llama" and not before.endswith("�"):  # there, what is given may not stand in the whole
        said = written.ids[:-1] if written.reason == "end" else written.ids
        assert before + whole == vocabulary.decode(ids + said)
    cuts = st.integers(0, max(0, len(whole) - 1))  # stop texts that may come
    starts = data.draw(st.lists(st.tuples(cuts, st.integers(1, 5)), max_size=2))
    options["stop"] = tuple(whole[start : start + length] for start, length in starts if whole)
    text = generate(model, ids, **options)
    pieces = list(stream(model, ids, **options))
    assert "".join(pieces) == text.text
    assert "" not in pieces
    assert whole.startswith(text.text)
    if text.reason == "stop":
        assert whole.startswith(text.text + text.stopped_by)
    assert all(stop not in text.text for stop in options["stop"])


@given(st.lists(st.integers(0, 10), min_size=1, max_size=5), st.integers(1, 9))
def test_without_a_vocabulary_ids_come(prompt: list[int], new: int) -> None:
    assert list(stream(Historian(), prompt, new=new, end=(2, 3))) == greedily(prompt, new, (2, 3))


def test_a_piece_comes_before_the_next_token_is_drawn() -> None:
    model = Historian()
    pieces = stream(model, "abc", vocabulary=LETTERS, new=5)
    assert model.shapes == []
    for count, piece in enumerate(pieces, 1):
        assert len(piece) == 1
        assert len(model.shapes) == count


def test_the_beginning_of_a_stop_text_waits() -> None:
    model, prompts = Historian(), (first + second for first in "abcdefg" for second in "abcdefg")
    texts = ((prompt, generate(model, prompt, vocabulary=LETTERS, new=9).text) for prompt in prompts)
    prompt, whole = next((prompt, text) for prompt, text in texts if len({*text}) == 9)
    never = whole[2:5] + ("a" if whole[5] != "a" else "b")  # three of its four characters come
    assert list(stream(model, prompt, vocabulary=LETTERS, new=9, stop=never)) == [*whole[:2], whole[2:6], *whole[6:]]
    assert list(stream(model, prompt, vocabulary=LETTERS, new=5, stop=never)) == [*whole[:2], whole[2:5]]


def test_a_stream_may_be_left() -> None:
    model = Historian()
    pieces = stream(model, "abc", vocabulary=LETTERS, new=99)
    next(pieces)
    del pieces
    assert len(model.shapes) == 1


def test_a_batch_of_one_is_one_prompt() -> None:
    model = Historian()
    assert list(stream(model, [[3, 1]], new=5)) == list(stream(model, [3, 1], new=5))
