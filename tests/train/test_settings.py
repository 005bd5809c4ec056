"""Settings: options, values and JSON say the same."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.folder import Folder, write_json
from regard.train.options import USUAL, parameters, settings_of
from regard.train.settings import Learning, Settings, Shape, Watching, groups_of
from small_runs import TASKS, small

OTHERS: dict[str, Any] = {
    "source": "a/b", "tokens": "words:70", "context": 31, "noise": 0.25, "held_out": 0.3, "size": "32x24", "patch": 3,
    "colour": "grey", "augment": "none", "pool": "mean", "longest": 17, "dim": 33, "depth": 3, "heads": 11,
    "attention": "sigmoid(dot)", "position": "alibi", "style": "gpt", "dropout": 0.3, "table": ("a=2x3", "b=5"),
    "steps": 19, "batch": 13, "accumulate": 5, "rate": 0.125, "warmup": 7, "decay": 0.5, "clip": 3.0, "average": 0.75,
    "seed": 23, "device": "cuda:1", "precision": "bfloat16", "compiled": True, "threads": 3, "evaluate": 6, "save": 4,
    "sample": 29,
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_every_option_is_a_setting_and_comes_back_from_json(task: str, tmp_path: Path) -> None:
    names = {one.name for one in parameters(task)}
    given_ = {name: OTHERS[name] for name in names}
    settings = settings_of(task, given_)
    held = {part.name: getattr(group, part.name) for group in groups(settings) for part in fields(group)}
    assert held == given_
    assert Settings.of(json.loads(json.dumps(settings.plain()))) == settings
    write_json(tmp_path / "settings.json", settings.plain())
    assert Folder(tmp_path).read_settings() == settings


def groups(settings: Settings) -> list[Any]:
    return [getattr(settings, name) for name in groups_of(settings.task)]


@given(st.sampled_from(TASKS), st.sets(st.sampled_from(sorted(OTHERS))))
def test_what_is_not_given_is_usual(task: str, chosen: set[str]) -> None:
    usual = {one.name: one.default for one in parameters(task)}
    told = {name: OTHERS[name] for name in chosen & usual.keys() - {"heads", "dim", "warmup", "accumulate"}}
    settings = settings_of(task, told)
    held = {part.name: getattr(group, part.name) for group in groups(settings) for part in fields(group)}
    assert held == {**usual, **told}


@pytest.mark.parametrize("task", TASKS)
def test_the_usual_is_a_setting_of_the_task(task: str) -> None:
    assert USUAL[task].keys() <= {one.name for one in parameters(task)}
    assert settings_of(task, dict.fromkeys(USUAL[task])) == settings_of(task, {})
    for one in parameters(task):
        assert one.annotation[1].endswith("."), f"{one.name} is said in a sentence"


def test_a_run_before_it_says_what_is_not_given(tmp_path: Path) -> None:
    parent = small("text", tmp_path, style="gpt")
    found = settings_of("text", {"steps": 7}, parent)
    assert (found.data, found.shape) == (parent.data, parent.shape)
    assert found.learning == settings_of("text", {"steps": 7}).learning
    assert settings_of("text", {"dim": 16}, parent).shape.dim == 16


def test_names_that_no_one_knows() -> None:
    with pytest.raises(TypeError, match=r"^width: no setting of the task text$"):
        settings_of("text", {"width": 3})


def test_how_often_it_is_measured() -> None:
    assert [Watching().every(steps) for steps in (1, 9, 10, 1500)] == [1, 1, 1, 150]
    assert Watching(evaluate=7).every(1500) == 7


@pytest.mark.parametrize(
    ("kind", "given_", "says"),
    [
        (Shape, {"dim": 8, "heads": 3}, "heads: divides dim, 8; got 3"),
        (Learning, {"batch": 3, "accumulate": 4}, "accumulate: at most the batch, 3; got 4"),
        (Learning, {"steps": 3, "warmup": 4}, "warmup: at most the steps, 3; got 4; train longer, or warm up less"),
        (Watching, {"sample": -1}, "sample: an integer of at least 0; got -1"),
    ],
)
def test_refused(kind: Any, given_: dict[str, Any], says: str) -> None:
    with pytest.raises(CallError) as told:
        kind(**given_)
    assert str(told.value) == says


@pytest.mark.parametrize("value", [None, "8", 8.5, True, [8]])
def test_values_of_another_kind(value: Any) -> None:
    with pytest.raises(KindError, match=r"^shape: dim is int; got "):
        Settings.of({"task": "text", "shape": {"dim": value}})
