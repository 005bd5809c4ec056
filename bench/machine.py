"""What every measurement says of itself: versions, machine, and times taken in turns."""

from __future__ import annotations

import importlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def described(*packages: str) -> dict[str, Any]:
    """The versions of packages and of the machine."""
    model = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    machine = {
        "python": platform.python_version(), "system": platform.system(), "processor": platform.machine(),
        "model": model, "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }  # fmt: skip
    return {"versions": {package: _version(package) for package in packages}, "machine": machine}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # read from a folder
        return getattr(importlib.import_module(package), "__version__", None)


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def in_turns(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median seconds of each; all are run once to warm up, then in turns, so that a slow minute hits all alike."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(run())
    return {name: statistics.median(found) for name, found in times.items()}


def timed(function: Callable[[], object]) -> Callable[[], float]:
    """A run that takes the time of `function`."""

    def run() -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    return run


def keep(name: str, part: str, found: Any, *packages: str) -> None:
    """Write one part of a result beside the others, with what the machine was."""
    path = RESULTS / f"{name}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept[part] = {**described(*packages), **found}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
