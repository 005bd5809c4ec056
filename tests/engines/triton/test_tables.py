"""Gradients of offsets and of tables, in Triton's interpreter, against float64 autograd of the same formulas.

s_ij = a[h, i − j] q·k + e[h, i − j] + t[b, h, i, j]
exponential  ψ = 2^(c s)      shared  ψ = s² + 1/4      each  ψ = s²
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from regard._arrays import library
from regard.engines.dropout import Dropout
from regard.engines.triton.blocks import Lists
from regard.engines.triton.templates import launch, tables
from regard.engines.triton.templates.bands import diagonals
from regard.engines.triton.templates.common import Constants
from regard.engines.triton.templates.dealing import kinds_of, shares_for
from regard.engines.triton.templates.tables import offsets_and_tables, owned_tables
from regard.engines.triton.tilings import Tiling

LN2 = tl.constexpr(math.log(2))
TILING = Tiling(16, 16)
C = 0.3

# -- the functions that a printer would write: data = (c, a, e, length, highest, t, its four strides, window) ------


@triton.jit
def heads(data, b, h):
    return (data[0],)


@triton.jit
def rows(data, head, b, h, r, inside):
    return (0.0,)


@triton.jit
def columns(data, head, b, h, j, inside):
    return (0.0,)


@triton.jit
def unit(known):
    return known[0][0]


@triton.jit
def offsets(known, at):
    data, place = known[3], at[1] * known[3][3] + known[3][4] - at[2] + at[3]
    return tl.load(data[1] + place), tl.load(data[2] + place)


@triton.jit
def place(known, at):
    data = known[3]
    far = at[0] * data[6] + at[1] * data[7] + at[2] * data[8] + at[3] * data[9]
    return far.to(tl.int64)


@triton.jit
def places(product, known, at):
    return (place(known, at),)


@triton.jit
def score(product, known, at):
    a, e = offsets(known, at)
    inside = (at[2] >= 0) & (at[2] < known[3][11]) & (at[3] < known[3][12])
    return a * product[0] + e + tl.load(known[3][5] + place(known, at), mask=inside, other=0.0)


@triton.jit
def admitted(product, known, at):
    return (at[3] <= at[2]) & (at[3] > at[2] - known[3][10] - at[1])


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


@triton.jit
def slope_of_exponential(x, shift, product, known, at):
    return known[0][0] * LN2 * tl.exp2(x * known[0][0] - shift)


@triton.jit
def slope_of_square(x, shift, product, known, at):
    return 2 * score(product, known, at)


@triton.jit
def exponential_offsets(g, x, shift, product, known, at):
    g = g * slope_of_exponential(x, shift, product, known, at)
    return g * product[0], g


@triton.jit
def exponential_tables(g, x, shift, product, known, at):
    return (g * slope_of_exponential(x, shift, product, known, at),)


@triton.jit
def square_offsets(g, x, shift, product, known, at):
    g = g * slope_of_square(x, shift, product, known, at)
    return g * product[0], g


@triton.jit
def square_tables(g, x, shift, product, known, at):
    return (g * slope_of_square(x, shift, product, known, at),)


PSI = {
    "exponential": lambda s: torch.exp2(C * s),
    "shared": lambda s: s * s + 0.25,
    "each": lambda s: s * s,
}


def formula(kind: str, masked: bool) -> Constants:
    is_exponential = kind == "exponential"
    return Constants(
        heads=heads, rows=rows, columns=columns, unit=unit, height=score, admitted=admitted, places=places,
        weight={"exponential": exponential, "shared": square_and, "each": square}[kind],
        pull_offsets=exponential_offsets if is_exponential else square_offsets,
        pull_tables=exponential_tables if is_exponential else square_tables,
        EXPONENTIAL=is_exponential, SHARED=kind != "each", HAS_MASK=masked, HAS_SINK=False, COVERED=True,
        BOUNDED=False, SCALED=False, ROUNDED=False, PRODUCTS=1,
    )  # fmt: skip


# -- a case --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One call, with all that the kernel is given."""

    kind: str
    window: int | None  # of the mask, for the first head; each head sees one more key; None: no mask
    tensors: dict[str, Any]  # q, k, v, dy, a, e, t in float64, of numbers that the dtype can hold
    start: Any
    dtype: Any
    highest: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        q, k = self.tensors["q"], self.tensors["k"]
        return q.shape[0], q.shape[1], q.shape[2], k.shape[2]

    def positions(self) -> tuple[Any, Any]:
        """i (B, 1, N, 1) and j (1, 1, 1, n)."""
        _, _, queries, keys = self.sizes
        i = self.start[:, None, None, None] + torch.arange(queries)[None, None, :, None]
        return i, torch.arange(keys)[None, None, None, :]

    def mask(self) -> Any:
        """(B, H, N, n)"""
        i, j = self.positions()
        h = torch.arange(self.sizes[1])[None, :, None, None]
        if self.window is None:
            return torch.ones(self.sizes, dtype=torch.bool)
        return ((j <= i) & (j > i - self.window - h)).expand(self.sizes)

    def attended(self, tensors: dict[str, Any], weights_as: Any = None) -> tuple[Any, Any]:
        """y and Z (or log₂ Z), dense."""
        i, j = self.positions()
        _, H, _, _ = self.sizes
        group = H // tensors["k"].shape[1]
        k, v = (tensors[name].repeat_interleave(group, 1) for name in ("k", "v"))
        h, b = torch.arange(H)[None, :, None, None], torch.arange(self.sizes[0])[:, None, None, None]
        t = tensors["t"]
        at = [x.clamp(max=size - 1) for x, size in zip((b, h, i, j), t.shape, strict=True)]
        s = tensors["a"][h, self.highest - (i - j)] * (tensors["q"] @ k.mT) + tensors["e"][h, self.highest - (i - j)]
        psi = torch.where(self.mask(), PSI[self.kind](s + t[tuple(at)]), 0.0)
        z = psi.sum(-1, keepdim=True)
        w = psi if self.kind == "each" else torch.where(z == 0, 0.0, psi / torch.where(z == 0, 1.0, z))
        w = w if weights_as is None else w.to(weights_as).to(w.dtype)
        return w @ v, (z.log2() if self.kind == "exponential" else z)[..., 0]

    def gradients(self, dtype: Any, weights_as: Any = None) -> dict[str, Any]:
        """Of a, e and t, by autograd in a dtype."""
        tensors = {name: x.to(dtype).requires_grad_() for name, x in self.tensors.items()}
        y, _ = self.attended(tensors, weights_as)
        leaves = [tensors[name] for name in "aet"]
        return dict(zip("aet", torch.autograd.grad(y, leaves, tensors["dy"]), strict=True))

    def call(self) -> launch.Call:
        _, H, queries, _ = self.sizes
        x = {name: poisoned(value.to(self.dtype)) for name, value in self.tensors.items() if name in "qkv"}
        a, e, t = (self.tensors[name].float().contiguous() for name in "aet")
        strides = [step if size > 1 else 0 for step, size in zip(t.stride(), t.shape, strict=True)]
        data = (C, a, e, a.shape[1], self.highest, t, *strides, self.window or 0, *t.shape[2:])
        f = formula(self.kind, self.window is not None)
        shape = (self.sizes[0], H, queries)
        return launch.Call(f, (x["q"],), (x["k"],), x["v"], shape, self.start, data)

    def upstream(self) -> tuple[Any, Any]:
        """L or 1 / Z and δ of each row, of rows outside whatever gives no weight; and dy."""
        (y, total), dy, N = self.attended(self.tensors), self.tensors["dy"], self.sizes[2]
        shared = {"exponential": (total, math.inf), "shared": (1 / total, 0.0), "each": None}[self.kind]
        if shared is None:
            return None, poisoned(dy.to(self.dtype))
        stats = torch.zeros((*self.sizes[:2], 2, 128))
        stats[:, :, 0, :N], stats[:, :, 0, N:] = shared[0], shared[1]
        stats[:, :, 1, :N] = (y * dy).sum(-1)
        return stats.nan_to_num(nan=0.0, posinf=math.inf, neginf=math.inf), poisoned(dy.to(self.dtype))

    def lists(self, tiling: Tiling = TILING) -> Lists | None:
        return None if self.window is None else lists_of(self.mask(), tiling)


