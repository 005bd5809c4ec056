"""The tiles of a mask: no verdict is wrong, those of the classic masks are the ones a person would mark."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import regard as rg
from regard import b, d, dot, equal, h, i, j, n, sqdist, table
from regard.engines.call import Call, prepare
from regard.engines.dense.forward import value
from regard.engines.triton.blocks import Lists, admitted_pairs, both_lists, lists
from regard.engines.triton.extremes import Tiles
from regard.engines.triton.verdicts import verdicts
from strategies import NUMBERS, RELATIONS, Twin, arrays, expressions, index_masks

BATCH, HEADS, KEY_HEADS, WIDTH = 2, 6, 3, 3
SIZES = [(5, 7), (1, 7), (7, 7)]  # queries and keys; the tables of random formulas end at 23
TILES = [(1, 1), (2, 3), (4, 2), (3, 8), (16, 16)]


def made(mask: Any, queries: int, keys: int, *, start: Any = None, dtype: Any = None, **tables: Any) -> Call:
    """A call with random vectors."""
    dtype, random = dtype or torch.float32, torch.Generator().manual_seed(7)
    shapes = (BATCH, HEADS, queries, WIDTH), (BATCH, KEY_HEADS, keys, WIDTH)
    q, k = (torch.randn(shape, generator=random).to(dtype) for shape in shapes)
    formula = rg.Attention(mask=mask)
    used = {name: torch.as_tensor(tables[name]) for name in formula.ranks}
    return prepare(formula, q, k, k, start=start, tables=used)


def truths(call: Call) -> Any:
    """The mask of every pair, by the engine that holds whole matrices."""
    return value(call, call.formula.admitted).expand(call.batch, call.heads, call.queries, call.keys)


def cut(truth: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Whether all and any pairs of each tile are admitted."""
    *_, queries, keys = truth.shape
    tiles = [
        [truth[..., r : r + rows, c : c + columns].flatten(-2) for c in range(0, keys, columns)]
        for r in range(0, queries, rows)
    ]
    reduced = [
        torch.stack([torch.stack([kind(tile, -1) for tile in line], -1) for line in tiles], -2)
        for kind in (torch.all, torch.any)
    ]
    return reduced[0], reduced[1]


def members(made: Lists, batch: int, head: int, tile: int) -> tuple[list[int], list[int]]:
    """The tiles of one list: some, all."""
    at = min(batch, made.indices.shape[0] - 1), min(head, made.indices.shape[1] - 1), tile
    some, total = made.counts[at].tolist()
    listed = made.indices[at].tolist()
    return listed[:some], listed[some:total]


def marked(made: Lists, met: int) -> tuple[Any, Any]:
    """Which tiles stand in the first and in the second part of each list; none stands there twice."""
    place, (some, total) = torch.arange(made.indices.shape[-1]), made.counts[..., None].unbind(-2)
    rises = (made.indices.diff() > 0) | (place[1:] == some) | (place[1:] >= total)
    assert rises.all(), "some ascending, then all ascending"
    parts = []
    for inside in (place < some, (place >= some) & (place < total)):
        counts = torch.zeros(*made.counts.shape[:-1], met, dtype=torch.int64)
        parts.append(counts.scatter_add(-1, made.indices.long(), inside.long()))
    assert (parts[0] + parts[1] <= 1).all()
    return parts[0] == 1, parts[1] == 1


