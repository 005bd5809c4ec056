"""Copies are the reader's: what was changed is kept, what is older is renewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.algebra.errors import CallError
from regard.course.copying import RECORD, copy_chapters
from small_course import Small, small_course


@pytest.fixture
def chapters(tmp_path: Path) -> tuple[Small, ...]:
    (tmp_path / "ours").mkdir()
    return small_course(tmp_path / "ours")


def test_copies_are_made_and_are_the_same(chapters: tuple[Small, ...], tmp_path: Path) -> None:
    copied = copy_chapters(chapters, tmp_path / "a" / "b")
    assert [path.name for path in copied.made] == ["c01_first.py", "c02_second.py"]
    assert all(
        path.read_bytes() == chapter.file.read_bytes() for path, chapter in zip(copied.made, chapters, strict=True)
    )
    again = copy_chapters(chapters, tmp_path / "a" / "b")
    assert (len(again.same), again.made, again.kept, again.renewed) == (2, [], [], [])
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {"c01_first.py", "c02_second.py", RECORD}


def test_a_changed_file_is_never_written_over(chapters: tuple[Small, ...], tmp_path: Path) -> None:
    mine = copy_chapters(chapters, tmp_path / "mine").made[0]
    mine.write_text("my own")
    for _ in range(2):
        copied = copy_chapters(chapters, tmp_path / "mine")
        assert copied.kept == [mine]
        assert mine.read_text() == "my own"
    chapters[0].file.write_text("# newer")
    assert copy_chapters(chapters, tmp_path / "mine").kept == [mine]
    assert mine.read_text() == "my own"


def test_an_unchanged_one_is_renewed(chapters: tuple[Small, ...], tmp_path: Path) -> None:
    mine = copy_chapters(chapters, tmp_path / "mine").made[0]
    chapters[0].file.write_text("# newer")
    assert copy_chapters(chapters, tmp_path / "mine").renewed == [mine]
    assert mine.read_text() == "# newer"


@pytest.mark.parametrize("record", ["", "[]", "{", None])
def test_without_the_record_what_differs_is_kept(
    chapters: tuple[Small, ...], tmp_path: Path, record: str | None
) -> None:
    mine = copy_chapters(chapters, tmp_path / "mine").made[0]
    place = tmp_path / "mine" / RECORD
    place.unlink() if record is None else place.write_text(record)
    chapters[0].file.write_text("# newer")
    assert copy_chapters(chapters, tmp_path / "mine").kept == [mine]


def test_what_is_no_file_is_left_alone(chapters: tuple[Small, ...], tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "c01_first.py").mkdir(parents=True)
    (tmp_path / "else").write_text("elsewhere")
    (folder / "c02_second.py").symlink_to(tmp_path / "else")
    assert len(copy_chapters(chapters, folder).kept) == 2
    assert (tmp_path / "else").read_text() == "elsewhere"


def test_a_file_in_the_place_of_the_folder(chapters: tuple[Small, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CallError, match=r"--edit: a folder; got .*, which is a file; name another"):
            copy_chapters(chapters, target)
