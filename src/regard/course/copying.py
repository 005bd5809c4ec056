"""The notebooks, copied for a reader to change.

    copied = copy_chapters(CHAPTERS, Path("my-course"))       # copied.made, copied.renewed, copied.kept, copied.same

A file that the reader changed is never written over. What was copied is remembered by its SHA-256 in
`.regard-course.json` beside the copies: a file that still has it, and is older than ours, is renewed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..algebra.errors import CallError
from .serving.front import ChapterLike

RECORD = ".regard-course.json"


@dataclass
class Copied:
    """What became of each file.

    made: there was none;  same: as ours already;  renewed: an older one of ours;  kept: changed by the reader
    """

    folder: Path
    made: list[Path] = field(default_factory=list)
    same: list[Path] = field(default_factory=list)
    renewed: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)


def copy_chapters(chapters: Sequence[ChapterLike], folder: Path) -> Copied:
    """Copy the notebooks of chapters into a folder, which is made where there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record, copied = _record(folder), Copied(folder)
        for chapter in chapters:
            _copy(chapter.file, folder / chapter.file.name, record, copied)
        _write(folder / RECORD, json.dumps(record, indent=1).encode())
    except (FileExistsError, NotADirectoryError):
        raise CallError(f"--edit: a folder; got {str(folder)!r}, which is a file; name another") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CallError(f"--edit: a folder that can be written; got {str(folder)!r}: {reason}") from None
    return copied


def _copy(source: Path, target: Path, record: dict[str, str], copied: Copied) -> None:
    ours = source.read_bytes()
    if target.is_symlink() or (target.exists() and not target.is_file()):
        copied.kept.append(target)
        return
    there = target.read_bytes() if target.exists() else None
    if there == ours:
        copied.same.append(target)
    elif there is None or _told(there) == record.get(target.name):
        _write(target, ours)
        (copied.made if there is None else copied.renewed).append(target)
    else:
        copied.kept.append(target)
        return
    record[target.name] = _told(ours)


def _record(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that was copied here; nothing, where that is not known."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {str(name): str(told) for name, told in found.items()}
    return {}


def _told(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """The whole file at once: an editor may have it open."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
