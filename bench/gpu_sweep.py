"""Which tiles are fastest on this GPU? Every tiling of a list, for each kernel and formula, right first.

    python bench/gpu_sweep.py [--width 128] [--length 8192] [--formulas softmax causal …] [--kernels forward …]

Tilings are compiled by many processes side by side, so that one which hangs is left out, and then timed alone: TFLOP/s
of the products that a kernel does (forward 2, rows 3, keys 4, both 5; × the admitted share), beside cuDNN's in the same
run, best first. What comes of it goes by hand into `engines/triton/hopper/tilings.py`, `backward_tilings.py` and
`engines/triton/tilings.py`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
from gpu_parts.arrays import packed, share
from gpu_parts.crowd import crowd
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard as rg
from regard import causal, documents, dot, log, n, relu, sigmoid, sqdist, sqrt, table, tanh, window
from regard.engines.call import prepare
from regard.engines.triton import operator
from regard.engines.triton.functions import GLUON, TRITON
from regard.engines.triton.hopper import launch as hopper
from regard.engines.triton.hopper import launch_backward as hopper_back
from regard.engines.triton.hopper.backward_tilings import BackwardTiling, GatherTiling
from regard.engines.triton.hopper.tilings import Tiling as HopperTiling
from regard.engines.triton.passes import Pass
from regard.engines.triton.sides import sides
from regard.engines.triton.templates import kept, launch
from regard.engines.triton.tilings import Tiling

DEVICE = "cuda"
SCORE, WINDOW = dot / sqrt(rg.d), 1024
FORMULAS: dict[str, rg.Attention] = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=causal),
    "ALiBi": rg.Attention(score=SCORE - 2 ** (-8 * (rg.h + 1) / rg.H) * (rg.i - rg.j)),
    "Euclidean": rg.Attention(score=-sqdist / 16),
    "soft-cap": rg.Attention(score=30 * tanh(SCORE / 30)),
    "sigmoid": rg.Attention(weight=sigmoid, score=SCORE - log(n)),
    "ReLU": rg.Attention(weight=lambda s: relu(s) / n),
    "relative": rg.Attention(score=SCORE + table("bias")[rg.h, rg.i - rg.j + 65536]),
    "cosine": rg.Attention(score=8 * rg.cosine),
    "window": rg.Attention(mask=window(WINDOW) & causal),
    "documents": rg.Attention(mask=documents("ids")),
}
PRODUCTS = {"forward": 2, "rows": 3, "keys": 4, "both": 5}
PRODUCTS |= {"triton": 2, "triton rows": 3, "triton keys": 4, "triton both": 5}
GATHERED = (GatherTiling(1, 6), GatherTiling(2, 4), GatherTiling(1, 4), GatherTiling(2, 3))
Run = Callable[[], Any]


class Variant(NamedTuple):
    """One kernel of one formula with one tiling."""

    formula: str
    width: int
    length: int
    kernel: str
    tiles: Any


class Ready(NamedTuple):
    """A formula's arrays, its pass, and what the backward kernels read."""

    the: Pass
    stats: Any
    dy: Any
    share: float  # of the pairs that the mask admits


@lru_cache(maxsize=1)
def ready(name: str, width: int, length: int) -> Ready:
    attention, heads, batch = FORMULAS[name], 2048 // width, 2
    generator = torch.Generator(device=DEVICE).manual_seed(0)

    def draw(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, device=DEVICE)

    q, k, v, dy = (draw(batch, heads, length, width).bfloat16() for _ in range(4))
    made = {
        "bias": lambda: draw(heads, 131073),
        "ids": lambda: packed(batch, length, DEVICE),
    }
    torch.manual_seed(0)  # documents
    tables = {table: made[table]() for table in attention.ranks}
    call = prepare(attention, q, k, v, tables=tables)
    tensors, fixed = operator._arguments(call, sides(call))
    the = Pass.of(*fixed.split(tensors), *fixed.rest, [False] * (len(tensors) - 2 * fixed.lefts - 1))
    y, total = operator.attend(the)
    stats = launch.row_stats(the.launched(), y, total if the.made.is_shared else None, dy, None)
    return Ready(the, stats, dy, share(name, length, WINDOW, tables.get("ids")))


