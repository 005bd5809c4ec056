"""Runs of seconds: a source of each task, settings of a model that hardly is one, and what is compared of two runs."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from regard.train.beginning import resume, start
from regard.train.folder import Folder
from regard.train.learner import Taken
from regard.train.options import settings_of
from regard.train.run import Run
from regard.train.settings import Settings
from regard.train.watchers.base import Watcher
from regard.train.watchers.tables import Tables

TASKS = ("text", "images", "pairs")
SHAPE: dict[str, Any] = {"dim": 8, "depth": 1, "heads": 2, "batch": 5, "rate": 0.01, "steps": 11, "threads": 1}
WATCHED: dict[str, Any] = {"evaluate": 4, "save": 3, "sample": 3}
OWN: dict[str, dict[str, Any]] = {
    "text": {"tokens": "characters", "context": 7, "noise": 0.2},
    "images": {"patch": 2, "augment": "flip"},
    "pairs": {"tokens": "characters", "evaluate": 7},
}


# -- what they learn from --------------------------------------------------------------------------------------


def text_file(folder: Path, count: int = 60, words: str = "attention reads what stands before it ") -> Path:
    """Words in any order: some thousand characters."""
    drawn, path = random.Random(0), folder / "words.txt"
    path.write_text(" ".join(drawn.choice(words.split()) for _ in range(count * 5)) + "\n", encoding="utf-8")
    return path


def image_file(folder: Path) -> Path:
    """Images of 6 × 4 in three classes."""
    drawn, path = np.random.default_rng(0), folder / "images.npz"
    pixels, labels = drawn.integers(0, 256, (37, 6, 4), dtype=np.uint8), np.arange(37) % 3
    np.savez(path, x_train=pixels[:29], y_train=labels[:29], x_test=pixels[29:], y_test=labels[29:])
    return path


def pair_file(folder: Path) -> Path:
    """Numbers, and the same backwards."""
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{n}\t{str(n)[::-1]}\n" for n in range(90, 127)), encoding="utf-8")
    return path


SOURCES = {"text": text_file, "images": image_file, "pairs": pair_file}


def small(task: str, folder: Path, **given: Any) -> Settings:
    """Settings of a run of the task on a source of its own, in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = given.pop("source", None) or str(SOURCES[task](folder))
    return settings_of(task, {"source": source, **SHAPE, **WATCHED, **OWN[task], **given})


# -- what becomes of them --------------------------------------------------------------------------------------


class Killed(BaseException):
    """An end that no one expects."""


class Ends(Watcher):
    """Ends a run when a step was taken, before anything else is done about it."""

    def __init__(self, step: int) -> None:
        self.step = step

    def stepped(self, taken: Taken, seconds: float) -> None:
        if taken.step == self.step:
            raise Killed


def done(run: Run, *watchers: Watcher) -> Folder:
    """A run to its end, with its tables."""
    run.go([Tables(), *watchers])
    return run.folder


def undisturbed(settings: Settings, path: Path) -> Folder:
    return done(start(settings, path))


def ended(settings: Settings, path: Path, *steps: int) -> Folder:
    """A run that is ended at each of the steps, and resumed."""
    make = lambda: start(settings, path)  # noqa: E731 - what comes first is another call
    for step in steps:
        try:
            done(make(), Ends(step))
        except Killed:
            make = lambda: resume(path)  # noqa: E731
    return done(make())


def rows(folder: Folder | Path) -> dict[str, list[list[str]]]:
    """Every number of a run but the seconds, as it was written."""
    path = folder.path if isinstance(folder, Folder) else folder
    found = {}
    for name in ("metrics.csv", "held_out.csv"):
        with (path / name).open(encoding="utf-8", newline="") as file:
            table = list(csv.reader(file))
        at = table[0].index("seconds")
        found[name] = [row[:at] + row[at + 1 :] for row in table]
    return found


def losses(folder: Folder | Path) -> list[float]:
    """The loss of every step."""
    return [float(row[1]) for row in rows(folder)["metrics.csv"][1:]]


# -- the command -----------------------------------------------------------------------------------------------


def words_of(settings: Settings) -> list[str]:
    """Settings as words of a command line."""
    told = settings.plain()
    parts = {name: value for group in told.values() if isinstance(group, dict) for name, value in group.items()}
    source = parts.pop("source")
    given = {name: value for name, value in parts.items() if value is not None and value is not False and value != ()}
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [told["task"], *([source] if source else []), *options]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "regard", "train", *words]


def said(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, to its end."""
    return subprocess.run(
        command(*words),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
