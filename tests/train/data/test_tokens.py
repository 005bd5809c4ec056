"""Text as ids: learned from the training part alone, each part by itself, and in the text's own order."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.inputs import BytePairs, Characters, Words
from regard.train.data import Corpus, Tokens, encoded, split, tokens, vocabulary_of

TEXT = "".join(f"The {n}th cat, of {n * n}, sat\non a mat no. {n % 7}.\n\n" for n in range(200)) + "Ω at last"
KINDS = ["characters", "words", "words:50", "bytepairs", "bytepairs:300"]


def tokens_of(text: str = TEXT, kind: str = "characters", **options: Any) -> Tokens:
    parts = split(Corpus(text, "t"), **options)
    return encoded(parts, vocabulary_of(parts.training_texts, kind))


# -- vocabularies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "made", "size"),
    [
        ("characters", Characters, 1 + len(set(TEXT))),
        ("words:50", Words, 50),
        ("words:5_0", Words, 50),
        ("bytepairs:300", BytePairs, 300),
    ],
)
def test_kinds(kind: str, made: type, size: int) -> None:
    vocabulary = vocabulary_of(TEXT, kind)
    assert type(vocabulary) is made
    assert len(vocabulary) == size
    middle = TEXT.index("\n\n", 1000) + 2
    assert vocabulary == vocabulary_of([TEXT[:middle], TEXT[middle:]], kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_can_be_encoded(kind: str) -> None:
    vocabulary = vocabulary_of("a few words, a few signs", kind)
    assert len(vocabulary.encode("日本 other\r\n")) > 2


def test_unknown_characters_have_a_name_of_their_own() -> None:
    assert vocabulary_of("abc").unknown == "�"  # type: ignore[attr-defined]
    assert vocabulary_of("ab�").unknown == "<?>"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "kind", ["", "letters", "words:", "words:many", "words:-3", "words:²", "Words:50", "words:5:0"]
)
def test_kinds_that_are_none(kind: str) -> None:
    with pytest.raises(CallError, match=f'kind: "characters", "words:5000" or "bytepairs:1024"; got {kind!r}'):
        vocabulary_of(TEXT, kind)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KindError, match='kind: a str such as "words:5000"; got 5000'):
        vocabulary_of(TEXT, 5000)  # type: ignore[arg-type]
    with pytest.raises(
        CallError, match='"characters", as many as the text holds; got "characters:90"; leave out ":90"'
    ):
        vocabulary_of(TEXT, "characters:90")
    with pytest.raises(CallError, match="size: at least 256"):
        vocabulary_of(TEXT, "bytepairs:100")
    with pytest.raises(CallError, match="size: at least 256"):
        vocabulary_of(TEXT, "bytepairs:0")
    with pytest.raises(CallError, match="texts: at least one character to learn from; got none"):
        vocabulary_of("")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match="this needs tokenizers"):
        vocabulary_of(TEXT, "bytepairs")


# -- ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["characters", "words", "bytepairs:300"])
@settings(max_examples=10)
@given(share=st.floats(0.05, 0.4), block=st.integers(50, 900))
def test_spans_of_ids_are_those_of_the_text(kind: str, share: float, block: int) -> None:
    found = tokens_of(kind=kind, held_out=share, block=block)
    spans = sorted([*found.training, *found.held_out])
    assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
    assert spans[-1].stop == len(found.ids)
    known = TEXT.encode() if kind == "bytepairs:300" else None
    for ids, text in zip(found.training_ids, found.split.training_texts, strict=True):
        assert found.vocabulary.decode(ids) == text
    for ids, text in zip(found.held_out_ids(), found.split.held_out_texts, strict=True):
        assert len(ids) == len(found.vocabulary.encode(text))
        assert known is None or found.vocabulary.decode(ids) == text


def test_ids_are_in_the_order_of_the_text() -> None:
    found = tokens_of(kind="bytepairs:300", block=100)
    assert len(found.held_out) > 5
    assert found.vocabulary.decode(found.ids) == TEXT


def test_vocabulary_has_seen_the_training_part_alone() -> None:
    found = tokens_of("a" * 40 + "bcdbcdbcd " + "a" * 50, block=10)
    assert found.split.held_out_texts == ["bcdbcdbcd "]
    assert found.vocabulary.tokens == ("�", "a")
    assert found.unknown_held_out == found.held_out_count == 10
    assert tokens_of().unknown_held_out == 0
    assert tokens_of(kind="bytepairs:300").unknown_held_out == 0


@pytest.mark.parametrize("kind", ["characters", "words:60", "bytepairs:300"])
def test_held_out_ids_with_what_stands_before(kind: str) -> None:
    found = tokens_of(kind=kind, block=300)
    for before in (0, 3, found.held_out[0].start):
        for ids, (start, stop) in zip(found.held_out_ids(before), found.held_out, strict=True):
            assert np.array_equal(ids, found.ids[start - before : stop])
    assert found.held_out_count == sum(map(len, found.held_out_ids()))
    assert found.held_out_characters == sum(map(len, found.split.held_out_texts))
    with pytest.raises(CallError, match=f"before: at most {found.held_out[0].start}, as many as there are; got 9999"):
        found.held_out_ids(9999)


@pytest.mark.parametrize("kind", ["characters", "words", "bytepairs:300"])
def test_a_token_is_found_in_the_text(kind: str) -> None:
    found = tokens_of(kind=kind, block=300)
    known = [*found.training, *(found.held_out if kind == "bytepairs:300" else [])]
    for place in [place for start, stop in known for place in range(start, stop, 97)]:
        piece = found.vocabulary.decode(found.ids[place : place + 1])
        assert TEXT[found.character(place) :].removeprefix(" ").startswith(piece.removeprefix(" "))


def test_ids_are_compact(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tokens_of()
    assert whole.ids.dtype == np.uint16
    assert whole.vocabulary_size == len(whole.vocabulary)
    monkeypatch.setattr(tokens, "PIECE", 7)
    assert np.array_equal(tokens_of().ids, whole.ids), "piece by piece, the same"
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))) + "".join(map(chr, range(0x20000, 0x20000 + 50_000)))
    assert tokens_of(many + many).ids.dtype == np.int32


def test_tokens_show_what_they_are() -> None:
    assert repr(tokens_of()).startswith("Tokens(")
    assert "held out, of Characters(" in repr(tokens_of())