def case(
    kind: str, window: int | None = None, *, dtype: Any = torch.float32, start: tuple[int, ...] = (3, 11),
    axes: str = "hij", queries: int = 37, keys: int = 53, group: int = 2, width: int = 5, value: int = 7,
) -> Case:  # fmt: skip
    """A call of prime sizes. Vectors of offsets reach beyond its differences, as far as tiles that stick out do."""
    generator = torch.Generator().manual_seed(len(kind) + queries)
    B, H, last = len(start), 2 * group, max(start) + queries
    margin, differences = 16, last + keys - 1 - min(start)
    sizes = {"b": B, "h": H, "i": last, "j": keys}
    shapes = {
        "q": (B, H, queries, width), "k": (B, 2, keys, width), "v": (B, 2, keys, value), "dy": (B, H, queries, value),
        "a": (H, differences + 2 * margin), "e": (H, differences + 2 * margin),
        "t": tuple(sizes[axis] if axis in axes else 1 for axis in "bhij"),
    }  # fmt: skip
    made = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}
    made = {name: x.to(dtype if name in {"q", "k", "v", "dy"} else torch.float32).double() for name, x in made.items()}
    return Case(kind, window, made, torch.tensor(start), dtype, last - 1 + margin)


def poisoned(x: Any) -> Any:
    """x inside a larger array of NaN."""
    around = torch.full([size + 2 for size in x.shape], math.nan, dtype=x.dtype)
    around[tuple(slice(1, -1) for _ in x.shape)] = x
    return around[tuple(slice(1, -1) for _ in x.shape)]


