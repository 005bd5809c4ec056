"""Ids as text, piece by piece: nothing twice, nothing lost, nothing too early; and stop texts, however they come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nn.generation.spelling import TEXT, VOCABULARIES
from regard.algebra.errors import CallError
from regard.inputs import BytePairs, Vocabulary
from regard.nn.generation.stopping import Watch
from regard.nn.generation.texts import LONG, Reading

LLAMA = VOCABULARIES["llama"]
every_vocabulary = pytest.mark.parametrize("name", VOCABULARIES)


def pieces(vocabulary: Vocabulary, prompt: list[int], ids: list[int]) -> list[str]:
    reading = Reading(vocabulary, prompt)
    return [*(reading.push(number) for number in ids), reading.rest()]


def sequences(vocabulary: Vocabulary, most: int = 40) -> Any:
    return st.lists(st.integers(0, len(vocabulary) - 1), min_size=1, max_size=most)


@every_vocabulary
@given(data=st.data())
def test_pieces_are_the_whole_without_the_prompt(name: str, data: Any) -> None:
    """Any ids at all, also bytes that are no text; only what a prompt leaves half is another matter."""
    vocabulary = VOCABULARIES[name]
    prompt, ids = data.draw(sequences(vocabulary)), data.draw(sequences(vocabulary))
    if name == "llama":  # where one byte that does not fit spoils all characters beside it, which may be given by then
        prompt, ids = vocabulary.encode("the cat €"), vocabulary.encode(data.draw(st.text("a t€é😀", max_size=20)))
    before, whole = vocabulary.decode(prompt), vocabulary.decode(prompt + ids)
    if not before.endswith("�"):
        assert before + "".join(pieces(vocabulary, prompt, ids)) == whole


@pytest.mark.parametrize("name", ["bytes", "byte pairs", "llama"])
@given(text=st.text("ab €é😀\ufffd終", min_size=1, max_size=30), cut=st.integers(1, 40))
def test_a_prompt_may_end_within_a_character(name: str, text: str, cut: int) -> None:
    vocabulary = VOCABULARIES[name]
    if name == "llama":  # where the bytes of a true � and of half a character look alike, and spoil those beside them
        text = "a".join(text.replace("\ufffd", "x"))
    ids = vocabulary.encode(text)
    prompt, rest = ids[: min(cut, len(ids))], ids[min(cut, len(ids)) :]
    before = vocabulary.decode(prompt)
    found = "".join(pieces(vocabulary, prompt, rest))
    assert vocabulary.decode(ids) in {before.removesuffix("�" * count) + found for count in range(len(before) + 1)}
    if not before.endswith("�"):
        assert before + found == text


@every_vocabulary
@given(data=st.data())
def test_no_piece_holds_half_a_character_and_none_waits_for_long(name: str, data: Any) -> None:
    vocabulary = VOCABULARIES[name]
    alphabet = [c for c in sorted(set(TEXT)) if name not in ("metaspace", "suffixed", "word pieces") or c in "the cats"]
    ids = vocabulary.encode(data.draw(st.text(st.sampled_from(alphabet), min_size=1, max_size=30)))
    prompt = vocabulary.encode("the cat")
    reading, given_text = Reading(vocabulary, prompt), ""
    for number in ids:
        piece = reading.push(number)
        assert "�" not in piece or name == "characters"
        given_text += piece
    if name != "characters":
        assert reading.rest() == ""


def test_a_character_comes_with_its_last_byte() -> None:
    vocabulary = VOCABULARIES["bytes"]
    ids = vocabulary.encode("a€😀b")
    assert pieces(vocabulary, vocabulary.encode("x"), ids) == ["a", "", "", "€", "", "", "", "😀", "b", ""]


def test_what_is_certain_of_a_token_comes_at_once() -> None:
    vocabulary = BytePairs.of(["x 😀 😁 😂 😃"] * 3, 300)
    token = vocabulary.id(" <0xF0><0x9F><0x98>")
    assert pieces(vocabulary, vocabulary.encode("x"), [token, vocabulary.id("<0x80>")]) == [" ", "😀", ""]


@pytest.mark.parametrize(
    ("name", "prompt", "ids", "expected"),
    [
        ("words", "the cat", "sat on", [" sat", " on", ""]),
        ("word pieces", "the m", "##at ##s cat", ["at", "s", " cat", ""]),
        ("metaspace", "▁the", "▁cat s ▁the", [" cat", "s", " the", ""]),
        ("metaspace", "▁the ▁", "▁cat", [" cat", ""]),
        ("suffixed", "the</w>", "c at</w> the</w>", [" c", "at", " the", ""]),
        ("llama", "▁the", "▁cat ▁ ▁the <0x41>", [" cat", " ", " the", "A", ""]),
    ],
)
def test_tokens_are_read_after_the_prompt(name: str, prompt: str, ids: str, expected: list[str]) -> None:
    vocabulary = VOCABULARIES[name]
    number = vocabulary.tokenizer.token_to_id if isinstance(vocabulary, BytePairs) else vocabulary.id
    assert pieces(vocabulary, *([number(token) for token in part.split()] for part in (prompt, ids))) == expected


@pytest.mark.parametrize("after", ["", "x"])
def test_bytes_that_spoil_a_character_stand_alone(after: str) -> None:
    """Decoded as a whole, the character would become � as well; it has been given."""
    number = LLAMA.tokenizer.token_to_id  # type: ignore[attr-defined]
    ids = [number(f"<0x{byte:02X}>") for byte in "€".encode() + b"\xe2\x82"] + [number(token) for token in after]
    assert "".join(pieces(LLAMA, LLAMA.encode("x"), ids)) == "€��" + after
    ids[3:5] = [number("<0xFF>")]
    assert "".join(pieces(LLAMA, LLAMA.encode("x"), ids)) == "€�" + after


@pytest.mark.parametrize("name", ["bytes", "llama"])
@pytest.mark.parametrize("count", [3, 4, 5, 100])
def test_garbage_does_not_wait_for_ever(name: str, count: int) -> None:
    vocabulary = VOCABULARIES[name]
    number = vocabulary.tokenizer.token_to_id("<0xFF>") if name == "llama" else vocabulary.id("<0xFF>")  # type: ignore[attr-defined]
    reading = Reading(vocabulary, vocabulary.encode("the"))
    early = "".join(reading.push(number) for _ in range(count))
    assert early == "�" * max(0, count - 3)
    assert early + reading.rest() == "�" * count


@every_vocabulary
def test_the_window_stays_short(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary, seen = VOCABULARIES[name], []
    decode = type(vocabulary).decode
    monkeypatch.setattr(type(vocabulary), "decode", lambda self, ids: seen.append(len(ids)) or decode(self, ids))
    ids = [number * 7 % len(vocabulary) for number in range(500)]
    prompt = vocabulary.encode("the cat") * 50
    reading = Reading(vocabulary, prompt)
    assert seen[0] == len(prompt)
    del seen[:]
    for number in ids:
        reading.push(number)
    assert max(seen) <= LONG + 1
    assert len(seen) < 3 * len(ids)


def test_ids_without_a_token_are_refused() -> None:
    vocabulary = VOCABULARIES["words"]
    reading = Reading(vocabulary, [3])
    with pytest.raises(
        CallError, match=r"vocabulary: a token for each id of the model; got 99, where it has \d+ tokens"
    ):
        reading.push(99)


# -- stop texts ----------------------------------------------------------------------------------------------------

LETTERS = st.text("ab", max_size=12)
STOPS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3).map(tuple)


def up_to(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """The definition, character by character."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            stop = max(complete, key=len)
            return text[: end - len(stop)], stop
    return text, None


