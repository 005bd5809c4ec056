"""How runs begin: with what stands in their folder, with the model of another run, or with a reason why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.algebra.errors import CallError, KindError
from regard.train.beginning import repeated, resume, start
from regard.train.errors import TrainingError
from regard.train.folder import Folder
from regard.train.options import settings_of
from regard.train.watchers.base import Watcher
from small_runs import TASKS, Ends, Killed, done, losses, rows, small, text_file, undisturbed

FEW: dict[str, Any] = {"steps": 3, "evaluate": 2}
Again = Callable[[Path], Any]
AGAIN: dict[str, Again] = {"resume": resume, "repeat": lambda path: repeated(path, path.with_name("again"))}


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A run whose model others begin with."""
    place = tmp_path_factory.mktemp("parent")
    return undisturbed(small("text", place, **FEW), place / "run")


def same(one: Folder, other: Folder) -> bool:
    models = ((one.model, other.model), (one.best, other.best))
    return rows(one) == rows(other) and all(ours.read_bytes() == theirs.read_bytes() for ours, theirs in models)


# -- ended at a moment between two steps -----------------------------------------------------------------------


class Moment(Watcher):
    """Ends a run when it is told a thing."""

    def __init__(self, told: str) -> None:
        setattr(self, told, self._end)

    def _end(self, *_: Any) -> None:
        raise Killed


@pytest.mark.parametrize("moment", ["began", "measured", "saving", "saved", "ended"])
def test_a_moment_between_steps(moment: str, parent: Folder, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        done(start(small("text", tmp_path, **FEW), tmp_path / "run"), Moment(moment))
    assert same(done(resume(tmp_path / "run")), parent)


def test_ended_before_it_began(parent: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data stand, settings do not: nothing of it is lost, and the folder is as good as empty."""
    settings, path = small("text", tmp_path, **FEW), tmp_path / "run"
    monkeypatch.setattr(Folder, "settle", Moment("began")._end)
    with pytest.raises(Killed):
        start(settings, path)
    monkeypatch.undo()
    assert Folder(path).vocabulary.exists()
    for again in AGAIN.values():
        with pytest.raises(CallError) as told:
            again(path)
        assert str(told.value) == (
            f"folder: one that holds a run, with a settings.json; got {str(path)!r}, "
            "where one was ended before it began; start it again"
        )
    assert same(undisturbed(settings, path), parent)
    assert not list(path.glob(".*"))


# -- with the model of another run -----------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_run_begins_where_another_was_best(task: str, tmp_path: Path) -> None:
    first = undisturbed(small(task, tmp_path, **FEW), tmp_path / "parent")
    run = start(small(task, tmp_path, **FEW, rate=1e-4), tmp_path / "child", parent=first.path)
    best = json.loads(first.result.read_text(encoding="utf-8"))["best"]
    assert run.task.final(run.learner.measured.eval())["loss"] == pytest.approx(best["loss"], rel=1e-5)


def test_a_formula_may_change_where_the_shape_does_not(parent: Folder, tmp_path: Path) -> None:
    run = start(small("text", tmp_path, **FEW, attention="sigmoid(dot)"), tmp_path / "run", parent=parent.path)
    assert len(losses(done(run))) == 3


def test_another_shape(parent: Folder, tmp_path: Path) -> None:
    with pytest.raises(CallError) as told:
        start(small("text", tmp_path, dim=4), tmp_path / "run", parent=parent.path)
    assert str(told.value).startswith(
        f"start: a model of the same shape; got another in {str(parent.best)!r}: size mismatch for "
    )
    assert str(told.value).endswith("; the shape is taken from it where no option says another")
    assert not (tmp_path / "run").exists()


def test_another_text(parent: Folder, tmp_path: Path) -> None:
    settings = small("text", tmp_path, source=str(text_file(tmp_path, words="ΑΒΓΔ ΕΖΗΘ ΙΚΛΜ")))
    with pytest.raises(CallError) as told:
        start(settings, tmp_path / "run", parent=parent.path)
    assert str(told.value) == (
        "vocabulary: one that knows the text; got one that does not know 80.0% of it; "
        "is it that of another text? Learn a new model without --start"
    )


def test_another_task(parent: Folder, tmp_path: Path) -> None:
    with pytest.raises(KindError) as told:
        start(small("images", tmp_path), tmp_path / "run", parent=parent.path)
    assert str(told.value) == f"start: a run of the task images; got one of text in {str(parent)!r}"


def test_a_parent_that_never_was_measured(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        done(start(small("text", tmp_path), tmp_path / "parent"), Ends(0))
    with pytest.raises(CallError) as told:
        start(small("text", tmp_path), tmp_path / "run", parent=tmp_path / "parent")
    assert str(told.value) == (
        f"start: a run that was measured at least once; got {str(tmp_path / 'parent')!r}; train it first"
    )


def test_tables_are_taken_from_there_too(tmp_path: Path) -> None:
    before = small("text", tmp_path, table=("bias=2x7",), attention='softmax(dot + table("bias")[h, i - j])')
    assert settings_of("text", {"steps": 3, "table": None}, before).shape == before.shape


# -- folders ---------------------------------------------------------------------------------------------------


def test_a_folder_inside_of_a_file(tmp_path: Path) -> None:
    path = text_file(tmp_path) / "run"
    with pytest.raises(TrainingError) as told:
        start(small("text", tmp_path), path)
    assert str(told.value).startswith(f"out: a folder that can be written to, {str(path)!r}; got this: ")
    assert str(told.value).endswith("; mend that, or name another")


@pytest.mark.parametrize("command", AGAIN)
def test_one_bit_of_what_it_began_with(command: str, tmp_path: Path) -> None:
    """The same length, the same shape, and still another: a letter of the vocabulary, a parameter."""
    folder = start(small("text", tmp_path), tmp_path / "run").folder
    for path in (folder.vocabulary, folder.first, folder.data / "text.txt"):
        true = path.read_bytes()
        path.write_bytes(true[:-9] + bytes([true[-9] ^ 1]) + true[-8:])
        with pytest.raises(TrainingError) as told:
            AGAIN[command](folder.path)
        assert str(told.value) == (
            f"folder: with what the run began with; got {str(path)!r}, which was changed; "
            "put it back, or start a new run"
        )
        path.write_bytes(true)
    AGAIN[command](folder.path)


def test_the_folder_says_where_it_was_made(tmp_path: Path) -> None:
    start(small("text", tmp_path), tmp_path / "run")
    told = json.loads((tmp_path / "run" / "machine.json").read_text(encoding="utf-8"))
    assert told.keys() == {"regard", "torch", "python", "system", "processor", "threads", "processes", "command"}
    assert told["processes"] == 1


def test_word_of_what_diverged_is_taken_back(parent: Folder, tmp_path: Path) -> None:
    folder = start(small("text", tmp_path, **FEW), tmp_path / "run").folder
    folder.diverged.write_text("{}", encoding="utf-8")
    assert same(done(resume(folder.path)), parent)
    assert not folder.diverged.exists()