def lists_of(mask: Any, tiling: Tiling) -> Lists:
    """Lists of a mask (B, H, N, n); rows that stick out count as admitted, keys that stick out do not."""
    B, H, N, n = mask.shape
    T, W = -(-N // tiling.rows), -(-n // tiling.columns)
    indices, counts = torch.full((B, H, T, W), 10**6, dtype=torch.int32), torch.zeros((B, H, T, 2), dtype=torch.int32)
    for b, h, t in torch.cartesian_prod(*map(torch.arange, (B, H, T))).tolist():
        of = [
            mask[b, h, t * tiling.rows : (t + 1) * tiling.rows, w * tiling.columns : (w + 1) * tiling.columns]
            for w in range(W)
        ]
        whole = [w for w in range(W) if bool(of[w].all()) and (w + 1) * tiling.columns <= n]
        some = [w for w in range(W) if bool(of[w].any()) and w not in whole]
        listed = torch.tensor(some + whole, dtype=torch.int32)
        indices[b, h, t, : len(listed)], counts[b, h, t] = listed, torch.tensor([len(some), len(listed)])
    return Lists(
        indices, counts, torch.arange(T - 1, -1, -1, dtype=torch.int32).expand(indices.shape[0], T).contiguous()
    )


def check(it: Case, found: dict[str, Any]) -> None:
    """Errors of at most twice those of plain PyTorch with float32 arithmetic and weights in the dtype."""
    exact, plain = it.gradients(torch.float64), it.gradients(torch.float32, it.dtype)
    for name, value in found.items():
        error = (value.double() - exact[name]).abs().max()
        allowed = 2 * (plain[name].double() - exact[name]).abs().max() + 1e-6 * exact[name].abs().max()
        assert error <= allowed, (name, float(error), float(allowed))


def gathered(it: Case, tiling: Tiling = TILING, **grads: Any) -> tuple[Any, ...]:
    found = offsets_and_tables(
        it.call(), *it.upstream(), it.lists(tiling), tiling, offsets=2, highest=it.highest,
        length=it.tensors["a"].shape[1], **grads,
    )  # fmt: skip
    return tuple(parts.sum((1, 2)) for parts in found)


# -- diagonals -----------------------------------------------------------------------------------------------------


@triton.jit
def summed(x, one, other, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    found = diagonals(tl.load(x + r * COLUMNS + c), 0, ROWS, COLUMNS)
    u = tl.arange(0, ROWS // COLUMNS if ROWS > COLUMNS else 1)[:, None]
    tl.store(one + u * COLUMNS + c, found[0])
    tl.store(other + u * COLUMNS + c, found[1])


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (32, 16), (16, 32), (1, 2)])
def test_every_pair_stands_on_its_diagonal(rows: int, columns: int) -> None:
    x = torch.randint(-99, 99, (rows, columns), generator=torch.Generator().manual_seed(0)).float()
    bands = max(1, rows // columns)
    one, other = torch.full((2, bands, columns), math.nan)
    summed[(1,)](x, one, other, rows, columns)
    for u in range(bands):
        for d in range(columns):
            band = x[u * columns : (u + 1) * columns]
            assert one[u, d] == band.diagonal(d).sum()
            assert other[u, d] == (band.diagonal(d - columns).sum() if d else 0)


# -- offsets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "window", "tiling"),
    [
        ("exponential", None, TILING),
        ("exponential", 7, Tiling(32, 16)),
        ("shared", 37, Tiling(16, 32)),
        ("each", 37, TILING),
    ],
)
def test_offsets_are_those_of_autograd(kind: str, window: int | None, tiling: Tiling) -> None:
    """Every difference, corners and ragged tails too; batches start at different positions."""
    it = case(kind, window)
    a, e = gathered(it, tiling)
    check(it, {"a": a, "e": e})


def test_offsets_in_bfloat16_are_the_same_bits_every_time() -> None:
    it = case("exponential", 19, dtype=torch.bfloat16, queries=19, keys=23)
    first, second = gathered(it), gathered(it)
    check(it, dict(zip("ae", first, strict=True)))
    assert all(map(torch.equal, first, second))


def test_slots_share_the_row_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """One slot that adds all tiles one after the other, or more slots: the same sums but for rounding."""
    it, found = case("each", queries=37, keys=19, start=(5,)), []
    for memory in (0, 2**28):
        monkeypatch.setattr(tables, "MEMORY", memory)
        found.append(gathered(it)[1])
    check(it, {"e": found[0]})
    torch.testing.assert_close(*found)


def test_keys_that_no_one_reads_may_be_nan() -> None:
    it = case("exponential", 5, start=(0,), queries=17, keys=31)
    exact, up = gathered(it), it.upstream()
    for name in "kv":
        it.tensors[name][:, :, 18:] = math.nan
    length = it.tensors["a"].shape[1]
    found = offsets_and_tables(it.call(), *up, it.lists(), TILING, offsets=2, highest=it.highest, length=length)
    assert all(torch.equal(one, parts.sum((1, 2))) for one, parts in zip(exact, found, strict=True))


# -- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "axes", "window", "start", "aligned"),
    [
        ("exponential", "hij", None, (3, 3), True),
        ("exponential", "ij", 7, (3, 11), False),
        ("shared", "bij", 17, (3, 11), False),
        ("each", "bhij", 7, (0, 5), False),
    ],
)
def test_a_table_of_indices_is_written_once(
    kind: str, axes: str, window: int | None, start: Any, aligned: bool
) -> None:
    it = case(kind, window, axes=axes, start=start, queries=19, keys=23)
    found = []
    for _ in range(2):
        grad = torch.zeros(it.tensors["t"].shape)
        owned_tables(it.call(), *it.upstream(), it.lists(), TILING, {0: grad}, axes, aligned)
        found.append(grad)
    check(it, {"t": found[0]})
    assert torch.equal(*found)


