"""Text to ids and back: nothing is lost, nothing is guessed, and the same texts give the same ids."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import regard as rg
from regard.algebra.errors import CallError, KindError
from regard.inputs.byte_pairs import BytePairs
from regard.inputs.cutting import cut_words
from regard.inputs.text import Characters, Words
from regard.inputs.vocabularies import Vocabulary

WOMAN, THUMB, HEART = "👩‍👩‍👧", "👍🏽", "❤️"
CORPUS = [
    "The cat sat on the mat. Don't wake it -- it's asleep!\r\n",
    "\tcafe\u0301, café; naïve: हिन्दी, میخواهم\n\n",
    f"{WOMAN} {THUMB} {HEART} 🇩🇪  two  spaces, 3.5 % and snake_case ’tis O’Neill",
]
MAKERS: dict[str, Any] = {"characters": Characters.of, "words": Words.of, "byte pairs": BytePairs.of}
LEARNED: dict[str, Any] = {name: make(CORPUS, specials=("<pad>", "<start>")) for name, make in MAKERS.items()}
every_kind = pytest.mark.parametrize("kind", LEARNED)
listed = pytest.mark.parametrize("kind", ["characters", "words"])

SIGNS = st.sampled_from(
    ["'", "’", " ", "  ", "\r\n", "\u0301", "\u200d", "\u200c", "🏽", "👩", "ा", "_", ".", "a", "B"]
)
texts = st.lists(SIGNS | st.text(max_size=5)).map("".join) | st.text()


# -- round trips -----------------------------------------------------------------------------------------------------


@every_kind
@given(texts)
def test_what_was_learned_comes_back(kind: str, text: str) -> None:
    assume(text)
    vocabulary = MAKERS[kind](text)
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.split(text) == vocabulary.pieces(vocabulary.encode(text))


@given(st.lists(st.sampled_from(range(2, len(LEARNED["characters"])))))
def test_characters_are_one_to_one(ids: list[int]) -> None:
    letters = LEARNED["characters"]
    assert letters.encode(letters.decode(ids)) == ids


@given(st.lists(st.sampled_from(range(2, len(LEARNED["words"])))))
def test_words_in_any_order_come_back(ids: list[int]) -> None:
    """Side by side, tokens may make up others, as a ' b does; the text is the same."""
    words = LEARNED["words"]
    text = words.decode(ids)
    assume(all(piece in words for _, piece in cut_words(text)))
    assert words.decode(words.encode(text)) == text


@given(texts)
def test_byte_pairs_know_every_text(text: str) -> None:
    pairs = LEARNED["byte pairs"]
    assert pairs.decode(pairs.encode(text)) == text


@every_kind
def test_nothing_gives_nothing(kind: str) -> None:
    vocabulary = LEARNED[kind]
    assert vocabulary.encode("") == []
    assert vocabulary.decode([]) == ""
    assert vocabulary.split("") == []
    for empty in (np.zeros(0, np.int64), torch.zeros(0, dtype=torch.int64)):
        assert vocabulary.decode(empty) == ""


@every_kind
@given(texts)
def test_no_text_gives_a_special_token(kind: str, text: str) -> None:
    named = f"{text}<pad>{text}<start>"
    vocabulary = MAKERS[kind](named, specials=("<pad>", "<start>"))
    assert min(vocabulary.encode(named)) >= 2
    assert vocabulary.decode(vocabulary.encode(named)) == named


# -- words -----------------------------------------------------------------------------------------------------------

