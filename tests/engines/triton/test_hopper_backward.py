"""The backward kernels for Hopper: rehearsed in PyTorch against float64, and compiled for sm_90a without a GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gluon_loops import looped
from gluon_offline import BYTES, TUNED, UNTUNED
from gluon_rehearsal import Descriptor, Pointer, rehearsed, rehearsed_file, run
from hopper_masks import mask_of

FORMULAS = Path(__file__).parents[2] / "hopper_backward_formulas.py"
NAN, REACH, C = float("nan"), 5, 0.12751743
SLOPES = [0.5, 0.25, 0.125, 0.0625]


ROWS, KEYS, QUERIES = map(rehearsed, ("backward_rows", "backward_keys", "backward_queries"))
WORDS = rehearsed_file(FORMULAS)


# -- rehearsed -------------------------------------------------------------------------------------------------


def inside_nan(*shape: int) -> Any:
    """A random array whose surroundings are NaN, its vectors at multiples of 16 bytes."""
    batch, heads, length, width = shape
    room = torch.full((batch + 1, heads + 1, length + 3, -(-width // 8) * 8 + 8), NAN, dtype=torch.bfloat16)
    room[:batch, :heads, :length, :width] = torch.randn(shape).bfloat16()
    return room[:batch, :heads, :length, :width]


def empty_like(x: Any) -> Any:
    """Room for a gradient, NaN, within NaN."""
    return inside_nan(*x.shape).fill_(NAN)


def descriptor(x: Any, rows: int) -> Descriptor:
    return Descriptor(x, rows, max(16, 1 << (int(x.shape[3]) - 1).bit_length()))


def listed(truth: Any, held: int, block: int, parts: int = 1) -> tuple[Any, Any]:
    """Lists of a mask (B or 1, H or 1, held things, met things), by looking at every pair, and their order.

    parts: every block is named as so many
    """
    (batch, heads, tall, long), found = truth.shape, []
    tiles, width = -(-tall // held), -(-long // block)
    indices = torch.full((batch, heads, tiles, width), 10**6, dtype=torch.int32)
    counts = torch.zeros((batch, heads, tiles, 2), dtype=torch.int32)
    for b, h, t in ((b, h, t) for b in range(batch) for h in range(heads) for t in range(tiles)):
        cut = truth[b, h, t * held : (t + 1) * held].split(block, 1)
        whole = [c for c, x in enumerate(cut) if x.all() and (c + 1) * block <= long]
        found = [c for c, x in enumerate(cut) if x.any() and c not in whole]
        indices[b, h, t, : len(found + whole)] = torch.tensor(found + whole, dtype=torch.int32)
        counts[b, h, t] = torch.tensor([len(found), len(found + whole)])
    width = width * parts
    indices = (indices[..., None] * parts + torch.arange(parts, dtype=torch.int32)).flatten(-2)
    counts = counts * parts
    steps = heads * tiles if batch > 1 else 0, tiles if heads > 1 else 0
    strides = (steps[0] * width, steps[1] * width, width, steps[0] * 2, steps[1] * 2)
    order = counts[..., 1].sum(1).argsort(descending=True).int()
    return (Pointer(indices), Pointer(counts), *strides), Pointer(order)


def placed(truth: Any) -> tuple[Any, Any, Any]:
    """Lists of tiles of 128 rows, and where each tile stands in the list of the keys that it meets."""
    (by_rows, counts, *rest), order = listed(truth, 128, 128, 2)
    keys = listed(truth.mT, 128, 128)[0][0].array
    places = torch.full_like(by_rows.array, 10**6)
    for place in (by_rows.array < 10**6).nonzero().tolist():
        b, h, tile, _ = place
        met = keys[b, h, by_rows.array[tuple(place)] // 2].tolist()
        places[tuple(place)] = met.index(tile)
    return Pointer(places), (by_rows, counts, *rest), order


class Call:
    """Arrays of a formula and its gradients, by the kernels and in float64."""

    def __init__(self, formula: str, sizes: tuple[int, ...], widths: tuple[int, int], start: int = 0) -> None:
        torch.manual_seed(3)
        self.formula, (self.batch, self.heads, self.groups, self.rows, self.keys) = formula, sizes
        self.flags = WORDS.FORMULAS[formula]
        self.q = inside_nan(self.batch, self.heads, self.rows, widths[0])
        self.k, self.v = (inside_nan(self.batch, self.groups, self.keys, width) for width in widths)
        self.dy = inside_nan(self.batch, self.heads, self.rows, widths[1])
        self.start = torch.arange(self.batch) * 3 + start
        self.table = torch.randn(2 * REACH + 1)
        self.a, self.c = (torch.randn(self.batch, self.heads, size) for size in (self.rows, self.keys))
        self.documents = [torch.arange(x).mul(3).div(x).int().repeat(self.batch, 1) for x in (self.rows, self.keys)]
        self.wanted, self.stats = self.expected()

    # -- in float64 -----------------------------------------------------------------------------------------

    def mask(self) -> Any:
        if not self.flags["HAS_MASK"]:
            return torch.ones((1, 1, self.rows, self.keys), dtype=torch.bool)
        return mask_of(self.formula, self.start, self.documents)

    def weights(self, s: Any, a: Any, c: Any, e: Any) -> Any:
        i, j = self.start[:, None, None, None] + torch.arange(self.rows)[:, None], torch.arange(self.keys)
        if "column table" in self.formula:
            return torch.exp2((s + self.table.double()[j % (2 * REACH + 1)]) * C)
        if self.formula == "alibi":
            slopes = torch.tensor(SLOPES).double()[: self.heads, None, None]
            return torch.exp2((s + slopes * (j - i + torch.arange(self.rows)[:, None] % 128)) * C)
        if self.formula == "soft-cap":
            return torch.exp2(43.280851 * torch.tanh(s * 0.0029462783))
        if self.formula == "sigmoid":
            return torch.sigmoid(s * 0.088388348 - 9)
        if self.formula == "biases":
            return torch.sigmoid(s * 0.088388348 + a[..., None] + c[:, :, None] + e[:, :, None] * s)
        if self.formula == "relative":
            return torch.exp2(s * C + self.table.double()[(i - j).clamp(-REACH, REACH) + REACH])
        if "relu" in self.formula:
            return torch.relu(s * 0.088388348)
        return torch.exp2((s + (c[:, :, None] if self.formula == "column bias" else 0)) * C)

    def expected(self) -> tuple[dict[str, Any], Any]:
        """The gradients, and what a small kernel leaves for ours: L or 1/Z, and δ."""
        leaves = [x.detach().double().requires_grad_() for x in (self.q, self.k, self.v, self.a, self.c, 0 * self.c)]
        q, k, v = leaves[0], *(x.repeat_interleave(self.heads // self.groups, 1) for x in leaves[1:3])
        psi = torch.where(self.mask(), self.weights(q @ k.mT, *leaves[3:]), 0.0)
        z = psi.sum(-1)
        if self.flags["HAS_SINK"]:
            z = z + torch.exp(torch.tensor(SLOPES).double()[: self.heads, None])
        none = z == 0
        y = psi @ v
        if self.flags["SHARED"]:
            y = torch.where(none[..., None], 0.0, y / torch.where(none, 1.0, z)[..., None])
        found = torch.autograd.grad((y * self.dy.double()).sum(), leaves, allow_unused=True)
        first = torch.log2(z) if self.flags["EXPONENTIAL"] else 1 / z
        first = torch.where(none, float("inf") if self.flags["EXPONENTIAL"] else 0.0, first)
        stats = torch.full((self.batch, self.heads, 2, -(-self.rows // 128) * 128), NAN)
        stats[..., : self.rows] = torch.stack([first, (y * self.dy.double()).sum(-1)], 2).detach()
        return dict(zip("q k v a c e".split(), found, strict=True)), stats

    # -- by the kernels -------------------------------------------------------------------------------------

    def run(
        self, kernel: str, block: int = 64, warpgroups: int = 2, slants: Any = None, pairs: Any = None, **changes: Any
    ) -> dict[str, Any]:
        """Gradients of q and sums of rows, or of k and v and sums of columns, with dS where it is kept.

        pairs: the range of pairs (b, head) that is run; all of them where nothing is said
        """
        rows, held = kernel == "rows", 64 * warpgroups
        pulls, long = self.flags["ROW_PULLS" if rows else "COLUMN_PULLS"], self.rows if rows else self.keys
        sums = torch.full((self.batch, self.heads, max(pulls, 1), long), NAN)
        outs = {"q": empty_like(self.q)} if rows else {"k": empty_like(self.k), "v": empty_like(self.v)}
        tiles, heads = -(-long // held), self.heads if rows else self.groups
        truth = self.mask() if rows else self.mask().mT
        has_mask = self.flags["HAS_MASK"]
        tile = (held, block, 1) if slants is None else (held, 128, 2)
        lists = listed(truth, *tile) if has_mask else ((None,) * 7, None)
        pairs = range(self.batch * heads) if pairs is None else pairs
        grid = len(pairs) * tiles
        sizes = {"STAGES": 2, "WARPGROUPS": warpgroups, "REGISTERS": 0, "LOADER": 0}
        sizes |= {"IN_TURN": False, "BEHIND": False, "ONE_SCALE": self.heads == self.groups, "LISTED": has_mask}
        sizes |= {"KEPT": slants is not None}
        tall, wide = (64, block) if rows else (block, 64)
        data = (torch.tensor(SLOPES), self.table, *self.documents)
        run(
            ROWS.backward_rows if rows else KEYS.backward_keys,
            grid,
            *(descriptor(x, size) for x, size in ((self.q, tall), (self.k, wide), (self.v, wide), (self.dy, tall))),
            *(descriptor(x, 64) for x in outs.values()),
            *([] if rows else [descriptor(self.k if slants is None else slants, 64)]),
            Pointer(self.stats),
            Pointer(sums),
            Pointer(self.start),
            (*map(Pointer, data), self.rows, self.keys, REACH, Pointer(self.a), Pointer(self.c), self.heads),
            *lists,
            self.sizes(tiles * warpgroups),
            self.launch(pairs, tiles, truth),
            SimpleNamespace(**self.flags),
            SimpleNamespace(**sizes | changes),
        )
        return outs | {"sums": sums}

    def sizes(self, across: int) -> tuple[int, ...]:
        return self.heads, self.heads // self.groups, self.rows, self.keys, int(self.stats.shape[3]), across

    def launch(self, pairs: range, tiles: int, truth: Any) -> tuple[int, ...]:
        """One section of all pairs where there is a mask, otherwise one of each."""
        together = len(pairs) if self.flags["HAS_MASK"] else 1
        ordered = tiles * (self.flags["HAS_MASK"] and len(truth) > 1)
        return len(pairs) * tiles, 1, tiles * together, together, ordered, pairs.start

    def both(self, parts: int = 1, pairs: Any = None, **changes: Any) -> dict[str, Any]:
        """All three gradients: the kernel that holds keys keeps dS, and another makes dq of it."""
        across, down, tall = -(-self.keys // 128) * 2, -(-self.rows // 128 // parts) * 2 * parts, 128 * parts
        pairs, group = range(self.batch * self.groups) if pairs is None else pairs, self.heads // self.groups
        slants = torch.full((len(pairs) * group * across, down, 64, 64), NAN, dtype=torch.bfloat16)
        found = self.run("keys", slants=slants, pairs=pairs, **{"BEHIND": True, "STAGES": 3} | changes)
        dq, tiles, truth = empty_like(self.q), -(-self.rows // tall), self.mask()
        sizes = {"STAGES": 2, "PARTS": parts, "REGISTERS": 0, "LOADER": 0, "LISTED": self.flags["HAS_MASK"]}
        own = range(pairs.start * group, pairs.stop * group)
        run(
            QUERIES.backward_queries, len(own) * tiles, descriptor(self.k, 64), descriptor(dq, 64),
            descriptor(slants, 64),
            Pointer(self.stats), (Pointer(torch.tensor(SLOPES)),),
            *(placed(truth) if self.flags["HAS_MASK"] else (None, (None,) * 7, None)),
            self.sizes(across), self.launch(own, tiles, truth), SimpleNamespace(**self.flags),
            SimpleNamespace(**sizes, ONE_SCALE=self.heads == self.groups),
        )  # fmt: skip
        return found | {"q": dq}

    def check(self, found: dict[str, Any]) -> None:
        """Errors are those of P, dS and the gradient in bfloat16; nothing outside the arrays was written."""
        for name, x in found.items():
            if name == "sums":
                continue
            self.near(x, self.wanted[name])
            assert bool(torch.isnan(x._base[: self.batch, : x.shape[1], x.shape[2] :]).all())
            assert bool(torch.isnan(x._base[..., x.shape[3] :]).all())

    @staticmethod
    def near(x: Any, wanted: Any, within: float = 2**-7) -> None:
        assert bool(torch.isfinite(x).all())
        assert float((x.double() - wanted).norm() / (wanted.norm() + 1e-12)) < within


@pytest.mark.parametrize("kernel", ["rows", "keys"])
@pytest.mark.parametrize("formula", WORDS.FORMULAS)
def test_a_formula_in_ragged_sizes_with_grouped_heads(formula, kernel):
    call = Call(formula, (2, 4, 2, 137, 151), (24, 24))
    call.check(call.run(kernel))


@pytest.mark.parametrize("formula", [name for name, flags in WORDS.FORMULAS.items() if not flags["ROW_PULLS"]])
def test_a_formula_whose_ds_is_made_once(formula):
    call = Call(formula, (2, 4, 2, 137, 151), (24, 24))
    call.check(call.both())


@pytest.mark.parametrize("formula", ["softmax", "causal"])
def test_what_stands_beyond_the_last_key_reaches_no_row(formula):
    """Scores near −200 make L so low that the weight of a key which is not there, of score 0, is infinite."""
    call = Call(formula, (1, 2, 1, 70, 75), (16, 16))
    call.q[..., 0], call.k[..., 0] = 40.0, -40.0
    call.wanted, call.stats = call.expected()
    assert float(call.stats[..., 0, :70].max()) < -128
    found = call.both()
    for name in "qkv":
        call.near(found[name][..., 1:], call.wanted[name][..., 1:])  # Σ dS · 40 is 0 but for rounding


@pytest.mark.parametrize("formula", ["softmax", "causal"])
def test_ds_of_some_heads_at_a_time_gives_the_same_bits(formula):
    call = Call(formula, (2, 4, 2, 137, 151), (24, 24))
    whole = call.both()
    for pairs in (range(1), range(1, 3), range(3, 4)):
        found = call.both(pairs=pairs)
        for name, group in (("q", 2), ("k", 1), ("v", 1)):
            one, all_of_them = (x[name].flatten(0, 1) for x in (found, whole))
            own = slice(pairs.start * group, pairs.stop * group)
            assert bool((one[own] == all_of_them[own]).all())
            assert int(one.isfinite().flatten(1).all(1).sum()) == len(pairs) * group  # no other was written


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (1, 2, 1, 64, 64), (1, 1, 1, 65, 63), (2, 1, 1, 260, 17)])
@pytest.mark.parametrize("formula", ["softmax", "causal", "shared relu"])
def test_ds_that_is_kept_in_lengths_at_the_edges_of_tiles(formula, sizes):
    call = Call(formula, sizes, (16, 16), start=-3)
    call.check(call.both())
    if not call.flags["HAS_MASK"]:
        call.check(call.both(parts=2, BEHIND=False, STAGES=2))


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (1, 2, 1, 64, 64), (1, 1, 1, 65, 63), (2, 1, 1, 131, 17)])
@pytest.mark.parametrize("formula", ["softmax", "causal", "relu"])
def test_lengths_at_the_edges_of_tiles(formula, sizes):
    call = Call(formula, sizes, (16, 16))
    for kernel in ("rows", "keys"):
        call.check(call.run(kernel, block=32, STAGES=3))


def test_values_may_be_wider_or_narrower_than_keys():
    for widths in ((16, 40), (40, 16)):
        call = Call("causal", (1, 2, 2, 70, 83), widths)
        for kernel in ("rows", "keys"):
            call.check(call.run(kernel, block=32))


@pytest.mark.parametrize("formula", ["causal", "shared relu"])
@pytest.mark.parametrize("behind", [False, True])
def test_what_reads_nothing_or_is_read_by_nothing_gets_zeros_and_no_barrier_hangs(formula, behind):
    call = Call(formula, (2, 2, 1, 200, 290), (16, 16), start=-130)
    found = call.run("rows", block=32) | call.run("keys", block=32, BEHIND=behind)
    call.check({name: found[name] for name in "qkv"})
    assert bool((found["q"][:, :, :100] == 0).all())
    assert bool((found["k"][:, :, 128:] == 0).all())
    assert bool((found["v"][:, :, 128:] == 0).all())
    call.k[:] = torch.where(torch.arange(290)[:, None] < 3, NAN, call.k)  # of the block that stands in for none
    assert bool((call.run("rows", block=32)["q"][:, :, :100] == 0).all())


@pytest.mark.parametrize("formula", ["softmax", "causal", "relu"])
@pytest.mark.parametrize("kernel", ["rows", "keys"])
def test_orders_turns_and_stages_change_no_bit(formula, kernel):
    call = Call(formula, (2, 4, 2, 300, 170), (16, 16))
    usual = call.run(kernel, block=32)
    for changes in ({"IN_TURN": True}, {"BEHIND": True}, {"BEHIND": True, "IN_TURN": True}, {"STAGES": 4}):
        torch.testing.assert_close(call.run(kernel, block=32, **changes), usual, atol=0, rtol=0, equal_nan=True)
    call.check(call.run(kernel, block=32, warpgroups=3, BEHIND=True, IN_TURN=True))


def test_sums_of_rows_and_of_columns():
    call = Call("biases", (2, 4, 2, 137, 151), (24, 24))
    call.near(call.run("rows")["sums"][:, :, 0], call.wanted["a"])
    for behind in (False, True):
        sums = call.run("keys", BEHIND=behind)["sums"]
        call.near(sums[:, :, 0], call.wanted["c"])
        call.near(sums[:, :, 1], call.wanted["e"])
    call = Call("column bias", (2, 4, 2, 137, 151), (24, 24))
    call.near(call.run("keys")["sums"][:, :, 0] * 0.088388348, call.wanted["c"])


# -- compiled --------------------------------------------------------------------------------------------------

CASES = (
    "rows softmax 64,rows softmax 128,rows causal 128,rows soft-cap 128,rows relu 64,"
    "rows softmax balanced 64,rows softmax balanced 128,rows causal balanced 128,"
    "keys softmax 64,keys softmax 128,keys softmax 128 behind=True in_turn=True,keys causal 128,keys sigmoid 128,"
    "keys alibi 64,"
    "keys softmax 128 behind=True kept=True,keys causal 128 behind=True kept=True"
).split(",")
GATHERS = "queries softmax 128", "queries causal 128 parts=1 stages=6"  # as gather_tiling has them


@pytest.fixture(scope="module")
def compiled():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed: pip install 'regard[gpu]'")
    return looped(FORMULAS, [*CASES, *GATHERS])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_compiles_for_hopper(compiled, name):
    found = compiled[name]
    assert found["shared"] <= BYTES
    assert found["wgmma"] > 0
    assert not found["serialized"]
    assert len(found["loops"]) >= 2


@pytest.mark.slow
@pytest.mark.skipif(not TUNED, reason=UNTUNED)
@pytest.mark.parametrize("name", CASES)
def test_no_loop_spills(compiled, name):
    """What is kept for the end of a tile may be put away before its loop, and nothing else."""
    found = compiled[name]
    assert found["spills"] <= 128
    assert sum(loop["local"] for loop in found["loops"]) <= 2, found["loops"]


@pytest.mark.slow
@pytest.mark.parametrize("name", GATHERS)
def test_what_makes_dq_of_ds_compiles_and_spills_nothing(compiled, name):
    """It has no formula: products alone."""
    found = compiled[name]
    assert found["shared"] <= BYTES
    assert found["wgmma"] > 0
    assert found["spills"] == 0
    assert found["loops"]
    assert not any(loop["local"] or loop["under"] for loop in found["loops"]), found["loops"]


MADE_UNDER = (
    "rows softmax 64,rows softmax 128,keys softmax 64,keys softmax 128,keys softmax 128 behind=True kept=True"
).split(",")


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE_UNDER)
def test_the_weights_of_a_block_are_made_under_products(compiled, name):
    """A thread makes 32 of the 64 · 64 weights, all but a few of them before the second wait of the loop."""
    assert all(loop["under"] >= 28 for loop in compiled[name]["loops"]), compiled[name]["loops"]
