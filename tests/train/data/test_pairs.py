"""Pairs of texts: dates that anyone can check, files with two columns, and no source on both sides."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.data.dates import FIRST, LAST, MONTHS, ORDINALS, WAYS, WEEKDAYS, date_pairs, numbered, worded
from regard.train.data.pairs import SPECIALS, Pairs, pair_vocabulary, read_pairs

DATES = read_pairs()
days = st.dates(FIRST, LAST)

# -- dates -----------------------------------------------------------------------------------------------------


def understood(text: str) -> date:
    """A date read by a person's rules, without knowing how it was written."""
    words = re.findall(r"[a-z]+(?:-[a-z]+)?|\d+(?:st|nd|rd|th)?|'\d\d", re.sub(r"-(?=\d)|(?<=\d)-", " ", text.lower()))
    month = next(
        n for n, name in enumerate(MONTHS, 1) for word in words if len(word) > 2 and name.lower().startswith(word)
    )
    figures = [int(re.sub(r"\D", "", word)) for word in words if word[0] in "'0123456789"]
    spelled = [_ordinal(word) for word in words if _ordinal(word)]
    long = [number for number in figures if number > 99]
    rest = [number for number in figures if number <= 99]
    year = long[0] if long else rest[-1] + (1900 if rest[-1] >= 50 else 2000)
    return date(year, month, spelled[0] if spelled else rest[0])


def _ordinal(word: str) -> int:
    names = {name: number for number, name in enumerate(ORDINALS, 1)} | {"thirtieth": 30}
    tens, _, ones = word.partition("-")
    return names.get(word, 0) or {"twenty": 20, "thirty": 30}.get(tens, -names.get(ones, 0)) + names.get(ones, 0)


@given(days, st.sampled_from(WAYS))
def test_every_way_tells_one_date(day: date, way: Callable[[date], str]) -> None:
    assert understood(way(day)) == day


@given(days)
def test_a_weekday_that_is_named_is_the_right_one(day: date) -> None:
    names = {name[:3] for way in WAYS for name in WEEKDAYS if name[:3] in re.findall(r"\b[A-Z][a-z]{2}", way(day))}
    assert names == {day.strftime("%a")}


def test_ways_are_told_apart() -> None:
    written = [way(date(1998, 9, 23)) for way in WAYS]
    assert len(set(written)) == len(WAYS) >= 12
    assert {"the twenty-third of September 1998", "September 23rd, 1998", "23 Sep '98"} <= set(written)


def test_days_are_numbered_as_in_english() -> None:
    january = [date(2001, 1, day) for day in range(1, 32)]
    endings = {"st": [1, 21, 31], "nd": [2, 22], "rd": [3, 23]}
    told = {day: ending for ending, days in endings.items() for day in days}
    assert [numbered(day) for day in january] == [f"{day}{told.get(day, 'th')}" for day in range(1, 32)]
    assert [worded(january[day - 1]) for day in (3, 12, 20, 21, 30, 31)] == [
        *("third", "twelfth", "twentieth", "twenty-first", "thirtieth", "thirty-first")
    ]


def test_held_out_dates_are_new() -> None:
    training, held = set(DATES.training.targets), set(DATES.held_out.targets)
    assert (len(training), len(held)) == (18_000, 2_000)
    assert not training & held
    assert not set(DATES.training.sources) & set(DATES.held_out.sources)
    assert all(understood(source).isoformat() == target for source, target in zip(*_sides(DATES.held_out), strict=True))


def _sides(texts: Any) -> tuple[Any, Any]:
    return texts.sources, texts.targets


def test_dates_depend_on_the_seed_alone() -> None:
    assert read_pairs() == DATES
    assert read_pairs(seed=1) != DATES
    assert date_pairs(5, seed=3) == date_pairs(7, seed=3)[:5]


# -- files -----------------------------------------------------------------------------------------------------


def file(folder: Path, text: str | bytes, name: str = "pairs.tsv") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def every(pairs: Pairs) -> set[tuple[str, str]]:
    return {pair for part in (pairs.training, pairs.held_out) for pair in zip(*_sides(part), strict=True)}


GOOD = {(f"source {number}", f"target {number}") for number in range(20)}
TEXT = "".join(f"{source}\t{target}\n" for source, target in sorted(GOOD))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\n\n"),
        TEXT.replace("\t", " \t "),
        TEXT[:-1],
    ],
    ids=["plain", "mark", "carriage returns", "empty lines", "spaces", "no last end"],
)
def test_files_are_read_however_they_were_written(text: str, tmp_path: Path) -> None:
    pairs = read_pairs(file(tmp_path, text), held_out=0.2)
    assert every(pairs) == GOOD
    assert (len(pairs.training), len(pairs.held_out)) == (16, 4)
    assert (pairs.name, pairs.notes) == ("pairs", ())
    assert repr(pairs) == "Pairs('pairs': 16 and 4 held out)"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_lines_that_are_no_pair_are_counted_and_named(end: str, tmp_path: Path) -> None:
    bad = "no tab\na\tb\tc\n\ta\nb\t \n" + "x" * 300 + "\ty\nalso none\nsource 1\ttarget 1\n"
    pairs = read_pairs(file(tmp_path, (TEXT + "\n" + bad).replace("\n", end)))
    assert pairs.notes == (
        "2 lines skipped, without a tab: line 22, line 27",
        "1 line skipped, of 3 columns: line 23",
        "2 lines skipped, with an empty side: line 24, line 25",
        "1 line skipped, longer than 256 characters a side: line 26",
        "1 line skipped, a pair that was there before: line 28",
    )
    assert every(pairs) == GOOD


