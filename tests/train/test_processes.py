"""Two processes learn what one does, up to the rounding of sums."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed

from regard.nn.checkpoints.tensors import read
from regard.train.processes import PROCESSES, joined
from small_runs import losses, small, undisturbed, words_of

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")


def gloo_starts() -> bool:
    """Whether two processes find each other here; some sandboxes have no network, not even their own."""
    found = torch.distributed.is_available() and torch.distributed.is_gloo_available()
    return found and sys.platform == "linux"


def children(process: int) -> list[int]:
    """The processes that one has started."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()]


def ended(command: list[str], seconds: float) -> str:
    """What a command printed; where it does not end in time, each of its processes says where it stands."""
    pipe, traced = subprocess.PIPE, os.environ | {"PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=traced) as running:
        try:
            said, problems = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for process in [*children(running.pid), running.pid]:
                os.kill(process, signal.SIGABRT)
            pytest.fail("not ended after {} s:\n{}\n{}".format(seconds, *running.communicate(timeout=60)))
    assert running.returncode == 0, problems[-2000:]
    return said


def test_one_process_is_its_own_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined("cpu") as processes:
        assert (processes.rank, processes.world, processes.several, processes.first) == (0, 1, False, True)
        assert PROCESSES.sum(torch.tensor(3.0)) == 3
        processes.wait()


@pytest.mark.slow
@pytest.mark.skipif(not gloo_starts(), reason="needs PyTorch's gloo on Linux: install a build of torch that has it")
def test_two_learn_what_one_learns(tmp_path: Path) -> None:
    settings = small("text", tmp_path, steps=5, evaluate=5, accumulate=2, batch=8, dropout=0.0, sample=0)
    words = ["regard", "train", *words_of(settings), "--out", str(tmp_path / "two")]
    said = ended([*TORCHRUN, *words], seconds=240)
    one, two = undisturbed(settings, tmp_path / "one"), tmp_path / "two"
    assert losses(two) == pytest.approx(losses(one), rel=1e-5)
    assert all(math.isfinite(loss) for loss in losses(two))
    ours, theirs = read(one.model)[1], read(two / "model.safetensors")[1]
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-3, atol=1e-4)
    assert said.count("done in") == 1, "one of them speaks"
