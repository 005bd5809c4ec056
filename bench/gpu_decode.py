"""Which tiles read a long cache the fastest? One step of decoding, every tiling of a list, beside a large copy.

    python bench/gpu_decode.py [--queries 16] [--heads 32 8] [--keys 65536] [--formulas softmax soft-cap]

Right first: all tilings give what the first one gives. Then they take turns in random order with a copy of 2 GiB; told
are microseconds, and bytes of keys and values in a second as a share of what the copy reads and writes. What comes of
it goes by hand into `engines/triton/templates/decode.py`.
"""

from __future__ import annotations

import argparse
import time
from functools import lru_cache
from typing import Any, NamedTuple

import gpu_sweep
import torch
from gpu_parts.cases import REAL
from gpu_parts.crowd import crowd
from gpu_parts.measuring import Clock, Work, copy, in_rounds, quartiles
from gpu_parts.peers import GPU

from regard.engines.call import prepare
from regard.engines.triton import operator
from regard.engines.triton.passes import Pass
from regard.engines.triton.sides import sides
from regard.engines.triton.templates import decode
from regard.engines.triton.templates.dealing import multiprocessors, shares_for
from regard.engines.triton.tilings import Tiling


class Variant(NamedTuple):
    """A step of decoding with one tiling."""

    formula: str
    queries: int
    heads: tuple[int, int]  # of queries, of keys
    keys: int
    columns: int
    warps: int
    stages: int
    resident: int  # programs that a multiprocessor runs at once

    def __str__(self) -> str:
        return f"{self.columns} keys, {self.warps} warps, {self.stages} stages, {self.resident} resident"


def variants(formula: str, queries: int, heads: tuple[int, int], keys: int) -> list[Variant]:
    """Those that are tried."""
    asked = formula, queries, heads, keys
    few = queries * heads[0] // heads[1] <= decode.FEW_ROWS
    shapes = ((64, 4, 3), (64, 4, 4), (64, 4, 2), (128, 4, 2), (32, 4, 4), (128, 8, 2) if few else (64, 8, 3))
    return [Variant(*asked, *shape, resident) for shape in shapes for resident in (2, 1)]


@lru_cache(maxsize=1)
def ready(formula: str, queries: int, heads: tuple[int, int], keys: int) -> Pass:
    """The pass of one formula, its arrays drawn."""
    generator = torch.Generator(device=gpu_sweep.DEVICE).manual_seed(0)
    shapes = (heads[0], queries, 128), (heads[1], keys, 128), (heads[1], keys, 128)
    q, k, v = (torch.randn((1, *shape), generator=generator, device=gpu_sweep.DEVICE).bfloat16() for shape in shapes)
    call = prepare(gpu_sweep.FORMULAS[formula], q, k, v, tables={})
    tensors, fixed = operator._arguments(call, sides(call))
    return Pass.of(*fixed.split(tensors), *fixed.rest, [])


def run(variant: Variant) -> Any:
    """y of the step."""
    the = ready(*variant[:4])
    call = the.launched()
    blocks, places = -(-variant.keys // variant.columns), variant.resident * multiprocessors(call.v.device)
    tiles = Tiling(decode.tiling_for(call).rows, variant.columns, variant.warps, variant.stages)
    return decode.decode(call, None, tiles, shares_for(variant.heads[1], blocks, places))[0]


def compiled(variant: Variant) -> str | None:
    """Runs once, in another process, so that the compiler's result lies on the disk."""
    run(variant)
    torch.cuda.synchronize()
    return None


def told(group: list[Variant], clock: Clock, rounds: int) -> None:
    """The table of one formula, the fastest first."""
    wanted, jobs = run(group[0]).float(), {}
    for variant in group:
        error = float((run(variant).float() - wanted).norm() / wanted.norm())
        if error < 5e-3:  # two roundings of y
            jobs[str(variant)] = Work(lambda _, variant=variant: run(variant))
        else:
            print(f"   wrong by {error:.1e}: {variant}")
    ceiling, copied = copy(REAL, GPU)
    times = in_rounds({"copy": ceiling, **jobs}, clock, rounds, 0, lambda _: None)
    formula, queries, heads, keys = group[0][:4]
    print(f"{formula}, {queries} × {keys}, {heads[0]}/{heads[1]}")
    read = 2 * 2 * heads[1] * keys * 128
    for name in sorted(jobs, key=lambda name: quartiles(times[name])[1]):
        both = zip(times[name], times["copy"], strict=True)
        share = quartiles([read / own / (copied / other) for own, other in both])[1]
        print(f"{1e6 * quartiles(times[name])[1]:8.1f} µs  {share:6.1%}  {name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=16)
    parser.add_argument("--heads", type=int, nargs=2, default=[32, 8])
    parser.add_argument("--keys", type=int, default=REAL.keys)
    parser.add_argument("--formulas", nargs="+", default=["softmax", "soft-cap"], choices=gpu_sweep.FORMULAS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=14)
    options = parser.parse_args()
    groups = {
        formula: variants(formula, options.queries, tuple(options.heads), options.keys) for formula in options.formulas
    }
    jobs = [[variant] for group in groups.values() for variant in group]
    failed = {
        variant: answer for variant, answer in crowd(compiled, jobs, options.processes, 60, time.time() + 120) if answer
    }
    print("\n".join(f"   left out, {answer[-60:]}: {variant}" for variant, answer in failed.items()))
    clock = Clock(GPU, REAL)
    with torch.no_grad():
        for group in groups.values():
            told([variant for variant in group if variant not in failed], clock, options.rounds)


if __name__ == "__main__":
    main()