def test_a_table_by_atomic_additions() -> None:
    it = case("exponential", 19, axes="ij", queries=19, keys=23)
    grad = torch.zeros(it.tensors["t"].shape)
    a, e = gathered(it, grads={0: grad})
    check(it, {"a": a, "e": e, "t": grad})
    again = torch.zeros_like(grad)
    assert offsets_and_tables(it.call(), *it.upstream(), it.lists(), TILING, grads={0: again}) == ()
    check(it, {"t": again})


# -- dropout -------------------------------------------------------------------------------------------------------


def test_dropped_weights_give_nothing() -> None:
    """dp is 0 where a weight is dropped, and grown where it is kept."""
    it, drop = case("each", start=(3,), axes="ij", queries=17, keys=19), Dropout(0.4, 5)
    (i, j), xp = it.positions(), library(it.start)
    h, b = torch.arange(it.sizes[1])[None, :, None, None], torch.zeros((1, 1, 1, 1), dtype=torch.int64)
    kept = drop.kept(xp, drop.rows(xp, b, h, i), drop.columns(xp, j)) * drop.scale
    dropped = replace(it.call(), drop=launch.Drop(torch.tensor(5), drop.threshold, drop.scale))
    grad = torch.zeros(it.tensors["t"].shape)
    owned_tables(dropped, *it.upstream(), None, TILING, {0: grad}, "ij")
    t = it.tensors["t"].clone().requires_grad_()
    group = it.sizes[1] // 2
    q, k, v = it.tensors["q"], *(it.tensors[name].repeat_interleave(group, 1) for name in "kv")
    place = it.highest - (i - j)
    s = it.tensors["a"][h, place] * (q @ k.mT) + it.tensors["e"][h, place] + t[..., 3 : 3 + 17, :]
    ((kept * s * s) @ v * it.tensors["dy"]).sum().backward()
    torch.testing.assert_close(grad.double(), t.grad, rtol=1e-5, atol=1e-4)


# -- how work is dealt ---------------------------------------------------------------------------------------------


def test_kinds_of_tiles_are_those_of_the_lists() -> None:
    it = case("each", 37, start=(3,), queries=37, keys=53)
    kinds, tiles = kinds_of(it.lists(), 4), it.mask()
    for b, h, t, w in torch.cartesian_prod(*map(torch.arange, kinds.shape)).tolist():
        part = tiles[b, h, 16 * t : 16 * (t + 1), 16 * w : 16 * (w + 1)]
        whole = bool(part.all()) and w < 3
        assert int(kinds[b, h, t, w]) == (2 if whole else int(part.any()))
    assert set(kinds.unique().tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("sets", "items"), [(1, 1024), (1, 3), (16, 256), (100, 1024), (128, 1000), (300, 64)])
def test_shares_fill_the_chip(sets: int, items: int) -> None:
    """Within 12 % of what an even division gives, where there is enough to divide."""
    shares = shares_for(sets, items, 264)
    assert 1 <= shares <= items
    rounds, longest = -(-sets * shares // 264), -(-items // shares)
    assert rounds * longest <= max(1.12 * sets * items / 264, 1)