@given(st.lists(LETTERS, max_size=6), STOPS)
def test_text_goes_to_the_first_stop_text_whatever_the_pieces(parts: list[str], stops: tuple[str, ...]) -> None:
    watch, through = Watch(stops), []
    for part in parts:
        through.append(watch.push(part))
        if watch.found is not None:
            break
    else:
        through.append(watch.rest())
    expected, stop = up_to("".join(parts), stops)
    assert ("".join(through), watch.found) == (expected, stop)


@given(LETTERS, STOPS)
def test_only_what_may_become_a_stop_text_is_held_back(text: str, stops: tuple[str, ...]) -> None:
    """What is held begins a stop text; a longer end of the text does not."""
    watch, through = Watch(stops), ""
    for place, character in enumerate(text):
        through += watch.push(character)
        if watch.found is not None:
            return
        seen = text[: place + 1]
        begun = [n for n in range(len(seen) + 1) if any(stop.startswith(seen[len(seen) - n :]) for stop in stops)]
        assert through == seen[: len(seen) - max(begun, default=0)]


def test_without_stop_texts_nothing_is_held() -> None:
    watch = Watch(())
    assert [watch.push(piece) for piece in ("a", "", "bc")] == ["a", "", "bc"]
    assert watch.rest() == ""


def test_a_beginning_that_comes_to_nothing_is_given_after_all() -> None:
    watch = Watch(("END", "\n\n"))
    assert [watch.push(piece) for piece in ("say E", "N", "T, ", "\n", "E", "NDED")] == [
        "say ",
        "",
        "ENT, ",
        "",
        "\n",
        "",
    ]
    assert watch.found == "END"
