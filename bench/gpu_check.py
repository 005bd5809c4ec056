"""Is the fused engine right on this GPU? Every kind of formula, both templates, awkward lengths, against float64.

    python bench/gpu_check.py [--quick] [--minutes 6] [--processes 12] [--only softmax …]

For each case: ‖found − exact‖ / ‖exact‖ of y and of every gradient, beside that of `dense` in float32 on the same
rounded inputs with its results rounded to the dtype; a case fails above twice that and one rounding of the dtype. Then
what a call must bear beside: graphs, compilers, other layouts, no wait for the device, the same bits twice and in
parts, NaN where nobody reads. With TRITON_INTERPRET=1 the same runs on a CPU, on a few small cases; under

    compute-sanitizer --tool memcheck python bench/gpu_check.py --here --longest 300 --only softmax causal

every access of the kernels is watched.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from gpu_parts.crowd import crowd

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
    "ALiBi both ways": rg.Attention(score=SCORE - SLOPE * abs(i - j)),
    "Euclidean": rg.Attention(score=-sqdist / 16),
    "cosine": rg.Attention(score=8 * cosine),
    "soft-cap": rg.Attention(score=30 * tanh(SCORE / 30)),
    "relative table": rg.Attention(score=SCORE + table("bias")[h, i - j + 5000]),
    "climb": rg.Attention(score=SCORE + table("climb")[h, j]),  # far above a row's first block
    "full table": rg.Attention(score=SCORE + table("whole")[h, i, j]),
    "temperature": rg.Attention(score=SCORE * table("temper")[h], mask=causal),
    "slopes of distance": rg.Attention(score=SCORE - table("temper")[h] * log(1 + abs(i - j))),
    "metric": rg.Attention(score=dot(table("M")) / rg.d),
    "window": rg.Attention(mask=window(100) & causal),
    "documents": rg.Attention(mask=documents("ids")),
    "given mask": rg.Attention(mask=given("seen")),
    "scattered": rg.Attention(mask=(1103515245 * i + 12345 * j) // 65536 % 3 > 0),  # beyond 32 bits
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
        "temper": lambda: make(heads),
        "climb": lambda: (torch.arange(keys) * 3 // keys * torch.tensor([[20.0], [200.0]] * (heads // 2))).to(DEVICE),
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


def made(case: Case, groups: int = 2, batch: int = 2) -> tuple[list[Any], dict[str, Any], int | None]:
    """q, k, v and dy, tables and start of a case, drawn afresh."""
    (queries, keys), (width, values) = case.lengths, case.widths
    heads = 2 * groups
    generator = torch.Generator(device=DEVICE).manual_seed(queries + keys + width)

    def draw(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, device=DEVICE)

    shapes = [(heads, queries, width), (groups, keys, width), (groups, keys, values), (heads, queries, values)]
    arrays = [laid(draw(batch, *shape).to(case.dtype), case.layout) for shape in shapes]
    tables = tables_of(case.attention, (batch, heads, queries, keys, width), draw)
    return arrays, tables, 0 if queries > keys else None


def laid(x: Any, layout: str) -> Any:
    """The same numbers, lying otherwise in memory; what lies between them is NaN."""
    if layout == "sequence first":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if layout in ("apart", "odd"):
        step = 8 if layout == "apart" else 3
        room = torch.full((*x.shape[:-1], x.shape[-1] + step), float("nan"), dtype=x.dtype, device=x.device)
        room[..., : x.shape[-1]] = x
        return room[..., : x.shape[-1]]
    return x


def check(case: Case) -> str | None:
    """What is wrong with one case."""
    if case.extra:
        return EXTRAS[case.extra](case)
    few = 1 if max(case.lengths) > 2048 else 2
    try:
        return compared(case, *made(case, groups=few, batch=few))
    finally:
        if not INTERPRETED:
            torch.cuda.empty_cache()


def compared(case: Case, arrays: list[Any], tables: dict[str, Any], start: int | None) -> str | None:
    """Which results are further from float64 than they may be."""
    with rg.fused(template=case.template, atomics=True):
        found = results(case.attention, arrays, tables, "triton", start)
    plain = results(case.attention, [x.float() for x in arrays], tables, "dense", start)
    wide = {key: x.double() if x.is_floating_point() else x for key, x in tables.items()}
    exact = results(case.attention, [x.double() for x in arrays], wide, "dense", start)
    size = float(arrays[3].double().norm())
    wrong = (_wrong(part, found[part], plain[part], wanted, case.dtype, size) for part, wanted in exact.items())
    return ", ".join(told for told in wrong if told) or None


def _wrong(part: str, got: Any, usual: Any, wanted: Any, dtype: Any, usual_size: float) -> str | None:
    size = float(wanted.norm())
    size = size if size > 1e-6 * usual_size else usual_size  # what is 0 has no relative error
    error, plain = float((got.double() - wanted).norm()) / size, float((usual.to(got.dtype) - wanted).norm()) / size
    floor = (16 if dtype == torch.float32 else 1) * torch.finfo(dtype).eps
    return None if error <= 2 * plain + floor else f"{part} {error:.1e} (plain {plain:.1e})"


# -- what a call must bear beside ------------------------------------------------------------------------------


def graphed(case: Case) -> str | None:
    """A captured graph of both passes, replayed on other numbers, gives what a call gives."""
    arrays, tables, start = made(case)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            results(case.attention, arrays, tables, "triton", start)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        kept = results(case.attention, arrays, tables, "triton", start)
    for x in arrays:
        x.copy_(x.flip(2))
    graph.replay()
    torch.cuda.synchronize()
    return _differing(kept, results(case.attention, arrays, tables, "triton", start))


def compiled(case: Case) -> str | None:
    """torch.compile without a break, both passes."""
    arrays, tables, start = made(case)
    plain = results(case.attention, arrays, tables, "triton", start)
    run = torch.compile(lambda q, k, v: case.attention(q, k, v, engine="triton", start=start, **tables), fullgraph=True)
    leaves = [x.detach().requires_grad_() for x in arrays[:3]]
    y = run(*leaves)
    found = torch.autograd.grad(y, leaves, arrays[3])
    return _differing({"y": y.detach(), **dict(zip(("dq", "dk", "dv"), found, strict=True))}, plain, 1e-2)


def repeated(case: Case) -> str | None:
    """The same bits, twenty times, beside other work on the chip."""
    arrays, tables, start = made(case)
    first = results(case.attention, arrays, tables, "triton", start)
    for _ in range(20):
        if told := _differing(results(case.attention, arrays, tables, "triton", start), first):
            return told
    return None


def unwaited(case: Case) -> str | None:
    """A second call never waits for the device."""
    arrays, tables, start = made(case)
    results(case.attention, arrays, tables, "triton", start)
    torch.cuda.set_sync_debug_mode("error")
    try:
        results(case.attention, arrays, tables, "triton", start)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return None


def _differing(found: dict[str, Any], wanted: dict[str, Any], most: float = 0.0) -> str | None:
    """Which parts differ by more than this share; 0: in any bit."""
    apart = {part: float((x.float() - wanted[part].float()).norm()) for part, x in found.items()}
    return ", ".join(part for part, x in apart.items() if not x <= most * float(wanted[part].float().norm())) or None


def parted(case: Case) -> str | None:
    """The way back of a few heads at a time gives the same bits; with nothing kept, about the same."""
    arrays, tables, start = made(case)
    whole = results(case.attention, arrays, tables, "triton", start)
    with rg.fused(memory=2**23):
        told = _differing(results(case.attention, arrays, tables, "triton", start), whole)
    with rg.fused(memory=0):
        return told or _differing(results(case.attention, arrays, tables, "triton", start), whole, 1e-2)


def unread(case: Case) -> str | None:
    """Keys and values that no row reads may be NaN, in blocks that are read otherwise: Triton's template."""
    arrays, tables, start = made(case)
    last = case.lengths[1] - 50
    attention = rg.Attention(case.attention.score, case.attention.weight, mask=causal & (j < last))
    tables = {name: tables[name] for name in attention.ranks}
    with rg.fused(template="triton"):
        wanted = results(attention, arrays, tables, "triton", start)
        for x in arrays[1:3]:
            x[:, :, last:] = float("nan")
        return _differing(results(attention, arrays, tables, "triton", start), wanted, 1e-2)


