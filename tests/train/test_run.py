"""Runs: whatever ends them, what is resumed goes on bit for bit, and the folder alone repeats them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.nn.checkpoints.tensors import read
from regard.train.beginning import repeated, resume, start
from regard.train.errors import Diverged, TrainingError
from regard.train.folder import Folder
from regard.train.learner import Taken
from regard.train.run import Interrupted
from regard.train.watchers.base import Watcher
from small_runs import (
    TASKS,
    Ends,
    Killed,
    command,
    done,
    ended,
    losses,
    rows,
    small,
    text_file,
    undisturbed,
    words_of,
)

HARD: dict[str, Any] = {"dropout": 0.3, "average": 0.9, "accumulate": 2}


def tensors(path: Path) -> dict[str, torch.Tensor]:
    return read(path)[1]


def assert_same(one: Folder, other: Folder) -> None:
    """The same rows, the same last and best model, the same checkpoint: bit for bit."""
    assert rows(one) == rows(other)
    for name in ("checkpoint", "model", "best"):
        ours, theirs = tensors(getattr(one, name)), tensors(getattr(other, name))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Folder]:
    """A run of each task that nothing ended."""
    place = tmp_path_factory.mktemp("whole")
    return {task: undisturbed(small(task, place / task, **HARD), place / task / "run") for task in TASKS}


# -- the same numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_one_seed_is_one_curve(task: str, tmp_path: Path, whole: dict[str, Folder]) -> None:
    torch.rand(7)  # whatever was drawn before
    assert_same(undisturbed(small(task, tmp_path, **HARD), tmp_path / "run"), whole[task])
    other = undisturbed(small(task, tmp_path, **HARD, seed=1), tmp_path / "other")
    assert losses(other) != losses(whole[task])


@pytest.mark.parametrize("task", TASKS)
def test_whatever_ends_a_run_it_goes_on_as_if_nothing_had(task: str, tmp_path: Path, whole: dict[str, Folder]) -> None:
    settings = small(task, tmp_path, **HARD)
    assert_same(ended(settings, tmp_path / "run", 0, 4, 8, 10), whole[task])


@pytest.mark.parametrize("step", [1, 6])
def test_a_run_may_end_at_any_step(step: int, tmp_path: Path, whole: dict[str, Folder]) -> None:
    assert_same(ended(small("text", tmp_path, **HARD), tmp_path / "run", step), whole["text"])


def test_the_cadence_of_checkpoints_changes_no_number(tmp_path: Path, whole: dict[str, Folder]) -> None:
    settings = small("text", tmp_path, **HARD, save=1, sample=0)
    assert_same(ended(settings, tmp_path / "run", 5), whole["text"])


def test_a_run_that_ends_while_it_is_measured_goes_on_exactly(tmp_path: Path, whole: dict[str, Folder]) -> None:
    class Measures(Watcher):
        def sampled(self, step: int, text: str) -> None:
            raise Killed

    with pytest.raises(Killed):
        done(start(small("text", tmp_path, **HARD), tmp_path / "run"), Measures())
    assert_same(done(resume(tmp_path / "run")), whole["text"])


def test_a_run_of_other_parts_differs(tmp_path: Path, whole: dict[str, Folder]) -> None:
    """What is compared above would show it: each of these settings matters."""
    for name in ("dropout", "average", "noise"):
        other = undisturbed(small("text", tmp_path / name, **{**HARD, name: 0.0}), tmp_path / name / "run")
        assert rows(other) != rows(whole["text"]), name


# -- what a process that was killed leaves ---------------------------------------------------------------------


def killed(settings: Any, path: Path) -> Folder:
    with pytest.raises(Killed):
        done(start(settings, path), Ends(7))
    return Folder(path)


@pytest.mark.parametrize("half", ["7,2.5,0.", "7,2.5,0.1,0.01,35,0.2,9\n"])
def test_half_a_line_is_taken_back(half: str, tmp_path: Path, whole: dict[str, Folder]) -> None:
    folder = killed(small("text", tmp_path, **HARD), tmp_path / "run")
    with (folder / "metrics.csv").open("a", encoding="utf-8") as file:
        file.write(half)
    assert_same(done(resume(folder.path)), whole["text"])


def test_what_is_left_half_written_is_taken_away(tmp_path: Path, whole: dict[str, Folder]) -> None:
    folder = killed(small("text", tmp_path, **HARD), tmp_path / "run")
    (folder / "samples").mkdir(exist_ok=True)
    left = [folder / ".checkpoint.safetensors.0a1b.tmp", folder / "samples" / ".000004.txt.0a1b.tmp"]
    for path in left:
        path.write_bytes(b"half")
    assert_same(done(resume(folder.path)), whole["text"])
    assert not any(path.exists() for path in left)


def test_tables_that_are_gone_begin_again(tmp_path: Path) -> None:
    folder = killed(small("text", tmp_path), tmp_path / "run")
    (folder / "metrics.csv").unlink()
    (folder / "held_out.csv").unlink()
    found = rows(done(resume(folder.path)))
    assert found["metrics.csv"][0][:2] == found["held_out.csv"][0][:2] == ["step", "loss"]
    assert [int(row[0]) for row in found["metrics.csv"][1:]] == list(range(6, 11))


def test_a_folder_without_settings_is_no_run(tmp_path: Path) -> None:
    folder = killed(small("text", tmp_path), tmp_path / "run")
    folder.settings.unlink()
    with pytest.raises(ValueError, match=r"^folder: one that holds a run, with a settings.json; got '.*run'"):
        resume(folder.path)
    with pytest.raises(ValueError, match=r"^out: a folder that is empty or not there; got '.*run', which holds other"):
        start(small("text", tmp_path), folder.path)


def test_kill_9(tmp_path: Path) -> None:
    """A process that is killed at random moments and resumed, beside one that is not."""
    settings = small("text", tmp_path, **HARD, steps=90, evaluate=45, save=7)
    one, other = undisturbed(settings, tmp_path / "whole"), tmp_path / "killed"
    drawn, again = random.Random(), command(*words_of(settings), "--out", str(other), "--resume")
    for kill in range(2):
        process = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and written(other) <= 20 * (1 + 2 * kill):
            time.sleep(0.01)
        time.sleep(drawn.uniform(0, 0.1))
        process.kill()
        assert process.communicate()[1] == b""
        assert written(other) > 20
    assert_same(one, done(resume(other)))


def written(path: Path) -> int:
    """How many steps stand in the table."""
    table = path / "metrics.csv"
    return table.read_bytes().count(b"\n") if table.exists() else 0


# -- Ctrl-C ----------------------------------------------------------------------------------------------------


class Signals(Watcher):
    """Sends this process a signal when a step was taken."""

    def __init__(self, step: int, *which: signal.Signals) -> None:
        self.step, self.which = step, which

    def stepped(self, taken: Taken, seconds: float) -> None:
        if taken.step == self.step:
            for one in self.which:
                os.kill(os.getpid(), one)


@pytest.mark.parametrize(("which", "step"), [(signal.SIGINT, 4), (signal.SIGTERM, 5)])
def test_who_asks_it_to_stop_finds_a_checkpoint(
    which: signal.Signals, step: int, tmp_path: Path, whole: dict[str, Folder]
) -> None:
    before = signal.getsignal(which)
    path = tmp_path / "run"
    with pytest.raises(Interrupted) as told:
        done(start(small("text", tmp_path, **HARD), path), Signals(step, which))
    assert str(told.value) == (
        f"interrupted after {step + 1} steps, with a checkpoint; go on with: regard train resume {path}"
    )
    assert signal.getsignal(which) is before
    again = resume(path)
    assert again.learner.step == step + 1
    assert_same(done(again), whole["text"])


def test_who_asks_twice_is_not_kept_waiting(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        done(start(small("text", tmp_path), tmp_path / "run"), Signals(4, signal.SIGINT, signal.SIGINT))


def test_who_asks_in_the_last_step_gets_the_result(tmp_path: Path) -> None:
    folder = done(start(small("text", tmp_path), tmp_path / "run"), Signals(10, signal.SIGINT))
    assert folder.result.exists()


# -- what goes wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_loss_that_is_no_number_names_its_examples(task: str, tmp_path: Path) -> None:
    run = start(small(task, tmp_path, **HARD), tmp_path / "run")
    true, bad = run.task.loss, {"row": 3}

    def loss(model: Any, batch: Any) -> Any:
        found = true(model, batch)
        wanted = str(run.task.batch(5).rows[bad["row"]])
        return found * float("nan") if run.learner.step == 5 and wanted in map(str, batch.rows) else found

    run.task.loss = loss
    with pytest.raises(Diverged) as told:
        done(run)
    row = str(run.task.batch(5).rows[3])
    assert told.value.step == 5
    assert list(map(str, told.value.rows)) == [row]
    assert str(told.value) == (
        f"step 5: the loss is nan, on {row}; the parameters stand as they were before it; "
        "take a smaller rate, a longer warm-up, or look at these examples"
    )
    left = json.loads((run.folder / "diverged.json").read_text(encoding="utf-8"))
    assert (left["step"], left["what"], left["examples"]) == (5, "the loss is nan", [row])
    again = resume(run.folder.path)
    assert again.learner.step == 5
    ours, theirs = again.learner.tensors(), run.learner.tensors()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert all(torch.isfinite(tensor).all() for tensor in ours.values())


def test_what_diverged_and_is_resumed_goes_on_exactly(tmp_path: Path, whole: dict[str, Folder]) -> None:
    run = start(small("text", tmp_path, **HARD), tmp_path / "run")
    true = run.task.loss
    run.task.loss = lambda model, batch: true(model, batch) * (float("inf") if run.learner.step == 5 else 1)
    with pytest.raises(Diverged, match=r"^step 5: the loss is inf, on characters from [\d,]+, .* and 1 more; "):
        done(run)
    assert_same(done(resume(run.folder.path)), whole["text"])


def test_a_gradient_that_is_no_number_stops_too(tmp_path: Path) -> None:
    run = start(small("text", tmp_path), tmp_path / "run")
    before = {name: tensor.clone() for name, tensor in run.learner.model.state_dict().items()}
    first = next(run.learner.model.parameters())
    first.register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(Diverged, match=r"^step 0: the gradient's length is nan, on characters from [\d,]+, "):
        done(run)
    assert all(torch.equal(before[name], tensor) for name, tensor in run.learner.model.state_dict().items())


def test_a_file_that_cannot_be_written_ends_in_a_sentence(tmp_path: Path) -> None:
    class Full(Watcher):
        def measured(self, measured: Any) -> None:
            raise OSError(28, "No space left on device")

    run = start(small("text", tmp_path), tmp_path / "run")
    with pytest.raises(TrainingError, match=r"^folder: .*; got this: the disk is full; ") as told:
        done(run, Full())
    assert str(told.value).endswith(f"; mend that, then go on with: regard train resume {run.folder}")


# -- the folder is enough --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_the_folder_alone_repeats_a_run(task: str, tmp_path: Path, whole: dict[str, Folder]) -> None:
    settings = small(task, tmp_path, **HARD)
    old = undisturbed(settings, tmp_path / "old")
    Path(str(settings.data.source)).unlink()
    assert_same(done(repeated(old.path, tmp_path / "new")), whole[task])


def test_a_run_that_began_with_a_model_is_repeated_with_it(tmp_path: Path, whole: dict[str, Folder]) -> None:
    settings = small("text", tmp_path, **HARD)
    second = done(start(settings, tmp_path / "second", parent=whole["text"].path))
    assert losses(second)[0] < losses(whole["text"])[0]
    assert_same(done(repeated(second.path, tmp_path / "again")), second)
    with pytest.raises(Killed):
        done(start(settings, tmp_path / "third", parent=whole["text"].path), Ends(1))
    assert not Folder(tmp_path / "third").checkpoint.exists()
    assert_same(done(resume(tmp_path / "third")), second)


def test_more_steps_go_on_where_it_ended(tmp_path: Path) -> None:
    short = undisturbed(small("text", tmp_path, rate=0.001), tmp_path / "run")
    before = rows(short)["metrics.csv"]
    longer = done(resume(short.path, steps=17))
    assert rows(longer)["metrics.csv"][:12] == before
    assert len(losses(longer)) == 17
    assert longer.read_settings().learning.steps == 17
    assert json.loads(longer.result.read_text(encoding="utf-8"))["steps"] == 17


def test_a_longer_run_is_not_done_before_its_own_end(tmp_path: Path) -> None:
    """A result of the shorter one must not stand for it."""
    short = undisturbed(small("text", tmp_path), tmp_path / "run")
    with pytest.raises(Killed):
        done(resume(short.path, steps=17), Ends(13))
    assert not short.result.exists()


def test_fewer_steps_than_were_taken_are_refused(tmp_path: Path) -> None:
    folder = killed(small("text", tmp_path), tmp_path / "run")
    with pytest.raises(ValueError, match=r"^steps: at least the 6 that were taken; got 5$"):
        resume(folder.path, steps=5)
    assert folder.read_settings().learning.steps == 11


def test_data_is_split_before_and_not_with_it(tmp_path: Path) -> None:
    """What the folder keeps is what was read: another source changes nothing."""
    settings = small("text", tmp_path)
    folder = killed(settings, tmp_path / "run")
    text_file(tmp_path, words="other words altogether")
    again = done(resume(folder.path))
    text_file(tmp_path)
    assert rows(again) == rows(undisturbed(settings, tmp_path / "whole"))
