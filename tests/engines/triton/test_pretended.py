"""The whole engine on a chip that is not there: host side, printed functions and both templates compile together."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TOOL = Path(__file__).parents[2] / "pretend_gpu.py"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="no triton: pip install 'regard[gpu]'"
)

ALIBI = "softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=j <= i)"
TABLES = 'share(exp(s), sink=exp(table("rest")[h]))(tanh(dot / sqrt(d)) + table("bias")[h, i - j + 255])'
DOCUMENTS = 'each(sigmoid(s))(cosine, mask=equal(table("ids")[b, i], table("ids")[b, j]))'
FULL = 'softmax(dot(table("M")) + table("whole")[h, i, j])'
COLUMNS = "each(sigmoid(s))(dot * cosine - sqdist / d, mask=j <= i)"  # two vectors of columns beside each block
FUNCTIONS = (
    "share(exp(s) + softplus(s) + gelu(s) ** 2)(log(1 + abs(dot)) + sin(dot) + cos(dot) + erf(dot) + sqrt(abs(dot)))"
)
PLACES = 'softmax(-abs(i - j) / 8, mask=j < table("lengths")[b])'  # no product at all
HALVES = 'softmax(dot(table("M")) / d, mask=j <= i)'  # two products, of the high and the low digits of q M
THREE = 'softmax(dot(table("M")) + minimum(dot, 2), mask=j <= i)'  # products, in half precision
SHARED = 'softmax(dot * table("t")[h] / sqrt(d) - table("a")[h] * log(1 + abs(i - j)))'  # by all keys of a row
SHARED_SINK = 'share(softplus(s), sink=exp(table("rest")[h]))(dot * table("t")[h] / sqrt(d), mask=j <= i)'
RELATIVE = 'softmax(dot / sqrt(d) + table("bias")[h, i - j + 255])'
WINDOWS = [f"{weight}(dot / sqrt(d), mask=(j <= i) & (i - j <= 99))" for weight in ("softmax", "share(relu(s) ** 2)")]
SCATTERED = "softmax(dot / sqrt(d), mask=(3000000000 * h + 1103515245 * i + n * j) // 65536 % 7 < 3)"  # beyond 32 bits
RELATIVE_CAUSAL = 'softmax(dot / sqrt(d) + table("bias")[h, i - j], mask=j <= i)'

TRITON = {"rows_backward", "keys_backward"}
TRITON_KEPT = {"keys_backward", "queries_backward"}
GLUON = {"backward_keys"}
KEPT = {"backward_queries", "band_sums"}  # of dS that was written down: dq, and sums over i − j
AGAIN = {"backward_rows", "spread_backward"}  # the same, of dS that is made again


class Case(NamedTuple):
    """Formulas on a chip, the kernels of their backward pass, and those of which they have none."""

    chip: str
    dtype: str
    choices: dict[str, Any]
    formulas: list[str]
    back: set[str]
    none: set[str]
    width: int = 64
    length: int = 256


HOPPER = {"template": "hopper"}
AGAIN_BY_TRITON = {"template": "triton", "memory": 0}
COSINE = "softmax(8 * cosine)"
PLAIN = ["softmax(dot / sqrt(d))", "softmax(dot / sqrt(d), mask=j <= i)", "each(relu(s) / n)(dot / sqrt(d))"]
CASES = {
    "Gluon": Case("90", "bfloat16", HOPPER, [ALIBI, TABLES], GLUON | {"backward_rows"}, KEPT),
    "Gluon, dS kept": Case("90", "bfloat16", HOPPER, [RELATIVE, RELATIVE_CAUSAL], GLUON | KEPT, AGAIN, width=128),
    "Gluon, windows": Case("90", "bfloat16", HOPPER, WINDOWS, GLUON | {"backward_queries"}, AGAIN, width=128),
    "Gluon, far": Case("90", "bfloat16", HOPPER, [SCATTERED], GLUON | {"backward_queries"}, AGAIN, width=128),
    "Triton on Ampere, far": Case("80", "float16", {}, [SCATTERED], TRITON, GLUON | KEPT),
    "Gluon, numbers that keys share": Case(
        "90", "bfloat16", HOPPER, [SHARED, SHARED_SINK], GLUON | {"backward_rows", "balance"}, {"backward_queries"}, 128
    ),
    "Triton on Hopper, numbers that keys share": Case(
        "90", "float16", {"template": "triton"}, [SHARED, SHARED_SINK], TRITON | {"balance"}, {"queries_backward"}, 128
    ),
    "Triton on Ampere, numbers that keys share": Case("80", "float32", {}, [SHARED_SINK], TRITON | {"balance"}, KEPT),
    "Few queries, three products": Case(
        "90",
        "bfloat16",
        {},
        [THREE],
        TRITON | {"part"},
        GLUON,
        64,
        600,
    ),
    "Gluon, columns": Case("90", "bfloat16", HOPPER, [COLUMNS], GLUON | {"backward_rows"}, KEPT, width=128),
    "Gluon, functions": Case("90", "bfloat16", HOPPER, [FUNCTIONS], GLUON | {"backward_rows"}, KEPT),
    "Triton on Hopper, functions": Case("90", "float16", {"template": "triton"}, [FUNCTIONS], TRITON, GLUON | KEPT),
    "Triton on Hopper, places": Case("90", "bfloat16", {}, [PLACES], {"keys_backward"}, GLUON | KEPT, width=128),
    "Gluon, nothing kept": Case("90", "bfloat16", HOPPER | {"memory": 0}, [RELATIVE], GLUON | AGAIN, KEPT, width=128),
    "Triton on Hopper": Case("90", "bfloat16", {"template": "triton"}, [DOCUMENTS, FULL], TRITON, GLUON | KEPT),
    "Triton on Hopper, in flight": Case(
        "90", "bfloat16", AGAIN_BY_TRITON, [*PLAIN, COSINE, HALVES], TRITON, GLUON | KEPT, width=128
    ),
    "Triton on Hopper, dS kept": Case(
        "90",
        "bfloat16",
        {"template": "triton"},
        [RELATIVE, DOCUMENTS],
        TRITON_KEPT,
        {"rows_backward"} | GLUON,
        width=128,
    ),
    "Triton on Hopper, one tile": Case(
        "90", "bfloat16", {"template": "triton"}, [DOCUMENTS], TRITON_KEPT, {"rows_backward"} | GLUON, 128, length=64
    ),
    "Triton on Ampere, dS kept": Case(
        "80", "float16", {"memory": 2**24}, [RELATIVE_CAUSAL], TRITON_KEPT | {"band_sums"}, {"rows_backward"}, width=128
    ),
    "Triton on Ampere, float32": Case("80", "float32", {}, [ALIBI], TRITON, GLUON | KEPT),
    "Triton on Ampere, float32, wide": Case("80", "float32", {}, [ALIBI], TRITON, GLUON | KEPT, width=256),
    "Triton on a small chip": Case("86", "float16", {}, [FULL], TRITON, GLUON | KEPT, width=256),
    "Triton on Blackwell": Case("100", "bfloat16", {}, [ALIBI, DOCUMENTS], TRITON_KEPT, GLUON, width=128),
    "Triton on a small Blackwell": Case("120", "bfloat16", {}, [ALIBI], TRITON_KEPT, GLUON, width=128),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_compiles(name: str) -> None:
    chip, dtype, choices, formulas, back, none, width, length = CASES[name]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(TOOL), chip, dtype, json.dumps(choices), str(width), str(length), *formulas]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [made["formula"] for made in found] == formulas, done.stderr
    for made in found:
        assert "error" not in made, made["error"]
        assert {"forward"} | back <= set(made["kernels"])
        assert not none & set(made["kernels"])
        assert not made["waits"] or (made["formula"] == FUNCTIONS and not made["triton"].startswith("3.6"))
        assert not made["answered"]
        if made["formula"] in (*PLAIN, COSINE, HALVES, DOCUMENTS):
            assert "forward" not in made["halts"], "vectors of columns are there before products are begun"
        if chip == "90" and choices.get("template") == "triton" and made["formula"] in PLAIN[:2]:
            assert made["asked"]["forward"] > 0, "a forward kernel asks whether a tile is to be done again"
        assert max(made["kernels"].values()) <= {"80": 163, "86": 99, "90": 227, "100": 227, "120": 99}[chip] * 1024
        if dtype == "float32":  # a bias is added to a product, and does not begin its sum
            for kernel, products in {"forward": 2, "rows_backward": 3, "keys_backward": 4}.items():
                fresh = [start for start in made["sums"][kernel] if start.startswith("%cst")]
                assert len(fresh) == len(made["sums"][kernel]) * {2: 1, 3: 2, 4: 2}[products] // products
