"""The Triton template in its interpreter, with functions as a printer would write them, against PyTorch in float64.

Inputs lie in arrays of NaN, outputs begin as NaN. The error is at most twice that of plain PyTorch: inputs in the
dtype, float32 arithmetic, weights rounded to the dtype. Run as a script, this file compiles the kernels without a GPU.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from regard._arrays import library
from regard.engines.dropout import Dropout
from regard.engines.triton.templates import backward, forward, launch
from regard.engines.triton.templates.common import INTERPRETED, Constants
from regard.engines.triton.tilings import KERNELS, Tiling, shared_bytes, tiling

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of numbers that a kernel masks
LOG2E = math.log2(math.e)
C = tl.constexpr(0.3 * LOG2E)  # scale · log₂ e
SCALE = tl.constexpr(0.3)
CAP = tl.constexpr(2.0)

# -- functions: data = (row vector, column vector, one number for each head, H, N, n) ------------------------------


@triton.jit
def heads(data, b, h):
    return (tl.load(data[2] + h),)


@triton.jit
def rows(data, head, b, h, r, inside):
    return (tl.load(data[0] + (b * data[3] + h) * data[4] + r, mask=inside, other=0.0),)


@triton.jit
def columns(data, head, b, h, j, inside):
    return (tl.load(data[1] + (b * data[3] + h) * data[5] + j, mask=inside, other=0.0),)


@triton.jit
def unit(known):
    return C


@triton.jit
def product_scales(known):
    return SCALE, SCALE


@triton.jit
def causal(product, known, at):
    return at[3] <= at[2]


@triton.jit
def sink_of_head(known):
    return known[0][0] * 1.4426950408889634


@triton.jit
def plain_sink(known):
    return known[0][0] + known[1][0] * known[1][0]


@triton.jit
def exponential(x, shift, product, known, at):
    return tl.exp2(x * C - shift)


@triton.jit
def height(product, known, at):
    return product[0]


@triton.jit
def pull(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift),)


@triton.jit
def alibi_height(product, known, at):
    return product[0] + (known[0][0] / SCALE) * (at[3] - at[4]).to(tl.float32)


@triton.jit
def sigmoid(x, shift, product, known, at):
    return 1.0 / (1.0 + tl.exp2(1.0 - product[0] * C))


@triton.jit
def sigmoid_pull(g, x, shift, product, known, at):
    w = 1.0 / (1.0 + tl.exp2(1.0 - product[0] * C))
    return (g * w * (1.0 - w),)


@triton.jit
def squared(x, shift, product, known, at):
    s = tl.maximum(product[0] * SCALE, 0.0)
    return s * s


@triton.jit
def squared_pull(g, x, shift, product, known, at):
    return (g * 2.0 * tl.maximum(product[0] * SCALE, 0.0),)


@triton.jit
def cap_unit(known):
    return CAP * 1.4426950408889634


@triton.jit
def cap_height(product, known, at):
    return 1.0 - 2.0 / (1.0 + tl.exp2(product[0] * (2.0 * C / CAP)))


@triton.jit
def cap_weight(x, shift, product, known, at):  # not covered: it does not see that x is −∞
    return tl.exp2(cap_height(product, known, at) * (CAP * 1.4426950408889634) - shift)


@triton.jit
def cap_pull(g, x, shift, product, known, at):
    return (g * cap_weight(x, shift, product, known, at) * (1.0 - x * x),)


@triton.jit
def cosine_height(product, known, at):
    return product[0] * known[1][0] * known[2][0]


@triton.jit
def cosine_pull(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * known[1][0] * known[2][0],)


@triton.jit
def cosine_rows(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * product[0] * known[2][0] * SCALE,)


@triton.jit
def cosine_columns(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * product[0] * known[1][0] * SCALE,)


@triton.jit
def distance_height(product, known, at):
    return product[0] - known[2][0]


@triton.jit
def distance_columns(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * -SCALE,)


@triton.jit
def double_height(product, known, at):
    return product[0] - product[1]


@triton.jit
def double_pull(g, x, shift, product, known, at):
    w = g * tl.exp2(x * C - shift)
    return w, -w


@triton.jit
def outer_height(product, known, at):
    return known[1][0] * known[2][0]


@triton.jit
def outer_rows(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * known[2][0] * SCALE,)


@triton.jit
def outer_columns(g, x, shift, product, known, at):
    return (g * tl.exp2(x * C - shift) * known[1][0] * SCALE,)


SHARED = {"heads": heads, "rows": rows, "columns": columns, "product_scales": product_scales, "unit": unit,
          "height": height, "weight": exponential, "pull_products": pull, "admitted": causal}  # fmt: skip
FLAGS = {"EXPONENTIAL": True, "SHARED": True, "HAS_MASK": False, "HAS_SINK": False, "COVERED": True, "BOUNDED": False,
         "SETTLED": False, "SCALED": False, "ROUNDED": False, "PRODUCTS": 1, "SEVERAL": False, "ROW_PULLS": 0,
         "COLUMN_PULLS": 0}  # fmt: skip

# -- the same in PyTorch ------------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """What a score is made of; every part broadcasts to (B, H, N, n)."""

    products: list[Any]
    row: Any
    column: Any
    head: Any
    offset: Any  # j − anchor
    truth: Any


@dataclass(frozen=True)
class Formula:
    """Functions and flags, and ψ in PyTorch: s of ψ = eˢ where it is exponential, otherwise ψ."""

    functions: dict[str, Any]
    psi: Callable[[Parts], Any]
    sink: Callable[[Parts], Any] | None = None

    @property
    def constants(self) -> Constants:
        return Constants(**{**SHARED, **FLAGS, **self.functions})

    def flag(self, name: str) -> Any:
        return self.functions.get(name, FLAGS[name])

    def attend(self, parts: Parts, v: Any, dtype: Any, kept: Any = 1.0) -> tuple[Any, Any | None]:
        """y and the total, base 2, with weights rounded to dtype."""
        value = self.psi(parts)
        if not self.flag("SHARED"):
            return (value.masked_fill(~parts.truth, 0.0) * kept).to(dtype).to(v.dtype) @ v, None
        if self.flag("EXPONENTIAL"):
            value = value.masked_fill(~parts.truth, -math.inf)
            if self.sink is not None:
                value = torch.cat([value, self.sink(parts).expand(*value.shape[:3], 1)], -1)
            top = value.amax(-1, keepdim=True).detach()
            psi = (value - top.masked_fill(top == -math.inf, 0.0)).exp()
            z = psi.sum(-1, keepdim=True)
            total = torch.where(z == 0, -math.inf, (top + torch.where(z == 0, 1.0, z).log()) * LOG2E)
        else:
            psi = value.masked_fill(~parts.truth, 0.0)
            total = z = psi.sum(-1, keepdim=True) + (0.0 if self.sink is None else self.sink(parts))
        weights = torch.where(z == 0, 0.0, psi / torch.where(z == 0, 1.0, z))[..., : v.shape[2]] * kept
        return weights.to(dtype).to(v.dtype) @ v, total[..., 0]


FORMULAS = {
    "softmax": Formula({"SETTLED": True}, lambda p: 0.3 * p.products[0]),
    "causal": Formula({"HAS_MASK": True, "SETTLED": True}, lambda p: 0.3 * p.products[0]),
    "bounded": Formula({"HAS_MASK": True, "BOUNDED": True, "SETTLED": True}, lambda p: 0.3 * p.products[0]),
    "alibi": Formula({"HAS_MASK": True, "height": alibi_height}, lambda p: 0.3 * p.products[0] + p.head * p.offset),
    "sigmoid": Formula(
        {"EXPONENTIAL": False, "SHARED": False, "HAS_MASK": True, "weight": sigmoid, "pull_products": sigmoid_pull},
        lambda p: torch.sigmoid(0.3 * p.products[0] - math.log(2)),
    ),
    "squared": Formula(
        {"EXPONENTIAL": False, "HAS_MASK": True, "weight": squared, "pull_products": squared_pull},
        lambda p: (0.3 * p.products[0]).relu() ** 2,
    ),
    "squared with a sink": Formula(
        {"EXPONENTIAL": False, "HAS_SINK": True, "sink": plain_sink, "weight": squared, "pull_products": squared_pull},
        lambda p: (0.3 * p.products[0]).relu() ** 2,
        lambda p: p.head + p.row**2,
    ),
    "squared, scaled, with a sink": Formula(
        {"EXPONENTIAL": False, "SCALED": True, "ROUNDED": True, "HAS_SINK": True, "sink": plain_sink, "weight": squared,
         "pull_products": squared_pull},
        lambda p: (0.3 * p.products[0]).relu() ** 2,
        lambda p: p.head + p.row**2,
    ),
    "capped": Formula(
        {"COVERED": False, "unit": cap_unit, "height": cap_height, "weight": cap_weight, "pull_products": cap_pull},
        lambda p: 2 * torch.tanh(0.3 * p.products[0] / 2),
    ),
    "sink": Formula(
        {"HAS_MASK": True, "HAS_SINK": True, "sink": sink_of_head}, lambda p: 0.3 * p.products[0], lambda p: p.head
    ),
    "cosine": Formula(
        {"height": cosine_height, "pull_products": cosine_pull, "pull_rows": cosine_rows,
         "pull_columns": cosine_columns, "ROW_PULLS": 1, "COLUMN_PULLS": 1},
        lambda p: 0.3 * p.products[0] * p.row * p.column,
    ),
    "distance": Formula(
        {"height": distance_height, "pull_columns": distance_columns, "COLUMN_PULLS": 1},
        lambda p: 0.3 * (p.products[0] - p.column),
    ),
    "two products": Formula(
        {"HAS_MASK": True, "PRODUCTS": 2, "SEVERAL": True, "height": double_height, "pull_products": double_pull},
        lambda p: 0.3 * (p.products[0] - p.products[1]),
    ),
    "no product": Formula(
        {"HAS_MASK": True, "PRODUCTS": 0, "height": outer_height, "pull_rows": outer_rows,
         "pull_columns": outer_columns, "ROW_PULLS": 1, "COLUMN_PULLS": 1},
        lambda p: 0.3 * p.row * p.column,
    ),
}  # fmt: skip

# -- cases --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Sizes, layout and dtype of a call."""

    name: str
    queries: int
    keys: int
    batch: int = 1
    heads: int = 1
    group: int = 1
    width: int = 16
    value: int = 16
    layout: str = "heads"
    dtype: Any = torch.float32
    start: tuple[int, ...] = (0,)
    tile: tuple[int, int] = (64, 64)
    descriptors: bool = False
    dropout: float = 0.0
    dtotal: bool = False
    seed: int = field(default=0)