def test_a_limit_that_was_asked_for(tmp_path: Path) -> None:
    pairs = read_pairs(file(tmp_path, TEXT), longest=8)
    assert len(every(pairs)) == 10
    assert pairs.notes[0].startswith("10 lines skipped, longer than 8 characters a side: line 3, line 4, line 5, …")


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("uvw")), min_size=2), st.integers(0, 9))
def test_no_source_is_on_both_sides(tmp_path_factory: Any, pairs: list[tuple[str, str]], seed: int) -> None:
    path = file(tmp_path_factory.mktemp("pairs"), "".join(f"{a}\t{b}\n" for a, b in dict.fromkeys(pairs)))
    if len({source for source, _ in pairs}) < 2:
        with pytest.raises(
            CallError, match="source: at least two different sources, one to hold out; got 1 in 'pairs'"
        ):
            read_pairs(path, seed=seed)
        return
    found = read_pairs(path, held_out=0.3, seed=seed)
    assert not set(found.training.sources) & set(found.held_out.sources)
    assert every(found) == set(pairs)


def test_two_files(tmp_path: Path) -> None:
    file(tmp_path, TEXT, "train.tsv")
    file(tmp_path, "new\tneu\nsource 3\tanother\nno tab\n", "test.tsv")
    pairs = read_pairs(tmp_path)
    assert pairs.held_out.sources == ("new", "source 3")
    assert len(pairs.training) == 19
    assert pairs.notes == (
        "held out: 1 line skipped, without a tab: line 3",
        "1 pair not learned from, with a source that is held out",
    )


REFUSED: dict[str, tuple[str | bytes, type[Exception], str]] = {
    "three columns": (
        TEXT.replace("\n", "\tCC-BY\n"),
        CallError,
        r"at least half of the lines of use; .* 20 of 20 are not \(20 lines skipped, of 3 columns: line 1, .*cut -f1,2",
    ),
    "prose": ("It was a dark night.\n" * 3, CallError, "where 3 of 3 are not .*without a tab"),
    "empty": ("\n\n", CallError, "source: pairs, one a line, as source<tab>target; got '.*', which is empty"),
    "Latin-1": (
        TEXT.encode() + b"M\xfcnchen\tx",
        KindError,
        "in UTF-8; got another encoding in '.*', line 21; convert it",
    ),
    "UTF-16": (TEXT.encode("utf-16-le"), KindError, "which holds zero bytes; convert it"),
    "one source": ("a\tb\na\tc\n", CallError, "at least two different sources, one to hold out; got 1 in 'pairs'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(name: str, tmp_path: Path) -> None:
    text, kind, told = REFUSED[name]
    with pytest.raises(kind, match=told):
        read_pairs(file(tmp_path, text))


def test_what_is_refused_at_the_door(tmp_path: Path) -> None:
    with pytest.raises(KindError, match="source: a file of pairs, or None for dates; got list"):
        read_pairs([("a", "b")])  # type: ignore[arg-type]
    with pytest.raises(CallError, match=r"source: a file of pairs, source<tab>target; got '.*no', which is not there"):
        read_pairs(tmp_path / "no")
    with pytest.raises(
        CallError, match=r"a folder with train\.tsv and test\.tsv; got the folder '.*' with no \.tsv; name"
    ):
        read_pairs(tmp_path)
    with pytest.raises(CallError, match=r"longest: a number of characters, at least 1; got 0"):
        read_pairs(longest=0)
    file(tmp_path, TEXT, "train.tsv")
    file(tmp_path, TEXT, "test.tsv")
    with pytest.raises(
        CallError, match=r"sources to learn from that are not held out; got none in '.*'; divide it anew"
    ):
        read_pairs(tmp_path)


# -- vocabularies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["characters", "words", "words:40", "bytepairs:300"])
def test_one_vocabulary_for_both_sides(kind: str, tmp_path: Path) -> None:
    pairs = read_pairs(file(tmp_path, TEXT))
    vocabulary = pair_vocabulary(pairs, kind)
    assert vocabulary.tokens[:3] == vocabulary.specials == SPECIALS
    texts = (*pairs.training.sources, *pairs.training.targets)
    assert all(vocabulary.decode(vocabulary.encode(text)) == text for text in texts)
    assert ":" not in kind or len(vocabulary) <= int(kind.partition(":")[2])


def test_what_is_held_out_is_not_looked_at(tmp_path: Path) -> None:
    file(tmp_path, TEXT, "train.tsv")
    file(tmp_path, "ß\tß\n", "test.tsv")
    vocabulary = pair_vocabulary(read_pairs(tmp_path))
    assert "ß" not in vocabulary
    assert vocabulary.decode(vocabulary.encode("ß")) == "<?>"