def runner(variant: Variant) -> Run:
    """The kernel, ready to run: y, dq or dk."""
    the, stats, dy, _share = ready(variant.formula, variant.width, variant.length)
    tiles = variant.tiles
    call = the.launched(TRITON if variant.kernel.startswith("triton") else GLUON)
    match variant.kernel:
        case "forward":
            blocks = the.lists(tiles.rows, tiles.columns, "rows")
            return lambda: hopper.forward(call, blocks, tiles)[0]
        case "rows":
            blocks = the.lists(tiles.held, tiles.block, "rows")
            return lambda: hopper_back.of_rows(call, stats, dy, blocks, tiles)[0]
        case "keys":
            blocks = the.lists(tiles.block, tiles.held, "keys")
            return lambda: hopper_back.of_keys(call, stats, dy, blocks, tiles)[0]
        case "both":
            way = hopper_back.Five(*tiles)
            both = the.both_lists(*way.tile)
            heads = kept.heads_at_once(call, both[1], way.tile, None)
            return lambda: hopper_back.of_both(call, stats, dy, both, way, heads).lefts[0]
        case "triton both":
            chosen = kept.Way(*tiles)
            both = the.both_lists(*chosen.tile)
            heads = kept.heads_at_once(call, both[1], chosen.tile, None)
            return lambda: kept.of_both(call, stats, dy, both, chosen, heads).lefts[0]
        case "triton":
            blocks = the.lists(tiles.rows, tiles.columns, "rows")
            return lambda: launch.forward(call, blocks, tiles)[0]
        case "triton rows":
            blocks = the.lists(tiles.rows, tiles.columns, "rows")
            return lambda: launch.of_rows(call, stats, dy, blocks, tiles)[0][0]
    blocks = the.lists(tiles.rows, tiles.columns, "keys")
    return lambda: launch.of_keys(call, stats, dy, blocks, tiles)[0][0]


