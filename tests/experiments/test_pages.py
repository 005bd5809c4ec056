"""docs/experiments.md is made of the outcomes that were measured, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.experiments.pages import markdown, table_of
from regard.experiments.record import Outcome, Table
from regard.experiments.registry import EXPERIMENTS, find
from regard.experiments.store import OUTCOMES

ROOT = Path(__file__).parents[2]
COMMAND = "python -m regard.experiments.pages docs"


def test_the_page_is_what_the_outcomes_say() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert page == markdown(OUTCOMES), f"the page is older than its outcomes: {COMMAND}"


def test_its_pictures_are_there() -> None:
    shown = [line.partition("](")[2].rstrip(")") for line in markdown(OUTCOMES).splitlines() if line.startswith("![")]
    assert shown
    assert not [name for name in shown if not (ROOT / "docs" / name).is_file()], COMMAND


def test_experiments_stand_in_the_order_of_the_registry() -> None:
    headings = [line.removeprefix("## ") for line in markdown(OUTCOMES).splitlines() if line.startswith("## ")]
    assert headings == list(EXPERIMENTS)


def test_one_that_was_not_measured_says_so(tmp_path: Path) -> None:
    found = Outcome("Two | are 3 × one.", Table(("heads", "right"), ((1, 0.5), (2, 1.0))), {"gain": 0.5})
    (tmp_path / "heads.json").write_text(found.json(), encoding="utf-8")
    page = markdown(tmp_path)
    assert "| 2 | 1 |" in page
    assert "Two \\| are 3 × one." in page
    missing = [name for name in EXPERIMENTS if f"Not measured yet: `regard experiment {name}`" in page]
    assert missing == [name for name in EXPERIMENTS if name != "heads"]
    assert all(find(name).asks in page for name in EXPERIMENTS)


@pytest.mark.parametrize("cell", ["a|b", "`code`", "*", "a*b", "_x_", "<b>"])
def test_signs_of_markdown_are_escaped(cell: str) -> None:
    (line,) = table_of(Table(("one",), ((cell,),))).splitlines()[2:]
    assert "\\" in line
    assert line.replace("\\", "") == f"| {cell} |"
