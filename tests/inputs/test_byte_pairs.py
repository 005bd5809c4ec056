"""Byte pairs: every text in bytes, tokens that can be read, and the tokenizers of models behind the same interface."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from regard.algebra.errors import CallError, KindError, MissingExtra
from regard.inputs.byte_pairs import BYTES, BytePairs
from regard.inputs.text import Characters
from regard.inputs.vocabularies import Vocabulary

CORPUS = [
    "the cat sat on the mat, the cat ate the rat 😀😀 déjà déjà vu\n",
    "start to end, from start to end; <pad> <pad>\r\n",
]
PAIRS = BytePairs.of(CORPUS, 300, specials=("<pad>", "<é>", "終"))
SINGLE = BytePairs.of("x")  # bytes alone


# -- learning --------------------------------------------------------------------------------------------------------


def test_bytes_are_written_as_the_package_writes_them() -> None:
    assert sorted(BYTES) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTES.values()) == list(range(256))
    raw = models.BPE({token: number for number, token in enumerate(sorted(BYTES))}, [])
    tokenizer = tokenizers.Tokenizer(raw)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in ("a\n", "é", "€", "😀", "\x00\x7f\xad"):
        assert bytes(BYTES[token] for token in tokenizer.encode(text).tokens) == text.encode()


def test_the_most_frequent_pair_comes_first() -> None:
    """One step of the definition, against a count of all neighbours within words."""
    text = "ab ab abc bc bcd bc bc"
    counts = {a + b: text.count(a + b) for a, b in product("abcd", repeat=2)}
    assert BytePairs.of(text, 257).tokens[256] == max(counts, key=lambda pair: counts[pair]) == "bc"


@pytest.mark.parametrize("size", [256, 257, 263, 271])
def test_a_size_is_kept(size: int) -> None:
    pairs = BytePairs.of(CORPUS, size)
    assert len(pairs) == size
    assert BytePairs.of(CORPUS, 271).tokens[:size] == pairs.tokens


def test_a_pair_found_once_is_not_learned() -> None:
    assert len(BytePairs.of("abcdefg")) == 256
    assert len(BytePairs.of("abcdefg abcdefg")) > 256


def test_training_is_the_same_every_time() -> None:
    """Words of equal counts, so that any order of a hash table would show."""
    text = " ".join(f"w{number:03}x" for number in range(211)) * 2
    assert len({BytePairs.of(text, 400).state for _ in range(5)}) == 1


@given(st.lists(st.sampled_from(range(len(PAIRS)))))
def test_ids_that_cut_characters_decode_like_bytes(ids: list[int]) -> None:
    """Between special tokens, the text is that of the bytes, with � for what is none."""
    state = json.loads(PAIRS.state)["model"]["vocab"]
    raw = {number: bytes(BYTES[c] for c in token) for token, number in state.items() if number > 2}
    expected, run = "", b""
    for number in [*ids, 0]:
        if number > 2:
            run += raw[number]
            continue
        expected += run.decode("utf-8", "replace") + PAIRS.tokens[number]
        run = b""
    assert PAIRS.decode([*ids, 0]) == expected


def test_pieces_can_be_read() -> None:
    assert PAIRS.split(" the cat 😀 déjà") == [" the", " cat", " ", "😀", " déjà"]
    assert PAIRS.split("ĠĊ") == ["<0xC4>", "<0xA0>", "<0xC4>", "<0x8A>"]
    assert PAIRS.split("dÃ") == ["d<0xC3>", "<0x83>"]
    assert SINGLE.split("😀\n") == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "\n"]
    assert PAIRS.pieces([0, 1, 2]) == ["<pad>", "<é>", "終"]


@given(st.text())
def test_pieces_hold_every_byte(text: str) -> None:
    """Joined, and the bytes put in for their names, they are the text."""
    assume("<0x" not in text)
    raw = "".join(SINGLE.split(text)).encode()
    for byte in range(0x80, 0x100):
        raw = raw.replace(b"<0x%02X>" % byte, bytes([byte]))
    assert raw.decode() == text


def test_names_of_special_tokens_are_text_like_any_other() -> None:
    assert min(PAIRS.encode("<pad><é>終")) > 2
    assert PAIRS.decode(PAIRS.encode("<pad><é>終")) == "<pad><é>終"
    assert PAIRS.decode([0, 1, 1, 2]) == "<pad><é><é>終"
    for name in ("start", " end", "é", "Ġend"):  # the last as the package writes the second
        with pytest.raises(CallError, match=f"specials: a name of its own, .*; got '{name}', which is another token"):
            BytePairs.of([*CORPUS, "é é é"], 400, specials=(name,))


def test_the_package_reads_the_same_ids(tmp_path: Path) -> None:
    PAIRS.tokenizer.save(str(tmp_path / "tokenizer.json"))
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode("the cat, déjà vu").ids == PAIRS.encode("the cat, déjà vu")
    assert [theirs.token_to_id(name) for name in PAIRS.specials] == [0, 1, 2]


def test_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    PAIRS.save(tmp_path / "file")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    text = r'needs tokenizers, which is not installed: pip install "regard\[inputs\]"'
    for call in (lambda: BytePairs.of("ab"), lambda: BytePairs.wrap("x"), lambda: Vocabulary.load(tmp_path / "file")):
        with pytest.raises(MissingExtra, match=text):
            call()
    assert Characters.of("ab").encode("b") == [1]


# -- the tokenizers of models ----------------------------------------------------------------------------------------


def byte_level() -> Any:
    tokenizer = tokenizers.Tokenizer.from_str(BytePairs.of(CORPUS, 300).state)
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=7)
    return tokenizer


def word_pieces() -> Any:
    tokens = "[PAD] [UNK] [CLS] [SEP] the cat s ##at".split()
    tokenizer = tokenizers.Tokenizer(models.WordPiece({token: n for n, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(tokens[:4])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def sentence_pieces() -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>", "<s>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS[:1], trainer)
    return tokenizer


MODELS = {"byte level": byte_level, "word pieces": word_pieces, "sentence pieces": sentence_pieces}
SPLITS = {
    "byte level": (" the cat<|end|> s", [" the", " cat", "<|end|>", " ", "s"]),
    "word pieces": ("The cat SAT<dog>", ["[CLS]", "the", "cat", "s", "##at", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]),
    "sentence pieces": ("the cat", [" the", " cat"]),
}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
@pytest.mark.parametrize("door", ["tokenizer", "transformers", "file", "folder"])
def test_wrapped(name: str, door: str, tmp_path: Path) -> None:
    theirs = MODELS[name]()
    theirs.save(str(tmp_path / "tokenizer.json"))
    source: Any = {
        "tokenizer": theirs,
        "transformers": PreTrainedTokenizerFast(tokenizer_object=theirs),
        "file": str(tmp_path / "tokenizer.json"),
        "folder": tmp_path,
    }[door]
    wrapped, (text, pieces) = BytePairs.wrap(source), SPLITS[name]
    free = tokenizers.Tokenizer.from_str(theirs.to_str())
    free.no_padding()
    free.no_truncation()
    assert wrapped.encode(text) == free.encode(text).ids
    assert wrapped.split(text) == pieces
    assert len(wrapped) == (len(source) if door == "transformers" else theirs.get_vocab_size())
    plain = [number for number in wrapped.encode(text) if wrapped.tokens[number] not in wrapped.specials]
    assert wrapped.decode(wrapped.encode(text), drop=wrapped.specials) == free.decode(plain)
    wrapped.save(tmp_path / "saved")
    assert Vocabulary.load(tmp_path / "saved") == wrapped
    assert Vocabulary.load(tmp_path / "saved").encode(text) == wrapped.encode(text)


def test_what_is_wrapped_is_copied() -> None:
    theirs = byte_level()
    wrapped = BytePairs.wrap(theirs)
    theirs.add_special_tokens(["<|new|>"])
    assert "<|new|>" not in wrapped
    assert theirs.truncation is not None
    assert len(wrapped.encode("the cat sat on the mat")) > 3


def test_specials_of_what_is_wrapped() -> None:
    assert BytePairs.wrap(word_pieces()).specials == ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    assert BytePairs.wrap(byte_level()).specials == ("<|end|>",)
    assert BytePairs.wrap(word_pieces()).batch(["the cat", "s"], pad="[PAD]").ids.tolist() == [
        [2, 4, 5, 3],
        [2, 6, 3, 0],
    ]


def test_an_id_that_is_not_used_shows_nothing() -> None:
    holed = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 3}, unk_token="a"))
    assert BytePairs.wrap(holed).tokens == ("a", "", "", "b")
    assert "" not in BytePairs.wrap(holed)


def test_of_tokens_that_are_shown_alike_the_first_counts() -> None:
    alike = BytePairs.wrap(tokenizers.Tokenizer(models.WordLevel({"a": 0, "▁b": 1, " b": 2}, unk_token="a")))
    assert alike.tokens == ("a", " b", " b")
    assert alike.id(" b") == 1


class OwnNormalizer:
    def normalize(self, text: Any) -> None: ...


def test_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff{}")
    (tmp_path / "y.json").write_text("{}")
    own = byte_level()
    own.normalizer = normalizers.Normalizer.custom(OwnNormalizer())
    rule = "source: a tokenizers.Tokenizer, a fast tokenizer of transformers or the path of a tokenizer.json; got"
    bad: list[tuple[Any, str]] = [
        (3, f"{rule} int"),
        (Characters.of("ab"), f"{rule} Characters"),
        (tmp_path / "x.json", "source: a tokenizer.json; got something else: "),
        (tmp_path / "y.json", "source: a tokenizer.json; got something else: .*Model missing"),
        (own, "source: a tokenizer that can be saved; got something else: .*Normalizer"),
    ]
    for source, text in bad:
        with pytest.raises(KindError, match=text):
            BytePairs.wrap(source)
    with pytest.raises(FileNotFoundError, match="gpt2"):
        BytePairs.wrap("gpt2")
    with pytest.raises(KindError, match=r"state: what a tokenizer\.json holds; got something else"):
        BytePairs("the cat")
    with pytest.raises(KindError, match="literal: True or False; got 1"):
        BytePairs(PAIRS.state, 1)
