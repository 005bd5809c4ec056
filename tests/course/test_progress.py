"""What is kept of a reader stays: over processes, over a file that was cut off, over a disk that cannot be written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.course import progress as module
from regard.course.progress import LONGEST, Progress, data_folder

CHILD = """
import sys
from pathlib import Path
from regard.course.progress import Progress
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 10):
    Progress.read(Path(sys.argv[1])).keep_solved(number)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "course.json"


def test_nothing_is_kept_at_first_and_reading_makes_no_file(path: Path) -> None:
    progress = Progress.read(path)
    assert not progress.solved(1)
    assert progress.answer(1) is None
    assert progress.choice(1) is None
    assert progress.last is None
    assert not progress.opened(1)
    assert not path.parent.exists()
    assert progress.trouble == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(number=st.integers(1, 15), text=st.text(st.characters(codec="utf-8")), right=st.booleans())
def test_what_is_kept_is_read_again(path: Path, number: int, text: str, right: bool) -> None:
    progress = Progress.read(path)
    progress.keep_answer(number, text)
    progress.keep_choice(number, text, right)
    progress.keep_solved(number)
    progress.keep_opened(number)
    for one in (progress, Progress.read(path)):
        assert one.answer(number) == text
        assert one.choice(number) == (text, right)
        assert one.solved(number)
        assert one.last == number


def test_solved_stays_solved_whatever_is_written_later(path: Path) -> None:
    progress = Progress.read(path)
    progress.keep_solved(5)
    progress.keep_answer(5, "worse")
    progress.keep_choice(5, "a", False)
    assert Progress.read(path).solved(5)


def test_two_that_were_read_at_once_lose_nothing_of_each_other(path: Path) -> None:
    one, other = Progress.read(path), Progress.read(path)
    one.keep_answer(1, "mine")
    other.keep_solved(2)
    other.keep_choice(1, "b", True)
    kept = Progress.read(path)
    assert (kept.answer(1), kept.solved(2), kept.choice(1)) == ("mine", True, ("b", True))
    assert other.answer(1) == "mine"


def test_processes_and_threads_at_once(path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(first)]) for first in (100, 200)]
    threads = [Thread(target=lambda n=n: Progress.read(path).keep_solved(n)) for n in range(300, 312)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait(60) for child in children] == [0, 0]
    kept = Progress.read(path)
    assert all(kept.solved(number) for number in [*range(100, 110), *range(200, 210), *range(300, 312)])
    assert not list(path.parent.glob("*.tmp"))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b'{"chapters": []}', b'{"chapters": {"1": 3}}', b"[" * 100_000],
)
def test_a_broken_file_is_set_aside_and_said(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    progress = Progress.read(path)
    aside = path.with_name("course.broken-1.json")
    assert aside.read_bytes() == content
    assert progress.trouble == f"progress: {path} could not be read, and is kept as course.broken-1.json; begun anew"
    progress.keep_solved(3)
    assert Progress.read(path).solved(3)
    assert Progress.read(path).trouble == ""


def test_a_second_broken_file_does_not_take_the_place_of_the_first(path: Path) -> None:
    path.parent.mkdir()
    for content in ("one", "two"):
        path.write_text(content)
        Progress.read(path)
    assert [path.with_name(f"course.broken-{n}.json").read_text() for n in (1, 2)] == ["one", "two"]


def test_broken_while_it_was_open(path: Path) -> None:
    progress = Progress.read(path)
    progress.keep_solved(1)
    path.write_text("cut o")
    progress.keep_solved(2)
    assert path.with_name("course.broken-1.json").read_text() == "cut o"
    assert Progress.read(path).solved(2)
    assert "begun anew" in progress.trouble


def test_what_a_later_version_added_is_carried_on(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps({"chapters": {"1": {"stars": 4}}, "colour": "red"}))
    Progress.read(path).keep_solved(1)
    assert json.loads(path.read_text()) == {"chapters": {"1": {"stars": 4, "solved": True}}, "colour": "red"}


def test_values_of_another_kind_are_no_values(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps({"chapters": {"1": {"solved": "yes", "answer": 3, "choice": []}}, "last": "x"}))
    progress = Progress.read(path)
    assert (progress.solved(1), progress.answer(1), progress.choice(1), progress.last) == (False, None, None, None)


def test_where_nothing_can_be_written_the_reader_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    progress = Progress.read(tmp_path / "file" / "course.json")
    progress.keep_solved(1)
    assert progress.solved(1)
    assert "cannot be written" in progress.trouble
    assert progress.trouble.endswith("set REGARD_DATA to a folder")


def test_a_failed_write_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress.read(path)
    progress.keep_solved(1)
    before = path.read_bytes()

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    progress.keep_solved(2)
    assert path.read_bytes() == before
    assert "No space left on device" in progress.trouble
    assert not list(path.parent.glob("*.tmp"))


def test_forgetting(path: Path) -> None:
    progress = Progress.read(path)
    progress.keep_solved(1)
    progress.forget()
    assert not progress.solved(1)
    assert not path.exists()
    progress.forget()
    progress.keep_solved(2)
    assert not Progress.read(path).solved(1)


def test_an_answer_is_cut_at_some_length(path: Path) -> None:
    Progress.read(path).keep_answer(1, "x" * (LONGEST + 9))
    assert len(Progress.read(path).answer(1) or "") == LONGEST


def test_the_same_again_writes_nothing(path: Path) -> None:
    progress = Progress.read(path)
    progress.keep_answer(1, "a")
    before = path.stat().st_mtime_ns, path.stat().st_ino
    progress.keep_answer(1, "a")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine"
    assert Progress.read().path == tmp_path / "mine" / "course.json"
    if sys.platform.startswith("linux"):
        monkeypatch.delenv("REGARD_DATA")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
        assert data_folder() == tmp_path / "xdg" / "regard"
        monkeypatch.delenv("XDG_DATA_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert data_folder() == tmp_path / ".local" / "share" / "regard"