def tilings(kernel: str, width: int) -> Iterator[Any]:
    """Those that are tried, the likely ones first; what fits into no program fails when it is compiled, and is told."""
    groups = (2, 3) if width <= 64 else (2,)
    switch = (False, True)
    match kernel:
        case "forward":
            for in_turn, columns, stages, parts in itertools.product(switch, (128, 64), (2, 3), groups):
                yield HopperTiling(columns, stages, parts, in_turn, persistent=True, own_out=True)
                yield HopperTiling(columns, stages, parts, in_turn)
        case "rows":
            for in_turn, block, stages, parts in itertools.product(switch, (64, 128), (3, 2), groups):
                yield BackwardTiling(block, stages, parts, in_turn)
        case "keys":
            for behind, in_turn, stages, block, parts in itertools.product(switch, switch, (3, 2), (64, 32), groups):
                yield BackwardTiling(block, stages, parts, in_turn, behind)
        case "both":
            for behind, in_turn, stages, gather in itertools.product((True, False), switch, (3, 2), GATHERED):
                yield BackwardTiling(64, stages, in_turn=in_turn, behind=behind, kept=True), gather
        case "triton":
            for size, stages in itertools.product((128, 64), (3, 2)):
                yield Tiling(size, size, size // 16, stages)
            for rows, columns, stages in ((128, 64, 4), (128, 64, 3), (64, 128, 2), (64, 64, 4)):
                yield Tiling(rows, columns, rows // 16, stages)
        case "triton both":
            for rows, stages in itertools.product((128, 256), (3, 4)):
                yield Tiling(64, 64, 4, 2), Tiling(rows, 64, rows // 32, stages)
        case "triton rows":
            for columns, rows, stages in itertools.product((64, 32, 128), (128, 64), (3, 2)):
                yield Tiling(rows, columns, rows // 16, stages)
        case "triton keys":
            for rows, columns, stages in itertools.product((64, 32, 128), (64, 128), (2, 3)):
                yield Tiling(rows, columns, columns // 16, stages)


def compiled(variant: Variant) -> str | None:
    """Runs once, in another process, so that the compiler's result lies on the disk."""
    runner(variant)()
    torch.cuda.synchronize()
    return None


def timed(variant: Variant, right: dict[str, Any]) -> tuple[float, float]:
    """TFLOP/s, and the relative difference from another tiling's result."""
    run = runner(variant)
    found = run()
    right.setdefault(variant.kernel.split()[-1], found)
    wanted = right[variant.kernel.split()[-1]].float()
    error = float((found.float() - wanted).norm() / wanted.norm())
    pairs = 2 * (2048 // variant.width) * variant.length**2 * ready(*variant[:3]).share
    flops = 2 * pairs * variant.width * PRODUCTS[variant.kernel]
    return flops / triton.testing.do_bench(run, warmup=10, rep=40, return_mode="median") / 1e9, error


def cudnn(width: int, length: int, is_causal: bool) -> float:
    """TFLOP/s of PyTorch's own kernel, forward."""
    heads = 2048 // width
    q, k, v = (torch.randn(2, heads, length, width, device=DEVICE, dtype=torch.bfloat16) for _ in range(3))

    def run() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        seconds = float(triton.testing.do_bench(run, warmup=20, rep=100, return_mode="median"))
    return 4 * 2 * heads * length**2 * width * (0.5 if is_causal else 1) / seconds / 1e9


def table_of(variants: list[Variant], failed: dict[Variant, str], best: int, end: float) -> Iterator[str]:
    """Lines for one formula and kernel, the fastest first."""
    right: dict[str, Any] = {}
    rows = []
    for variant in variants:
        if variant in failed or time.time() > end:
            continue
        try:
            rows.append((*timed(variant, right), variant.tiles))
        except Exception as problem:  # noqa: BLE001 - a tiling that fails is told, and the next is tried
            failed[variant] = str(problem)[:80]
    for rate, error, tiles in sorted(rows, key=lambda row: -row[0])[:best]:
        yield f"{rate:7.0f}  {error:.1e}  {variants[0].kernel} {tiles}"
    left_out = [variant for variant in variants if variant in failed]
    reasons = {failed[variant][:60] for variant in left_out}
    yield f"         {len(left_out)} of {len(variants)} left out {sorted(reasons)[:3]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", nargs="+", type=int, default=[128])
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--formulas", nargs="+", default=["softmax"], choices=FORMULAS)
    parser.add_argument("--kernels", nargs="+", default=list(PRODUCTS), choices=PRODUCTS)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--most", type=int, default=99, help="tilings of each kernel")
    parser.add_argument("--best", type=int, default=5)
    options = parser.parse_args()
    asked = itertools.product(options.widths, options.formulas, options.kernels)
    groups = {
        (width, name, kernel): [
            Variant(name, width, options.length, kernel, tiles)
            for tiles in itertools.islice(tilings(kernel, width), options.most)
        ]
        for width, name, kernel in asked
    }
    end = time.time() + 60 * options.minutes
    jobs = [group[first::2] for group in groups.values() for first in range(2)]
    answers = crowd(compiled, jobs, options.processes, options.patience, end - 60)
    failed = {variant: answer for variant, answer in answers if answer}
    print(f"{len(answers)} tilings compiled, {len(failed)} of them not; {end - time.time():.0f} s left", flush=True)
    for (width, name, kernel), group in groups.items():
        if kernel == options.kernels[0]:
            rate = cudnn(width, options.length, name == "causal")
            print(f"{name}, width {width}, {options.length}: cuDNN forward {rate:.0f} TFLOP/s")
        print("\n".join(table_of(group, failed, options.best, end)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