CUTS = {
    "The cat": ["The", "cat"],
    "Don't, O’Neill's": ["Don't", ",", " ", "O’Neill's"],
    "'a' b'": ["'", "a", "'", " ", "b", "'"],
    "a  b\tc": ["a", " ", " ", "b", "\t", "c"],
    " a b ": [" ", "a", "b", " "],
    "a\r\nb": ["a", "\r", "\n", "b"],
    "3.5 %": ["3", ".", "5", " ", "%"],
    "cafe\u0301 noir": ["cafe\u0301", "noir"],
    "हिन्दी में": ["हिन्दी", "में"],
    "می\u200cخواهم": ["می\u200cخواهم"],
    f"{WOMAN}{THUMB} {HEART} x": [WOMAN, THUMB, " ", HEART, " ", "x"],
    "\u0301a": ["\u0301", "a"],
    "snake_case-2": ["snake_case", "-", "2"],
}


@pytest.mark.parametrize("text", CUTS)
def test_where_words_are_cut(text: str) -> None:
    assert [piece for _, piece in cut_words(text)] == CUTS[text]


@given(texts)
def test_pieces_stand_where_they_say(text: str) -> None:
    """Between two pieces there is nothing, or one space between two words."""
    end = 0
    for place, piece in cut_words(text):
        assert text[end:place] in ("", " ")
        assert text[place:].startswith(piece)
        end = place + len(piece)
    assert end == len(text)


@given(st.text(st.sampled_from("ab1_ '.-\n\t")))
def test_words_of_ascii_are_those_of_a_regular_expression(text: str) -> None:
    found = re.findall(r"\w+(?:'\w+)*|\s|[^\w\s]", text)
    kept = [
        piece
        for before, piece, after in zip(["", *found], found, [*found[1:], ""], strict=False)
        if not (piece == " " and re.match(r"\w", before) and re.match(r"\w", after))
    ]
    assert [piece for _, piece in cut_words(text)] == kept


@given(texts)
def test_lower_case(text: str) -> None:
    assume(text)
    words = Words.of(text, lower=True)
    assert words.decode(words.encode(text)) == text.lower()
    assert words.encode(text) == words.encode(text.lower())


def test_unknown_words_keep_their_place() -> None:
    words = Words.of("the cat sat, the mat", unknown="<?>")
    assert words.split("the dog sat") == ["the", "<?>", "sat"]
    assert words.decode(words.encode("the dog sat, the dog?")) == "the <?> sat, the <?> <?>"
    assert words.id("<?>") == 0


def test_special_tokens_are_no_words() -> None:
    words = Words.of("the cat", specials=("start", "end"))
    ids = [words.id("start"), *words.encode("the cat"), words.id("end")]
    assert words.decode(ids) == "startthe catend"
    assert words.decode(ids, drop=words.specials) == "the cat"


def test_a_size_keeps_the_most_frequent() -> None:
    text = "a a a b b c c d"
    words = Words.of(text, 5, specials=("<pad>",), unknown="<?>")
    assert words.tokens == ("<pad>", "<?>", "a", "b", "c")
    assert Words.of(text, 4).tokens == ("a", "b", "c", "d") == Words.of(text, 99).tokens
    assert words.split(text) == ["a", "a", "a", "b", "b", "c", "c", "<?>"]


# -- ids -------------------------------------------------------------------------------------------------------------


@listed
@given(st.lists(texts, min_size=1))
def test_ids_count_by_frequency_and_then_by_text(kind: str, several: list[str]) -> None:
    assume(any(several))
    vocabulary = MAKERS[kind](several, specials=("<<1>>",), unknown="<<2>>")
    counts = Counter(piece for text in several for piece in vocabulary.split(text))
    expected = sorted(counts, key=lambda token: (-counts[token], token))
    assert vocabulary.tokens == ("<<1>>", "<<2>>", *expected)
    assert vocabulary == MAKERS[kind](iter(several), specials=["<<1>>"], unknown="<<2>>")


def test_ids_are_the_same_in_every_release() -> None:
    assert LEARNED["characters"].encode("The cat") == [37, 18, 4, 2, 7, 3, 5]
    assert LEARNED["words"].encode("The cat. it's asleep!") == [17, 22, 6, 2, 24, 19, 9]
    assert LEARNED["byte pairs"].encode("The cat sat") == [53, 266, 274, 85, 263, 265]


