"""The implementations under tests/diagnosis/targets: right, of other formulas, broken, misbehaving."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent / "diagnosis" / "targets"
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
