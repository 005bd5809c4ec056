"""Implementations as people write them: right ones pass, other formulas are recognised, broken ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus import FOLDER, cases, loaded, targets
from regard.diagnosis.checking import check
from regard.diagnosis.report import Report


def checked(path: Path, name: str) -> Report:
    module = loaded(path)
    return check(getattr(module, name), limits=None, **getattr(module, "OPTIONS", {}).get(name, {}))


@pytest.mark.parametrize(("path", "name"), cases("right"))
def test_right_ones_pass(path: Path, name: str) -> None:
    report = checked(path, name)
    assert report.ok, str(report)
    assert not report.recognised, str(report)


@pytest.mark.parametrize(("path", "name"), cases("other"))
def test_other_formulas_are_recognised(path: Path, name: str) -> None:
    from regard.zoo import ENTRIES

    report = checked(path, name)
    wanted = loaded(path).FORMULAS[name]
    assert report.ok, str(report)
    assert report.recognised.startswith(ENTRIES[wanted].title if wanted else ""), str(report)


@pytest.mark.parametrize(("path", "name"), cases("broken"))
def test_broken_ones_are_named(path: Path, name: str) -> None:
    report = checked(path, name)
    wanted = set(loaded(path).BUGS[name])
    found = {finding.name for finding in report.findings}
    assert wanted <= found, str(report)
    assert {finding.name for finding in report.errors} <= wanted, str(report)


@pytest.mark.parametrize("name", targets(FOLDER / "unlisted.py"))
def test_what_fits_nothing_is_said_to(name: str) -> None:
    report = checked(FOLDER / "unlisted.py", name)
    assert "fits nothing in the catalogue" in [finding.name for finding in report.errors], str(report)
    assert not report.formula
