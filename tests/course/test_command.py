"""`regard learn`: what it says to wrong wishes, and what it does with right ones."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='pip install "regard[cli]"')
pytest.importorskip("marimo", reason='pip install "regard[learn]"')

from typer.testing import CliRunner

from regard.algebra.errors import CallError, MissingExtra
from regard.cli import app
from regard.course import command
from regard.course.command import Wanted, editing, forget, list_chapters
from regard.course.contents import CHAPTERS
from regard.course.progress import Progress
from small_course import BROKEN, small_course


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "kept"))
    return tmp_path / "kept" / "course.json"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was served or run."""
    found: list[Any] = []
    monkeypatch.setattr("regard.viewer.server.run.serve_site", lambda site_of, **told: found.append(told))
    monkeypatch.setattr(command, "_run_marimo", found.append)
    return found


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The course is that of two tiny chapters."""
    folder = tmp_path / "ours"
    folder.mkdir()
    chapters = small_course(folder)
    monkeypatch.setattr(command, "CHAPTERS", chapters)
    monkeypatch.setattr(command, "find_chapter", lambda asked: chapters[int(asked) - 1])
    return folder


def learn(*words: str, answer: str | None = None) -> Any:
    return CliRunner().invoke(app, ["learn", *words], input=answer)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("wieght", r"chapter: a number from 1 to 15, or a name among pixel, .*; got 'wieght'; did you mean 'weight'\?"),
        ("99", "chapter: a number from 1 to 15.*got '99'"),
        ("0", "chapter: a number from 1 to 15.*got '0'"),
        ("''", "chapter: a number from 1 to 15.*got ''"),
        ("5.5", "chapter: a number from 1 to 15.*got '5.5'"),
        ("--edit x --html y", "learn: one thing to do; got --edit and --html; leave out all but one"),
        ("--list --forget", "learn: one thing to do; got --list and --forget"),
        ("--copy-only", "--copy-only: with --edit DIR; got it without; name the folder"),
        ("--yes", "--yes: with --forget; got it without; leave it out"),
        ("5 --list", "CHAPTER: to open, edit or export; got '5' with --list; leave it out"),
        ("5 --forget", "CHAPTER: to open, edit or export; got '5' with --forget; leave it out"),
        ("--html x --port 8000", "--port: of a server; got it with --html, which starts none"),
        ("--edit x --copy-only --port 8000", "--port: of a server; got it with --copy-only, which starts none"),
        ("5 --port 70000", "port: from 1 to 65535; got 70000"),
    ],
)
def test_wrong_wishes_are_answered_in_a_sentence(words: str, says: str) -> None:
    result = learn(*shlex.split(words))
    assert isinstance(result.exception, CallError)
    assert re.search(says, str(result.exception))


@pytest.mark.parametrize("words", ["--html", "--edit", "5 6", "--port x", "--colour"])
def test_words_that_are_no_options(words: str) -> None:
    assert learn(*words.split()).exit_code == 2


@pytest.mark.parametrize(
    ("words", "path"), [("", "/"), ("5", "/5/"), ("weight", "/5/"), ("Weight", "/5/"), ("05", "/5/"), ("15", "/15/")]
)
def test_a_chapter_is_opened_by_number_or_name(done: list[Any], words: str, path: str) -> None:
    assert learn(*words.split(), "--no-browser", "--port", "8123").exit_code == 0
    (told,) = done
    assert (told["path"], told["port"], told["browser"], told["sockets"]) == (path, 8123, False, True)


def test_trouble_with_progress_is_said_first(done: list[Any], kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_text("broken")
    assert "could not be read, and is kept as course.broken-1.json" in learn().output
    assert done


def test_the_list(kept: Path) -> None:
    Progress.read().keep_solved(5)
    lines = learn("--list").output.splitlines()
    assert len(lines) == len(CHAPTERS)
    assert lines[4].split() == ["5", "weight", "solved", "From", "score", "to", "weight"]
    assert "solved" not in lines[3]
    list_chapters(lambda text: None, (), Progress.read())


def test_forgetting_asks_first(kept: Path) -> None:
    assert learn("--forget").output == "nothing is kept yet\n"
    Progress.read().keep_solved(5)
    assert "nothing was deleted" in learn("--forget", answer="n\n").output
    assert "nothing was deleted" in learn("--forget", answer="\n").output
    assert Progress.read().solved(5)
    asked = learn("--forget", answer="y\n").output
    assert "Delete your answers and marks" in asked
    assert "begun anew" in asked
    assert not kept.exists()
    Progress.read().keep_solved(5)
    assert learn("--forget", "--yes").output == "begun anew\n"
    assert not Progress.read().solved(5)


def test_forgetting_where_nobody_can_be_asked(kept: Path) -> None:
    Progress.read().keep_solved(5)

    def nobody(_question: str) -> str:
        raise EOFError

    with pytest.raises(CallError, match="--forget: a yes, or --yes where nobody can be asked; got neither"):
        forget(lambda text: None, nobody, yes=False)
    assert Progress.read().solved(5)


def test_copies_are_made_and_edited(small: Path, done: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "my course"
    said = learn("--edit", str(folder)).output
    assert f"copied: 2 notebooks in {folder}" in said
    assert f"to open one: marimo edit '{folder}/c01_first.py'" in said
    assert done == [editing(folder, port=None, browser=True)]
    (folder / "c02_second.py").write_text("mine")
    said = learn("--edit", str(folder), "2", "--no-browser", "--port", "8123").output
    assert f"kept, since you changed it: {folder / 'c02_second.py'}" in said
    assert done[1] == editing(folder / "c02_second.py", port=8123, browser=False)
    assert learn("--edit", str(folder), "--copy-only").exit_code == 0
    assert len(done) == 2


def test_marimo_edits_on_this_machine_alone() -> None:
    asked = editing(Path("x"), port=8123, browser=False)
    assert asked[:3] == [sys.executable, "-m", "marimo"]
    assert " ".join(asked[3:]) == (
        "--yes edit x --host 127.0.0.1 --token --skip-update-check --no-sandbox --port 8123 --headless"
    )


def test_pages_are_written(small: Path, tmp_path: Path) -> None:
    said = learn("--html", str(tmp_path / "out")).output
    assert "3 pages in" in said
    assert (tmp_path / "out" / "index.html").is_file()


def test_a_chapter_that_fails_ends_in_an_error(small: Path, tmp_path: Path) -> None:
    (small / "c02_second.py").write_text(BROKEN)
    result = learn("--html", str(tmp_path / "out"))
    assert result.exit_code != 0
    assert "c02_second.py: cell 2 (broken), line 15: ZeroDivisionError" in str(result.exception)


@pytest.mark.parametrize("words", [[], ["--html", "x"], ["--edit", "x"]])
def test_what_is_not_installed_is_named(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "marimo" else object())
    result = learn(*words)
    assert isinstance(result.exception, MissingExtra)
    assert str(result.exception) == 'this needs marimo, which is not installed: pip install "regard[learn]"'


def test_marimo_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CallError, match="marimo: a server that ends well; got 3"):
        command._run_marimo([sys.executable, "-c", "raise SystemExit(3)"])
    command._run_marimo([sys.executable, "-c", ""])
    assert Wanted().chapters() == CHAPTERS
