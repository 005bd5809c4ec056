"""Texts to learn from: all that is text is read, and what is not is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.algebra.errors import CallError, KindError
from regard.train.data import Corpus, read_text
from regard.train.data.reference import told_once

# -- the reference ---------------------------------------------------------------------------------------------


def test_reference_tells_nothing_twice() -> None:
    corpus = read_text()
    paragraphs = [" ".join(paragraph.split()) for paragraph in corpus.text.split("\n\n")]
    assert len(paragraphs) == len(set(paragraphs)) > 1500
    assert len(corpus) > 300_000
    assert (corpus.name, corpus.source) == ("Python reference", "pydoc_data.topics")
    assert corpus.notes[0].endswith("paragraphs left out: told before, in another topic")
    assert read_text() == corpus, "the same each time"


def test_reference_holds_every_topic_in_order() -> None:
    from pydoc_data.topics import topics

    text = read_text().text
    titles = [topics[name].strip().split("\n")[0] for name in sorted(topics)]
    places = [text.find(title) for title in titles]
    assert sum(place >= 0 for place in places) > 0.9 * len(places)
    assert text.startswith(titles[0])


SENTENCE = "An assignment evaluates the list on the right, and binds each of the targets on the left to what it gives."


@pytest.mark.parametrize(
    "again", [SENTENCE, f"   {SENTENCE}".replace(", ", ",\n  "), f"Note: {SENTENCE[:-20]}", "x = 1"]
)
def test_what_was_told_before_is_left_out(again: str) -> None:
    assert told_once([SENTENCE, "x = 1", again, "y = 2"]) == [SENTENCE, "x = 1", "y = 2"]


def test_what_is_mostly_new_is_kept() -> None:
    new = f"{SENTENCE} {SENTENCE[::-1]} That much is new, so it stays, with the little of it that was told before."
    assert told_once([SENTENCE, new]) == [SENTENCE, new]


# -- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["é\nb\n".encode(), b"\xef\xbb\xbf\xc3\xa9\r\nb\r\n", b"\xc3\xa9\rb\r"])
def test_a_file_is_its_text(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_bytes(data)
    corpus = read_text(str(tmp_path / "letters.txt"))
    assert corpus.text == "é\nb\n"
    assert (corpus.name, corpus.source, corpus.notes) == ("letters.txt", str(tmp_path / "letters.txt"), ())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            b"PK\x03\x04\x00",
            r"a text in UTF-8; got '.*f', which holds zero bytes: it is binary, or text in UTF-16; save",
        ),
        (b"a\x00b\x00", "holds zero bytes: it is binary, or text in UTF-16; save it as UTF-8, or give another"),
        (b"caf\xe9", r"'.*f', which is not UTF-8: byte 0xE9 at 3; save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_refused(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(CallError, match=text):
        read_text(tmp_path / "f")


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        CallError, match=r"source: a text .*'.*nowhere', which cannot be read: No such file.*; check its"
    ):
        read_text(tmp_path / "nowhere")
    with pytest.raises(KindError, match="source: the path of a file or of a folder, or None; got int"):
        read_text(3)  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CallError, match=r"'.*pipe', which is no plain file"):
        read_text(tmp_path / "pipe")


def forbid(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Who runs tests as root may read all; so the refusal is played."""
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)


def test_a_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "secret").write_text("s")
    forbid(monkeypatch, "secret")
    with pytest.raises(
        CallError, match=r"'.*secret', which cannot be read: Permission denied; check its path and perm"
    ):
        read_text(tmp_path / "secret")
    assert read_text(tmp_path).notes == ("1 of 2 files skipped: secret cannot be read: Permission denied",)


# -- folders ---------------------------------------------------------------------------------------------------


def fill(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_is_all_its_texts_in_order(tmp_path: Path) -> None:
    files = {
        "b.md": b"two\r\n",
        "a/z.txt": b"one",
        "c/d/e": b"three\n",
        "empty": b" \n",
        ".git/config": b"x",
        ".x": b"y",
    }
    corpus = read_text(fill(tmp_path / "texts", files))
    assert corpus.text == "one\n\ntwo\n\nthree\n"
    assert (corpus.name, corpus.source, corpus.notes) == ("texts", f"3 files in {tmp_path / 'texts'}", ())


def test_what_is_skipped_is_named_and_counted(tmp_path: Path) -> None:
    files = {"a": b"one\n", "b.png": b"\x89PNG\x00", "c": b"\xff", "d": b"one\r\n", "e.png": b"\0", "f.png": b"\0"}
    corpus = read_text(fill(tmp_path, files))
    assert corpus.text == "one\n"
    assert corpus.notes == (
        (
            "5 of 6 files skipped: b.png holds zero bytes: it is binary, or text in UTF-16; "
            "c is not UTF-8: byte 0xFF at 0; d repeats a; and 2 more"
        ),
    )


def test_links_that_lead_nowhere_or_back(tmp_path: Path) -> None:
    fill(tmp_path, {"a": b"one\n"})
    (tmp_path / "back").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    corpus = read_text(tmp_path)
    assert corpus.text == "one\n"
    assert corpus.notes == (
        "2 of 3 files skipped: gone cannot be read: No such file or directory; pipe is no plain file",
    )


def test_a_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a": b"one\n", "closed/b": b"two\n"})
    scan = os.scandir

    def refused(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    corpus = read_text(tmp_path)
    assert corpus.text == "one\n"
    assert corpus.notes == ("1 of 2 files skipped: closed cannot be read: Permission denied",)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "at least one text in UTF-8; got '.*' with none but empty or hidden files"),
        ({".a": b"x", "b": b""}, "with none but empty or hidden files"),
        (dict.fromkeys("abcde", b"\0"), "with a holds zero bytes: .*; b holds .*; c holds .*; and 2 more"),
    ],
)
def test_a_folder_without_texts_is_refused(files: dict[str, bytes], text: str, tmp_path: Path) -> None:
    with pytest.raises(CallError, match=text):
        read_text(fill(tmp_path, files))


# -- size, and cost --------------------------------------------------------------------------------------------


def test_a_text_that_is_too_short_is_refused() -> None:
    corpus = Corpus("x" * 19, "short", "short.txt")
    corpus.require(19)
    with pytest.raises(
        CallError, match=r"corpus: at least 20 characters, for the context .*; got 19 in short\.txt; give m"
    ):
        corpus.require(20)
    assert "xxx" not in repr(corpus), "a long text is not shown"


@pytest.mark.parametrize("name", ["read_text", "split", "vocabulary_of"])
def test_reading_needs_no_torch(name: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; from regard.train.data import {name}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None; from regard.train.data import TextBatches"
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'this needs torch, which is not installed: pip install "regard[train]"' in ended.stderr
