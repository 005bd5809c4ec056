"""How fast, how small and how exact `tiled` and `sdpa` are on the CPU, beside PyTorch's own kernel.

    python bench/cpu.py                     everything (about 20 minutes)
    python bench/cpu.py speed               every zoo formula, forward and backward, against PyTorch's softmax kernel
    python bench/cpu.py peers               against `dense`, and against FlexAttention, compiled
    python bench/cpu.py memory              65 536 and 1 048 576 positions, in fresh processes
    python bench/cpu.py calls               what a call costs beside PyTorch's own work
    python bench/cpu.py accuracy            error against float64, at most twice that of plain float32 arithmetic

Every figure is a ratio within one run; the parts are kept in bench/results/cpu.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # some machines announce AMX and die of it

import torch
from machine import in_turns, keep, timed
from torch.nn.functional import scaled_dot_product_attention as theirs

import regard as rg
from regard import zoo
from regard.example import example

HEADS, WIDTH, N = 8, 64, 4096
ROUNDS = 7
REPEATS = 2000
GOALS = {"softmax": 1.35, "zoo": 1.8, "softmax backward": 1.5, "zoo backward": 2.0, "causal of full": 0.6}


def vectors(n: int, heads: int = HEADS, *, requires_grad: bool = False) -> list[Any]:
    """q, k and v."""
    torch.manual_seed(0)
    return [torch.randn(1, heads, n, WIDTH, requires_grad=requires_grad) for _ in range(3)]


def tables(attention: rg.Attention, n: int, heads: int = HEADS, dtype: Any = torch.float32) -> dict[str, Any]:
    """What the formula reads, for sizes of this call."""
    made = example(attention, heads=heads, n=n, width=WIDTH, values=False).tables
    found = {name: torch.as_tensor(x) for name, x in made.items()}
    return {name: x.to(dtype) if x.is_floating_point() else x for name, x in found.items()}


def backward(run: Callable[[], Any], leaves: list[Any], dy: Any) -> Callable[[], float]:
    """The time of the backward pass alone."""

    def taken() -> float:
        y = run()
        start = time.perf_counter()
        torch.autograd.grad(y, leaves, dy)
        return time.perf_counter() - start

    return taken


# -- speed -----------------------------------------------------------------------------------------------------


def speed() -> None:
    """Every zoo formula against PyTorch's softmax kernel, forward and backward."""
    rows = {}
    print(f"{'float32, 8 heads, width 64, N 4096':34} {'forward':>9} {'ratio':>6} {'backward':>9} {'ratio':>6}")
    for name, entry in zoo.ENTRIES.items():
        rows[name] = _measured(entry.formula)
        row = rows[name]
        print(
            f"{name:34} {row['forward_ms']:6.0f} ms {row['forward']:6.2f} {row['backward_ms']:6.0f} ms "
            f"{row['backward']:6.2f}"
        )
    causal = rows["causal_dot"]["forward_ms"] / rows["scaled_dot"]["forward_ms"]
    worst = {side: max(row[side] for row in rows.values()) for side in ("forward", "backward")}
    print(f"causal of full {causal:.2f}; worst {worst['forward']:.2f} and {worst['backward']:.2f}; goals {GOALS}")
    keep("cpu", "speed", {"goals": GOALS, "causal of full": causal, "worst": worst, "rows": rows}, "regard", "torch")


def _measured(attention: rg.Attention) -> dict[str, float]:
    q, k, v = vectors(N)
    read = tables(attention, N)
    forward = in_turns(
        {
            "theirs": timed(lambda: theirs(q, k, v)),
            "tiled": timed(lambda: attention(q, k, v, engine="tiled", **read)),
        },
        ROUNDS,
    )
    leaves, dy = vectors(N, requires_grad=True), torch.randn(1, HEADS, N, WIDTH)
    learned = [x.requires_grad_() for x in read.values() if x.is_floating_point()]
    back = in_turns(
        {
            "theirs": backward(lambda: theirs(*leaves), leaves, dy),
            "tiled": backward(lambda: attention(*leaves, engine="tiled", **read), [*leaves, *learned], dy),
        },
        3,
    )
    return {
        "forward_ms": 1e3 * forward["tiled"], "forward": forward["tiled"] / forward["theirs"],
        "backward_ms": 1e3 * back["tiled"], "backward": back["tiled"] / back["theirs"],
    }  # fmt: skip


