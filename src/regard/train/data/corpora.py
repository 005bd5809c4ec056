"""A text to learn from: a file, all text files of a folder, or the reference that every Python carries.

    folder → files in the order of their paths → those that are UTF-8 → one text, a blank line between two files

Windows line ends become \\n. What is skipped is told in the notes: names that begin with a dot, files that are not
text, that cannot be read, or that repeat another file word by word (what is held out would be learned from there).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...algebra.errors import CallError, KindError
from .reference import reference

NAMED = 3  # files that a note or an error names; the rest is counted


@dataclass(frozen=True)
class Corpus:
    """A text, and where it comes from.

    text:   all of it, with \\n at the end of a line
    name:   short, for a title
    source: where it was found
    notes:  what was skipped, and why

    >>> corpus = Corpus("To be, or not to be", "hamlet")
    >>> corpus.require(20, "for windows of 19 characters")
    Traceback (most recent call last):
        ...
    regard.algebra.errors.CallError: corpus: at least 20 characters, for windows of 19 characters; got 19 in hamlet...
    """

    text: str = field(repr=False)
    name: str
    source: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.text)

    def require(self, needed: int, reason: str = "for the context and for what is held out") -> None:
        """Refuse a text of fewer characters."""
        if len(self.text) < needed:
            raise CallError(
                f"corpus: at least {needed} characters, {reason}; got {len(self.text)} in {self.source or self.name}; "
                "give more text, or take a shorter context"
            )


def read_text(source: str | os.PathLike[str] | None = None) -> Corpus:
    """The text of a file, of all text files of a folder and its folders, or (None) Python's language reference.

    >>> read_text().text[:32]
    'The "assert" statement\\n*********'
    """
    if source is None:
        text, notes = reference()
        return Corpus(text, "Python reference", "pydoc_data.topics", notes)
    if not isinstance(source, str | os.PathLike):
        raise KindError(f"source: the path of a file or of a folder, or None; got {type(source).__name__}")
    path = Path(source)
    return _of_folder(path) if path.is_dir() else _of_file(path)


def _of_file(path: Path) -> Corpus:
    text, problem = _read(path)
    if problem:
        raise CallError(f"source: a text in UTF-8; got {str(path)!r}, which {problem}; {_remedy(problem)}")
    return Corpus(text, path.name, str(path))


def _of_folder(folder: Path) -> Corpus:
    texts, skipped = dict[str, str](), dict[str, str]()  # the name of each text; the problem of each other file
    for name, path, closed in _files(folder):
        text, problem = ("", closed) if closed else _read(path)
        if problem or text in texts:
            skipped[name] = problem or f"repeats {texts[text]}"
        elif text.strip():
            texts[text] = name
    if not texts:
        found = _named(skipped) if skipped else "none but empty or hidden files"
        raise CallError(f"source: a folder with at least one text in UTF-8; got {str(folder)!r} with {found}")
    whole = "\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)
    notes = (f"{len(skipped)} of {len(skipped) + len(texts)} files skipped: {_named(skipped)}",) if skipped else ()
    return Corpus(whole, folder.resolve().name, f"{len(texts)} files in {folder}", notes)


def _files(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Every file that is not hidden: its name inside the folder, its path, and why its folder is closed, if so."""
    found, closed = list[tuple[Path, str]](), list[OSError]()
    for root, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [(Path(root, name), "") for name in files if not name.startswith(".")]
    for path, problem in sorted([*found, *((Path(error.filename), _because(error)) for error in closed)]):
        yield path.relative_to(folder).as_posix(), path, problem


def _read(path: Path) -> tuple[str, str]:
    """The text of a file, or '' and what is wrong with it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "", "is no plain file"  # a pipe would wait for ever
        return _decoded(path.read_bytes())
    except OSError as error:
        return "", _because(error)


def _decoded(data: bytes) -> tuple[str, str]:
    if b"\0" in data:
        return "", "holds zero bytes: it is binary, or text in UTF-16"
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"), ""
    except UnicodeDecodeError as error:
        return "", f"is not UTF-8: byte 0x{data[error.start]:02X} at {error.start}"


def _because(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"


def _remedy(problem: str) -> str:
    return "check its path and permissions" if "cannot be read" in problem else "save it as UTF-8, or give another"


def _named(skipped: dict[str, str]) -> str:
    """The first few, each with its problem, and how many more there are."""
    shown = [f"{name} {problem}" for name, problem in list(skipped.items())[:NAMED]]
    more = len(skipped) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)
