"""The chapters as values: they stand in order, know each other, and are found by number and name."""

from __future__ import annotations

import pytest

from regard.algebra.errors import CallError
from regard.course import CHAPTERS, Chapter, find_chapter


def test_numbers_go_up_by_one_and_names_differ() -> None:
    assert [chapter.number for chapter in CHAPTERS] == list(range(1, 16))
    assert len({chapter.name for chapter in CHAPTERS}) == len(CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_before_is_before_and_after_is_after(chapter: Chapter) -> None:
    assert all(number < chapter.number for number in chapter.before)
    assert all(chapter.number < number <= len(CHAPTERS) for number in chapter.after)
    assert chapter.before or chapter.number == 1
    assert chapter.after or chapter.number == len(CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_is_found_by_number_and_name(chapter: Chapter) -> None:
    asked = (chapter.number, str(chapter.number), f"{chapter.number:02}", chapter.name, chapter.name.upper())
    assert {find_chapter(one) for one in asked} == {chapter}
    assert chapter.question.endswith("?")
    assert chapter.carry


@pytest.mark.parametrize(
    ("asked", "hint"), [("wieght", "did you mean 'weight'?"), (0, "got 0"), (16, "got 16"), ("", "got ''")]
)
def test_an_unknown_one_is_refused_with_what_there_is(asked: int | str, hint: str) -> None:
    with pytest.raises(CallError, match="chapter: a number from 1 to 15, or a name among pixel, similarity") as refused:
        find_chapter(asked)
    assert hint in str(refused.value)
