"""Checkpoints: what is written comes back bit for bit; what cannot be written leaves the one before it."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError

from regard.algebra.errors import KindError
from regard.nn.checkpoints.tensors import read, write
from regard.train.beginning import resume, start
from regard.train.errors import TrainingError
from regard.train.run import Run
from regard.train.state import ENTRY, Progress, load_state, save_state
from small_runs import done, rows, small, undisturbed


def begun(folder: Path, steps: int, **given: Any) -> Run:
    """A run that has taken some steps."""
    run = start(small("text", folder, average=0.9, **given), folder / "run")
    for _ in range(steps):
        run.learner.advance()
    return run


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    one, other = begun(tmp_path / "one", 3), begun(tmp_path / "other", 0)
    save_state(tmp_path / "state", one.learner, Progress(2.5, (1.25, 2)))
    progress = load_state(tmp_path / "state", other.learner)
    assert (progress.seconds, progress.best, other.learner.step) == (2.5, (1.25, 2), 3)
    ours, theirs = one.learner.tensors(), other.learner.tensors()
    assert ours.keys() == theirs.keys()
    assert {name.split(".")[0] for name in ours} == {"model", "average", "optimiser"}
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert [one.learner.advance() for _ in range(2)] == [other.learner.advance() for _ in range(2)]


FULL = {
    "of Python": OSError(errno.ENOSPC, "No space left on device"),
    "of safetensors": SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
}


@pytest.mark.parametrize("error", FULL.values(), ids=FULL)
@pytest.mark.parametrize("when", ["first", "later"])
def test_a_full_disk_leaves_the_checkpoint_before(
    error: Exception, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, true, saved = start(small("text", tmp_path, evaluate=11), tmp_path / "run"), safetensors.torch.save_file, []

    def half(tensors: Any, path: Path, metadata: Any) -> None:
        if "checkpoint" in path.name:
            saved.append(path)
        if len(saved) > (when == "later"):
            path.write_bytes(b"half of it")
            raise error
        true(tensors, path, metadata)

    monkeypatch.setattr(safetensors.torch, "save_file", half)
    with pytest.raises(TrainingError) as told:
        done(run)
    step, stands = (6, "the one before it still stands") if when == "later" else (3, "there is none before it")
    assert str(told.value) == (
        f"step {step}: the checkpoint could not be written, since the disk is full; {stands}; "
        f"mend that, then go on with: regard train resume {run.folder}"
    )
    assert not list(run.folder.path.glob(".*.tmp"))
    monkeypatch.undo()
    again = resume(run.folder.path)
    assert again.learner.step == step - 3
    assert rows(done(again)) == rows(undisturbed(small("text", tmp_path, evaluate=11), tmp_path / "whole"))


@pytest.mark.parametrize("name", ["best", "model"])
def test_a_full_disk_is_said_of_every_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, true = start(small("text", tmp_path), tmp_path / "run"), safetensors.torch.save_file

    def half(tensors: Any, path: Path, metadata: Any) -> None:
        if path.name.startswith(f".{name}."):
            raise FULL["of safetensors"]
        true(tensors, path, metadata)

    monkeypatch.setattr(safetensors.torch, "save_file", half)
    with pytest.raises(TrainingError, match=r"the disk is full; mend that, then go on with: regard train resume .*run"):
        done(run)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    run = begun(tmp_path, 0)
    for metadata in ({}, {ENTRY: json.dumps({"version": 99})}):
        write(tmp_path / "state", run.learner.tensors(), metadata)
        with pytest.raises(KindError, match=r"^checkpoint: one of version 1, which a run wrote; got another in '"):
            load_state(tmp_path / "state", run.learner)


def test_a_checkpoint_that_is_cut_is_refused(tmp_path: Path) -> None:
    folder = undisturbed(small("text", tmp_path), tmp_path / "run")
    folder.checkpoint.write_bytes(folder.checkpoint.read_bytes()[:-5])
    with pytest.raises(KindError, match=r"checkpoint.safetensors', which is cut short"):
        resume(folder.path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    one, other = begun(tmp_path / "one", 2), begun(tmp_path / "other", 0, dim=12)
    save_state(tmp_path / "state", one.learner, Progress())
    with pytest.raises(TrainingError) as told:
        load_state(tmp_path / "state", other.learner)
    assert str(told.value).startswith(
        f"checkpoint: of the model that the settings describe; got another in '{tmp_path / 'state'}': size mismatch"
    )
    assert str(told.value).endswith("; were settings.json or vocabulary.json changed?")


def test_metadata_is_plain_json(tmp_path: Path) -> None:
    folder = undisturbed(small("text", tmp_path), tmp_path / "run")
    told = json.loads(read(folder.checkpoint)[0][ENTRY])
    assert told["step"] == 11
    assert told["best"][1] in (4, 8, 11)
