"""A few queries against a cache, in Triton's interpreter, against the same formulas in float64.

s_ij = q·k + e[h, j]         c[h] is a number of each head
exponential  ψ = 2^(c s)     shared  ψ = s² + 1/4     each  ψ = s²       Z begins with z[b, h, i] where there is a sink
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from regard.engines.triton.blocks import Lists
from regard.engines.triton.templates import launch
from regard.engines.triton.templates.common import Constants
from regard.engines.triton.templates.decode import by_key_head, decode, takes, tiling_for
from regard.engines.triton.tilings import Tiling

KINDS = ("exponential", "shared", "each")

# -- the functions that a printer would write: data = (c, e, z, H, N, n, window) -----------------------------------


@triton.jit
def heads(data, b, h):
    return (tl.load(data[0] + h),)


@triton.jit
def rows(data, head, b, h, r, inside):
    return (tl.load(data[2] + (b * data[3] + h) * data[4] + r, mask=inside, other=0.0),)


@triton.jit
def columns(data, head, b, h, j, inside):
    return (tl.load(data[1] + h * data[5] + j, mask=inside, other=0.0),)


@triton.jit
def unit(known):
    return known[0][0]


@triton.jit
def sink(known):
    return known[1][0]


@triton.jit
def score(product, known, at):
    return product[0] + known[2][0]


@triton.jit
def alone(product, known, at):
    return known[2][0]


@triton.jit
def admitted(product, known, at):
    return (at[3] <= at[2]) & (at[3] > at[2] - data_window(known) - 8 * at[1])


@triton.jit
def data_window(known):
    return known[3][6]


@triton.jit
def exponential(x, shift, product, known, at):
    return tl.exp2(x * known[0][0] - shift)


@triton.jit
def square_and(x, shift, product, known, at):
    s = score(product, known, at)
    return s * s + 0.25


@triton.jit
def square(x, shift, product, known, at):
    s = score(product, known, at)
    return s * s


WEIGHTS = {"exponential": exponential, "shared": square_and, "each": square}
PSI = {
    "exponential": lambda s, c: torch.exp2(c * s),
    "shared": lambda s, c: s * s + 0.25,
    "each": lambda s, c: s * s,
}

# -- a case --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One call: H = 2 · group heads, keys at 0 … n − 1, queries from start[b]."""

    kind: str
    tensors: dict[str, Any]
    start: Any
    dtype: Any
    window: int | None
    sinks: bool
    products: int = 1

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        return (*self.tensors["z"].shape, self.tensors["k"].shape[2])

    def mask(self) -> Any:
        """(B, H, N, n)"""
        B, H, N, n = self.sizes
        i = (self.start[:, None] + torch.arange(N))[:, None, :, None]
        h, j = torch.arange(H)[None, :, None, None], torch.arange(n)
        shown = torch.ones((), dtype=torch.bool) if self.window is None else (j <= i) & (j > i - self.window - 8 * h)
        return shown.expand(B, H, N, n)

    def dense(self, dtype: Any, weights_as: Any = None) -> tuple[Any, Any]:
        x = {name: value.to(dtype) for name, value in self.tensors.items()}
        group, c = self.sizes[1] // x["k"].shape[1], x["c"][:, None, None]
        k, v = (x[name].repeat_interleave(group, 1) for name in "kv")
        s = x["e"][:, None, :] + (x["q"] @ k.mT if self.products else torch.zeros((*self.sizes[:3], 1), dtype=dtype))
        psi = torch.where(self.mask(), PSI[self.kind](s, c), 0.0)
        z = psi.sum(-1) + (self.opened(x["z"]) if self.sinks else 0.0)
        w = psi if self.kind == "each" else torch.where(z == 0, 0.0, 1 / torch.where(z == 0, 1.0, z))[..., None] * psi
        w = w if weights_as is None else w.to(weights_as).to(dtype)
        return w @ torch.where(
            self.mask().any((1, 2))[:, None, :, None], v, 0.0
        ), z.log2() if self.kind == "exponential" else z

    def opened(self, z: Any) -> Any:
        """What Z begins with."""
        return torch.exp2(z) if self.kind == "exponential" else z

    def call(self) -> launch.Call:
        (B, H, N, n), x = self.sizes, self.tensors
        q, k, v = (poisoned(x[name].to(self.dtype)) for name in "qkv")
        c, e, z = (x[name].float().contiguous() for name in "cez")
        f = Constants(
            heads=heads, rows=rows, columns=columns, unit=unit, height=score if self.products else alone, sink=sink,
            admitted=admitted, weight=WEIGHTS[self.kind], EXPONENTIAL=self.kind == "exponential",
            SHARED=self.kind != "each", HAS_MASK=self.window is not None, HAS_SINK=self.sinks, COVERED=True,
            BOUNDED=False, SCALED=False, ROUNDED=False, PRODUCTS=self.products,
        )  # fmt: skip
        lefts, rights = ((q,), (k,)) if self.products else ((), ())
        return launch.Call(f, lefts, rights, v, (B, H, N), self.start, (c, e, z, H, N, n, self.window or 0))

    def lists(self, size: int) -> Lists | None:
        """Of one row tile, all queries of a head; behind the end stand numbers of no tile."""
        if self.window is None:
            return None
        B, H, _, n = self.sizes
        W = -(-n // size)
        indices, counts = (
            torch.full((B, H, 1, W), 10**6, dtype=torch.int32),
            torch.zeros((B, H, 1, 2), dtype=torch.int32),
        )
        for b, h in torch.cartesian_prod(torch.arange(B), torch.arange(H)).tolist():
            of = [self.mask()[b, h, :, size * w : size * (w + 1)] for w in range(W)]
            whole = [w for w in range(W) if bool(of[w].all()) and size * (w + 1) <= n]
            some = [w for w in range(W) if bool(of[w].any()) and w not in whole]
            indices[b, h, 0, : len(some + whole)] = torch.tensor(some + whole, dtype=torch.int32)
            counts[b, h, 0] = torch.tensor([len(some), len(some + whole)])
        return Lists(indices, counts, torch.zeros((1, 1), dtype=torch.int32))


def case(
    kind: str, queries: int = 3, *, keys: int = 101, group: int = 3, dtype: Any = torch.float32,
    window: int | None = None, sinks: bool = False, start: tuple[int, ...] = (97, 41), products: int = 1,
) -> Case:  # fmt: skip
    generator = torch.Generator().manual_seed(queries + keys)
    B, H, G = len(start), 2 * group, 2
    shapes = {
        "q": (B, H, queries, 5),
        "k": (B, G, keys, 5),
        "v": (B, G, keys, 7),
        "e": (H, keys),
        "c": (H,),
        "z": (B, H, queries),
    }
    made = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}
    made["c"], made["z"] = made["c"].abs() + 0.1, made["z"].abs()
    made = {name: x.to(dtype if name in "qkv" else torch.float32).double() for name, x in made.items()}
    return Case(kind, made, torch.tensor(start), dtype, window, sinks, products)


