"""The forward kernel for Hopper: rehearsed in PyTorch against float64, and compiled for sm_90a without a GPU."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gluon_offline import BYTES, TUNED, UNTUNED, measured
from gluon_rehearsal import GRID, Descriptor, Pointer, rehearsed, rehearsed_file, run
from hopper_masks import mask_of

FORMULAS = Path(__file__).parents[2] / "hopper_formulas.py"
WORDS = rehearsed_file(FORMULAS)
KERNEL = rehearsed("forward").forward
LN2, SLOPES, REACH = math.log(2), [0.5, 0.25, 0.125, 0.0625], 5
NAN = float("nan")


# -- rehearsed -------------------------------------------------------------------------------------------------


def inside_nan(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    """A random array whose surroundings are NaN, its vectors at multiples of 16 bytes."""
    batch, heads, length, width = shape
    room = torch.full((batch + 1, heads + 1, length + 3, -(-width // 8) * 8 + 8), NAN, dtype=dtype)
    room[:batch, :heads, :length, :width] = torch.randn(shape).to(dtype)
    return room[:batch, :heads, :length, :width]


def power_of_two(width: int) -> int:
    return max(16, 1 << (width - 1).bit_length())


def listed(truth: Any, rows: int, columns: int) -> Any:
    """blocks.Lists of a mask (B or 1, H or 1, N, n), by looking at every pair."""
    batch, heads, length, keys = truth.shape
    tiles, width = -(-length // rows), -(-keys // columns)
    indices = torch.full((batch, heads, tiles, width), 10**6, dtype=torch.int32)
    counts = torch.zeros((batch, heads, tiles, 2), dtype=torch.int32)
    for b in range(batch):
        for h in range(heads):
            for t in range(tiles):
                cut = [truth[b, h, t * rows : (t + 1) * rows, c * columns : (c + 1) * columns] for c in range(width)]
                sticks_out = [(c + 1) * columns > keys for c in range(width)]
                some = [c for c, x in enumerate(cut) if x.any() and (sticks_out[c] or not x.all())]
                whole = [c for c, x in enumerate(cut) if x.all() and not sticks_out[c]]
                indices[b, h, t, : len(some + whole)] = torch.tensor(some + whole, dtype=torch.int32)
                counts[b, h, t] = torch.tensor([len(some), len(some + whole)])
    order = counts[..., 1].sum(1).argsort(descending=True).int()
    return SimpleNamespace(indices=indices, counts=counts, order=order)


class Call:
    """Arrays of a formula, its mask, and what a kernel makes of them."""

    def __init__(self, formula: str, sizes: tuple[int, ...], widths: tuple[int, int], start: int = 0) -> None:
        torch.manual_seed(7)
        self.formula, (self.batch, self.heads, groups, self.rows, self.keys) = formula, sizes
        self.flags = WORDS.FORMULAS[formula]
        self.q = inside_nan(self.batch, self.heads, self.rows, widths[0])
        self.k = inside_nan(self.batch, groups, self.keys, widths[0])
        self.v = inside_nan(self.batch, groups, self.keys, widths[1])
        self.start = torch.arange(self.batch) * 3 + start
        self.table = torch.randn(2 * REACH + 1)
        self.documents = [torch.arange(x).mul(3).div(x).int().repeat(self.batch, 1) for x in (self.rows, self.keys)]

    def run(self, columns: int, stages: int = 2, warpgroups: int = 2, launched: int = 0, **changes: Any) -> Any:
        """y and total, from a kernel with these tiles."""
        made = inside_nan(self.batch, self.heads, self.rows, int(self.v.shape[3]))
        made[:] = NAN
        total = torch.full((self.batch, self.heads, self.rows), NAN)
        tiles, pairs = -(-self.rows // (64 * warpgroups)), self.batch * self.heads
        lists = listed(self.mask(), 64 * warpgroups, columns) if self.flags["HAS_MASK"] else None
        launched = launched or pairs * tiles
        numbers = (pairs * tiles, -(-pairs * tiles // launched), tiles * self.heads, self.heads)
        numbers = (*numbers, tiles * (len(lists.order) > 1)) if lists else (*numbers[:2], tiles, 1, 0)
        numbers = (*numbers, 0)
        same = {"STAGES": stages, "WARPGROUPS": warpgroups, "REGISTERS": 0, "LOADER": 0, "IN_TURN": False}
        own = {"OWN_OUT": self.q.shape[3] != self.v.shape[3], "LISTED": lists is not None}
        run(
            KERNEL,
            launched,
            *(Descriptor(x, rows, power_of_two(int(x.shape[3])))
              for x, rows in ((self.q, 64), (self.k, columns), (self.v, columns), (made, 64))),
            Pointer(total),
            Pointer(self.start),
            self.data(),
            *self.listing(lists),
            (self.heads, self.heads // int(self.v.shape[1]), self.rows, self.keys),
            numbers,
            SimpleNamespace(**self.flags),
            SimpleNamespace(**same | own | changes),
        )  # fmt: skip
        return made, total

    def data(self) -> tuple[Any, ...]:
        arrays = (torch.tensor(SLOPES), self.table, *self.documents)
        return (*map(Pointer, arrays), self.rows, self.keys, REACH)

    @staticmethod
    def listing(lists: Any) -> tuple[Any, Any]:
        if lists is None:
            return (None,) * 7, None
        batch, heads, tiles, width = lists.indices.shape
        steps = heads * tiles if batch > 1 else 0, tiles if heads > 1 else 0
        strides = (steps[0] * width, steps[1] * width, width, steps[0] * 2, steps[1] * 2)
        return (Pointer(lists.indices), Pointer(lists.counts), *strides), Pointer(lists.order)

    # -- the same, in float64 ---------------------------------------------------------------------------------

    def places(self) -> tuple[Any, Any]:
        return self.start[:, None, None, None] + torch.arange(self.rows)[:, None], torch.arange(self.keys)

    def mask(self) -> Any:
        if not self.flags["HAS_MASK"]:
            return torch.ones((1, 1, self.rows, self.keys), dtype=torch.bool)
        return mask_of(self.formula, self.start, self.documents)

    def expected(self) -> tuple[Any, Any]:
        """y, and log2 Z or Z, with row terms that cancel left out as the kernel does."""
        q, k, v = (x.double().repeat_interleave(self.heads // x.shape[1], 1) for x in (self.q, self.k, self.v))
        s, (i, j) = q @ k.mT, self.places()
        slopes = torch.tensor(SLOPES).double()[: self.heads, None, None]
        psi, mask = self.weights(s, i, j, slopes), self.mask()
        psi = torch.where(mask, psi, 0.0)
        z = psi.sum(-1)
        if self.flags["HAS_SINK"]:
            z = z + torch.exp(slopes[..., 0])
        if not self.flags["SHARED"]:
            return psi @ v, None
        y = torch.where(z[..., None] == 0, 0.0, psi @ v / torch.where(z == 0, 1.0, z)[..., None])
        return y, torch.log2(z) if self.flags["EXPONENTIAL"] else z

    def weights(self, s: Any, i: Any, j: Any, slopes: Any) -> Any:
        c = 0.12751743
        if self.formula in ("softmax", "causal", "window", "bounded", "causal and bounded", "sink", "documents"):
            return torch.exp2(s * c)
        if "column table" in self.formula:
            return torch.exp2((s + self.table.double()[j % (2 * REACH + 1)]) * c)
        if self.formula == "alibi":
            anchor = i - torch.arange(self.rows)[:, None] % 128
            return torch.exp2((s + slopes * (j - anchor)) * c)
        if self.formula == "soft-cap":
            return torch.exp2(43.280851 * torch.tanh(s * 0.0029462783))
        if self.formula == "sigmoid":
            return torch.sigmoid(s * 0.088388348 - 9)
        if self.formula == "relative":
            return torch.exp2(s * c + self.table.double()[(i - j).clamp(-REACH, REACH) + REACH])
        return torch.relu(s * 0.088388348)

    def check(self, y: Any, total: Any) -> None:
        """Errors are no larger than rounding P and y to bfloat16 makes them; nothing outside y was written."""
        wanted, sums = self.expected()
        scale = wanted.abs().amax() + 1e-30
        assert float((y.double() - wanted).abs().amax() / scale) < 2**-7
        assert bool(torch.isnan(y._base[: self.batch, : self.heads, self.rows :]).all())
        assert bool(torch.isnan(y._base[..., y.shape[3] :]).all())
        if sums is None:
            assert bool(torch.isnan(total).all())
        else:
            torch.testing.assert_close(total.double(), sums, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("formula", WORDS.FORMULAS)
def test_a_formula_in_ragged_sizes_with_grouped_heads(formula):
    call = Call(formula, (2, 4, 2, 137, 151), (24, 24))
    call.check(*call.run(64))


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (1, 2, 1, 64, 64), (1, 1, 1, 65, 63), (2, 1, 1, 131, 17)])
@pytest.mark.parametrize("formula", ["softmax", "causal", "relu"])
def test_lengths_at_the_edges_of_tiles(formula, sizes):
    call = Call(formula, sizes, (16, 16))
    call.check(*call.run(16, stages=3))


def test_values_may_be_wider_or_narrower_than_keys():
    for widths in ((16, 40), (40, 16)):
        call = Call("causal", (1, 2, 2, 70, 83), widths)
        call.check(*call.run(32))


@pytest.mark.parametrize("formula", ["causal", "shared relu", "sink"])
def test_rows_that_read_nothing_are_zero_and_no_barrier_hangs(formula):
    call = Call(formula, (2, 2, 1, 200, 90), (16, 16), start=-130)
    y, total = call.run(32)
    call.check(y, total)
    assert bool((y[:, :, :100] == 0).all())
    call.v[:] = torch.where(torch.arange(90)[:, None] < 3, NAN, call.v)  # in the block that stands in for none
    assert bool((call.run(32)[0][0, :, :128] == 0).all())


@pytest.mark.parametrize(
    "formula", ["softmax", "causal", "window", "relu", "scaled relu", "sink", "causal column table"]
)
def test_three_warpgroups_turns_and_few_programs_change_nothing(formula):
    call = Call(formula, (2, 2, 1, 300, 170), (16, 16))
    usual = call.run(32)
    call.check(*usual)
    for changes in (
        {"warpgroups": 3}, {"IN_TURN": True}, {"launched": 1}, {"launched": 5}, {"OWN_OUT": True, "launched": 3},
        {"warpgroups": 3, "IN_TURN": True, "launched": 2, "stages": 3},
    ):  # fmt: skip
        y, total = call.run(32, **changes)
        call.check(y, total)
        if "warpgroups" not in changes:  # with other tiles the lists are others, and their order
            torch.testing.assert_close((y, total), usual, atol=0, rtol=0, equal_nan=True)


def test_every_program_has_about_as_much_to_do_in_a_window(monkeypatch):
    """Tiles at the beginning of a head read fewer keys; those of all heads come last, to whoever is done first."""
    from regard.engines.triton.hopper import launch
    from regard.engines.triton.hopper.tilings import Tiling

    monkeypatch.setattr(launch, "_processors", lambda _: 132)
    keys = torch.empty(1, 1, 1, 1, dtype=torch.bfloat16).expand(2, 16, 8192, 128)
    blocks = torch.arange(1, 65).clamp(max=9)  # of a causal window of 1 024, in tiles of 128 × 128
    lists = SimpleNamespace(indices=torch.empty(1, 1, 64, 9), order=blocks.argsort(descending=True, stable=True)[None])
    call = SimpleNamespace(shape=(2, 16, 8192), rights=(keys,), v=keys)
    launched, where = launch._launch(call, lists, Tiling(128, 2, persistent=True))
    common, done, seen = rehearsed("common"), [], set()
    for own in range(launched):
        GRID.update(own=own, all=launched)
        mine = [
            common.place_of(step, where, 16, Pointer(lists.order[0]), True)
            for step in range(int(common.rounds_of(where)))
        ]
        seen |= {tuple(map(int, place)) for place in mine}
        done.append(sum(int(blocks[int(tile)]) for _, _, tile in mine))
    assert len(seen) == 2 * 16 * 64
    assert max(done) <= 1.02 * sum(done) / launched


def test_tiles_that_would_wait_for_ever_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        rehearsed("tilings").Tiling(columns=128, stages=1)


@pytest.mark.parametrize("staged", range(8))
def test_vectors_of_columns_take_a_stage_where_they_need_its_room(staged):
    tilings = rehearsed("tilings")
    uneven = tilings.Traits(exponential=False, masked=True, even=False, uses_j=True, columns=True)
    found = tilings.tiling(128, 128, uneven, staged)
    bytes_ = 128 * 128 * 2 + found.stages * 128 * (2 * 128 * 2 + staged * 4)
    assert bytes_ + 1024 <= BYTES
    assert found.stages == (3 if staged < 2 else 2)


# -- compiled --------------------------------------------------------------------------------------------------

CASES = "softmax 64,softmax 128,softmax 256,causal in turn,alibi 64,sigmoid 128,relative 128,documents 64".split(",")
CASES += ["window 64", "window 128"]


@pytest.fixture(scope="module")
def compiled():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed: pip install 'regard[gpu]'")
    return measured(FORMULAS, CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_compiles_for_hopper(compiled, name):
    found = compiled[name]
    assert "error" not in found, found.get("error")
    assert found["shared"] <= BYTES
    assert found["wgmma"] > 0
    assert not found["serialized"]


@pytest.mark.slow
@pytest.mark.skipif(not TUNED, reason=UNTUNED)
@pytest.mark.parametrize("name", CASES)
def test_nothing_spills(compiled, name):
    assert compiled[name]["spills"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax 64", "softmax 128", "causal in turn", "softmax 256", "window 128"])
def test_the_weights_of_a_block_are_made_under_products(compiled, name):
    """One exponential for each of a thread's numbers stands between the waits for S and for P V."""
    columns = 64 if name.endswith("256") else 128
    assert compiled[name]["under"] >= columns // 2