def poisoned(shape: tuple[int, ...], layout: str, dtype: Any, generator: Any) -> Any:
    """Random numbers in the middle of an array of NaN, head first, sequence first or with its last axis apart."""
    order = {"heads": (0, 1, 2, 3), "sequence": (0, 2, 1, 3), "apart": (0, 1, 3, 2)}[layout]
    sizes = [shape[axis] for axis in order]
    room = torch.full([size + 2 for size in sizes[:3]] + [math.ceil((sizes[3] + 16) / 8) * 8], math.nan, dtype=dtype)
    part = room[1:-1, 1:-1, 1:-1, 8 : 8 + sizes[3]].permute([order.index(axis) for axis in range(4)])
    return part.copy_(torch.randn(shape, generator=generator))


def lists_of(truth: Any, size: tuple[int, int]) -> Any:
    """Lists of blocks of `size`, from the mask itself, (B, H, N, n). Where rows end, a block may still be whole."""
    (batch, heads, rows, columns), (high, wide) = truth.shape, size
    tiles, blocks = -(-rows // high), -(-columns // wide)
    padded = torch.zeros((batch, heads, tiles * high, blocks * wide), dtype=torch.bool)
    padded[:, :, rows:, :columns] = truth[:, :, -1:]
    padded[:, :, :rows, :columns] = truth
    cells = padded.view(batch, heads, tiles, high, blocks, wide).transpose(3, 4).flatten(4)
    kind = torch.where(cells.all(-1), 1, torch.where(cells.any(-1), 0, 2))
    counts = torch.stack([(kind == 0).sum(-1), (kind < 2).sum(-1)], -1).int()
    indices = kind.argsort(dim=-1, stable=True).int()
    indices[torch.arange(blocks) >= counts[..., 1:]] = 10**6  # never read
    order = torch.stack([torch.randperm(tiles) for _ in range(indices.shape[0])])
    return Lists(indices, counts, order.int())


class Lists(NamedTuple):
    indices: Any
    counts: Any
    order: Any


class Made(NamedTuple):
    """A call, and what it was made of."""

    case: Case
    formula: Formula
    call: launch.Call
    truth: Any
    dy: Any
    dtotal: Any | None


def made(name: str, case: Case) -> Made:
    generator, formula = torch.Generator().manual_seed(case.seed), FORMULAS[name]
    batch, count, key_heads = case.batch, case.heads, case.heads // case.group

    def new(heads: int, length: int, width: int) -> Any:
        return poisoned((batch, heads, length, width), case.layout, case.dtype, generator)

    widths = (case.width, 5)[: formula.flag("PRODUCTS")]
    lefts = tuple(new(count, case.queries, width) for width in widths)
    rights = tuple(new(key_heads, case.keys, width) for width in widths)
    row, column = (torch.randn((batch, count, n), generator=generator) for n in (case.queries, case.keys))
    head, start = torch.randn(count, generator=generator).abs() / 9, torch.tensor(case.start).expand(batch).contiguous()
    i = start[:, None, None, None] + torch.arange(case.queries)[:, None]
    truth = torch.arange(case.keys) <= i if formula.flag("HAS_MASK") else torch.ones((case.queries, case.keys)) > 0
    drop = None
    if case.dropout:
        asked = Dropout(case.dropout, 5)
        drop = launch.Drop(torch.tensor([5]), asked.threshold, asked.scale)
    call = launch.Call(
        formula.constants, lefts, rights, new(key_heads, case.keys, case.value), (batch, count, case.queries), start,
        (row, column, head, count, case.queries, case.keys), drop=drop, descriptors=case.descriptors,
    )  # fmt: skip
    dy = new(count, case.queries, case.value)
    dtotal = torch.randn((batch, count, case.queries), generator=generator) if case.dtotal else None
    return Made(case, formula, call, truth.expand(batch, count, case.queries, case.keys), dy, dtotal)


class Results(NamedTuple):
    y: Any
    total: Any | None
    lefts: tuple[Any, ...]
    rights: tuple[Any, ...]
    v: Any
    row: Any
    column: Any


def run(made: Made) -> Results:
    """By the kernels."""
    high, wide = made.case.tile
    by_rows = by_keys = None
    if made.formula.flag("HAS_MASK"):
        by_rows, by_keys = lists_of(made.truth, (high, wide)), lists_of(made.truth.mT, (wide, high))
    y, total = launch.forward(made.call, by_rows, Tiling(high, wide))
    stats = launch.row_stats(made.call, y, total, made.dy, made.dtotal)
    dlefts, rows = launch.of_rows(made.call, stats, made.dy, by_rows, Tiling(high, wide))
    drights, dv, columns = launch.of_keys(made.call, stats, made.dy, by_keys, Tiling(high, wide))
    assert y.stride(3) == 1
    return Results(y, total, dlefts, drights, dv, rows.unbind(2), columns)


def reference(made: Made, working: Any, dtype: Any) -> Results:
    """By PyTorch, in the working dtype, with weights rounded to dtype."""
    call, case = made.call, made.case
    row, column, head = (x.to(working) for x in call.data[:3])
    leaves = [x.to(working).contiguous().requires_grad_() for x in (*call.lefts, *call.rights, call.v, row, column)]
    count = len(call.lefts)
    lefts, rights, (v, row, column) = leaves[:count], leaves[count : 2 * count], leaves[2 * count :]
    keys, values = ([x.repeat_interleave(case.group, 1) for x in xs] for xs in (rights, (v,)))
    r, start = torch.arange(case.queries)[:, None], call.start[:, None, None, None]
    parts = Parts(
        [x @ y.mT for x, y in zip(lefts, keys, strict=True)], row[..., None], column[:, :, None],
        head[:, None, None], torch.arange(case.keys) - start - r // 128 * 128, made.truth,
    )  # fmt: skip
    y, total = made.formula.attend(parts, values[0], dtype, kept(case, call))
    loss = (y * made.dy.to(working)).sum()
    if made.dtotal is not None and total is not None:
        usable = torch.where(total.isfinite(), total, 0.0)
        loss = loss + (usable * made.dtotal).sum() * (math.log(2) if made.formula.flag("EXPONENTIAL") else 1.0)
    grads = torch.autograd.grad(loss, leaves, materialize_grads=True)
    grads = [g.to(x.dtype) for g, x in zip(grads, (*call.lefts, *call.rights, call.v, row, column), strict=True)]
    rounded = y.detach() if working is torch.float64 else y.detach().to(dtype)
    row_count, column_count = (made.formula.flag(name) for name in ("ROW_PULLS", "COLUMN_PULLS"))
    return Results(
        rounded, None if total is None else total.detach(), tuple(grads[:count]), tuple(grads[count : 2 * count]),
        grads[2 * count], tuple(grads[-2:-1][:row_count]), tuple(grads[-1:][:column_count]),
    )  # fmt: skip


def kept(case: Case, call: launch.Call) -> Any:
    if not case.dropout:
        return 1.0
    asked, xp = Dropout(case.dropout, torch.tensor(5)), library(call.start)
    b, h, r, j = (torch.arange(n).view([-1 if k == axis else 1 for k in range(4)])
                  for axis, n in enumerate((*call.shape, case.keys)))  # fmt: skip
    i = call.start.view(-1, 1, 1, 1) + r
    return asked.kept(xp, asked.rows(xp, b, h, i), asked.columns(xp, j)) * asked.scale


def flat(results: Results) -> Iterator[tuple[str, Any]]:
    for name, value in results._asdict().items():
        for place, x in enumerate(value if isinstance(value, tuple) else (value,)):
            if x is not None:
                yield f"{name}{place}", x.double()


def check(made: Made) -> None:
    """Twice the error of plain PyTorch at most."""
    exact, plain, found = (
        dict(flat(results))
        for results in (
            reference(replaced(made), torch.float64, torch.float64),
            reference(made, torch.float32, made.case.dtype),
            run(made),
        )
    )
    assert exact.keys() == found.keys()
    for name, x in exact.items():
        empty = x == -math.inf
        assert torch.equal(found[name] == -math.inf, empty), name
        allowed, error = ((y[name] - x)[~empty].norm() for y in (plain, found))
        floor = (
            8 * torch.finfo(torch.float32).eps * (x[~empty].norm() + math.sqrt(x.numel() * sum(made.truth.shape[2:])))
        )
        assert error <= 2 * allowed + floor, f"{name}: {error:.3g}, plain PyTorch {allowed:.3g}"


def replaced(made: Made) -> Made:
    """The same numbers in float64."""
    call = made.call
    wide = replace(
        call, lefts=tuple(x.double() for x in call.lefts), rights=tuple(x.double() for x in call.rights),
        v=call.v.double(), data=tuple(x.double() if torch.is_tensor(x) else x for x in call.data),
    )  # fmt: skip
    return made._replace(call=wide)


@pytest.fixture(autouse=True)
def outputs_begin_as_nan() -> Iterator[None]:
    """PyTorch fills what it allocates in this mode."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


# -- laws ---------------------------------------------------------------------------------------------------------

MIDDLE = Case("middle", 70, 131, heads=2, group=2, value=24, start=(45,))
LENGTHS = [
    ("sink", Case("one pair", 1, 1, batch=2, heads=3, group=3, width=3, value=5)),
    ("cosine", Case("few rows", 2, 17, batch=2, heads=3, width=40, value=3)),
    ("causal", Case("few keys", 17, 2, heads=2, group=2, width=3)),
    ("alibi", Case("around a tile", 127, 129, width=64, value=40, start=(2,), tile=(128, 64))),
    ("distance", Case("around a tile, turned", 129, 127, width=40, value=64)),
    ("softmax", Case("one row", 1, 257, batch=2, width=16)),
    ("softmax", Case("one key", 257, 1, tile=(128, 64))),
    ("alibi", Case("two starts", 17, 257, batch=2, heads=3, group=3, start=(240, 3), tile=(32, 128))),
    ("sigmoid", Case("long", 257, 257, tile=(128, 128))),
]
LAYOUTS = [
    ("cosine", replace(MIDDLE, name="sequence first", layout="sequence", heads=6, group=3, queries=33, keys=41)),
    ("causal", replace(MIDDLE, name="apart", layout="apart", queries=33, keys=41)),
    ("causal", replace(MIDDLE, name="described", descriptors=True)),
    ("two products", replace(MIDDLE, name="described, sequence first", descriptors=True, layout="sequence", width=40)),
    ("alibi", replace(MIDDLE, name="half", dtype=torch.float16)),
    ("sink", replace(MIDDLE, name="half, described", dtype=torch.float16, descriptors=True)),
    ("causal", replace(MIDDLE, name="bfloat16", dtype=torch.bfloat16)),
    ("squared", replace(MIDDLE, name="bfloat16, described", dtype=torch.bfloat16, descriptors=True)),
]
DROPS = [("causal", 0.3), ("squared", 0.3), ("sigmoid", 0.3)]
interpreted = pytest.mark.skipif(not INTERPRETED.value, reason="set TRITON_INTERPRET=1 before triton is imported")


@interpreted
@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula(name: str) -> None:
    check(made(name, MIDDLE))


@interpreted
@pytest.mark.parametrize(("name", "case"), LENGTHS + LAYOUTS, ids=[case.name for _, case in LENGTHS + LAYOUTS])
def test_lengths_and_layouts(name: str, case: Case) -> None:
    check(made(name, case))


@interpreted
@pytest.mark.parametrize("name", ["causal", "squared", "sink"])
def test_gradient_of_totals(name: str) -> None:
    check(made(name, replace(MIDDLE, queries=33, keys=41, start=(5,), dtotal=True)))


@interpreted
@pytest.mark.parametrize(("name", "share"), DROPS, ids=[name for name, _ in DROPS])
def test_dropout_is_that_of_every_engine(name: str, share: float) -> None:
    check(made(name, replace(MIDDLE, queries=33, keys=41, batch=2, start=(5,), dropout=share)))


@interpreted
@pytest.mark.parametrize("name", ["causal", "alibi", "squared", "sigmoid", "no product"])
def test_rows_that_read_nothing(name: str) -> None:
    """Positions from −40 on: the first tile reads nothing, the second begins to."""
    case = replace(MIDDLE, queries=70, keys=41, start=(-40,), tile=(32, 32))
    check(made(name, case))
    y, total, *_ = run(made(name, case))
    assert not y[:, :, :40].any()
    assert total is None or bool((total[:, :, :40] == (-math.inf if FORMULAS[name].flag("EXPONENTIAL") else 0)).all())


@interpreted
def test_scores_of_minus_infinity() -> None:
    """A key that no row reads, and then all of them."""
    given = made("distance", replace(MIDDLE, queries=33, keys=41))
    for keys in (slice(3, 4), slice(None)):
        given.call.data[1][:, :, keys] = math.inf
        found = run(given)
        assert all(not x.isnan().any() for _, x in flat(found))
        assert not found.v[:, :, keys].any()
    assert not found.y.any()
    assert bool((found.total == -math.inf).all())


@interpreted
@pytest.mark.parametrize("name", ["causal", "squared", "sigmoid", "two products"])
def test_what_no_row_reads_may_be_nan(name: str) -> None:
    """Keys behind the last row, and rows before the first key, inside blocks that are read otherwise."""
    case = replace(MIDDLE, queries=40, keys=50, start=(-7,), tile=(32, 32))
    clean, spoilt = (made(name, case) for _ in range(2))
    for x in (*spoilt.call.rights, spoilt.call.v):
        x[:, :, 33:] = math.nan
    for x in spoilt.call.lefts:
        x[:, :, :7] = math.nan
    for (what, one), (_, other) in zip(flat(run(clean)), flat(run(spoilt)), strict=True):
        assert torch.equal(one, other), what


@interpreted
def test_tiles_change_only_rounding() -> None:
    case = replace(MIDDLE, queries=45, keys=77, start=(30,))
    first, *others = (run(made("alibi", replace(case, tile=tile))) for tile in ((64, 64), (32, 16)))
    for other in others:
        for (what, one), (_, two) in zip(flat(first), flat(other), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5, msg=what)


# -- tilings ------------------------------------------------------------------------------------------------------


CHIPS = {(8, 0): 163, (8, 6): 99, (8, 9): 99, (9, 0): 227, (10, 0): 227, (12, 0): 99}


@pytest.mark.parametrize("which", KERNELS)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("capability", CHIPS)
def test_tilings_fit_the_chip(capability: tuple[int, int], size: int, which: str) -> None:
    for width in (1, 16, 33, 64, 96, 128, 200, 256):
        for value in (16, 64, width):
            found = tiling(capability, width, value, size, which)
            assert 128 % found.rows == 0
            assert min(found.rows, found.columns) >= 16
            assert shared_bytes(found, capability, width, value, size, which) <= CHIPS[capability] * 1024


@pytest.mark.parametrize(
    ("capability", "measured"), [((9, 0), (115712, 164880, 98856)), ((8, 0), (57600, 73984, 74496))]
)
def test_bytes_of_shared_memory_are_those_of_the_compiler(capability: tuple[int, int], measured: Any) -> None:
    """Of width 128 in bfloat16, as triton 3.6 reported them."""
    for which, bytes_used in zip(KERNELS, measured, strict=True):
        found = shared_bytes(tiling(capability, 128, 128, 2, which), capability, 128, 128, 2, which)
        assert 0 <= found - bytes_used <= 2048


def test_bytes_of_shared_memory_of_float32_on_older_chips_are_enough() -> None:
    """Of width 256 in tiles of 32 × 32, masked: as triton 3.6 reported them."""
    for which, bytes_used in zip(KERNELS, (139264, 172032, 172416), strict=True):
        assert 0 <= shared_bytes(Tiling(32, 32, 8, 2), (8, 0), 256, 256, 4, which) - bytes_used <= 2**14


# -- without a GPU ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["90", "80"])
def test_kernels_compile(chip: str) -> None:
    """In another process, whose triton is not interpreted."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, __file__, chip], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    products = {"80": "mma.sync", "90": "wgmma.mma_async"}[chip]
    copies = {"80": "cp.async.cg", "90": "cp.async.bulk.tensor"}[chip]
    assert done.stdout.split() == [f"{kernel}:{products}:{copies}" for kernel in ("forward", "rows", "keys")]


def compiled(kernel: Any, matrices: dict[str, int], numbers: dict[str, Any], chip: int) -> str:
    """The assembly of a kernel for causal ALiBi, width 32, from descriptors on chip 90 and pointers on chip 80."""
    sizes = launch._sized(Tiling(64, 64), (32,), 32, 1, "tf32", True, False, False)
    signature: dict[str, Any] = dict.fromkeys(kernel.arg_names, "constexpr")
    absent = ("drop", "slants")
    constants: dict[str, Any] = dict.fromkeys(name for name in kernel.arg_names if name[-1] in "12" or name in absent)
    constants |= {"F": FORMULAS["alibi"].constants, "S": sizes}
    strides: list[tuple[str, int]] = []
    for name, rows in matrices.items():
        if chip == 90 and rows:
            signature[name] = f"tensordesc<bf16[1, 1, {rows}, 32]>"
        else:
            signature[name], constants[name, 4] = ("*bf16", "i32", "i32", "i32", "constexpr"), 1
            strides += [(name, place) for place in range(4)]
    data, lists = ("*fp32", "*fp32", "*fp32", "i32", "i32", "i32"), ("*i32",) * 3 + ("i32",) * 4
    signature |= {"start": "*i64", "data": data, "lists": lists, "sizes": ("i32", "i32", "i32"), **numbers}

    def place(name: Any) -> tuple[int, ...]:
        return (
            kernel.arg_names.index(name if isinstance(name, str) else name[0]),
            *name[1:] * (not isinstance(name, str)),
        )

    source = ASTSource(
        kernel, signature, {place(name): value for name, value in constants.items()},
        {place(name): [["tt.divisibility", 16]] for name in strides},
    )  # fmt: skip
    return str(triton.compile(source, target=GPUTarget("cuda", chip, 32), options={"num_warps": 4}).asm["ptx"])


def compile_all(chip: int) -> Iterator[tuple[str, str]]:
    sides = {"left0": 64, "right0": 64, "v": 64}
    stats = {"stats": "tensordesc<fp32[1, 1, 1, 64]>" if chip == 90 else ("*fp32", "i32", "i32", "i32", "i32")}
    yield "forward", compiled(forward.forward, {**sides, "y": 0}, {"total": "*fp32"}, chip)
    numbers = {**stats, "row_sums": "*fp32"}
    yield "rows", compiled(backward.rows_backward, {**sides, "dy": 64, "dleft0": 0}, numbers, chip)
    numbers = {**stats, "column_sums": "*fp32", "kept_of": ("i32", "i32")}
    yield "keys", compiled(backward.keys_backward, {**sides, "dy": 64, "dright0": 0, "dv": 0}, numbers, chip)


if __name__ == "__main__":
    words = ("wgmma.mma_async", "mma.sync", "cp.async.bulk.tensor", "cp.async.cg")
    for kernel, assembly in compile_all(int(sys.argv[1])):
        sys.stdout.write(":".join([kernel, *(word for word in words if word in assembly)]) + "\n")
