"""Where a run lives on the disk: everything that repeats it, and everything that came of it.

settings.json            what it was asked to do;  machine.json: versions and machine
data/                    what it learns from, as it is read;  vocabulary.json;  first.safetensors: where it begins
SHA256SUMS               of these, so that a run never goes on from others: sha256sum -c says the same
checkpoint.safetensors   what a resumed run goes on from: parameters, moments, step
best.safetensors         the model that did best on what was held out;  model.safetensors: the last
metrics.csv              every step;  held_out.csv: every measurement;  tensorboard/: both
curve.png  samples/      to look at;  result.json: how it ended
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError
from .errors import TrainingError
from .settings import Settings

BEGINNING = ".beginning.tmp"  # stands in a folder until all that a run begins with does


class Folder:
    """A run's folder. Names are properties; nothing is made before it is written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __str__(self) -> str:
        return str(self.path)

    @property
    def settings(self) -> Path:
        return self / "settings.json"

    @property
    def checkpoint(self) -> Path:
        return self / "checkpoint.safetensors"

    @property
    def best(self) -> Path:
        return self / "best.safetensors"

    @property
    def model(self) -> Path:
        return self / "model.safetensors"

    @property
    def first(self) -> Path:
        return self / "first.safetensors"

    @property
    def vocabulary(self) -> Path:
        return self / "vocabulary.json"

    @property
    def data(self) -> Path:
        return self / "data"

    @property
    def result(self) -> Path:
        return self / "result.json"

    @property
    def sums(self) -> Path:
        return self / "SHA256SUMS"

    @property
    def diverged(self) -> Path:
        return self / "diverged.json"

    @property
    def holds_run(self) -> bool:
        """Whether a run began here."""
        return self.settings.is_file()

    @property
    def holds_beginning(self) -> bool:
        """Whether a run was ended here before it had begun."""
        return not self.holds_run and (self / BEGINNING).exists()

    # -- how it begins ------------------------------------------------------------------------------------------

    def check_free(self) -> None:
        """Refuse a place where something stands, other than what is left of a run that never began."""
        if self.holds_beginning:
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            go_on = f"go on with it: regard train resume {self}" if self.holds_run else "name another"
            what = "a run" if self.holds_run else "a file" if not self.path.is_dir() else "other files"
            raise CallError(f"out: a folder that is empty or not there; got {str(self)!r}, which holds {what}; {go_on}")

    def begin(self) -> None:
        """Make it, where nothing stands in the way."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)
        (self / BEGINNING).touch()

    def settle(self, settings: Settings) -> None:
        """All that the run begins with stands: from now on it can be resumed."""
        write_text(self.sums, "".join(f"{sum_of(path)}  {name}\n" for name, path in self._begun_with()))
        write_json(self.settings, settings.plain())
        self.tidy()

    def tidy(self) -> None:
        """Take away what a process that was ended left half written."""
        for left in self.path.rglob(".*.tmp"):
            left.unlink(missing_ok=True)

    # -- how it goes on -----------------------------------------------------------------------------------------

    def read_settings(self) -> Settings:
        """What the run was asked to do."""
        if not self.holds_run:
            ended = ", where one was ended before it began; start it again" if self.holds_beginning else ""
            raise CallError(f"folder: one that holds a run, with a settings.json; got {str(self)!r}{ended}")
        return Settings.of(read_json(self.settings))

    def check_unchanged(self) -> None:
        """Refuse data or a vocabulary that are not those the run began with."""
        told = read_sums(self.sums) if self.sums.exists() else {}
        for name, digest in told.items():
            if not (self / name).is_file() or sum_of(self / name) != digest:
                what = "was changed" if (self / name).is_file() else "is not there"
                raise TrainingError(
                    f"folder: with what the run began with; got {str(self / name)!r}, which {what}; "
                    "put it back, or start a new run"
                )

    def _begun_with(self) -> list[tuple[str, Path]]:
        files = [self.first, self.vocabulary, *sorted(self.data.iterdir())]
        return [(path.relative_to(self.path).as_posix(), path) for path in files if path.is_file()]


def usual(task: str) -> Path:
    """Where a run goes when nobody says: runs/text-20260131-235959."""
    return Path("runs") / f"{task}-{datetime.now():%Y%m%d-%H%M%S}"


def sum_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_sums(path: Path) -> dict[str, str]:
    """What `sha256sum` writes, by the name of the file."""
    pairs = (line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines() if "  " in line)
    return {name: digest for digest, name in pairs}


def read_json(path: Path) -> Any:
    """The content of a file of JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path}: JSON that can be read; got {error}") from None


def write_json(path: Path, content: Any) -> None:
    """A file of JSON, which replaces an older one when it is whole."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """A file of text, which replaces an older one when it is whole."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
