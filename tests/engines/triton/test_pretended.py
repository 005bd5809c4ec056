"""The whole engine on a chip that is not there: host side, printed functions and both templates compile together."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "pretend_gpu.py"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="no triton: pip install 'regard[gpu]'"
)

ALIBI = "softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=j <= i)"
TABLES = 'share(exp(s), sink=exp(table("rest")[h]))(tanh(dot / sqrt(d)) + table("bias")[h, i - j + 255])'
DOCUMENTS = 'each(sigmoid(s))(cosine, mask=equal(table("ids")[b, i], table("ids")[b, j]))'
FULL = 'softmax(dot(table("M")) + table("whole")[h, i, j])'
BACK = {"hopper": ["backward_rows", "backward_keys"], "triton": ["rows_backward", "keys_backward"]}
CASES = {
    "Gluon": ("90", "bfloat16", "hopper", [ALIBI, TABLES]),
    "Triton on Hopper": ("90", "bfloat16", "triton", [DOCUMENTS, FULL]),
    "Triton on Ampere, float32": ("80", "float32", "any", [ALIBI]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_kernel_compiles(case: str) -> None:
    chip, dtype, template, formulas = CASES[case]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(TOOL), chip, dtype, template, *formulas]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [made["formula"] for made in found] == formulas, done.stderr
    for made in found:
        assert "error" not in made, made["error"]
        expected = ["forward", *BACK["hopper" if template == "hopper" else "triton"]]
        assert set(expected) <= set(made["kernels"])
        assert max(made["kernels"].values()) <= {"90": 227, "80": 163}[chip] * 1024
        if dtype == "float32":  # a bias is added to a product, and does not begin its sum
            for kernel, products in {"forward": 2, "rows_backward": 3, "keys_backward": 4}.items():
                fresh = [start for start in made["sums"][kernel] if start.startswith("%cst")]
                assert len(fresh) == len(made["sums"][kernel]) * {2: 1, 3: 2, 4: 2}[products] // products