@every_kind
def test_tokens_and_ids(kind: str) -> None:
    vocabulary = LEARNED[kind]
    assert len(vocabulary) == len(vocabulary.tokens) == len(set(vocabulary.tokens))
    assert [vocabulary.id(token) for token in vocabulary.tokens] == list(range(len(vocabulary)))
    assert vocabulary.tokens[:2] == vocabulary.specials == ("<pad>", "<start>")
    assert all(token in vocabulary for token in vocabulary.tokens)
    assert "zebra" not in vocabulary
    assert 3 not in vocabulary
    assert ["a"] not in vocabulary


@every_kind
@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        iter,
        np.asarray,
        np.uint8,
        torch.tensor,
        jnp.asarray,
        lambda x: list(np.asarray(x)),
        torch.ByteTensor,
    ],
)
def test_ids_of_every_kind_are_decoded(kind: str, convert: Any) -> None:
    vocabulary = LEARNED[kind]
    ids = [number for number in vocabulary.encode("The cat") if number < 256]
    assert vocabulary.decode(convert(ids)) == vocabulary.decode(ids) != ""


@every_kind
def test_special_tokens_are_shown_or_dropped(kind: str) -> None:
    vocabulary = LEARNED[kind]
    ids = [1, *vocabulary.encode("the mat"), 0, 0]
    assert vocabulary.decode(ids) == "<start>the mat<pad><pad>"
    assert vocabulary.decode(ids, drop="<pad>") == "<start>the mat"
    assert vocabulary.decode(ids, drop=vocabulary.specials) == "the mat"
    assert vocabulary.pieces(ids)[0] == "<start>"


@every_kind
def test_texts_are_consumed_once(kind: str) -> None:
    seen = []

    def told() -> Any:
        for text in CORPUS:
            seen.append(text)
            yield text

    assert MAKERS[kind](told(), specials=("<pad>", "<start>")) == LEARNED[kind]
    assert seen == CORPUS


# -- batches ---------------------------------------------------------------------------------------------------------


@every_kind
def test_a_batch_is_a_rectangle(kind: str) -> None:
    vocabulary = LEARNED[kind]
    several = ["The cat", "", "it's asleep!", "mat"]
    ids, lengths = batch = vocabulary.batch(several)
    assert batch.ids is ids
    assert batch.lengths is lengths
    assert ids.dtype == lengths.dtype == np.int64
    assert ids.shape == (4, max(lengths))
    for text, row, length in zip(several, ids, lengths, strict=True):
        assert row[:length].tolist() == vocabulary.encode(text)
        assert set(row[length:].tolist()) <= {vocabulary.id("<pad>")}
    started = vocabulary.batch([[1, *vocabulary.encode(text)] for text in several], pad="<start>")
    assert started.lengths.tolist() == (lengths + 1).tolist()
    assert started.ids[1].tolist() == [1] * started.ids.shape[1]


def test_a_rectangle_of_itself_needs_no_filling() -> None:
    letters = Characters.of("abc")
    assert letters.batch(["ab", "ca"]).ids.tolist() == [[0, 1], [2, 0]]
    assert letters.batch(["", ""]).ids.shape == (2, 0)
    assert letters.batch(["ab", "c"], pad="b").ids.tolist() == [[0, 1], [2, 1]]


@every_kind
@pytest.mark.parametrize("heads", [(), (3,)])
def test_padding_masks_what_was_filled(kind: str, heads: tuple[int, ...]) -> None:
    """Each text attends as it would alone: no query reads what fills the rectangle."""
    vocabulary = LEARNED[kind]
    several = ["The cat sat", "it's", "the mat!", "asleep"]
    ids, lengths = vocabulary.batch(several)
    table = np.random.default_rng(0).standard_normal((len(vocabulary), 5))
    for mask in (rg.padding("lengths"), rg.causal & rg.padding("lengths")):
        attention = rg.Attention(mask=mask)
        x = table[ids]
        if heads:
            x = np.broadcast_to(x[:, None], (len(several), *heads, *x.shape[1:]))
        found = attention(x, x, x, lengths=lengths)
        for b, text in enumerate(several):
            alone = table[vocabulary.encode(text)]
            expected = attention(alone, alone, alone, lengths=lengths[b : b + 1])
            for y in found[b] if heads else [found[b]]:
                np.testing.assert_allclose(y[: lengths[b]], expected, atol=1e-14)


