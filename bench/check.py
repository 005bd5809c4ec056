"""How long `regard check` takes, from the command to the report, and how it does on the implementations of the tests.

    python bench/check.py              prints a table and keeps bench/results/check.json

Each target is checked by the command in a process of its own, with the child process in which it runs: the median of
three. Then every implementation under tests/diagnosis/targets is checked once in this process, for the share that is
passed, recognised or named as it should be.
"""

from __future__ import annotations

import ast
import importlib.util
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from machine import keep

GOAL_SECONDS = 10
ROUNDS = 3
TARGETS = Path(__file__).parent.parent / "tests" / "diagnosis" / "targets"
TIMED = {
    "NumPy function, right": "right/numpy_functions.py:scaled_dot_product_attention",
    "PyTorch function, right": "right/torch_functions.py:attention",
    "PyTorch function, one bug": "broken/scale.py:dot_product_attention",
    "PyTorch function, fits nothing": "unlisted.py:sdpa",
    "PyTorch module, right": "right/modules_gpt.py:MultiHeadAttention",
    "PyTorch module, two bugs": "broken/two.py:CausalSelfAttention",
    "JAX function, right": "right/jax_functions.py:dot_product_attention",
}


def names(path: Path) -> list[str]:
    """The public functions and classes of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def seconds(place: str) -> float:
    """From the command to its end."""
    command = [sys.executable, "-m", "regard", "check", str(TARGETS / place)]
    runs = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True)
        runs.append(time.perf_counter() - began)
    return statistics.median(runs)


def loaded(path: Path) -> ModuleType:
    """A file of targets, as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_it_should(module: ModuleType, name: str) -> bool:
    """Right ones pass, other formulas are recognised, broken ones are named and nothing else is an error."""
    from regard import check

    report = check(getattr(module, name), limits=None, **getattr(module, "OPTIONS", {}).get(name, {}))
    errors = {finding.name for finding in report.errors}
    if not hasattr(module, "BUGS"):
        return not errors and bool(report.recognised) == bool(getattr(module, "FORMULAS", {}).get(name))
    wanted = set(module.BUGS[name])
    if not wanted:
        return "fits nothing in the catalogue" in errors
    return wanted <= {finding.name for finding in report.findings} and errors <= wanted


def corpus() -> dict[str, Any]:
    """How many of each kind come out as they should."""
    warnings.simplefilter("ignore")
    rows = {}
    for kind in ("right", "other", "broken"):
        cases = [(loaded(path), name) for path in sorted((TARGETS / kind).glob("*.py")) for name in names(path)]
        done = [as_it_should(module, name) for module, name in cases]
        rows[kind] = {"targets": len(done), "as they should": sum(done)}
    return rows


def main() -> None:
    """Time the command, run the corpus, print, keep."""
    rows = {what: seconds(place) for what, place in TIMED.items()}
    for what, took in rows.items():
        print(f"{what:34} {took:6.1f} s")
    kinds = corpus()
    for kind, row in kinds.items():
        print(f"{kind:10} {row['as they should']} of {row['targets']}")
    slowest = max(rows.values())
    print(f"slowest {slowest:.1f} s; goal: under {GOAL_SECONDS} s")
    measured = {"goal_seconds": GOAL_SECONDS, "slowest": slowest, "seconds": rows, "corpus": kinds}
    keep("check", "seconds", measured, "regard", "numpy", "torch", "jax")


if __name__ == "__main__":
    main()
