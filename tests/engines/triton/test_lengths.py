"""A formula's kernels are compiled for lengths that are multiples of 16, and once more for all others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fused import needs_triton

pytestmark = needs_triton
TOOL = Path(__file__).parents[2] / "pretend_lengths.py"
FORMULAS = [
    "softmax(dot / sqrt(d), mask=j <= i)",
    "softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=(j <= i) & (i - j < 100))",
    'softmax(dot * table("t")[h], mask=equal(table("ids")[b, i], table("ids")[b, j]))',
    'softmax(dot / sqrt(d) + table("bias")[h, i - j + 4096], mask=j < table("lengths")[b])',
    'share(exp(s), sink=exp(table("rest")[h]))(-sqdist / 2 + table("all")[h, i, j])',
    "each(sigmoid(s))(cosine - log(n))",
]


@pytest.mark.slow
@pytest.mark.parametrize("choices", ["{}", '{"template": "triton"}', '{"template": "triton", "memory": 16777216}'])
def test_two_versions_serve_all_lengths_batches_and_heads(choices: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(TOOL), choices, *FORMULAS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [made["formula"] for made in found] == FORMULAS, done.stderr
    for made in found:
        sixteens, every = made["whole"]
        assert {"forward", "backward_keys" if choices == "{}" else "keys_backward"} <= set(sixteens)
        assert most(sixteens) == 1, made
        assert most(every) == 2, made
        assert {"part", "joined"} <= set(made["few"][0])
        assert most(made["few"][0]) <= 2, made


def most(versions: dict[str, Any]) -> int:
    return max(versions.values())
