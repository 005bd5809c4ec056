"""Every kernel is started as on a GPU, by Triton's own launcher, with a driver that is played."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bench" / "launching.py"
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton: pip install 'regard[gpu]'"),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"no C compiler for the driver: install {COMPILER}"),
]


def test_every_kernel_starts() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--once"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    sweeps = found.pop("sweeps")
    one = dict.fromkeys(("forward", "rows", "keys", "triton", "triton rows", "triton keys"), 1)
    assert sweeps == one | {"both": 2, "triton both": 2, "decoding": 2}
    assert {"softmax", "documents", "relative"} <= set(found)
    for name, started in found.items():
        sums = name == "relative"  # of the bias, by a kernel of their own
        assert started == {"hopper": 4 + sums, "triton": 4 + sums, "decoding": 2}
