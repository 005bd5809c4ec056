"""Tables: every number comes back as it was, and what will come again is taken back."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.train.folder import Folder
from regard.train.learner import Taken
from regard.train.watchers.base import Measured
from regard.train.watchers.tables import STEPS, Tables, columns_of, rows_until


def watched(path: Path, step: int) -> Tables:
    """Tables of a run that is at a step."""
    run: Any = SimpleNamespace(folder=Folder(path), learner=SimpleNamespace(step=step))
    tables = Tables()
    tables.began(run)
    return tables


def learned(tables: Tables, steps: range, *, every: int = 3, scale: float = 1.0) -> None:
    for step in steps:
        tables.stepped(Taken(step, scale * math.exp(-step), 0.1, 1 / (step + 1), 7), step / 3)
        if (step + 1) % every == 0:
            tables.measured(Measured(step + 1, {"loss": scale / (step + 1), "exact": 0.5}, step / 3))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_come_back_exactly(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    path = tmp_path_factory.mktemp("run")
    tables = watched(path, 0)
    for step, number in enumerate(numbers):
        tables.stepped(Taken(step, number, -number, number / 3, 7), 0.5)
    tables.closed()
    found = columns_of(path / "metrics.csv")
    assert tuple(found) == STEPS
    assert (found["loss"], found["rate"]) == (numbers, [number / 3 for number in numbers])
    assert found["step"] == list(range(len(numbers)))


@pytest.mark.parametrize("step", range(8))
def test_what_came_after_the_checkpoint_is_taken_back(step: int, tmp_path: Path) -> None:
    """Rows of a run that stood at 7 and goes on at s: those up to s stay, all others are written once."""
    tables = watched(tmp_path, 0)
    learned(tables, range(7))
    tables.closed()
    tables = watched(tmp_path, step)
    learned(tables, range(step, 10), scale=2.0)
    tables.closed()
    steps, held_out = columns_of(tmp_path / "metrics.csv"), columns_of(tmp_path / "held_out.csv")
    assert steps["step"] == list(range(10))
    assert held_out["step"] == [3, 6, 9]
    scales = [loss / math.exp(-at) for at, loss in enumerate(steps["loss"])]
    assert scales == pytest.approx([1.0] * step + [2.0] * (10 - step))
    assert [at * loss for at, loss in zip(held_out["step"], held_out["loss"], strict=True)] == pytest.approx(
        [1.0 if at <= step else 2.0 for at in (3, 6, 9)]
    )


@pytest.mark.parametrize("left", ["", "s", "step,loss", "step,loss\n", "step,loss\n0,1.5", "step,loss\n0,1.5\n1"])
def test_half_a_table(left: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(left, encoding="utf-8")
    whole = [line.split(",") for line in left.split("\n")[:-1]]
    assert rows_until(tmp_path / "table.csv", 5) == whole


def test_rows_are_on_the_disk_at_once(tmp_path: Path) -> None:
    """A process that is killed leaves them."""
    tables = watched(tmp_path, 0)
    learned(tables, range(3))
    assert columns_of(tmp_path / "metrics.csv")["step"] == [0, 1, 2]
    assert columns_of(tmp_path / "held_out.csv")["step"] == [3]
    tables.closed()
    assert tables.open == []
