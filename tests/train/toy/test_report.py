"""Both lessons in a terminal and as a picture."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from regard import Attention, tanh
from regard.algebra.errors import CallError, MissingExtra
from regard.algebra.weights import each
from regard.train.toy import Task, learn, save, show
from regard.train.toy.report import OTHERS, _round

TASK = Task(guests=5, names=7)


def told(path: Path, *, color: str | None = None, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=color, force_terminal=color is not None)
    show(console, path, **{"steps": 7, "batch": 3, "task": TASK, **options})
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


# -- the terminal ----------------------------------------------------------------------------------------------


def test_the_report(tmp_path: Path) -> None:
    text, lesson = told(tmp_path / "toy.png"), learn(steps=7, batch=3, task=TASK)
    for step in (0, 1, 2, 5, 6):
        assert re.search(rf"^ {step} +{lesson.losses[step]:.12f} +{lesson.losses[step]:.12f} +\de", text, re.MULTILINE)
    assert re.search(r"Over all 7 steps the curves differ by at most \d\.\de-1\d of the loss", text)
    assert "Chance, where everyone is read alike: 0.800" in text
    assert all(re.search(rf"^ {name} +\d\.\d{{5}} ", text, re.MULTILINE) for name in OTHERS)
    assert text.endswith(f"Wrote {tmp_path / 'toy.png'}\n")


def test_one_weight_of_each_guest_is_marked(tmp_path: Path) -> None:
    text, lesson = told(tmp_path / "toy.png", others={}), learn(steps=7, batch=3, task=TASK)
    x, _, _, partner = (part[0] for part in lesson.new(1))
    marked = [
        float(weights[i, partner[i]])
        for weights in (lesson.weights(lesson.before, x), lesson.weights(lesson.after, x))
        for i in range(5)
    ]
    assert re.findall(r"\[(\d\.\d\d)\]", text) == [f"{weight:.2f}" for weight in marked]
    assert len(re.findall(r"^\w+ seeks \w+ ", text, re.MULTILINE)) == 10


def test_weights_are_shaded_and_colours_shown(tmp_path: Path) -> None:
    text, lesson = told(tmp_path / "toy.png", color="truecolor", others={}), learn(steps=7, batch=3, task=TASK)
    held = np.rint(255 * (lesson.new(1).x[0, :, TASK.parts["colour"]] + 1) / 2).astype(int)
    assert all(f"38;2;{red};{green};{blue}m████" in text for red, green, blue in held)
    assert len(set(re.findall(r"48;2;[\d;]+m", text))) > 5


def test_another_formula_is_named_and_compared(tmp_path: Path) -> None:
    text = told(tmp_path / "toy.png", attention=Attention(weight=each(tanh)), others={"softmax": Attention()})
    assert re.search(r"^ each\(tanh.*\) +\d", text, re.MULTILINE)
    assert re.search(r"^ softmax +\d", text, re.MULTILINE)


def test_a_formula_beside_that_runs_away_is_told(tmp_path: Path) -> None:
    steep = {"steep": Attention(weight=each(lambda s: s**3))}
    text = told(tmp_path / "toy.png", rate=2.0, steps=60, others=steep)
    assert re.search(r"^ steep +ran away", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("last", "steps"), [(0, [0]), (1, [0, 1]), (10, [0, 1, 2, 5, 10]), (99, [0, 1, 2, 5, 10, 20, 50, 99])]
)
def test_steps_in_the_table(last: int, steps: list[int]) -> None:
    assert _round(last) == steps


def test_without_pytorch_the_lesson_of_numpy_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "regard.train.toy.torch_lesson", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    text = told(tmp_path / "toy.png", others={})
    assert re.search(r"^ 0 +\d\.\d{12} +– +–", text, re.MULTILINE)
    words = " ".join(text.split())
    assert (
        'The lesson of PyTorch is left out: this needs torch, which is not installed: pip install "regard[tra' in words
    )
    assert (tmp_path / "toy.png").stat().st_size > 0


# -- the picture -----------------------------------------------------------------------------------------------


def test_the_picture_is_a_slide(tmp_path: Path) -> None:
    lesson = learn(steps=5, batch=3, task=TASK)
    path = save(lesson, lesson, tmp_path / "toy.png")
    with Image.open(path) as image:
        assert image.size == (1920, 1080)
        pixels = {colour for _, colour in image.convert("RGB").getcolors(2**20) or []}
    held = np.clip((lesson.new(1).x[0, :, TASK.parts["colour"]] + 1) / 2, 0, 1)
    for colour in held:  # every guest's own colour is there
        assert min(np.abs(np.array(pixel) - 255 * colour).max() for pixel in pixels) <= 1


def test_one_step_negative_weights_and_no_twin(tmp_path: Path) -> None:
    lesson = learn(Attention(weight=each(tanh)), steps=1, batch=2, task=Task(guests=2, names=2))
    assert (lesson.weights(lesson.before, lesson.new(9).x) < 0).any()
    assert save(lesson, None, tmp_path / "toy.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.train.toy.report.learn", None)  # it is known before the work begins
    with pytest.raises(CallError, match=r"out: a name that ends in \.png, .*; got 'toy\.doc'"):
        told(tmp_path / "toy.doc")
    with pytest.raises(CallError, match=r"out: in a folder that exists; got '.*nowhere.*'; make it first"):
        told(tmp_path / "nowhere" / "toy.png")


def test_a_lesson_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="steps: an integer of at least 1; got 0"):
        told(tmp_path / "toy.png", steps=0)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_one_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'this needs matplotlib, .*: pip install "regard\[train\]"'):
        told(tmp_path / "toy.png")