# -- values and files ------------------------------------------------------------------------------------------------


@every_kind
def test_vocabularies_are_values(kind: str) -> None:
    vocabulary = LEARNED[kind]
    same, other = MAKERS[kind](CORPUS, specials=("<pad>", "<start>")), MAKERS[kind](CORPUS)
    assert vocabulary == same != other
    assert hash(vocabulary) == hash(same)
    assert len({vocabulary, same, other}) == 2
    copied = pickle.loads(pickle.dumps(vocabulary))
    assert copied == vocabulary
    if kind == "byte pairs":
        assert copied.encode("The <pad>") == vocabulary.encode("The <pad>")
    with pytest.raises(AttributeError):
        vocabulary.specials = ()
    assert repr(vocabulary).startswith(f"{type(vocabulary).__name__}({len(vocabulary)} tokens: '<pad>', '<start>', ")
    assert Characters(("a", "b")) != Words(("a", "b"))


@every_kind
def test_files(kind: str, tmp_path: Path) -> None:
    path, vocabulary = tmp_path / "vocabulary.json", LEARNED[kind]
    path.write_text("what stood there before")
    vocabulary.save(path)
    assert Vocabulary.load(path) == type(vocabulary).load(str(path)) == vocabulary
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocabulary.json"]
    assert b"\r" not in path.read_bytes()
    again = tmp_path / "again.json"
    MAKERS[kind](CORPUS, specials=("<pad>", "<start>")).save(again)
    assert again.read_bytes() == path.read_bytes()
    path.with_name("folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        vocabulary.save(path.with_name("folder"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["again.json", "folder", "vocabulary.json"]


@given(texts, st.booleans())
def test_every_token_can_be_saved(tmp_path_factory: Any, text: str, lower: bool) -> None:
    assume(text)
    path = tmp_path_factory.mktemp("saved") / "x"
    for vocabulary in (Characters.of(text), Words.of(text, lower=lower, unknown="<<?>>")):
        vocabulary.save(path)
        assert Vocabulary.load(path) == vocabulary


HEAD = {"format": "regard vocabulary", "version": 1, "kind": "words"}
FILES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"hello", "path: a file that a vocabulary saved; got '.*file', which is no JSON"),
    "no text": (b"\xff\x00", "which is no JSON"),
    "a list": (b"[1, 2]", "which holds other JSON"),
    "other JSON": (b'{"tokens": ["a"]}', "which holds other JSON"),
    "a tokenizer": (LEARNED["byte pairs"].state.encode(), "holds a tokenizer.json; pass it to BytePairs.wrap"),
    "later": (json.dumps({**HEAD, "version": 2}).encode(), "in version 1; got .* which holds 'words' in version 2"),
    "another kind": (json.dumps({**HEAD, "kind": "bits"}).encode(), "which holds 'bits' in version 1"),
    "no tokens": (json.dumps(HEAD).encode(), "where words have .*learned"),
    "a number": (json.dumps({**HEAD, "learned": ["a", 1]}).encode(), r"where words have learned\[1\]: a str; got int"),
    "no tokenizer": (json.dumps({**HEAD, "kind": "byte pairs"}).encode(), "where byte pairs have no 'tokenizer'"),
}


@pytest.mark.parametrize("name", FILES)
def test_foreign_files_are_refused(name: str, tmp_path: Path) -> None:
    content, text = FILES[name]
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(KindError, match=text):
        Vocabulary.load(tmp_path / "file")


