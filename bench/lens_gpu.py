"""The lens on a GPU: tiles right first, then the whole pyramid of a long map.

    PYTHONPATH=src:bench python bench/lens_gpu.py      prints a table and keeps bench/results/lens.json, part "cuda"

Right: every tile of every level, on the GPU in float32 and float16, against the whole matrix in float64, for formulas,
masks and awkward sizes. Time: one head of 100 000 × 100 000 in float16, from nothing to every coarse level.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import numpy as np
import torch
from machine import keep

import regard as rg
from regard.viewer.record import Captured
from regard.viewer.weighing import passes, tiles
from regard.viewer.weighing.tiles import SIDE, Pyramid

LONG, WIDTH = 100_000, 64
GOAL = 1.0
SHAPES = [(1, 1), (257, 257), (300, 517), (1031, 77), (3, 1500)]
FORMULAS = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=rg.causal),
    "window": rg.Attention(mask=rg.window(31)),
    "sink": rg.parse("share(exp(s), sink=1)(dot / sqrt(d))"),
    "sigmoid": rg.parse("each(sigmoid(s))(dot / sqrt(d) - log(n))"),
    "soft-capped": rg.parse("softmax(3 * tanh(dot / (3 * sqrt(d))))"),
    "over queries": rg.parse("share(exp(s), over=i)(dot / sqrt(d))"),
    "over heads": rg.parse("share(exp(s), over=h)(dot / sqrt(d))"),
    "table": rg.parse('softmax(dot / sqrt(d) + table("bias")[h], mask=given("mask"))'),
}


def call_of(formula: rg.Attention, queries: int, keys: int, dtype: torch.dtype, width: int = 7) -> Captured:
    """Two batch items of four heads on the GPU."""
    torch.manual_seed(0)
    q, k = 2 * torch.randn(2, 4, queries, width), 2 * torch.randn(2, 2, keys, width)
    tables = {"bias": torch.randn(4), "mask": torch.rand(1, 1, queries, keys) < 0.9}
    moved = {name: table.cuda() for name, table in tables.items()}
    return Captured("layer", formula, q.to(dtype).cuda(), k.to(dtype).cuda(), tables=moved, start=0)


def whole(call: Captured) -> Any:
    """The matrix of batch item 1, head 2, in float64."""
    tables = {name: call.tables[name].cpu() for name in call.formula.ranks}
    wide = {name: table.double() if table.is_floating_point() else table for name, table in tables.items()}
    q, k = call.q.cpu().double(), call.k.cpu().double()
    return call.formula.weights(q, k, start=0, engine="dense", **wide)[1, 2].numpy()


def reduced(matrix: Any, level: int) -> Any:
    rows, columns = (np.arange(0, size, 2**level) for size in matrix.shape)
    largest = np.maximum.reduceat(np.maximum.reduceat(matrix, rows), columns, axis=1)
    total, count = (np.add.reduceat(np.add.reduceat(x, rows), columns, axis=1) for x in (matrix, np.ones_like(matrix)))
    return np.stack([largest, total / count])


def check() -> int:
    """How many tiles were right."""
    right = 0
    for formula in FORMULAS.values():
        for shape in SHAPES:
            for dtype in (torch.float32, torch.float16):
                call = call_of(formula, *shape, dtype)
                right += _check(Pyramid(call, 1, 2), whole(call), formula)
    return right


def _check(pyramid: Pyramid, matrix: Any, formula: rg.Attention) -> int:
    right = 0
    for level in range(pyramid.levels):
        expected = reduced(matrix, level)[: 2 if level else 1]
        for row in range(-(-expected.shape[1] // SIDE)):
            for column in range(-(-expected.shape[2] // SIDE)):
                part = expected[:, row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE]
                found, known = pyramid.tile(level, row, column)
                while known < 1:
                    found, known = pyramid.tile(level, row, column)
                np.testing.assert_allclose(found.astype(np.float64), part, 2e-3, 2e-6, err_msg=f"{formula} {level}")
                right += 1
    return right


def timed(formula: rg.Attention) -> dict[str, float]:
    """Seconds of the pass, of all coarse levels, and of their tiles as they are sent; the median of five."""
    torch.manual_seed(0)
    q, k = (torch.randn(1, 1, LONG, WIDTH, device="cuda").half() for _ in range(2))
    passed, found, drawn, first = [], [], [], []
    for _ in range(6):
        call = Captured("layer", formula, q, k, start=0)
        pyramid = Pyramid(call, 0, 0)
        torch.cuda.synchronize()
        start = time.perf_counter()
        pyramid.tile(0, 300, 150)
        first.append(time.perf_counter() - start)
        call.known.clear()
        pyramid = Pyramid(call, 0, 0)
        torch.cuda.synchronize()
        start = time.perf_counter()
        pyramid.coarse.run()
        passed.append(time.perf_counter() - start)
        pyramid.coarse.whole(pyramid.levels - 1)
        found.append(time.perf_counter() - start)
        for level in range(pyramid.coarse.level, pyramid.levels):
            side = math.ceil(LONG / (SIDE * 2**level))
            for place in range(side**2):
                pyramid.tile(level, *divmod(place, side))
        drawn.append(time.perf_counter() - start)
    names = {"first_tile_s": first, "pass_s": passed, "pyramid_s": found, "with_all_its_tiles_s": drawn}
    return {name: statistics.median(times[1:]) for name, times in names.items()}


def main() -> None:
    """Right, then fast."""
    torch.backends.cuda.matmul.allow_tf32 = False
    fine, tiles.FINE = tiles.FINE, 0
    right = check()
    passes.WIDEST, widest = 64, passes.WIDEST
    right += check()
    passes.WIDEST, tiles.FINE = widest, fine
    right += check()
    print(f"{right} tiles right")
    rows = {name: timed(FORMULAS[name]) for name in ("softmax", "causal", "soft-capped", "sigmoid")}
    for name, row in rows.items():
        print(f"{LONG} × {LONG}, {name}: {row}; goal {GOAL} s")
    found = {"goal_s": GOAL, "tiles_right": right, "gpu": torch.cuda.get_device_name(), "rows": rows}
    keep("lens", "cuda", found, "torch", "numpy")


if __name__ == "__main__":
    with torch.no_grad():
        main()
