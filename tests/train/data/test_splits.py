"""What is held out: every character is in one part, everywhere in the text, and always the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.data import Corpus, Span, Split, characters_needed, read_text, split

texts = st.text(alphabet="ab \n", min_size=60, max_size=900)
shares = st.floats(0.02, 0.49)


def pieces(parts: Split) -> list[Span]:
    return sorted([*parts.training, *parts.held_out])


@given(texts, shares, st.integers(1, 200))
@example("a" * 60, 0.49, 200)
def test_every_character_is_in_one_part(text: str, share: float, block: int) -> None:
    parts = split(Corpus(text, "t"), share, block)
    spans = pieces(parts)
    assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
    assert spans[-1].stop == len(text)
    assert all(start < stop for start, stop in spans)
    assert spans[0] in parts.training, "what is held out has text before it"
    assert parts.held_out
    assert "".join(text[start:stop] for start, stop in spans) == text
    kinds = [span in parts.training for span in spans]
    assert all(one != other for one, other in pairwise(kinds)), "neighbours are joined"


@given(texts, shares, st.integers(1, 200))
def test_the_same_text_is_split_the_same_way(text: str, share: float, block: int) -> None:
    assert split(Corpus(text, "one"), share, block).held_out == split(Corpus(text, "other"), share, block).held_out


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 0.4])
def test_the_share_is_as_asked_and_from_everywhere(share: float) -> None:
    corpus = read_text()
    parts = split(corpus, share)
    assert sum(stop - start for start, stop in parts.held_out) / len(corpus) == pytest.approx(share, abs=0.011)
    tenths = {10 * start // len(corpus) for start, _ in split(corpus, share, block=1000).held_out}
    assert tenths == set(range(10))


def test_blocks_of_the_reference_end_with_paragraphs() -> None:
    parts = split(read_text())
    assert all(text.endswith("\n\n") for text in [*parts.held_out_texts, *parts.training_texts][:-1])
    assert all(2000 < stop - start < 6000 for start, stop in parts.held_out)


@pytest.mark.parametrize(
    ("text", "end"),
    [("word. " * 40 + "\n\n", "\n\n"), ("word. " * 40 + "\n", "\n"), ("word. ", " "), ("x", "x")],
    ids=["paragraphs", "lines", "words", "nothing"],
)
def test_blocks_end_with_the_best_end_there_is(text: str, end: str) -> None:
    parts = split(Corpus(text * (60_000 // len(text)), "t"), block=1000)
    assert all(one.endswith(end) for one in parts.held_out_texts)
    assert all(500 <= stop - start <= 2000 for start, stop in parts.held_out)


def test_texts_are_those_of_the_spans() -> None:
    corpus = Corpus("".join(map(chr, range(100, 400))), "t")
    parts = split(corpus, held_out=0.3, block=20)
    assert parts.held_out_texts == [corpus.text[start:stop] for start, stop in parts.held_out]
    assert parts.training_texts == [corpus.text[start:stop] for start, stop in parts.training]


@given(st.integers(1, 500), shares)
def test_characters_needed_are_enough(context: int, share: float) -> None:
    """So many characters, without paragraphs, give both parts a window of the context and what comes after it."""
    needed = characters_needed(context, share)
    parts = split(Corpus("x" * needed, "t"), share)
    assert max(stop - start for start, stop in parts.training) > context
    assert characters_needed(context + 1, share) > needed


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda c: split(c, 0.5), CallError, r"held_out: above 0 and below 1/2; got 0\.5; a tenth is usual"),
        (lambda c: split(c, 0), CallError, "held_out: above 0 and below 1/2; got 0;"),
        (lambda c: split(c, float("nan")), CallError, "held_out: above 0 and below 1/2; got nan"),
        (lambda c: split(c, "0.1"), KindError, "held_out: a number, the share that is held out; got '0.1'"),
        (lambda c: split(c, True), KindError, "held_out: a number"),
        (
            lambda c: split(c, 0.01),
            CallError,
            "corpus: at least 101 characters, so that each part has some; got 50 in t",
        ),
        (lambda c: split(c, block=0), CallError, "block: at least 1 character; got 0"),
        (lambda c: split(c, block=2.0), KindError, r"block: an integer, the characters of a block; got 2\.0"),
        (lambda c: split(Corpus("", "e")), CallError, "corpus: at least 11 characters, .*; got 0 in e; give more text"),
        (lambda c: characters_needed(9, 1.0), CallError, "held_out: above 0 and below 1/2"),
    ],
)
def test_refusals(call: Callable[[Corpus], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(Corpus("x" * 50, "t"))