def check_lists(call: Call, rows: int, columns: int) -> None:
    """Every admitted pair is in exactly one listed tile, and a tile of the second part admits every pair."""
    every, some = cut(truths(call), rows, columns)
    masked, free = marked(lists(call, rows, columns), every.shape[-1])
    assert not (some & ~(masked | free)).any(), "a pair is missing"
    assert not (free & ~every).any(), "a pair is not masked"
    assert not (call.keys % columns and free[..., -1].any()), "keys outside are not masked"
    turned = [x.transpose(-1, -2) for x in marked(lists(call, rows, columns, "keys"), every.shape[-2])]
    assert torch.equal(masked | free, turned[0] | turned[1])
    same = slice(None, call.queries // rows)  # rows that stick out are masked where keys are held
    assert torch.equal(free[..., same, :], turned[1][..., same, :])
    assert not turned[1][..., call.queries // rows :, :].any()


# -- no verdict is wrong -----------------------------------------------------------------------------------------


def relation(function: Any, x: Twin, y: Twin) -> Any:
    return function[0](x.value, y.value)


relations = st.builds(
    relation, st.sampled_from(RELATIONS), expressions(), st.one_of(expressions(), st.sampled_from(NUMBERS))
).filter(lambda made: isinstance(made, rg.Mask))
masks = st.one_of(
    index_masks().map(lambda twin: twin.value),
    relations,
    st.builds(operator.and_, index_masks().map(lambda twin: twin.value), relations),
)
starts = st.sampled_from([None, 2, torch.tensor([2, 0]), torch.tensor([3, 3])])


@settings(max_examples=80)
@given(masks, st.sampled_from(SIZES), st.sampled_from(TILES), starts, st.sampled_from([torch.float32, torch.float64]))
def test_no_verdict_is_wrong(mask: Any, sizes: Any, tile: Any, start: Any, dtype: Any) -> None:
    call = made(mask, *sizes, start=start, dtype=dtype, **arrays())
    every, some = cut(truths(call), *tile)
    sure, possible = verdicts(Tiles(call, *tile))
    assert not (sure & ~every).any(), "all that is not all"
    assert not (~possible & some).any(), "none that is not none"
    check_lists(call, *tile)


@settings(max_examples=60)
@given(
    st.floats(0.01, 9).map(lambda x: round(x, 2)),
    st.integers(-9, 9),
    st.integers(0, 2**25),
    st.sampled_from([operator.le, operator.lt, operator.ge]),
)
def test_a_rounding_is_no_verdict(slope: float, steps: int, start: int, compare: Any) -> None:
    """c i − c j at the very border, in float32, also where i is no float32 any more."""
    for mask in (compare(slope * (i - start) - slope * j, slope * steps), compare(i * slope, (start + j) * slope)):
        if isinstance(mask, rg.Mask):
            call = made(mask, 7, 11, start=start)
            every, some = cut(truths(call), 2, 3)
            sure, possible = verdicts(Tiles(call, 2, 3))
            assert not (sure & ~every).any()
            assert not (~possible & some).any()


STRANGE = {
    "overflow": rg.exp(40 * i) - rg.exp(40 * j) <= 0,
    "overflow times 0": j * rg.exp(40 * i) >= 0,
    "underflow": rg.exp(-40 * i) > 0,
    "log of what may be negative": rg.log(i - j) <= 9,
    "root of what may be negative": rg.tanh(rg.sqrt(i - j)) <= 2,
    "division by 0": 1 / (i - j) <= 2,
    "not a number": rg.tanh(table("holes")[j]) <= 2,
    "the smaller of a number and none": rg.minimum(table("holes")[j], 1) <= 3,
    "other than none": ~equal(table("holes")[j], 0),
    "infinite": table("depths")[j] - table("depths")[i] >= 0,
    "infinite entries alone": table("depths")[j] > -1e9,
    "float32 of 0.1": table("tenths")[j] <= 0.1,
    "terms that cancel": table("big")[i] + table("little")[j] + table("minus")[i] > 0,
    "divisor 0": i // table("ids")[j] >= 2,
    "remainder by 0": equal(i % table("ids")[j], 0),
    "powers": (i - j) ** 2 + (i - j) ** 3 < 40,
    "squares": (i - j) ** 2 >= 1,
    "squares of real numbers": (i - j - 0.1) ** 2 >= 0.02,
    "powers of what may be negative": (i - j) ** h >= 1,
    "roots": rg.abs(i - j) ** 0.5 < 2,
    "of vectors": (dot > 0) & (j <= i),
    "of distances": (sqdist >= 0) | (j > i),
    "of cosines": rg.cosine <= 1.5,
    "chosen": rg.where(j <= i, i - j, table("line")[j]) >= 1,
    "two axes see j": table("heads")[j % 6, i + j] > 0,
    "a place computed": table("line")[rg.minimum(i // 2, 9)] > 0,
    "a place read": table("line")[table("ids")[j] + h] > 0,
    "distance": rg.abs(i - j) >= 1,
    "the lower of two": rg.where(j <= i, -5, j) >= 0,
    "waves": rg.cos(i - j) >= 0.9,
    "sizes": i * 2 + d < n,
    "heads": i - j < 2 * h,
    "batch": equal((i + b) % 2, 0),
    "metric": dot(table("M")) <= 0,
}


def test_places_beyond_float32() -> None:
    """i = 2²⁵ + 1 is 2²⁵ where it meets a real number."""
    for mask in (i <= table("edge")[j], i > table("edge")[j], equal(table("edge")[j] - i, 0)):
        call = made(mask, 4, 3, start=2**25, edge=torch.full((3,), 2.0**25))
        check_lists(call, 1, 1)


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("start", [None, torch.tensor([4, 0])])
def test_strange_numbers(name: str, start: Any) -> None:
    holes, depths = torch.arange(23.0), torch.zeros(23)
    holes[5], depths[4:9] = torch.nan, -torch.inf
    tables = arrays() | {"holes": holes, "depths": depths, "tenths": torch.full((23,), 0.1)}
    tables |= {name: torch.full((23,), entry) for name, entry in (("big", 1e9), ("little", 0.1), ("minus", -1e9))}
    call = made(STRANGE[name], 7, 11, start=start, **tables)
    for tile in ((1, 1), (2, 3), (3, 4)):
        check_lists(call, *tile)


# -- the classic masks are cut where a person would ----------------------------------------------------------------

N, KEYS = 37, 53
ids = torch.tensor([[0] * 20 + [3] * 16 + [4] + [7] * 16, list(range(53))])
square = torch.ones(KEYS, KEYS).tril(-3)
CLASSIC: dict[str, Any] = {
    "causal": rg.causal,
    "before": j < i,
    "window": rg.window(9),
    "prefix": rg.prefix(11),
    "everywhere": rg.everywhere,
    "nowhere": j < 0,
    "documents": rg.documents("ids"),
    "documents for all": equal(table("same")[i], table("same")[j]),
    "padding": rg.padding("lengths"),
    "real lengths": j < table("reals")[b],
    "local": equal(i // 8, j // 8),
    "heads": i - j < 3 * h + 1,
    "given": rg.given("some"),
    "given to all": rg.given("flags"),
    "full": table("square")[i, j] > 0,
    "full, of heads": table("squares")[h, i, j] > 0,
    "full, turned": table("square")[j, i] > 0,
    "full of truths": equal(table("truths")[i, j], 1),
    "keys": table("line")[j] >= 0.5,
    "rows": table("line")[i] < 0.5,
    "halves": equal(rg.floor(table("even")[i] / 2), rg.floor(table("even")[j] / 2)),
    "heads of offsets": table("open")[h, rg.abs(i - j)] > 0,
    "far": i - j >= n - 9,
}


@pytest.mark.parametrize("name", CLASSIC)
@pytest.mark.parametrize("start", [None, 3, torch.tensor([16, 2])])
@pytest.mark.parametrize("tile", [(4, 8), (5, 3), (64, 64)])
def test_is_tight(name: str, start: Any, tile: Any) -> None:
    random = torch.Generator().manual_seed(5)
    call = made(
        CLASSIC[name], N, KEYS, start=start, ids=ids, same=ids[0], lengths=torch.tensor([17, 53]),
        reals=torch.tensor([17.0, 53.0]), some=torch.rand(BATCH, HEADS, N, KEYS, generator=random) < 0.9,
        flags=torch.arange(KEYS)[None] < 24, square=square, truths=square > 0,
        squares=square * torch.arange(HEADS)[:, None, None], line=(torch.arange(KEYS) % 30 < 15) / 2,
        open=torch.arange(HEADS)[:, None].expand(HEADS, KEYS) - 2, even=2.0 * (torch.arange(KEYS) // 16) + 2,
    )  # fmt: skip
    every, some = cut(truths(call), *tile)
    sure, possible = (x.expand_as(every) for x in verdicts(Tiles(call, *tile)))
    torch.testing.assert_close(sure, every)
    torch.testing.assert_close(possible, some)
    check_lists(call, *tile)


# -- lists -----------------------------------------------------------------------------------------------------------


def test_the_lists_of_a_window() -> None:
    call = made(rg.window(4), 8, 12)  # rows 4 … 11
    found = lists(call, 2, 4)
    assert found.indices.shape == (1, 1, 4, 2), "no longer than the longest"
    assert [members(found, 0, 0, tile) for tile in range(4)] == [([0, 1], []), ([0, 1], []), ([1, 2], []), ([1, 2], [])]
    turned = lists(call, 2, 4, "keys")
    assert [members(turned, 0, 0, tile) for tile in range(3)] == [([0, 1], []), ([0, 1, 2, 3], []), ([2, 3], [])]
    assert turned.order.tolist() == [[1, 0, 2]]


def test_the_order_is_by_falling_work() -> None:
    found = lists(made(rg.causal, 13, 13), 2, 3)
    assert found.counts[0, 0, :, 1].tolist() == [1, 2, 2, 3, 4, 4, 5]
    assert found.order.tolist() == [[6, 4, 5, 3, 1, 2, 0]]
    assert {part.dtype for part in (found.indices, found.counts, found.order)} == {torch.int32}
    some, free = members(found, 0, 0, 6)
    assert (some, free) == ([4], [0, 1, 2, 3]), "the last sticks out of the keys"


def test_rows_outside_count_where_keys_are_held() -> None:
    call = made(rg.everywhere & (j >= 0), 5, 8)
    assert members(lists(call, 4, 4), 0, 0, 1) == ([], [0, 1])
    assert members(lists(call, 4, 4, "keys"), 0, 0, 0) == ([1], [0])


@pytest.mark.parametrize("queries", [7, 11])
def test_axes_that_the_mask_does_not_see_have_size_1(queries: int) -> None:
    starts = torch.tensor([0, 0])
    tables = {"ids": torch.zeros(BATCH, 11, dtype=torch.int64), "line": torch.zeros(11)}
    expected = {rg.causal: (1, 1), rg.documents("ids"): (BATCH, 1), i < h: (1, HEADS), table("line")[j] > 0: (1, 1)}
    for mask, shape in expected.items():
        assert lists(made(mask, queries, 11, start=0, **tables), 2, 4).counts.shape[:2] == shape
    assert lists(made(rg.causal, queries, 11, start=starts), 2, 4).counts.shape[:2] == (BATCH, 1)


def test_masks_of_places_are_cut_once() -> None:
    first, second = (lists(made(rg.window(5), 11, 11), 2, 4) for _ in range(2))
    assert first is second
    assert lists(made(rg.window(5), 11, 13), 2, 4) is not first
    with torch.inference_mode():
        kept = lists(made(rg.window(6), 11, 11), 2, 4)
    assert not kept.indices.is_inference(), "a derivative may save it"


def test_admitted_pairs() -> None:
    every = BATCH * HEADS * 1024 * 1024
    assert admitted_pairs(made(rg.causal, 1024, 1024)) == every * 9 // 16
    assert admitted_pairs(made(None, 1024, 1024)) == every
    assert admitted_pairs(made(rg.causal, 1024, 1024, start=torch.tensor([0, 0]))) == every
    assert admitted_pairs(made(rg.padding("lengths"), 5, 7, lengths=[1, 1])) == BATCH * HEADS * 35


# -- lists of both sides ---------------------------------------------------------------------------------------------

SIDES: dict[str, Any] = {
    "causal": rg.causal,
    "window": rg.window(9),
    "documents": rg.documents("ids"),
    "documents, causal": rg.documents("ids") & rg.causal,
    "padding": rg.padding("lengths"),
    "heads": i - j < 3 * h + 1,
    "nowhere": j < 0,
    "given": rg.given("some"),
}


def side_call(name: str, start: Any = None) -> Call:
    some = torch.rand(BATCH, HEADS, N, KEYS, generator=torch.Generator().manual_seed(5)) < 0.1
    return made(SIDES[name], N, KEYS, start=start, ids=ids.clone(), lengths=torch.tensor([17, 53]), some=some)


def every_list(made: Lists) -> dict[tuple[int, ...], list[int]]:
    """(batch, head, tile): the tiles that it meets, in order."""
    batch, heads, tiles, _ = made.indices.shape
    places = [(b, h, t) for b in range(batch) for h in range(heads) for t in range(tiles)]
    return {place: [*some, *free] for place in places for some, free in [members(made, *place)]}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("start", [None, torch.tensor([16, 2])])
@pytest.mark.parametrize("tile", [(4, 4, 2), (3, 8, 1), (5, 5, 5)])
def test_lists_of_both_sides(name: str, start: Any, tile: Any, keep: bool) -> None:
    """They are the plain ones, what is met in parts; places and inverse say where a tile stands in the other's list."""
    rows, columns, part = tile
    call = side_call(name, start)
    by_rows, by_keys = both_lists(call, rows, columns, part, keep)
    plain = [lists(call, rows, columns, held) for held in ("rows", "keys")]
    for found, usual, parts in ((by_rows, plain[0], columns // part), (by_keys, plain[1], rows // part)):
        named = {own: [x * parts + p for x in met for p in range(parts)] for own, met in every_list(usual).items()}
        assert every_list(found) == named
        assert torch.equal(found.counts, usual.counts * parts)
        assert torch.equal(found.order, usual.order)

    of_rows, of_keys = map(every_list, plain)
    parts = columns // part
    for (*head, own), met in of_rows.items():
        expected = [of_keys[*head, key].index(own) for key in met for _ in range(parts)]
        assert by_rows.places[*head, own, : len(expected)].tolist() == expected
    for held, met in of_keys.items():
        expected = [met.index(row) if row in met else -1 for row in range(-(-N // rows))]
        assert by_keys.inverse[held].tolist() == expected
    assert {x.dtype for x in (by_rows.places, by_keys.inverse)} == {torch.int32}


def test_lists_of_both_sides_are_kept_until_a_table_is_written() -> None:
    call = side_call("documents")
    first = both_lists(call, 4, 4, 2, keep=True)
    assert both_lists(call, 4, 4, 2, keep=True)[0] is first[0]
    assert both_lists(call, 4, 4, 2)[0] is not first[0]
    assert both_lists(call, 4, 4, 4, keep=True)[0] is not first[0], "other parts"
    assert lists(call, 4, 4, "keys", keep=True) is not first[1], "one side"
    call.tables["ids"].zero_()
    again = both_lists(call, 4, 4, 2, keep=True)
    assert again[1].counts.sum() > first[1].counts.sum()


# -- nothing waits for the device --------------------------------------------------------------------------------------


class Stays(TorchDispatchMode):
    """Refuses what moves or looks at data: on an accelerator it would wait."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        assert function is not torch.ops.aten.lift_fresh.default, "made on the host"
        found = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, torch.Tensor)]
        assert all(x.is_meta for x in found), f"{function} left the device"
        return result


ELSEWHERE = {name: mask for name, mask in (STRANGE | CLASSIC).items() if mask.node not in (True, False)}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_nothing_looks_at_the_device(name: str) -> None:
    """Tensors without data cannot be looked at."""
    ranks = rg.Attention(mask=ELSEWHERE[name]).ranks
    truth = {"some": (N, KEYS), "flags": (1, KEYS)}
    whole = {"ids", "same", "lengths"}
    tables = {
        name: torch.empty(
            truth.get(name, (WIDTH, WIDTH) if name == "M" else (HEADS, KEYS, KEYS)[-rank:]),
            dtype=torch.bool if rank < 0 else torch.int64 if name in whole else None,
            device="meta",
        )
        for name, rank in ranks.items()
    }
    q, k = (torch.empty(BATCH, HEADS, size, WIDTH, device="meta") for size in (N, KEYS))
    start = torch.empty(BATCH, dtype=torch.int64, device="meta")
    call = prepare(rg.Attention(mask=ELSEWHERE[name]), q, k, k, start=start, tables=tables)
    with Stays():
        found = lists(call, 8, 4)
        by_rows, by_keys = both_lists(call, 8, 4, 2)
    assert found.indices.shape[-2:] == (5, 14)
    assert by_rows.places.shape == by_rows.indices.shape
    assert by_keys.inverse.shape[-2:] == (14, 5)
