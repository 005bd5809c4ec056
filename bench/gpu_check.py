"""Is the fused engine right on this GPU? Every kind of formula, both templates, awkward lengths, against float64.

    python bench/gpu_check.py [--quick] [--minutes 6]

For each case: ‖found − exact‖ / ‖exact‖ of y and of every gradient, beside that of `dense` in float32 on the same
rounded inputs with its results rounded to the dtype; a case fails above twice that and one rounding of the dtype. With
TRITON_INTERPRET=1 the same runs on a CPU, on a few small cases.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import torch

import regard as rg
from regard import (
    causal,
    cosine,
    documents,
    dot,
    exp,
    given,
    h,
    i,
    j,
    log,
    n,
    relu,
    share,
    sigmoid,
    sqdist,
    sqrt,
    table,
    tanh,
    window,
)

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
SCORE = dot / sqrt(rg.d)
SLOPE = 2 ** (-8 * (h + 1) / rg.H)
LENGTHS = [(1, 1), (17, 17), (127, 127), (129, 129), (257, 1000), (1000, 257), (4097, 4097)]
WIDTHS = [(64, 64), (128, 128), (40, 72), (256, 64), (16, 16)]

FORMULAS: dict[str, rg.Attention] = {
    "softmax": rg.Attention(),
    "causal": rg.Attention(mask=causal),
    "ALiBi": rg.Attention(score=SCORE - SLOPE * (i - j)),
    "ALiBi causal": rg.Attention(score=SCORE - SLOPE * (i - j), mask=causal),
    "Euclidean": rg.Attention(score=-sqdist / 16),
    "cosine": rg.Attention(score=8 * cosine),
    "soft-cap": rg.Attention(score=30 * tanh(SCORE / 30)),
    "relative table": rg.Attention(score=SCORE + table("bias")[h, i - j + 5000]),
    "full table": rg.Attention(score=SCORE + table("whole")[h, i, j]),
    "metric": rg.Attention(score=dot(table("M")) / rg.d),
    "window": rg.Attention(mask=window(100) & causal),
    "documents": rg.Attention(mask=documents("ids")),
    "given mask": rg.Attention(mask=given("seen")),
    "sink": rg.Attention(weight=share(exp, sink=exp(table("rest")[h])), mask=j < i),
    "sigmoid": rg.Attention(weight=sigmoid, score=SCORE - log(n)),
    "ReLU": rg.Attention(weight=lambda s: relu(s) / n),
    "shared ReLU²": rg.Attention(weight=share(lambda s: relu(s) ** 2)),
    "two terms": rg.Attention(weight=share(lambda s: exp(s) + exp(s / 2)), score=SCORE),
    "places": rg.Attention(score=SCORE + table("pairs")[table("marks")[i], table("marks")[j]]),
}


def tables_of(attention: rg.Attention, shape: tuple[int, ...], make: Any) -> dict[str, Any]:
    batch, heads, queries, keys, width = shape
    made = {
        "bias": lambda: make(heads, 10000), "whole": lambda: make(heads, max(queries, keys), keys),
        "M": lambda: make(width, width), "rest": lambda: make(heads), "pairs": lambda: make(7, 7),
        "ids": lambda: (torch.arange(max(queries, keys), device=DEVICE) // 60 % 7).expand(batch, -1).contiguous(),
        "marks": lambda: torch.arange(max(queries, keys), device=DEVICE) * 5 % 7,
        "seen": lambda: torch.rand(batch, 1, queries, keys, device=DEVICE) > 0.3,
    }  # fmt: skip
    return {name: made[name]() for name in attention.ranks}


def results(attention: rg.Attention, arrays: Any, tables: Any, engine: str, start: Any) -> dict[str, Any]:
    *leaves, dy = (x.detach().requires_grad_() for x in arrays)
    reads = {name: x.detach().requires_grad_(x.is_floating_point()) for name, x in tables.items()}
    y = attention(*leaves, engine=engine, start=start, **reads)
    real = {name: x for name, x in reads.items() if x.requires_grad}
    found = torch.autograd.grad(y, [*leaves, *real.values()], dy, allow_unused=True, materialize_grads=True)
    return {"y": y.detach(), **dict(zip(("dq", "dk", "dv", *real), found, strict=True))}


def check(name: str, dtype: Any, template: str | None, sizes: tuple[int, int], widths: tuple[int, int]) -> list[str]:
    """The failures of one case."""
    attention, (queries, keys), (width, values) = FORMULAS[name], sizes, widths
    batch, heads, groups = 2, 4, 2
    generator = torch.Generator(device=DEVICE).manual_seed(queries + keys + width)

    def make(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, device=DEVICE)

    arrays = [make(batch, heads, queries, width), make(batch, groups, keys, width), make(batch, groups, keys, values)]
    arrays = [x.to(dtype) for x in (*arrays, make(batch, heads, queries, values))]
    tables = tables_of(attention, (batch, heads, queries, keys, width), make)
    start = 0 if queries > keys else None
    with rg.fused(template=template, atomics=True):
        found = results(attention, arrays, tables, "triton", start)
    plain = results(attention, [x.float() for x in arrays], tables, "dense", start)
    wide = {key: x.double() if x.is_floating_point() else x for key, x in tables.items()}
    exact = results(attention, [x.double() for x in arrays], wide, "dense", start)
    return [told for part, wanted in exact.items() if (told := _wrong(part, found[part], plain[part], wanted, dtype))]


def _wrong(part: str, got: Any, usual: Any, wanted: Any, dtype: Any) -> str | None:
    size = float(wanted.norm()) + 1e-30
    error, plain = float((got.double() - wanted).norm()) / size, float((usual.to(got.dtype) - wanted).norm()) / size
    floor = (16 if dtype == torch.float32 else 1) * torch.finfo(dtype).eps
    return None if error <= 2 * plain + floor else f"{part} {error:.1e} (plain {plain:.1e})"


def cases(quick: bool) -> Any:
    """(formula, dtype, template, lengths, widths), the most telling first."""
    lengths = [(17, 17), (37, 41)] if INTERPRETED else LENGTHS
    widths = [(16, 16)] if INTERPRETED else WIDTHS
    templates = [None] if INTERPRETED else [None, "triton"]
    for size in lengths[:: 2 if quick else 1]:
        for name in FORMULAS:
            for template in templates:
                yield name, torch.bfloat16, template, size, widths[0]
    for pair in widths[1:]:
        for name in ("softmax", "ALiBi causal", "relative table", "sigmoid"):
            yield name, torch.bfloat16, None, (300, 300), pair
    for dtype in (torch.float16, torch.float32):
        for name in FORMULAS:
            yield name, dtype, None, (129, 150) if not INTERPRETED else (17, 19), widths[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--minutes", type=float, default=9.0)
    options = parser.parse_args()
    end, right, wrong = time.monotonic() + 60 * options.minutes, 0, []
    for name, dtype, template, size, widths in cases(options.quick):
        if time.monotonic() > end:
            wrong.append("out of time: not all cases were tried")
            break
        told = f"{name}, {str(dtype)[6:]}, {template or 'any'}, {size}, {widths}"
        try:
            failures = check(name, dtype, template, size, widths)
        except Exception as problem:  # noqa: BLE001 - every failure is listed
            failures = [f"{type(problem).__name__}: {str(problem)[-300:]}"]
        right += not failures
        wrong += [f"{told}: {', '.join(failures)}"] if failures else []
    sys.stdout.write("\n".join([*wrong, f"{right} cases right, {len(wrong)} not"]) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
