"""Which code a number depends on: read from the source alone, and never less than what runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.claims.keeping import MECHANISM
from regard.experiments import store

CACHED = (store.code_hash, store.source_hash, store.dependencies, store._imported, store._fetched)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small regard of its own."""
    monkeypatch.setattr(store, "SOURCE", tmp_path)
    forget()
    (tmp_path / "__init__.py").write_text("")
    yield tmp_path
    forget()


def forget() -> None:
    for function in CACHED:
        function.cache_clear()


def write(source: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    forget()


FORMS = (
    "from . import {0}",
    "from .{0} import name",
    "from regard import {0}",
    "from regard.{0} import name as other",
    "import regard.{0}",
    "def f():\n    from .{0} import name",
    "class C:\n    def f(self):\n        if True:\n            import regard.{0} as it",
    "try:\n    import torch\nexcept ImportError:\n    from . import {0}",
    "match 1:\n    case 1:\n        from . import {0}",
    "from importlib import import_module\nimport_module('.{0}', __package__)",
    "_NAMES = by_name({{'{0}': 'One two'}})",
)
NAMES = ("a", "b", "c", "d", "e")
edges = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(FORMS), st.sampled_from(NAMES)), max_size=8)


@given(edges=edges)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_it_is_what_can_be_reached(source: Path, edges: list[tuple[str, str, str]]) -> None:
    files = {f"{name}.py": [form.format(to) for one, form, to in edges if one == name] for name in NAMES}
    write(source, {name: "\n".join(lines) for name, lines in files.items()})
    reached = {"a"}
    for _ in NAMES:
        reached |= {to for one, _, to in edges if one in reached}
    assert store.dependencies("a") == reached | {""}


def test_packages_names_and_what_is_left_out(source: Path) -> None:
    write(source, {
        "__init__.py": "_NAMES = by_name({'other': 'one two'})\n__version__ = '0'",
        "rows/__init__.py": "from . import common",
        "rows/common.py": "",
        "rows/one.py": "from ..shapes import square\nfrom ..machine import run\nfrom .. import __version__",
        "rows/two.py": "",
        "shapes/__init__.py": "from .._lazy import by_name\n_NAMES = by_name({'plane': 'square circle'})",
        "shapes/plane.py": "import numpy\nfrom regardless import other",
        "shapes/solid.py": "",
        "machine.py": "from .rows import two",
        "_lazy.py": "",
        "other.py": "",
    })  # fmt: skip
    expected = {"", "rows", "rows.common", "rows.one", "shapes", "shapes.plane", "_lazy"}
    assert store.dependencies("rows.one", ("machine",)) == expected
    assert store.dependencies("rows.one") == expected | {"machine", "rows.two"}


def test_the_hash_changes_with_that_code_alone(source: Path) -> None:
    write(source, {"a.py": "def f():\n    from . import b", "b.py": "", "c.py": ""})
    before = store.code_hash("a")
    write(source, {"c.py": "1"})
    assert store.code_hash("a") == before
    changed = set()
    for name in ("a.py", "b.py", "__init__.py"):
        text = (source / name).read_text()
        write(source, {name: f"{text}\n# another line"})
        changed.add(store.code_hash("a"))
        write(source, {name: text})
    assert len(changed - {before}) == 3
    assert store.code_hash("a") == before


@pytest.mark.parametrize("package", store.PACKAGES)
def test_the_hash_changes_with_a_version(source: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    write(source, {"a.py": ""})
    before, version = store.code_hash("a"), store._version
    monkeypatch.setattr(store, "_version", lambda name: "99" if name == package else version(name))
    forget()
    assert store.code_hash("a") != before


def test_outcomes_are_kept_by_the_code_of_their_own_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(store, "code_hash", lambda module: asked.append(module) or "0" * 64)
    assert store.place("recall", store.Scale()).name == f"{'0' * 16}-1-0.json"
    assert asked == ["experiments.recall"]


RUNS = """
import sys
import regard.claims
before = set(sys.modules)
from regard.claims.registry import measured, LEDGER
import {module}
results = [measured(claim) for claim in LEDGER.claims.values() if claim.measure.__module__ == "{module}"]
assert results and all(result.passed or result.skipped for result in results), results
print(*(set(sys.modules) - before))
"""
TRAINS = """
import sys
before = set(sys.modules)
from regard.experiments import {name}
from regard.experiments.record import Scale, silent
{name}.EXPERIMENT.run(Scale(0.001), silent)
print(*(set(sys.modules) - before))
"""


def loaded(code: str) -> set[str]:
    """The modules of regard that a process loads."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    return {name.partition(".")[2] for name in names if name == "regard" or name.startswith("regard.")}


@pytest.mark.parametrize("rows", ["axes", "weights", "mistakes"])
def test_a_row_loads_nothing_that_is_not_in_its_hash(rows: str) -> None:
    module = f"claims.rows.{rows}"
    found = loaded(RUNS.format(module=f"regard.{module}"))
    assert module in found
    assert found <= store.dependencies(module, MECHANISM)


def test_an_experiment_loads_nothing_that_is_not_in_its_hash() -> None:
    found = loaded(TRAINS.format(name="toy"))
    assert "experiments.toy" in found
    assert found <= store.dependencies("experiments.toy")
