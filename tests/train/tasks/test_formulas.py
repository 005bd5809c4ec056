"""Any formula learns: a handful of steps with each, on texts and on images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from regard.train.beginning import resume, start
from regard.train.tasks.parts import POSITIONS, STYLES
from small_runs import done, losses, small

FEW: dict[str, Any] = {"steps": 3, "evaluate": 3, "save": 3, "sample": 2}
TEXT: dict[str, dict[str, Any]] = {
    "sigmoid": {"attention": "sigmoid(dot / sqrt(d))"},
    "ReLU, shared": {"attention": "Attention(dot / sqrt(d), share(relu(s)))"},
    "ALiBi": {"attention": "softmax(dot / sqrt(d) - 2**(-8 * (h + 1) / H) * (i - j))", "position": "none"},
    "a window": {"attention": "softmax(dot / sqrt(d), mask=causal & (i - j < 3))"},
    "a table": {"attention": 'softmax(dot / sqrt(d) + table("bias")[h, i - j])', "table": ("bias=2x7",)},
    "a name": {"attention": "softmax(-sqdist / 2)"},
} | {position: {"position": position} for position in POSITIONS}
IMAGES: dict[str, dict[str, Any]] = {
    "cosine": {"attention": "softmax(4 * cosine)"},
    "both ways": {"attention": "softmax(dot / sqrt(d) - abs(i - j) / 3)"},
    "the mean": {"pool": "mean"},
} | {position: {"position": position} for position in POSITIONS}
CASES = [("text", name, given) for name, given in TEXT.items()] + [
    ("images", name, given) for name, given in IMAGES.items()
]


@pytest.mark.parametrize(
    ("task", "given"), [(task, given) for task, _, given in CASES], ids=[f"{t}: {n}" for t, n, _ in CASES]
)
def test_it_learns(task: str, given: dict[str, Any], tmp_path: Path) -> None:
    run = start(small(task, tmp_path, **FEW, **given), tmp_path / "run")
    before = {name: one.detach().clone() for name, one in run.learner.model.named_parameters()}
    found = losses(done(run))
    assert len(found) == 3
    assert all(map(math.isfinite, found))
    still = [name for name, one in run.learner.model.named_parameters() if one.equal(before[name])]
    assert still == [], "every parameter learns"
    again = resume(run.folder.path)
    assert again.learner.step == 3


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("position", POSITIONS)
def test_pairs_learn_too(position: str, style: str, tmp_path: Path) -> None:
    run = start(small("pairs", tmp_path, **FEW, position=position, style=style), tmp_path / "run")
    assert all(math.isfinite(run.learner.advance().loss) for _ in range(2))
