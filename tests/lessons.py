"""Runs that take no time: small data of every task, models of a few hundred parameters, and what is compared."""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.train.beginning import resume, start
from regard.train.options import settings_of
from regard.train.run import Run
from regard.train.settings import Settings
from regard.train.watchers.base import Watcher
from regard.train.watchers.tables import Tables

TASKS = ("text", "images", "pairs")
EVERY_TASK = pytest.mark.parametrize("task", TASKS)
SMALL: dict[str, Any] = {
    "dim": 8, "depth": 1, "heads": 2, "batch": 5, "steps": 11, "evaluate": 4, "sample": 0, "dropout": 0.1,
    "average": 0.9, "threads": 1,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "text": {"tokens": "characters", "context": 13, "noise": 0.2},
    "images": {"patch": 2},
    "pairs": {},
}


def words(count: int, seed: int = 0) -> str:
    """A text in which a little can be learned."""
    draw, known = random.Random(seed), "a score is the sum of a query and a key and a value".split()
    return " ".join(draw.choice(known) for _ in range(count)) + "\n"


def source_of(task: str, place: Path) -> Path:
    """Data of a task as a file."""
    draw = random.Random(3)
    if task == "text":
        path = place / "text.txt"
        path.write_text("\n".join(words(19, seed) for seed in range(31)), encoding="utf-8")
    elif task == "images":
        path = place / "images.npz"
        labels = np.arange(61) % 3
        pixels = np.random.default_rng(0).integers(0, 90, (61, 6, 4)) + 60 * labels[:, None, None]
        np.savez(path, images=pixels.astype(np.uint8), labels=labels)
    else:
        path = place / "pairs.tsv"
        sources = sorted({"".join(draw.choice("abcd") for _ in range(draw.randint(1, 5))) for _ in range(90)})
        path.write_text("".join(f"{text}\t{text[::-1].upper()}\n" for text in sources), encoding="utf-8")
    return path


def small(task: str, place: Path, **options: Any) -> Settings:
    """Settings of a run that takes no time."""
    given = {"source": str(source_of(task, place)), **SMALL, **OWN[task], **options}
    return settings_of(task, given)


def begun(task: str, place: Path, name: str = "run", **options: Any) -> Run:
    """A run in a folder of its own."""
    return start(small(task, place, **options), place / name)


def rows(folder: Path) -> dict[str, list[list[str]]]:
    """Every number of a run's tables but the seconds."""
    tables = {}
    for name in ("metrics.csv", "held_out.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            found = list(csv.reader(file))
        at = found[0].index("seconds") if found else 0
        tables[name] = [row[:at] + row[at + 1 :] for row in found]
    return tables


def losses(folder: Path) -> list[str]:
    """The loss of every step, as it was written."""
    return [row[1] for row in rows(folder)["metrics.csv"][1:]]


class Crash(BaseException):
    """The end of a process: nothing catches it."""


class Crashes(Watcher):
    """Ends the process at one thing that it is told: the number of steps that were taken then, or any."""

    def __init__(self, told: str, step: int | None = None) -> None:
        self.told, self.step = told, step

    def _at(self, told: str, step: int) -> None:
        if told == self.told and self.step in (None, step):
            raise Crash

    def stepped(self, taken: Any, seconds: float) -> None:
        self._at("stepped", taken.step + 1)

    def measured(self, measured: Any) -> None:
        self._at("measured", measured.step)

    def saving(self, step: int) -> None:
        self._at("saving", step)

    def saved(self, step: int) -> None:
        self._at("saved", step)

    def ended(self, result: dict[str, Any]) -> None:
        self._at("ended", result["steps"])


def go(run: Run, *watchers: Watcher) -> dict[str, Any]:
    """A run to its end, with its tables."""
    return run.go([Tables(), *watchers])


def crash(run: Run, told: str, step: int | None = None) -> None:
    """A run that ends at a moment."""
    with pytest.raises(Crash):
        go(run, Crashes(told, step))


def go_on(folder: Path, **options: Any) -> dict[str, Any]:
    """What a folder holds, to its end."""
    return go(resume(folder, **options))


def same(one: Path, other: Path) -> None:
    """Every row and every parameter is the same, bit for bit."""
    assert rows(one) == rows(other)
    for name in ("model.safetensors", "best.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def regard(capsys: Any, monkeypatch: pytest.MonkeyPatch, *words: Any) -> tuple[int, str, str]:
    """The command `regard` in this process: its status, and what it says on either stream."""
    from regard.cli import main

    monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "100")
    status: Any = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    said = capsys.readouterr()
    return status, said.out, said.err


def flags(**options: Any) -> Iterable[str]:
    """Options as words of a command line."""
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
