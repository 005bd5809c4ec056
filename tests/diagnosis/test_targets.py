"""Implementations as people write them: right ones pass, other formulas are recognised, broken ones are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus import FOLDER, loaded
from regard.zoo import ENTRIES

DRIVER = FOLDER.parent.parent / "check_targets.py"


def files(kind: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((FOLDER / kind).glob("*.py"))]


def reports(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every target of the file with what was said of it: found in another process, many times as fast as here."""
    loaded(path)  # skips where a library is missing
    done = subprocess.run([sys.executable, str(DRIVER), str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert found
    yield from found.items()


@pytest.mark.parametrize("path", files("right"))
def test_right_ones_pass(path: Path) -> None:
    for name, report in reports(path):
        assert report["ok"], f"{name}: {report['text']}"
        assert not report["recognised"], f"{name}: {report['text']}"


@pytest.mark.parametrize("path", files("other"))
def test_other_formulas_are_recognised(path: Path) -> None:
    for name, report in reports(path):
        wanted = loaded(path).FORMULAS[name]
        assert report["ok"], f"{name}: {report['text']}"
        assert report["recognised"].startswith(ENTRIES[wanted].title if wanted else ""), f"{name}: {report['text']}"


@pytest.mark.parametrize("path", files("broken"))
def test_broken_ones_are_named(path: Path) -> None:
    for name, report in reports(path):
        wanted = set(loaded(path).BUGS[name])
        assert wanted <= set(report["findings"]), f"{name}: {report['text']}"
        assert set(report["errors"]) <= wanted, f"{name}: {report['text']}"


def test_what_fits_nothing_is_said_to() -> None:
    for name, report in reports(FOLDER / "unlisted.py"):
        assert "fits nothing in the catalogue" in report["errors"], f"{name}: {report['text']}"
        assert not report["formula"], f"{name}: {report['text']}"
