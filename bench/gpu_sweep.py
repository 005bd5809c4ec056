"""Which tiles are fastest on this GPU? Every tiling of a list, for each template, pass and formula, right first.

    python bench/gpu_sweep.py [--width 128] [--length 8192] [--formulas softmax causal …] [--minutes 8]

Prints TFLOP/s (4 N² d a head forward, 2.5 × that backward in all, × the admitted share) beside cuDNN's in the same run,
best first. What comes of it goes by hand into `engines/triton/hopper/tilings.py`, `backward_tilings.py` and
`engines/triton/tilings.py`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from regard import causal, dot, log, n, relu, sigmoid, sqrt, table, tanh
from regard.engines.call import prepare
from regard.engines.triton import operator
from regard.engines.triton.functions import GLUON, TRITON
from regard.engines.triton.hopper import launch as hopper
from regard.engines.triton.hopper import launch_backward as hopper_back
from regard.engines.triton.hopper.backward_tilings import BackwardTiling
from regard.engines.triton.hopper.tilings import Tiling as HopperTiling
from regard.engines.triton.passes import Pass
from regard.engines.triton.sides import sides
from regard.engines.triton.templates import launch
from regard.engines.triton.tilings import Tiling

SCORE = dot / sqrt(rg.d)
FORMULAS: dict[str, rg.Attention] = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=causal),
    "ALiBi": rg.Attention(score=SCORE - 2 ** (-8 * (rg.h + 1) / rg.H) * (rg.i - rg.j)),
    "soft-cap": rg.Attention(score=30 * tanh(SCORE / 30)),
    "sigmoid": rg.Attention(weight=sigmoid, score=SCORE - log(n)),
    "ReLU": rg.Attention(weight=lambda s: relu(s) / n),
    "relative": rg.Attention(score=SCORE + table("bias")[rg.h, rg.i - rg.j + 65536]),
}
Timed = tuple[float, str, str]


def ready(attention: rg.Attention, arrays: Any, tables: Any) -> Pass:
    """One pass of a call, as the engine makes it."""
    call = prepare(attention, *arrays, tables=tables)
    tensors, fixed = operator._arguments(call, sides(call))
    wanted = [False] * (len(tensors) - 2 * fixed.lefts - 1)
    return Pass.of(*fixed.split(tensors), *fixed.rest, wanted)


def forward_variants(the: Pass) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, run) of every tiling of the forward pass."""
    call = the.launched(GLUON)
    flags = itertools.product((64, 128), (2, 3), (2, 3), (False, True), (False, True))
    for columns, stages, warpgroups, in_turn, persistent in flags:
        tiles = HopperTiling(columns, stages, warpgroups, in_turn, persistent, own_out=persistent)
        blocks = the.lists(tiles.rows, tiles.columns, "rows")
        yield f"hopper {tiles}", lambda tiles=tiles, blocks=blocks: hopper.forward(call, blocks, tiles)[0]
    plain = the.launched(TRITON)
    for rows, columns, warps, stages in itertools.product((64, 128), (64, 128), (4, 8), (2, 3)):
        own = Tiling(rows, columns, warps, stages)
        blocks = the.lists(rows, columns, "rows")
        yield f"triton {own}", lambda own=own, blocks=blocks: launch.forward(plain, blocks, own)[0]


def backward_variants(the: Pass, stats: Any, dy: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, run) of every tiling of the two kernels of the backward pass for Hopper."""
    call = the.launched(GLUON)
    for block, stages, warpgroups, in_turn in itertools.product((64, 128), (2, 3, 4), (2, 3), (False, True)):
        tiles = BackwardTiling(block, stages, warpgroups, in_turn)
        blocks = the.lists(tiles.held, tiles.block, "rows")
        yield f"rows {tiles}", lambda t=tiles, x=blocks: hopper_back.of_rows(call, stats, dy, x, t)[0]
        for behind in (False, True):
            own = BackwardTiling(block, stages, warpgroups, in_turn, behind)
            blocks = the.lists(own.block, own.held, "keys")
            yield f"keys {own}", lambda t=own, x=blocks: hopper_back.of_keys(call, stats, dy, x, t)[0]


def timed(run: Callable[[], Any], right: Any, flops: float) -> tuple[float, float]:
    """TFLOP/s, and the relative difference from another tiling's result."""
    found = run()
    torch.cuda.synchronize()
    error = float((found.float() - right.float()).norm() / right.float().norm())
    return flops / triton.testing.do_bench(run, warmup=20, rep=60, return_mode="median") / 1e9, error


def cudnn_time(q: Any, k: Any, v: Any, is_causal: bool) -> float:
    """Milliseconds of PyTorch's own kernel, forward."""

    def run() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return float(triton.testing.do_bench(run, warmup=20, rep=100, return_mode="median"))


def swept(variants: Any, right: dict[str, Any], flops: dict[str, float], end: float) -> list[Timed]:
    rows: list[Timed] = []
    for name, run in variants:
        kind = name.split()[0]
        if time.monotonic() > end:
            break
        try:
            right.setdefault(kind, run())
            rate, error = timed(run, right[kind], flops[kind])
        except Exception as problem:  # noqa: BLE001 - a tiling that does not fit is told, and the next is tried
            rows.append((0.0, name, f"{type(problem).__name__}: {str(problem)[:60]}"))
            continue
        rows.append((rate, name, f"{error:.1e}"))
    return sorted(rows, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--formulas", nargs="+", default=["softmax"], choices=FORMULAS)
    parser.add_argument("--passes", nargs="+", default=["forward", "backward"])
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--best", type=int, default=12)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    heads, batch, length, width = 2048 // options.width, 2, options.length, options.width
    q, k, v, dy = (torch.randn(batch, heads, length, width, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    for name in options.formulas:
        attention, share = FORMULAS[name], 0.5 if name == "causal" else 1.0
        tables = {"bias": torch.randn(heads, 131073, device="cuda")} if attention.ranks else {}
        flops = 4 * batch * heads * length**2 * width * share
        rate = flops / cudnn_time(q, k, v, name == "causal") / 1e9
        lines = [f"{name}, width {width}, {length}: cuDNN forward {rate:.0f} TFLOP/s"]
        the = ready(attention, (q, k, v), tables)
        if "forward" in options.passes:
            right = {"hopper": attention(q, k, v, engine="triton", **tables)}
            right["triton"] = right["hopper"]
            rows = swept(forward_variants(the), right, dict.fromkeys(("hopper", "triton"), flops), end)
            lines += [f"{rate:7.0f}  {error}  {told}" for rate, told, error in rows[: options.best]]
        if "backward" in options.passes:
            y, total = operator.attend(the)
            stats = launch.row_stats(the.launched(), y, total if the.made.is_shared else None, dy, None)
            parts = {"rows": 1.5 * flops, "keys": 2.0 * flops}  # three and four products, raw
            rows = swept(backward_variants(the, stats, dy), {}, parts, end)
            for kind in parts:
                best = [row for row in rows if row[1].startswith(kind)][: options.best]
                lines += [f"{rate:7.0f}  {error}  {told}" for rate, told, error in best]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
