"""Where a run lives on the disk: everything that repeats it, and everything that came of it.

settings.json            what it was asked to do;  machine.json: versions and machine
data/                    what it learns from, as it is read;  vocabulary.json
checkpoint.safetensors   what a resumed run goes on from: parameters, moments, step
best.safetensors         the model that did best on what was held out;  model.safetensors: the last
metrics.csv              every step;  held_out.csv: every measurement;  tensorboard/: both
curve.png  samples/      to look at;  result.json: how it ended
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError
from .errors import TrainingError
from .settings import Settings


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
    def vocabulary(self) -> Path:
        return self / "vocabulary.json"

    @property
    def data(self) -> Path:
        return self / "data"

    @property
    def result(self) -> Path:
        return self / "result.json"

    @property
    def holds_run(self) -> bool:
        """Whether a run began here."""
        return self.settings.is_file()

    def check_free(self) -> None:
        """Refuse a place where something stands."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            go_on = f"go on with it: regard train resume {self}" if self.holds_run else "name another"
            what = "a run" if self.holds_run else "a file" if not self.path.is_dir() else "other files"
            raise CallError(f"out: a folder that is empty or not there; got {str(self)!r}, which holds {what}; {go_on}")

    def begin(self) -> None:
        """Make it, where nothing stands in the way."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)

    def read_settings(self) -> Settings:
        """What the run was asked to do."""
        if not self.holds_run:
            raise CallError(f"folder: one that holds a run, with a settings.json; got {str(self)!r}")
        return Settings.of(read_json(self.settings))

    def tidy(self) -> None:
        """Take away what a process that was ended left half written."""
        for left in self.path.glob(".*.tmp"):
            left.unlink(missing_ok=True)


def usual(task: str) -> Path:
    """Where a run goes when nobody says: runs/text-20260131-235959."""
    return Path("runs") / f"{task}-{datetime.now():%Y%m%d-%H%M%S}"


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
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
