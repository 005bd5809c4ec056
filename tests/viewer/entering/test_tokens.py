"""Tokens as they are shown: joined, they are the text."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from regard.algebra.errors import KindError
from regard.inputs.text import Characters, Words
from regard.viewer.entering.marks import ALPHABET, family, shown
from regard.viewer.entering.tokens import Tokens, given, of_ids, of_text, split

TEXT = "The café wasn't far (it's 3 km): naïve 🙂 walkers\nwalked, and walked again."


def wordpiece() -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    made.train_from_iterator(
        [TEXT.replace("🙂", "")], trainers.WordPieceTrainer(vocab_size=120, special_tokens=special)
    )
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return made


def byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [TEXT], trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    )
    return made


def sentencepiece() -> Tokenizer:
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    special = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special)
    made.train_from_iterator([TEXT.replace("🙂", "").replace("\n", " ")], trainer)
    return made


MADE = {"wordpiece": wordpiece, "byte-level": byte_level, "sentencepiece": sentencepiece}


@pytest.mark.parametrize("kind", MADE)
def test_offsets_give_the_text_back(kind: str) -> None:
    encoding = MADE[kind]().encode(TEXT)
    found = of_text(TEXT, encoding)
    assert len(found) == len(encoding.ids)
    plain = [label for place, label in enumerate(found.labels) if place not in found.special]
    joined = "".join(label for label in plain if not label.startswith("\\x"))
    assert joined == TEXT
    assert " café"[:4] in joined
    assert found.special == (frozenset({0, len(found) - 1}) if kind == "wordpiece" else frozenset())


def test_capitals_that_the_tokenizer_drops_are_shown() -> None:
    assert of_text("The CAT", wordpiece().encode("The CAT")).labels[1:3] != ("the", " cat")
    assert "".join(of_text("The CAT", wordpiece().encode("The CAT")).labels[1:-1]) == "The CAT"


def test_ids_alone_give_the_text_of_bytes_back() -> None:
    made = byte_level()
    text = TEXT.replace("🙂", "")
    found = of_ids(made.encode(text).ids, made)
    whole = re.sub(rb"\\x(..)", lambda byte: bytes.fromhex(byte[1].decode()), "".join(found.labels).encode())
    assert whole.decode() == text
    assert not found.special


def test_ids_alone_of_wordpieces_and_sentencepieces() -> None:
    words = "the walkers walked, and walked again."
    for kind in ("wordpiece", "sentencepiece"):
        made = MADE[kind]()
        found = of_ids(made.encode(words).ids, made)
        plain = [label for place, label in enumerate(found.labels) if place not in found.special]
        assert "".join(plain).removeprefix(" ") == words, kind  # a space that stands alone is a token


def test_a_short_text_without_marks_is_read_by_the_vocabulary() -> None:
    made = byte_level()
    number = made.token_to_id("Ã")
    assert of_ids([number, made.token_to_id("©")], made).labels == ("\\xc3", "\\xa9")


def test_padding_and_names_are_special_but_the_unknown_is_not() -> None:
    made = wordpiece()
    ids = [1, made.token_to_id("walked"), 0, 4, 2, 3, 3]
    special = of_ids(ids, made, [1, 1, 1, 1, 1, 0, 0]).special
    assert {0, 4, 5, 6} <= special
    hugging = SimpleNamespace(
        convert_ids_to_tokens=lambda ids: [made.id_to_token(one) for one in ids], unk_token_id=0, cls_token_id=1,
        sep_token_id=2, pad_token_id=3, mask_token_id=4, all_special_ids=[0, 1, 2, 3, 4],
        convert_tokens_to_ids=made.token_to_id,
    )  # fmt: skip
    found = of_ids(ids, hugging)
    assert found.special == {0, 4, 5, 6}
    assert found.labels == ("[CLS]", "walked", " [UNK]", " [MASK]", "[SEP]", "[PAD]", "[PAD]")


def test_vocabularies_of_regard() -> None:
    text = "the cat sat. the end"
    words, letters = Words.of(text), Characters.of(text)
    assert "".join(of_ids(letters.encode(text), letters).labels) == text
    assert len(of_ids(words.encode(text), words)) == len(words.encode(text))


def test_a_tokenizer_of_another_kind_is_refused() -> None:
    with pytest.raises(KindError, match="tokenizer: of transformers"):
        of_ids([1], object())


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (["the", "cat", "##s", ",", "(", "it", ")"], ["the", " cat", "s", ",", " (", "it", ")"]),
        (["don", "'", "t", "##", "a"], ["don", "'", "t", " ##", "a"]),
        (["The", "Ġcat", "Ċ", "ĠcafÃ©"], ["The", " cat", "\n", " café"]),
        (["Ġthe", "ðŁĻ", "Ĥ"], ["the", "\\xf0\\x9f\\x99", "\\x82"]),
        (["▁The", "▁c", "at", "<0xE2>", "▁", "."], ["The", " c", "at", "\\xe2", " ", "."]),
        (["a</w>", "cat</w>", "s", "it</w>", ".</w>"], ["a", " cat", " s", "it", "."]),
        (["h", "i"], ["h", "i"]),
    ],
)
def test_marks_are_undone(pieces: list[str], labels: list[str]) -> None:
    assert shown(pieces, (), family(pieces)) == labels


def test_special_tokens_do_not_begin_a_text() -> None:
    assert shown(["<s>", "▁The", "▁cat"], {0}, "sentencepiece") == ["<s>", "The", " cat"]


def test_the_alphabet_of_bytes_is_that_of_tokenizers() -> None:
    assert set(ALPHABET) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(ALPHABET.values()) == list(range(256))
    assert (ALPHABET["Ġ"], ALPHABET["Ċ"], ALPHABET["A"]) == (32, 10, 65)


# -- what is handed in -------------------------------------------------------------------------------------------------


@drawn(st.text(max_size=40))
def test_a_text_is_split_and_nothing_is_lost(text: str) -> None:
    assert "".join(split(text)) == text


def test_a_text_is_cut_before_its_spaces() -> None:
    assert given("The  cat\nsat ")[0].labels == ("The", "  cat", "\nsat ")


@pytest.mark.parametrize(
    ("tokens", "labels", "special"),
    [
        (["the", "cat"], ("the", " cat"), set()),
        (["the", " cat"], ("the", " cat"), set()),
        (["a ", "b"], ("a ", "b"), set()),
        (["[CLS]", "play", "##ing", "<|end|>", "</s>"], ("[CLS]", "play", "ing", "<|end|>", "</s>"), {0, 3, 4}),
        (list("hello"), tuple("hello"), set()),
    ],
)
def test_lists(tokens: Any, labels: Any, special: Any) -> None:
    assert given(tokens) == [Tokens(labels, frozenset(special))]


def test_a_batch_is_filled_to_its_longest() -> None:
    one, two = given([["a", "cat", "sat"], ("the",)])
    assert (one.labels, two.labels, two.special) == (("a", " cat", " sat"), ("the", "", ""), {1, 2})


@pytest.mark.parametrize("tokens", [3, [], ["a", 3], [["a"], "b"], {"a": 1}, [3, 4]])
def test_other_tokens_are_refused(tokens: Any) -> None:
    with pytest.raises(KindError, match="tokens: "):
        given(tokens)
