"""How far a reader has come: chapters opened, exercises solved, answers as they were written, choices in the quizzes.

    progress = Progress.read()
    progress.keep_answer(5, "def weights(...): ...");  progress.keep_solved(5);  progress.solved(5)      # True

One JSON file, `course.json`, in REGARD_DATA, or where the system keeps the data of programs: XDG_DATA_HOME/regard
(usually ~/.local/share/regard), ~/Library/Application Support/regard, %LOCALAPPDATA%\\regard. It stays on the machine.

Each change reads the file anew under a lock, and replaces it whole: two windows, or two processes, lose nothing of each
other. A file that cannot be read is set aside under another name, and `trouble` says so; where nothing can be written,
the reader goes on, and `trouble` says that too.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

Kept: TypeAlias = dict[str, Any]
LONGEST = 100_000  # characters of an answer


class Progress:
    """What is kept of one reader: read once, and again with each change."""

    def __init__(self, path: Path, kept: Kept | None = None, trouble: str = "") -> None:
        self.path, self.kept, self.trouble = path, kept if kept is not None else _nothing(), trouble

    @classmethod
    def read(cls, path: Path | None = None) -> Progress:
        """As the file has it; with nothing where there is none."""
        progress = cls(path or place())
        try:
            progress.kept = _read(progress.path)
        except _Broken:
            progress._change(lambda kept: None)  # sets it aside, while nobody else does
        except OSError as error:
            progress.trouble = f"progress: a file that can be read; got {progress.path} ({error.strerror})"
        return progress

    # -- what was done -----------------------------------------------------------------------------------------

    def solved(self, number: int) -> bool:
        """Whether the exercise of a chapter was solved once."""
        return self._of(number).get("solved") is True

    def answer(self, number: int) -> str | None:
        """What was written last as an answer to the exercise."""
        text = self._of(number).get("answer")
        return text if isinstance(text, str) else None

    def choice(self, number: int) -> tuple[str, bool] | None:
        """What was chosen last in the quiz, and whether it is right."""
        chosen = self._of(number).get("choice")
        return (chosen, self._of(number).get("right") is True) if isinstance(chosen, str) else None

    def opened(self, number: int) -> bool:
        """Whether a chapter was opened."""
        return bool(self._of(number))

    @property
    def last(self) -> int | None:
        """The chapter that was opened last."""
        last = self.kept.get("last")
        return last if isinstance(last, int) else None

    # -- what is being done ------------------------------------------------------------------------------------

    def keep_opened(self, number: int) -> None:
        """This is the chapter to go on with."""

        def change(kept: Kept) -> None:
            kept["last"] = number
            _entry(kept, number).setdefault("opened", True)

        self._change(change)

    def keep_answer(self, number: int, text: str) -> None:
        """An answer as it stands, solved or not."""
        self._put(number, answer=text[:LONGEST])

    def keep_solved(self, number: int) -> None:
        """The exercise is solved; it stays so whatever is written later."""
        self._put(number, solved=True)

    def keep_choice(self, number: int, choice: str, right: bool) -> None:
        """A choice in the quiz."""
        self._put(number, choice=choice, right=bool(right))

    def forget(self) -> None:
        """Begin anew: the file is deleted, and what was set aside stays."""
        with suppress(OSError), _alone(self.path):
            self.path.unlink(missing_ok=True)
        self.kept = _nothing()
        if self.path.exists():
            self.trouble = f"progress: a file that can be deleted; got {self.path}, which cannot"

    # -- the file ----------------------------------------------------------------------------------------------

    def _of(self, number: int) -> Kept:
        found: Kept = self.kept["chapters"].get(str(number), {})
        return found

    def _put(self, number: int, **told: Any) -> None:
        if any(self._of(number).get(name) != value for name, value in told.items()):
            self._change(lambda kept: _entry(kept, number).update(told))

    def _change(self, change: Callable[[Kept], None]) -> None:
        """Read, change and write while nobody else does; in memory, where nothing can be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.path):
                kept = self._read_or_set_aside()
                change(kept)
                _write(self.path, json.dumps(kept, ensure_ascii=False, indent=1))
                self.kept = kept
        except OSError as error:
            change(self.kept)
            reason = error.strerror or type(error).__name__
            self.trouble = (
                f"progress is not kept: {self.path} cannot be written ({reason}); set REGARD_DATA to a folder"
            )

    def _read_or_set_aside(self) -> Kept:
        """The file; where it is none of ours, or was cut off, it gets another name: somebody may still need it."""
        try:
            return _read(self.path)
        except _Broken:
            aside = next(path for path in _names_beside(self.path) if not path.exists())
            self.path.replace(aside)
            self.trouble = f"progress: {self.path} could not be read, and is kept as {aside.name}; begun anew"
            return _nothing()


def place() -> Path:
    """The file of this reader."""
    return data_folder() / "course.json"


def data_folder() -> Path:
    """Where regard keeps what readers made: REGARD_DATA, or the system's place for the data of programs."""
    if os.environ.get("REGARD_DATA"):
        return Path(os.environ["REGARD_DATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "regard"
    usual = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_DATA_HOME")
    return (Path(usual) if usual else Path.home() / ".local" / "share") / "regard"


# -- inside ----------------------------------------------------------------------------------------------------


def _nothing() -> Kept:
    return {"chapters": {}}


def _entry(kept: Kept, number: int) -> Kept:
    entry: Kept = kept["chapters"].setdefault(str(number), {})
    return entry


class _Broken(Exception):  # noqa: N818 - says what the file is
    """A file that is none of ours, or was cut off."""


def _read(path: Path) -> Kept:
    """The content of the file; what a later version added is carried on."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _nothing()
    except (ValueError, RecursionError):
        raise _Broken from None
    chapters = kept.get("chapters") if isinstance(kept, dict) else None
    if not isinstance(chapters, dict) or not all(isinstance(one, dict) for one in chapters.values()):
        raise _Broken
    fitting: Kept = kept
    return fitting


def _names_beside(path: Path) -> Iterator[Path]:
    count = 1
    while True:
        yield path.with_name(f"{path.stem}.broken-{count}{path.suffix}")
        count += 1


def _write(path: Path, text: str) -> None:
    """The whole file at once, on the disk before it takes the place of the other."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    finally:
        Path(beside).unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While it lasts, no other thread or process is here; where the file system has no locks, nothing is waited for."""
    with path.with_suffix(".lock").open("a+b") as file:
        with suppress(OSError):
            _lock(file.fileno())
        yield  # closing the file gives the lock back


def _lock(number: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(number, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX)
