"""Where numbers are: precisions, threads, torch.compile."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.algebra.errors import CallError, KindError
from regard.train.beginning import resume, start
from regard.train.errors import TrainingError
from regard.train.machine import Machine, check_products, compiler_errors, fastest
from small_runs import Ends, Killed, done, losses, small, undisturbed

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"precision": "int8"}, CallError, "precision: one of float32, bfloat16, float16; got 'int8'"),
        ({"threads": 0}, CallError, "threads: an integer of at least 1; got 0"),
        ({"threads": 1.5}, KindError, "threads: an integer; got 1.5"),
    ],
)
def test_refused(given: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as told:
        Machine(**given)
    assert str(told.value) == says


@pytest.mark.parametrize("device", ["warp", "", "cuda:99"])
def test_a_device_that_is_not_here(device: str) -> None:
    with pytest.raises(CallError) as told:
        Machine(device).place  # noqa: B018 - it is found when it is asked for
    assert str(told.value).startswith(f"device: one that PyTorch has here; got {device!r}: ")
    assert "\n" not in str(told.value)


def test_the_fastest_is_one_that_is_here() -> None:
    assert Machine("auto").place.type == fastest()


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_products_are_in_the_precision_and_parameters_are_not(precision: str) -> None:
    linear = torch.nn.Linear(3, 2)
    with Machine(precision=precision).casting():
        assert linear(torch.ones(1, 3)).dtype == getattr(torch, precision)
    assert linear.weight.dtype == torch.float32
    assert linear(torch.ones(1, 3)).dtype == torch.float32
    assert Machine(precision=precision).scaler().is_enabled() == (precision == "float16")


def test_mixed_precision_learns_and_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.train.beginning.check_products", lambda *_: None)  # the tests stand on it already
    settings = small("text", tmp_path, precision="bfloat16", evaluate=11)
    whole = losses(undisturbed(settings, tmp_path / "whole"))
    plain = losses(undisturbed(small("text", tmp_path, evaluate=11), tmp_path / "plain"))
    assert whole == pytest.approx(plain, rel=0.05)
    assert whole != plain
    with pytest.raises(Killed):
        done(start(settings, tmp_path / "run"), Ends(7))
    assert losses(done(resume(tmp_path / "run"))) == whole


def test_small_gradients_are_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.train.beginning.check_products", lambda *_: None)
    settings = small("text", tmp_path, precision="float16", evaluate=11)
    whole = losses(undisturbed(settings, tmp_path / "whole"))
    assert all(map(math.isfinite, whole))
    with pytest.raises(Killed):
        done(start(settings, tmp_path / "run"), Ends(7))
    again = resume(tmp_path / "run")
    assert again.learner.scaler.state_dict()["_growth_tracker"] == 6, "its scale is part of what it goes on from"
    assert losses(done(again)) == whole


def test_a_product_that_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    check_products("float32", CPU)
    check_products("bfloat16", torch.device("meta"))
    asked = list[list[str]]()

    def killed(words: list[str], **_: Any) -> Any:
        asked.append(words)
        return subprocess.CompletedProcess(words, -4)

    monkeypatch.setattr(subprocess, "run", killed)
    with pytest.raises(CallError) as told:
        check_products("bfloat16", CPU)
    assert str(told.value) == (
        "precision: one whose products this processor can do; got bfloat16, and a product of it ends a process with "
        "-4; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment, or float32"
    )
    assert asked[0][0] == sys.executable
    assert "torch.bfloat16" in asked[0][2]


def test_a_model_that_cannot_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler says, and how to go on without it; the next test compiles one for real."""

    def refuses(*_: Any) -> Any:
        raise compiler_errors(Machine(compiled=True))[0]("no C++ compiler\nand much more")

    monkeypatch.setattr(torch, "compile", lambda model: refuses)
    run = start(small("text", tmp_path, compiled=True), tmp_path / "run")
    with pytest.raises(TrainingError) as told:
        done(run)
    assert str(told.value) == (
        "compiled: a model that torch.compile can go over; got this: no C++ compiler; "
        f'leave out --compiled, or set "compiled" to false in {run.folder.settings} and resume'
    )
    assert compiler_errors(Machine()) == ()


@pytest.mark.skipif("REGARD_COMPILE" not in os.environ, reason="half a minute: set REGARD_COMPILE=1 to run it")
@pytest.mark.filterwarnings("ignore")  # of the compiler itself
def test_a_compiled_model_learns_the_same(tmp_path: Path) -> None:
    given = {"steps": 4, "evaluate": 4, "dropout": 0.0, "sample": 0}
    one = undisturbed(small("text", tmp_path, **given), tmp_path / "one")
    other = undisturbed(small("text", tmp_path, **given, compiled=True), tmp_path / "other")
    assert losses(other) == pytest.approx(losses(one), rel=1e-5)
