"""The lenses that can be asked, by name: those that ship with the package, those given, and what the model looked at.

A gallery is opened when it is first asked. Of what the model looked at, the latest are kept: so many, and so many
bytes of them.
"""

from __future__ import annotations

import json
import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from threading import Lock
from typing import Any

from ...algebra.errors import RegardError
from ..answering.answers import Answers
from .refusals import Refusal

KEPT = 12  # looks of the live model
BYTES = 2 * 1024**3  # of all of them; the latest is kept, whatever it needs


@dataclass(eq=False)
class Entry:
    """One lens on the shelf; it may not have been opened yet."""

    id: str
    title: str
    kind: str  # "gallery", "given" or "live"
    open: Callable[[], Any]
    _answers: Answers | None = None
    _lock: Lock = field(default_factory=Lock)

    @property
    def answers(self) -> Answers:
        """Who answers questions about it; opened once, by whoever comes first."""
        with self._lock:
            if self._answers is None:
                try:
                    self._answers = Answers(self.open())
                except (RegardError, OSError):
                    logging.getLogger("regard").exception("lens %s cannot be opened", self.id)
                    reason = "lens: a whole one; got one that cannot be opened; the terminal says why"
                    raise Refusal(500, reason) from None
            return self._answers

    @property
    def lens(self) -> Any:
        """The lens itself."""
        return self.answers.lens

    @property
    def length(self) -> int:
        """The positions of its longest layer, once it is open."""
        opened = self._answers
        return 0 if opened is None else max((max(one.q.shape[-2], one.k.shape[-2]) for one in opened.lens), default=0)

    def told(self) -> dict[str, Any]:
        """As the page lists it."""
        return {"id": self.id, "title": self.title, "kind": self.kind, "live": self.kind == "live"}


class Shelf:
    """Lenses by name, in the order in which the page lists them: what was looked at last stands first."""

    def __init__(self, given: Iterable[Any] = (), shipped: Iterable[Entry] = ()) -> None:
        self._lock, self._count = Lock(), 0
        self._entries: dict[str, Entry] = {}
        for lens in given:
            self._add(lens, "given")
        self._entries.update((entry.id, entry) for entry in shipped)

    def __iter__(self) -> Iterator[Entry]:
        with self._lock:
            entries = list(self._entries.values())
        live = [entry for entry in entries if entry.kind == "live"]
        return iter([*reversed(live), *(entry for entry in entries if entry.kind != "live")])

    def __getitem__(self, name: str) -> Entry:
        found = self._entries.get(name)
        if found is None:
            raise Refusal(404, "lens: one of those that /lenses lists; got another, or one that was dropped")
        return found

    def look(self, lens: Any) -> Entry:
        """Keep what the live model has seen; the oldest of its looks make room."""
        entry = self._add(lens, "live")
        with self._lock:
            kept = [one for one in self._entries.values() if one.kind == "live"]
            while len(kept) > KEPT or (len(kept) > 1 and sum(bytes_of(one.lens) for one in kept) > BYTES):
                del self._entries[kept.pop(0).id]
        return entry

    def _add(self, lens: Any, kind: str) -> Entry:
        with self._lock:
            self._count += 1
            entry = Entry(f"{kind}-{self._count}", lens.title, kind, lambda: lens)
            self._entries[entry.id] = entry
        return entry


def bytes_of(lens: Any) -> int:
    """What a lens keeps in memory."""
    return int(lens.bytes)


# -- what ships with the package -------------------------------------------------------------------------------


def shipped(folder: Traversable | None = None) -> list[Entry]:
    """The gallery: every `name.lens` in it, a folder or one file; only their titles are read now."""
    place = folder or files("regard.viewer") / "gallery"
    if not place.is_dir():
        return []
    found = (Path(str(one)) for one in place.iterdir() if one.name.endswith((".lens", ".lens.zip")))
    return [_shipped(path) for path in sorted(found)]


def _shipped(path: Path) -> Entry:
    name = path.name.partition(".lens")[0]
    title = _title(path) or name
    return Entry(re.sub(r"[^a-z0-9-]", "-", name.lower()), title, "gallery", lambda: _opened(path))


def _title(path: Path) -> str:
    """What a lens says that it is, without opening it."""
    try:
        about = zipfile.Path(path, "lens.json") if path.suffix == ".zip" else path / "lens.json"
        return str(json.loads(about.read_text(encoding="utf-8"))["title"])
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile):
        return ""


def _opened(path: Path) -> Any:
    from ..lenses import Lens

    return Lens.open(path)
