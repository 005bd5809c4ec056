"""Implementations as people write them: right ones pass, other formulas are recognised, broken ones are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpus import FOLDER, loaded, targets
from regard.zoo import ENTRIES


def files(kind: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((FOLDER / kind).glob("*.py"))]


def reports(checked: Any, path: Path) -> Any:
    """Every target of the file with what was said of it."""
    loaded(path)  # skips where a library is missing
    return checked("file", str(path), targets(path)).items()


@pytest.mark.slow
@pytest.mark.parametrize("path", files("right"))
def test_right_ones_pass(checked: Any, path: Path) -> None:
    for name, report in reports(checked, path):
        assert report["ok"], f"{name}: {report['text']}"
        assert not report["recognised"], f"{name}: {report['text']}"


@pytest.mark.slow
@pytest.mark.parametrize("path", files("other"))
def test_other_formulas_are_recognised(checked: Any, path: Path) -> None:
    for name, report in reports(checked, path):
        wanted = loaded(path).FORMULAS[name]
        assert report["ok"], f"{name}: {report['text']}"
        assert report["recognised"].startswith(ENTRIES[wanted].title if wanted else ""), f"{name}: {report['text']}"


@pytest.mark.slow
@pytest.mark.parametrize("path", files("broken"))
def test_broken_ones_are_named(checked: Any, path: Path) -> None:
    for name, report in reports(checked, path):
        wanted = set(loaded(path).BUGS[name])
        assert wanted <= set(report["findings"]), f"{name}: {report['text']}"
        assert set(report["errors"]) <= wanted, f"{name}: {report['text']}"


@pytest.mark.slow
@pytest.mark.parametrize("name", targets(FOLDER / "unlisted.py"))
def test_what_fits_nothing_is_said_to(checked: Any, name: str) -> None:
    loaded(FOLDER / "unlisted.py")
    report = checked("file", str(FOLDER / "unlisted.py"), [name])[name]
    assert "fits nothing in the catalogue" in report["errors"], report["text"]
    assert not report["formula"], report["text"]