def test_a_file_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    LEARNED["words"].save(tmp_path / "file")
    with pytest.raises(KindError, match=r"that Characters saved; got .*, which holds words; read it with Words\.load"):
        Characters.load(tmp_path / "file")


# -- what is refused -------------------------------------------------------------------------------------------------

LETTERS, TWO = Characters.of("abc", specials=("<pad>",)), Words.of("the cat")
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown character": (
        lambda: LETTERS.encode("abcabcabcabcabcßabcabcabcabcabc"),
        CallError,
        r"text: each character one of the 3 .*; got 'ß' \(U\+00DF\) at position 15, in 'abcabcabcabcßabcabcabcabc'",
    ),
    "what to do": (lambda: LETTERS.encode("z"), CallError, "; learn from texts that hold it, or with unknown='�'$"),
    "unknown word": (
        lambda: TWO.encode("the concatenated cat the dog"),
        CallError,
        "each word, sign or whitespace one of the 2 .* got 'concatenated' at position 4, in 'the concatenated cat the ",
    ),
    "unknown space": (lambda: TWO.encode("the  cat"), CallError, r"got ' ' \(U\+0020\) at position 3"),
    "special in text": (lambda: LETTERS.encode("ab<pad>"), CallError, "got '<'"),
    "bytes": (lambda: LETTERS.encode(b"ab"), KindError, r"text: a str; got bytes; decode it first: value\.decode"),
    "path": (lambda: LETTERS.encode(Path("ab")), KindError, r"got \w+Path; read the file first: path\.read_text"),
    "None": (lambda: TWO.encode(None), KindError, "text: a str; got NoneType$"),
    "surrogate": (
        lambda: LETTERS.encode("ab\ud800"),
        CallError,
        r"without lone surrogates; got '\\ud800' at position 2",
    ),
    "out of range": (
        lambda: LETTERS.decode([0, 4]),
        CallError,
        "ids: from 0 to 3, one for each token; got 4 at position 1",
    ),
    "negative": (lambda: LETTERS.decode(np.array([-1])), CallError, "got -1 at position 0"),
    "floats": (lambda: LETTERS.decode(np.array([1.0])), KindError, "ids: integers; got dtype float64"),
    "tensor of truths": (
        lambda: LETTERS.decode(torch.tensor([True])),
        KindError,
        "ids: integers; got dtype torch.bool",
    ),
    "a float": (lambda: LETTERS.decode([0, 1.0]), KindError, "ids: a sequence of integers; got 1.0 at position 1"),
    "a truth": (lambda: LETTERS.decode([True]), KindError, "got True at position 0"),
    "one id": (lambda: LETTERS.decode(1), KindError, r"ids: a sequence of integers; got int, as in \[5\]"),
    "a text": (lambda: LETTERS.decode("ab"), KindError, "got str; encode it first"),
    "rows": (lambda: LETTERS.decode(np.zeros((2, 3), int)), CallError, r"one axis; got shape \(2, 3\); pass one row"),
    "traced": (
        lambda: jax.jit(LETTERS.decode)(jnp.arange(2)),
        CallError,
        "ids: numbers that can be read; got an array that",
    ),
    "drop": (lambda: LETTERS.decode([1], drop="a"), CallError, "drop: special tokens, '<pad>'; got 'a'"),
    "token": (lambda: LETTERS.id("z"), CallError, "token: one of the vocabulary's 4, '<pad>', 'a', 'b', 'c'; got 'z'"),
    "token of bytes": (lambda: LETTERS.id(b"a"), KindError, "token: a str; got bytes"),
    "batch of a text": (lambda: LETTERS.batch("ab"), KindError, r"texts: a list of texts; got str; pass \[text\]"),
    "batch of nothing": (lambda: LETTERS.batch([]), CallError, "texts: at least one text; got none"),
    "no filling": (
        lambda: TWO.batch(["the cat", ""]),
        CallError,
        r'pad: texts of 0 to 2 tokens need one to fill with; got \'<pad>\', .* learn it with specials=\("<pad>",\)',
    ),
    "two characters": (lambda: Characters(("ab",)), CallError, "tokens: each is one character; got 'ab'"),
    "two words": (lambda: Words(("a", "b c")), CallError, "tokens: each is one word, sign or whitespace; got 'b c'"),
    "upper case": (
        lambda: Words(("A",), lower=True),
        CallError,
        "tokens: words in lower case with lower=True; got 'A'",
    ),
    "lower": (lambda: Words.of("a", lower=1), KindError, "lower: True or False; got 1"),
    "twice": (lambda: Characters(("a", "b", "a")), CallError, "learned: each token once; got 'a' 2 times"),
    "size": (
        lambda: Words.of("a b", 2, specials=("x", "y")),
        CallError,
        "size: at least 3, one word beside .*; got 2; pass",
    ),
    "size of words": (
        lambda: Words.of("a b c", 3, specials=("<pad>",)),
        CallError,
        "size: without an unknown token all 3 words, .* and 1 special tokens; got 3; pass unknown='<[?]>' or size=4",
    ),
    "size of text": (lambda: Words.of("a", "5"), KindError, "size: an integer, the number of tokens; got '5'"),
    "size of bytes": (
        lambda: BytePairs.of("ab", 257, specials=("x", "y")),
        CallError,
        "size: at least 258, 256 bytes and 2 special tokens; got 257; pass size=258 or more",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


BAD_TEXTS: dict[str, tuple[Any, str]] = {
    "nothing": ("", "texts: at least one .* to learn from; got none"),
    "no texts": ([], "texts: at least one .* to learn from; got none"),
    "empty texts": (["", ""], "texts: at least one .* to learn from; got none"),
    "bytes": (b"ab", "texts: a str or an iterable of str; got bytes; decode it first"),
    "path": (Path("file.txt"), "texts: a str or an iterable of str; got .*; read the file first"),
    "number": (3, "texts: a str or an iterable of str; got int"),
    "a number": (["ab", 3], r"texts\[1\]: a str; got int"),
    "lines of bytes": ([b"ab"], r"texts\[0\]: a str; got bytes; decode it first"),
    "surrogate": (["a", "\udfff"], r"texts\[1\]: Unicode without lone surrogates; got '\\udfff' at position 0"),
}


@every_kind
@pytest.mark.parametrize("name", BAD_TEXTS)
def test_texts_that_teach_nothing(kind: str, name: str) -> None:
    given_texts, text = BAD_TEXTS[name]
    with pytest.raises((CallError, KindError), match=text):
        MAKERS[kind](given_texts)


BAD_SPECIALS: dict[str, tuple[Any, str]] = {
    "a str": ("<pad>", r"specials: a tuple of str; got '<pad>'; pass \('<pad>',\)"),
    "a number": ((1,), r"specials\[0\]: a str; got int"),
    "empty": (("<a>", ""), "specials: tokens of at least one character; got '' at position 1"),
    "twice": (("<a>", "<a>"), "specials: each token once; got '<a>' 2 times"),
    "a token": (("a",), "specials: a name of its own, such as '<start>'; got 'a', which is another token, too"),
}


@every_kind
@pytest.mark.parametrize("name", BAD_SPECIALS)
def test_special_tokens_that_are_none(kind: str, name: str) -> None:
    specials, text = BAD_SPECIALS[name]
    with pytest.raises((CallError, KindError), match=text):
        MAKERS[kind]("a a a", specials=specials)


@listed
def test_unknown_tokens_that_are_none(kind: str) -> None:
    bad = {"a": "got 'a', which is another", "<pad>": "got '<pad>', which is another", "": "at least one", 3: "got int"}
    for unknown, text in bad.items():
        with pytest.raises((CallError, KindError), match=f"unknown: .*{text}"):
            MAKERS[kind]("a b", specials=("<pad>",), unknown=unknown)