EXTRAS = {"graph": graphed, "compiled": compiled, "twice": repeated, "unwaited": unwaited, "parted": parted}
EXTRAS |= {"unread": unread}


class Case(NamedTuple):
    """A formula at one size."""

    name: str
    dtype: Any
    template: str | None
    lengths: tuple[int, int]
    widths: tuple[int, int]
    layout: str = "heads first"
    extra: str = ""

    @property
    def attention(self) -> rg.Attention:
        return FORMULAS[self.name]

    def __str__(self) -> str:
        how = [self.layout] * (self.layout != "heads first") + [self.extra] * bool(self.extra)
        told = (self.name, str(self.dtype)[6:], self.template or "any", str(self.lengths), str(self.widths), *how)
        return ", ".join(told)


def cases(quick: bool) -> Iterator[Case]:
    """The most telling first."""
    lengths = [(17, 17), (37, 41)] if INTERPRETED else LENGTHS
    widths = [(16, 16)] if INTERPRETED else WIDTHS
    templates = [None] if INTERPRETED else [None, "triton"]
    half = torch.bfloat16
    for template, name in itertools.product(templates, FORMULAS):
        for width, size in itertools.product(widths[:2], lengths[:: 2 if quick else 1]):
            yield Case(name, half, template, size, width)
    few = ("softmax", "ALiBi causal", "relative table", "sigmoid")
    if not INTERPRETED:
        for name, layout in itertools.product(few, ("sequence first", "apart", "odd")):
            yield Case(name, half, None, (300, 300), widths[0], layout)
        for name, extra in itertools.product((*few, "documents", "sink", "cosine"), EXTRAS):
            if (name, extra) != ("cosine", "unread"):  # the length of NaN is NaN, and so is its gradient
                yield Case(name, half, None, (700, 700), widths[1], extra=extra)
        for name, width in itertools.product(few, (widths[1], (40, 44))):  # 88 bytes: y has room between vectors
            yield Case(name, half, None, (700, 700), width, "sequence first", "compiled")
        for name in (*few, "documents", "cosine"):  # a few queries: decoding
            yield Case(name, half, None, (5, 3001), widths[1])
    for pair, name in itertools.product(widths[2:], few):
        yield Case(name, half, None, (300, 300), pair)
    for dtype, name in itertools.product((torch.float16, torch.float32), FORMULAS):
        yield Case(name, dtype, None, (129, 150) if not INTERPRETED else (17, 19), widths[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=2 if INTERPRETED else 12)
    parser.add_argument("--patience", type=float, default=90.0, help="seconds after which a case counts as hung")
    parser.add_argument("--longest", type=int, default=10**6, help="cases of so many queries and keys, and no more")
    parser.add_argument("--here", action="store_true", help="one case after the other, in this very process")
    parser.add_argument("--only", nargs="+", default=list(FORMULAS), choices=FORMULAS, metavar="FORMULA")
    options = parser.parse_args()
    every = (case for case in cases(options.quick) if case.name in options.only)
    wanted = [case for case in every if max(case.lengths) <= options.longest]
    together = itertools.groupby(wanted, key=lambda case: case._replace(lengths=(0, 0)))
    jobs = [list(group) for _, group in together]
    end = time.time() + 60 * options.minutes
    if options.here:
        answers = list(_here(wanted, end))
    else:
        answers = crowd(check, jobs, options.processes, options.patience, end, _told)
    wrong = sorted(f"{case}: {answer}" for case, answer in answers if answer)
    sys.stdout.write("\n".join([*wrong, f"{len(answers) - len(wrong)} cases right, {len(wrong)} not"]) + "\n")
    sys.exit(bool(wrong))


def _here(wanted: list[Case], end: float) -> Iterator[tuple[Case, str | None]]:
    for case in wanted:
        if time.time() < end:
            answer = check(case)
            _told(case, answer)
            yield case, answer


def _told(case: Case, answer: str | None) -> None:
    if answer:
        print(f"{case}: {answer}", flush=True)


if __name__ == "__main__":
    main()
