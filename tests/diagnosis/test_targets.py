"""Implementations as people write them: right ones pass, other formulas are recognised, broken ones are named."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.diagnosis.checking import check
from regard.diagnosis.report import Report

FOLDER = Path(__file__).parent / "targets"
NEEDED = {"jax", "scipy", "torch"}


def targets(path: Path) -> list[str]:
    """The public functions, classes and partials that a file defines, without importing it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assigned = [
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
    ]
    return [name for name in (*named, *assigned) if not name.startswith("_") and not name.isupper()]


def cases(*folders: str) -> list[Any]:
    files = [path for folder in folders for path in sorted((FOLDER / folder).glob("*.py"))]
    return [pytest.param(path, name, id=f"{path.stem}-{name}") for path in files for name in targets(path)]


def loaded(path: Path) -> ModuleType:
    """The file as a module; skipped where a library that it needs is not installed."""
    name = f"targets_{path.parent.name}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    imports = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Import)]
    for library in {alias.name.partition(".")[0] for node in imports for alias in node.names} & NEEDED:
        pytest.importorskip(library, reason=f"pip install {library} to check implementations written in it")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    assert ENTRIES[wanted].title in report.recognised, str(report)


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
