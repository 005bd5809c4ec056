"""A run that was ended at any moment and goes on writes what one that was not writes, bit for bit."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lessons import EVERY_TASK, Crash, begun, crash, go, go_on, losses, rows, same, small, source_of
from regard.algebra.errors import CallError, KindError
from regard.train.beginning import repeated, resume, start
from regard.train.errors import TrainingError
from regard.train.folder import read_json, write_json
from regard.train.options import settings_of

MOMENTS = [("stepped", 1), ("stepped", 7), ("measured", 4), ("saving", 8), ("saved", 8), ("saved", 11), ("ended", 11)]

# -- the same numbers ------------------------------------------------------------------------------------------


@EVERY_TASK
def test_the_same_seed_gives_the_same_numbers(task: str, tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        go(begun(task, tmp_path, name, seed=seed, steps=5))
    same(tmp_path / "one", tmp_path / "two")
    assert len(losses(tmp_path / "one")) == 5
    assert set(losses(tmp_path / "one")).isdisjoint(losses(tmp_path / "other"))


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_ended_at_any_moment_and_resumed(moment: tuple[str, int], whole: Path, tmp_path: Path) -> None:
    crash(begun("text", tmp_path), *moment)
    go_on(tmp_path / "run")
    same(whole, tmp_path / "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    place = tmp_path_factory.mktemp("whole")
    go(begun("text", place))
    return place / "run"


OPTIONS: list[dict[str, Any]] = [{"save": 3}, {"accumulate": 2, "save": 5}, {"average": 0.0, "dropout": 0.0}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@EVERY_TASK
def test_ended_between_checkpoints_and_resumed(task: str, options: dict[str, Any], tmp_path: Path) -> None:
    go(begun(task, tmp_path, "whole", steps=8, **options))
    crash(begun(task, tmp_path, steps=8, **options), "stepped", 7)
    go_on(tmp_path / "run")
    same(tmp_path / "whole", tmp_path / "run")


def test_ended_again_and_again(whole: Path, tmp_path: Path) -> None:
    crash(begun("text", tmp_path, save=2), "stepped", 3)
    for step in (3, 4, 5, 6, 7, 9, 11):
        crash(resume(tmp_path / "run"), "stepped", step)
    go_on(tmp_path / "run")
    same(whole, tmp_path / "run")


def test_killed_and_resumed(tmp_path: Path) -> None:
    """Three times `kill -9` at any moment; bench/train.py does it twenty times."""
    options = "--tokens characters --context 13 --dim 8 --depth 1 --heads 2 --batch 5 --steps 60 --evaluate 20 --save 3"
    source_of("text", tmp_path)

    def command(name: str) -> list[str]:
        given = ["text.txt", *options.split(), "--sample", "9", "--threads", "1", "--out", name, "--resume"]
        return [sys.executable, "-m", "regard", "train", "text", *given]

    quiet: dict[str, Any] = {"cwd": tmp_path, "stdout": subprocess.DEVNULL}
    whole = subprocess.Popen(command("whole"), **quiet)
    draw, seen = random.Random(0), []
    for kill in range(3):
        process, wanted = subprocess.Popen(command("killed"), **quiet), 7 + 15 * kill + draw.randrange(9)
        while _written(tmp_path / "killed") < wanted and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
        seen.append(_written(tmp_path / "killed"))
    subprocess.run(command("killed"), check=True, **quiet)
    assert whole.wait() == 0
    assert min(seen) > 0
    assert min(seen) < 60, "it was killed on its way"
    same(tmp_path / "whole", tmp_path / "killed")
    assert not list((tmp_path / "killed").rglob(".*.tmp"))


def _written(folder: Path) -> int:
    table = folder / "metrics.csv"
    return max(0, table.read_bytes().count(b"\n") - 1) if table.exists() else 0


@EVERY_TASK
def test_a_folder_is_enough_to_repeat_its_run(task: str, tmp_path: Path) -> None:
    go(begun(task, tmp_path, steps=5))
    source_of(task, tmp_path).unlink()
    go(repeated(tmp_path / "run", tmp_path / "again"))
    same(tmp_path / "run", tmp_path / "again")


# -- what a process that was ended left ------------------------------------------------------------------------


def test_half_a_line_and_half_a_file(whole: Path, tmp_path: Path) -> None:
    crash(begun("text", tmp_path), "stepped", 6)
    folder = tmp_path / "run"
    for table in ("metrics.csv", "held_out.csv"):
        with (folder / table).open("a", encoding="utf-8") as file:
            file.write("6,3.1")
    for left in (".checkpoint.safetensors.0a0a0a0a.tmp", ".settings.json.0a0a0a0a.tmp"):
        (folder / left).write_text("half")
    go_on(folder)
    same(whole, folder)
    assert not list(folder.glob(".*"))


def test_ended_before_it_began(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data stand, settings do not: the folder is as good as empty."""

    def end(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patched, pytest.raises(Crash):
        patched.setattr("regard.train.folder.Folder.settle", end)
        begun("text", tmp_path)
    assert (tmp_path / "run" / "vocabulary.json").exists()
    with pytest.raises(CallError) as error:
        resume(tmp_path / "run")
    assert str(error.value) == (
        f"folder: one that holds a run, with a settings.json; got {str(tmp_path / 'run')!r}, "
        "where one was ended before it began; start it again"
    )
    go(begun("text", tmp_path))
    same(whole, tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*"))


# -- more steps ------------------------------------------------------------------------------------------------


def test_more_steps(tmp_path: Path) -> None:
    go(begun("text", tmp_path, steps=6))
    before = rows(tmp_path / "run")["metrics.csv"]
    result = go_on(tmp_path / "run", steps=9)
    assert result["steps"] == 9
    assert rows(tmp_path / "run")["metrics.csv"][: len(before)] == before
    assert len(losses(tmp_path / "run")) == 9
    assert read_json(tmp_path / "run" / "settings.json")["learning"]["steps"] == 9


def test_fewer_steps_than_were_taken(tmp_path: Path) -> None:
    go(begun("text", tmp_path, steps=6))
    with pytest.raises(CallError) as error:
        resume(tmp_path / "run", steps=5)
    assert str(error.value) == "steps: at least the 6 that were taken; got 5"
    assert read_json(tmp_path / "run" / "settings.json")["learning"]["steps"] == 6


# -- from another run ------------------------------------------------------------------------------------------


@EVERY_TASK
def test_a_run_that_begins_with_another(task: str, tmp_path: Path) -> None:
    parent = go(begun(task, tmp_path, "parent", rate=0.02, steps=3))
    settings = small(task, tmp_path, average=0.0, steps=3)
    child = start(settings, tmp_path / "child", parent=tmp_path / "parent")
    assert child.learner.evaluate()["loss"] == pytest.approx(parent["best"]["loss"], rel=1e-5)
    go(child)
    crash(start(settings, tmp_path / "ended", parent=tmp_path / "parent"), "stepped", 2)
    go_on(tmp_path / "ended")
    same(tmp_path / "child", tmp_path / "ended")
    go(repeated(tmp_path / "child", tmp_path / "again"))
    same(tmp_path / "child", tmp_path / "again")


def test_its_shape_is_taken_from_there(tmp_path: Path) -> None:
    parent = begun(
        "text", tmp_path, "parent", dim=12, heads=3, table=["bias=3x13"], attention="dot + table('bias')[h, i - j]"
    )
    found = settings_of("text", {"steps": 3, "dropout": 0.3}, parent.settings)
    assert found.data == parent.settings.data
    assert (found.shape.dim, found.shape.heads, found.shape.table) == (12, 3, ("bias=3x13",))
    assert (found.shape.dropout, found.learning.steps) == (0.3, 3)


def test_another_shape(tmp_path: Path) -> None:
    go(begun("text", tmp_path, "parent", steps=1, evaluate=1))
    with pytest.raises(CallError) as error:
        start(small("text", tmp_path, dim=4), tmp_path / "child", parent=tmp_path / "parent")
    assert str(error.value).startswith("start: a model of the same shape; got another in ")
    assert "size mismatch for embedding.weight" in str(error.value)
    assert str(error.value).endswith("; the shape is taken from it where no option says another")
    assert not (tmp_path / "child").exists()


def test_another_text(tmp_path: Path) -> None:
    go(begun("text", tmp_path, "parent", steps=1, evaluate=1))
    (tmp_path / "other.txt").write_text("ΑΒΓΔ ΕΖΗΘ\n" * 99, encoding="utf-8")
    settings = small("text", tmp_path)
    with pytest.raises(CallError) as error:
        start(
            settings_of("text", {"source": str(tmp_path / "other.txt")}, settings),
            tmp_path / "child",
            parent=tmp_path / "parent",
        )
    assert str(error.value) == (
        "vocabulary: one that knows the text; got one that does not know 80.0% of it; "
        "is it that of another text? Learn a new model without --start"
    )


def test_another_task(tmp_path: Path) -> None:
    go(begun("text", tmp_path, "parent", steps=1, evaluate=1))
    with pytest.raises(KindError) as error:
        start(small("images", tmp_path), tmp_path / "child", parent=tmp_path / "parent")
    assert str(error.value) == f"start: a run of the task images; got one of text in {str(tmp_path / 'parent')!r}"


def test_a_parent_that_never_was_measured(tmp_path: Path) -> None:
    crash(begun("text", tmp_path, "parent"), "stepped", 1)
    with pytest.raises(CallError) as error:
        start(small("text", tmp_path), tmp_path / "child", parent=tmp_path / "parent")
    assert str(error.value) == (
        f"start: a run that was measured at least once; got {str(tmp_path / 'parent')!r}; train it first"
    )


# -- folders that are something else ---------------------------------------------------------------------------


def test_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    begun("text", tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    for place, holds in (
        (tmp_path / "run", f"a run; go on with it: regard train resume {tmp_path / 'run'}"),
        (other, "other files; name another"),
        (other / "letter.txt", "a file; name another"),
    ):
        with pytest.raises(CallError) as error:
            start(small("text", tmp_path), place)
        assert str(error.value) == f"out: a folder that is empty or not there; got {str(place)!r}, which holds {holds}"
    assert (other / "letter.txt").read_text() == "dear"


def test_no_run(tmp_path: Path) -> None:
    for again in (resume, lambda path: repeated(path, tmp_path / "again")):
        with pytest.raises(CallError) as error:
            again(tmp_path)
        assert str(error.value) == f"folder: one that holds a run, with a settings.json; got {str(tmp_path)!r}"


def test_a_folder_inside_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TrainingError) as error:
        begun("text", tmp_path, "file/run")
    assert str(error.value).startswith(
        f"out: a folder that can be written to, {str(tmp_path / 'file' / 'run')!r}; got this: "
    )
    assert str(error.value).endswith("; mend that, or name another")


# -- what was changed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vocabulary.json", "data/text.txt", "first.safetensors"])
def test_what_the_run_began_with_was_changed(name: str, tmp_path: Path) -> None:
    crash(begun("text", tmp_path), "saved", 4)
    changed = tmp_path / "run" / name
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1  # a vocabulary of the same length, a text of the same length
    changed.write_bytes(data)
    for again in (resume, lambda path: repeated(path, tmp_path / "again")):
        with pytest.raises(TrainingError) as error:
            again(tmp_path / "run")
        assert str(error.value) == (
            f"folder: with what the run began with; got {str(changed)!r}, which was changed; "
            "put it back, or start a new run"
        )
    changed.unlink()
    with pytest.raises(TrainingError, match="which is not there; put it back"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("change", [{"dim": 4}, {"depth": 2}, {"position": "learned"}, {"style": "gpt"}], ids=str)
def test_settings_of_another_model(change: dict[str, Any], tmp_path: Path) -> None:
    crash(begun("text", tmp_path), "saved", 4)
    told = read_json(tmp_path / "run" / "settings.json")
    told["shape"].update(change)
    write_json(tmp_path / "run" / "settings.json", told)
    with pytest.raises(CallError) as error:
        resume(tmp_path / "run")
    assert str(error.value).startswith("folder: a model of the same shape; got another in ")
    assert str(error.value).endswith("; was settings.json changed?")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "JSON that can be read; got "),
        ("[]", "settings: those of a run, with a task among text, images, pairs; got []"),
        ('{"task": "music"}', "settings: those of a run, with a task among text, images, pairs; got {'task': 'music'}"),
        ('{"task": "text", "shape": 3}', "shape: settings by name; got 3"),
        ('{"task": "text", "shape": {"dim": "8"}}', "shape: dim is int; got '8'"),
        ('{"task": "text", "shape": {"breadth": 8}}', "; got breadth; which version of regard wrote it?"),
        ('{"task": "text", "learning": {"rate": true}}', "learning: rate is float; got True"),
        ('{"task": "text", "learning": {"rate": NaN}}', "rate: a finite number above 0; got nan"),
    ],
)
def test_settings_that_are_none(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises((TrainingError, KindError, CallError)) as error:
        resume(tmp_path)
    assert says in str(error.value)


def test_what_a_folder_tells(tmp_path: Path) -> None:
    run = begun("text", tmp_path)
    told = json.loads((tmp_path / "run" / "machine.json").read_text())
    assert told.keys() == {"regard", "torch", "python", "system", "processor", "threads", "processes", "command"}
    assert run.settings == resume(tmp_path / "run").settings