# -- peers -----------------------------------------------------------------------------------------------------

SLOPES = [2 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)]


def _flex() -> dict[str, tuple[Any, Any]]:
    """score_mod and mask_mod of the formulas that FlexAttention can say."""
    slopes, bias = torch.tensor(SLOPES), torch.randn(HEADS, 1023)

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:  # noqa: ARG001 - FlexAttention's signature
        return i >= j

    return {
        "scaled_dot": (None, None),
        "causal_dot": (None, causal),
        "soft_cap": (lambda s, b, h, i, j: 30 * torch.tanh(s / 30), None),
        "alibi": (lambda s, b, h, i, j: s - slopes[h] * (i - j), causal),
        "relative_bias": (lambda s, b, h, i, j: s + bias[h, (i - j).clamp(-511, 511) + 511], None),
    }


def peers() -> None:
    """`dense`, and FlexAttention compiled, beside `tiled`: each formula in a process of its own."""
    rows = {}
    print(f"{'N 4096':22} {'tiled':>9} {'dense / tiled':>14} {'flex / tiled':>13}")
    for name in zoo.ENTRIES:
        found = json.loads(subprocess.check_output([sys.executable, __file__, "peer", name]).splitlines()[-1])
        rows[name] = {peer: found[peer] / found["tiled"] for peer in found if peer != "tiled"}
        flex = f"{rows[name]['flex']:13.1f}" if "flex" in rows[name] else f"{'cannot say it':>13}"
        print(f"{name:22} {1e3 * found['tiled']:6.0f} ms {rows[name]['dense']:14.1f} {flex}", flush=True)
    keep("cpu", "peers", {"goal": "dense / tiled at least 3, flex / tiled above 1", "rows": rows}, "regard", "torch")


def peer(name: str) -> None:
    """The seconds of one formula on `tiled` and its peers, as JSON."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = vectors(N)
    attention = zoo.ENTRIES[name].formula
    read = tables(attention, N)
    runs = {
        engine: timed(lambda engine=engine: attention(q, k, v, engine=engine, **read)) for engine in ("tiled", "dense")
    }
    if name in _flex():
        score, mask = _flex()[name]
        compiled = torch.compile(flex_attention)
        blocks = None if mask is None else create_block_mask(mask, None, None, N, N, device="cpu")
        runs["flex"] = timed(lambda: compiled(q, k, v, score_mod=score, block_mask=blocks))
    print(json.dumps(in_turns(runs, 3)))


# -- memory ----------------------------------------------------------------------------------------------------

STREAMED = """
import json, resource, sys, time
import torch
import regard as rg

def held():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

attention, n = rg.parse(sys.argv[1]), int(sys.argv[2])
small = [torch.randn(1, 1, 64, 64, requires_grad=True) for _ in range(3)]
attention(*small, engine="tiled").sum().backward()
leaves, dy = [torch.randn(1, 1, n, 64, requires_grad=True) for _ in range(3)], torch.randn(1, 1, n, 64)
before, start = held(), time.perf_counter()
y = attention(*leaves, engine="tiled")
middle = time.perf_counter()
y.backward(dy)
end, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert all(bool(leaf.grad.isfinite().all()) for leaf in leaves)
print(json.dumps({"above_inputs_MiB": peak - before, "forward_s": middle - start, "backward_s": end - middle}))
"""
LONG = {
    65536: ["softmax(30 * tanh(dot / (30 * sqrt(d))))", "each(sigmoid(s))(dot / sqrt(d) - log(n), mask=j <= i)"],
    1048576: ["softmax(dot / sqrt(d), mask=(j <= i) & (i - j <= 1023))"],
}


def memory() -> None:
    """The peak above the inputs, forward and backward, in fresh processes."""
    rows = []
    for n, formulas in LONG.items():
        for formula in formulas:
            out = subprocess.check_output([sys.executable, "-c", STREAMED, formula, str(n)])
            rows.append({"n": n, "formula": formula, **json.loads(out)})
            row = rows[-1]
            print(
                f"N {n}: {row['above_inputs_MiB']:.0f} MiB above the inputs, forward {row['forward_s']:.1f} s, "
                f"backward {row['backward_s']:.1f} s   {formula}"
            )
    keep("cpu", "memory", {"goal": "300 MB at N 65 536; N 1 048 576 works", "rows": rows}, "regard", "torch")


# -- calls -----------------------------------------------------------------------------------------------------


def calls() -> None:
    """`sdpa` beside PyTorch's function at N 1024, and our own part of a repeated call."""
    rows = {}
    for name, attention, options in (
        ("softmax", rg.Attention(), {}),
        ("causal", rg.Attention(mask=rg.causal), {"is_causal": True}),
    ):
        q, k, v = vectors(1024)
        runs = {
            "theirs": timed(lambda o=options, x=(q, k, v): theirs(*x, **o)),
            "ours": timed(lambda a=attention, x=(q, k, v): a(*x)),
        }
        found = in_turns(runs, 41)
        small = vectors(8, heads=1)

        own = in_turns(
            {
                "theirs": timed(lambda o=options, x=small: [theirs(*x, **o) for _ in range(REPEATS)]),
                "ours": timed(lambda a=attention, x=small: [a(*x) for _ in range(REPEATS)]),
            },
            7,
        )
        rows[name] = {
            "ratio at N 1024": found["ours"] / found["theirs"],
            "own_us": 1e6 * (own["ours"] - own["theirs"]) / REPEATS,
        }
        print(
            f"{name:8} {rows[name]['ratio at N 1024']:.3f} of PyTorch at N 1024, own part {rows[name]['own_us']:.0f} µs"
        )
    keep("cpu", "calls", {"goals": {"ratio": 1.05, "own_us": 50}, "rows": rows}, "regard", "torch")