def poisoned(x: Any) -> Any:
    """x inside a larger array of NaN."""
    inside = tuple(slice(1, -1) for _ in x.shape)
    around = torch.full([size + 2 for size in x.shape], math.nan, dtype=x.dtype)
    around[inside] = x
    return around[inside]


def decoded(it: Case, splits: int | None = None, columns: int = 16) -> tuple[Any, Any]:
    call = it.call()
    assert takes(call)
    return decode(call, it.lists(columns), Tiling(tiling_for(call).rows, columns), splits)


def check(it: Case, y: Any, total: Any) -> None:
    """Errors of at most twice those of plain PyTorch with float32 arithmetic and weights in the dtype."""
    exact, plain = it.dense(torch.float64), it.dense(torch.float32, it.dtype)
    assert y.dtype == it.dtype
    assert (total is None) == (it.kind == "each")
    for found, right, usual in zip((y, total), exact, (plain[0].to(it.dtype), plain[1]), strict=True):
        if found is not None:
            assert torch.equal(found.isfinite(), right.isfinite())
            some = right.isfinite()
            error = (found.double() - right)[some].abs().max()
            assert error <= 2 * (usual.double() - right)[some].abs().max() + 1e-6 * right[some].abs().max()


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sinks", [False, True])
def test_all_keys(kind: str, sinks: bool) -> None:
    it = case(kind, sinks=sinks and kind != "each")
    check(it, *decoded(it, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("splits", [1, 5])
def test_masks_that_differ_by_head(kind: str, splits: int) -> None:
    """The rows of a group read different blocks; the first row of the second batch reads none of the first ones."""
    it = case(kind, window=17)
    check(it, *decoded(it, splits))


@pytest.mark.parametrize(("queries", "group"), [(1, 1), (16, 1), (7, 4), (1, 31)])
def test_rows_of_a_group_are_packed(queries: int, group: int) -> None:
    it = case("exponential", queries, group=group, keys=37, start=(29,))
    check(it, *decoded(it))


@pytest.mark.parametrize("keys", [1, 16, 17, 47])
def test_any_number_of_keys_and_parts(keys: int) -> None:
    """Also more parts than blocks, which write nothing but zeros."""
    it = case("exponential", 1, keys=keys, group=1, start=(keys,))
    check(it, *decoded(it, 4))


def test_rows_that_read_nothing() -> None:
    """y is 0 and L is −∞; with a sink, L is the sink's."""
    for sinks in (False, True):
        it = case("exponential", 2, group=1, window=0, keys=37, start=(5,), sinks=sinks)
        y, total = decoded(it, 2)
        assert not y[:, 0].any()
        begun = it.tensors["z"][:, 0].float() if sinks else torch.full((1, 2), -math.inf)
        torch.testing.assert_close(total[:, 0], begun)
        check(it, y, total)


def test_a_sink_of_nothing() -> None:
    it = case("exponential", 1, sinks=True, keys=19, group=1)
    it.tensors["z"][0] = -math.inf
    check(it, *decoded(it, 2))


def test_no_product() -> None:
    it = case("exponential", 2, products=0, keys=19, group=1)
    check(it, *decoded(it, 2))


def test_bfloat16_and_the_same_bits_every_time() -> None:
    it = case("exponential", dtype=torch.bfloat16, keys=53, window=17)
    first, second = decoded(it, 3), decoded(it, 3)
    check(it, *first)
    assert all(map(torch.equal, first, second))


def test_keys_that_no_one_reads_may_be_nan() -> None:
    it = case("exponential", 2, group=1, window=9, keys=37, start=(20,))
    exact = decoded(it, 2)
    for name in "kv":
        it.tensors[name][:, :, 23:] = math.nan
    assert all(map(torch.equal, exact, decoded(it, 2)))


# -- how work is dealt ---------------------------------------------------------------------------------------------


def test_lists_of_a_group_join_those_of_its_heads() -> None:
    it = case("each", window=17)
    indices, counts = by_key_head(it.lists(16), 3, 7)
    mask = it.mask().unflatten(1, (2, 3)).flatten(2, 3)  # B, G, packed rows, n
    for b, g in torch.cartesian_prod(torch.arange(2), torch.arange(2)).tolist():
        some, total = counts[b, g].tolist()
        parts = [mask[b, g, :, 16 * w : 16 * (w + 1)] for w in range(7)]
        whole = {w for w in range(6) if bool(parts[w].all())}
        assert set(indices[b, g, some:total].tolist()) == whole
        assert set(indices[b, g, :some].tolist()) == {w for w in range(7) if bool(parts[w].any())} - whole


def test_too_many_rows_are_refused() -> None:
    assert takes(case("each", 16, group=4).call())
    assert not takes(case("each", 13, group=5).call())


@pytest.mark.parametrize("widths", [(24,), (256,), (64, 64, 64), (40, 256, 16), (256, 256, 256)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_tiles_are_powers_of_two(widths: tuple[int, ...], dtype: Any) -> None:
    """Whatever the sum of the products' widths is."""
    rights = tuple(torch.zeros(1, 2, 600, width, dtype=dtype) for width in widths)
    lefts = tuple(torch.zeros(1, 6, 3, width, dtype=dtype) for width in widths)
    v = torch.zeros(1, 2, 600, 24, dtype=dtype)
    found = tiling_for(launch.Call(None, lefts, rights, v, (1, 6, 3), torch.zeros(1)))  # type: ignore[arg-type]
    assert (found.rows.bit_count(), found.columns.bit_count()) == (1, 1)
    assert found.columns >= 16