# -- accuracy --------------------------------------------------------------------------------------------------

CLOUDS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "mean 100": lambda x: x + 100,
    "eight times": lambda x: 8 * x,
}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LAST = 128  # rows that are compared, against all keys


def accuracy() -> None:
    """The error of the last rows against float64, over that of float32 arithmetic with weights rounded to the dtype."""
    rows = []
    print(f"{'N':>6} {'cloud':12} {'dtype':9} worst of the zoo, root mean square against float64 over its allowance")
    for n in (1024, 4096, 16384):
        for cloud, move in CLOUDS.items():
            for dtype in DTYPES:
                found = {name: _error(entry.formula, n, move, dtype) for name, entry in zoo.ENTRIES.items()}
                name = max(found, key=lambda name: found[name])
                rows.append({"n": n, "cloud": cloud, "dtype": str(dtype), "ratios": found})
                print(f"{n:6} {cloud:12} {str(dtype).removeprefix('torch.'):9} {found[name]:.2f} ({name})", flush=True)
    worst = max(ratio for row in rows for ratio in row["ratios"].values())
    print(f"worst {worst:.2f}; goal: at most 2")
    keep("cpu", "accuracy", {"goal": 2.0, "worst": worst, "rows": rows}, "regard", "torch")


def _error(attention: rg.Attention, n: int, move: Callable[[Any], Any], dtype: Any) -> float:
    q, k, v = (move(x).to(dtype) for x in vectors(n, heads=2))
    read = tables(attention, n, heads=2, dtype=dtype)
    last, start = q[:, :, -LAST:], n - LAST
    wide = {name: x.double() if x.is_floating_point() else x for name, x in read.items()}
    exact = attention(last.double(), k.double(), v.double(), start=start, engine="dense", **wide)
    weights = attention.weights(last, k, start=start, engine="dense", **read).to(dtype)
    allowed = _rms((weights.float() @ v.float()).to(dtype), exact)
    found = _rms(attention(q, k, v, engine="tiled", **read)[:, :, -LAST:], exact)
    return found / allowed if allowed else float(found > 0)


def _rms(found: Any, exact: Any) -> float:
    return float((found.double() - exact).square().mean().sqrt())


PARTS = {"speed": speed, "peers": peers, "memory": memory, "calls": calls, "accuracy": accuracy}


def main() -> None:
    """The parts that were asked for, or all."""
    if sys.argv[1:2] == ["peer"]:
        with torch.no_grad():
            peer(sys.argv[2])
        return
    for name in sys.argv[1:] or PARTS:
        print(f"-- {name}")
        with torch.no_grad() if name in ("calls", "accuracy") else torch.enable_grad():
            PARTS[name]()


if __name__ == "__main__":
    main()
