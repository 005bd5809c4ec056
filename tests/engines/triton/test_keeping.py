"""What is kept of tensors is theirs: until one is written, and while it lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import regard as rg
from fused import DEVICE, needs_triton
from regard.algebra.errors import TableError
from regard.engines.call import prepare
from regard.engines.triton import blocks, keeping, ranges, sides
from regard.engines.triton.blocks import KEPT, lists
from regard.engines.triton.keeping import Kept, with_kept_tables
from regard.engines.triton.verdicts import verdicts
from regard.engines.vectors import reading

pytestmark = needs_triton
HERE = torch.device("cpu")


def counting() -> tuple[list[int], Callable[[], int]]:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    return made, make


def test_it_is_made_once_for_tensors_that_stay_as_they_are() -> None:
    kept: Kept[int] = Kept(4)
    made, make = counting()
    x = torch.arange(6)
    assert [kept.get("a", HERE, [x], make) for _ in range(3)] == [0, 0, 0]
    assert kept.get("a", HERE, [x.view(6)], make) == 0, "the same numbers in the same memory"
    assert kept.get("a", HERE, [x[1:]], make) == 1
    assert kept.get("b", HERE, [x], make) == 2
    assert len(made) == 3


def test_each_device_has_its_own() -> None:
    kept: Kept[int] = Kept(4)
    _, make = counting()
    found = [kept.get("a", torch.device(name), [], make) for name in ("cpu", "meta", "cpu")]
    assert found == [0, 1, 0]


def test_it_is_made_anew_once_a_tensor_is_written_be_it_through_a_view() -> None:
    kept: Kept[int] = Kept(4)
    _, make = counting()
    x = torch.arange(6)
    assert kept.get("a", HERE, [x], make) == 0
    x[2:3].add_(1)
    assert kept.get("a", HERE, [x], make) == 1


def test_memory_that_another_tensor_takes_is_not_mistaken_for_the_first() -> None:
    kept: Kept[int] = Kept(4)
    made, make = counting()
    for _ in range(20):
        x = torch.zeros(4096)
        kept.get("a", HERE, [x], make)
        del x
    assert len(made) == 20
    assert len(kept.found) <= 2, "what belongs to no tensor any more is forgotten"


def test_only_the_last_few_are_kept_and_nothing_of_tensors_that_count_no_writing() -> None:
    kept: Kept[int] = Kept(2)
    made, make = counting()
    xs = [torch.zeros(2) for _ in range(3)]
    for x in xs:
        kept.get("a", HERE, [x], make)
    assert kept.get("a", HERE, [xs[0]], make) == 3
    assert kept.get("a", HERE, [xs[2]], make) == 2
    with torch.inference_mode():
        uncounted = torch.zeros(2)
    assert [kept.get("a", HERE, [uncounted], make) for _ in range(2)] == [4, 5]
    assert len(made) == 6


def test_lists_of_a_mask_of_tables_are_kept_where_that_is_asked_for() -> None:
    x, ids = torch.randn(1, 1, 40, 8), torch.arange(40)[None] // 10

    def made(ids: Any, keep: bool) -> Any:
        call = prepare(rg.Attention(mask=rg.documents("ids")), x, x, x, tables={"ids": ids})
        return lists(call, 8, 8, keep=keep)

    KEPT.found.clear()
    first = made(ids, True)
    assert made(ids, True) is first
    assert made(ids, False) is not first
    ids += torch.arange(40) % 2  # every row reads rows apart from its neighbours
    again = made(ids, True)
    assert again is not first
    assert not torch.equal(again.counts, first.counts)


# -- tables that the door copies ---------------------------------------------------------------------------------


def documents_of(ids: Any) -> Any:
    x = torch.zeros(1, 1, 40, 8)
    return prepare(rg.Attention(mask=rg.documents("ids")), x, x, x, tables={"ids": ids})


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_integers_that_are_copied_to_a_wider_type_are_the_same_table_in_the_next_call(dtype: Any) -> None:
    ids = (torch.arange(40) // 10).to(dtype)[None]
    first, again = (with_kept_tables(documents_of(ids)).tables["ids"] for _ in range(2))
    assert first is again
    assert first.dtype == torch.int64
    ids += 1
    written = with_kept_tables(documents_of(ids)).tables["ids"]
    assert torch.equal(written, ids.long())
    assert not torch.equal(written, first)


def test_one_row_of_ids_for_all_batches_is_copied_once_for_each_number_of_them() -> None:
    ids, attention = torch.arange(40, dtype=torch.int32) // 10, rg.Attention(mask=rg.documents("ids"))
    for batch in (2, 3, 2):
        x = torch.zeros(batch, 1, 40, 8)
        table = with_kept_tables(prepare(attention, x, x, x, tables={"ids": ids})).tables["ids"]
        assert torch.equal(table, ids.long().expand(batch, 40))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_lists_are_made_once_whatever_type_the_integers_have(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(blocks, "verdicts", lambda tiles: made.append(tiles) or verdicts(tiles))
    KEPT.found.clear()
    x, ids = torch.randn(1, 1, 40, 8, device=DEVICE), (torch.arange(40, device=DEVICE)[None] // 10).to(dtype)
    for _ in range(3):
        rg.Attention(mask=rg.documents("ids"))(x, x, x, engine="triton", ids=ids)
    assert len(made) == 1


def test_both_passes_of_a_vjp_find_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(blocks, "verdicts", lambda tiles: made.append(tiles) or verdicts(tiles))
    KEPT.found.clear()
    x, ids = torch.randn(1, 1, 40, 8, device=DEVICE), (torch.arange(40, device=DEVICE)[None] // 10).int()
    rg.Attention(mask=rg.documents("ids")).vjp(x, x, x, x, engine="triton", ids=ids)
    first = len(made)
    rg.Attention(mask=rg.documents("ids")).vjp(x, x, x, x, engine="triton", ids=ids)
    assert len(made) == first


def test_lists_are_made_once_under_autocast_and_with_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(blocks, "verdicts", lambda tiles: made.append(tiles) or verdicts(tiles))
    KEPT.found.clear()
    x, ids = torch.randn(1, 1, 40, 8, device=DEVICE), torch.arange(40, device=DEVICE)[None] // 10
    attention = rg.Attention(mask=rg.documents("ids"))
    for seed in range(3):
        with torch.autocast(DEVICE, torch.bfloat16):
            attention(x, x, x, engine="triton", ids=ids, dropout=0.2, seed=seed)
    assert len(made) == 1
    for first in (0, 0, 20, 20):
        attention(x[:, :, :20], x, x, engine="triton", ids=ids, start=first)
        attention(x[:, :, :20], x, x, engine="triton", ids=ids, start=torch.full((1,), first, device=DEVICE))
    assert len(made) == 1 + 2 + 4, "a number is known; a tensor is another every time"


def test_large_tables_and_those_of_a_captured_graph_are_copied_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = torch.arange(40, dtype=torch.int32)[None] // 10
    monkeypatch.setattr(keeping, "LARGEST", 39)
    assert with_kept_tables(documents_of(ids)).tables["ids"] is not with_kept_tables(documents_of(ids)).tables["ids"]
    monkeypatch.undo()
    monkeypatch.setattr(keeping, "is_captured", lambda _: True)
    assert with_kept_tables(documents_of(ids)).tables["ids"] is not with_kept_tables(documents_of(ids)).tables["ids"]


# -- what needs no tensor --------------------------------------------------------------------------------------

STEPS = rg.Attention(mask=(rg.i - rg.j <= 3 * rg.h) & (rg.j <= rg.i))
CURVE = rg.Attention(score=rg.dot - rg.j**2 / 100)


def test_a_mask_of_heads_is_listed_once_for_a_device_and_not_while_a_graph_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(device: str) -> Any:
        x = torch.zeros(1, 3, 40, 8, device=device)
        return lists(prepare(STEPS, x, x, x, tables={}), 8, 8, keep=True)

    assert listed("cpu") is listed("cpu")
    assert listed("meta").indices.device.type == "meta"
    KEPT.found.clear()
    monkeypatch.setattr(blocks, "is_captured", lambda _: True)
    assert listed("cpu") is not listed("cpu")
    assert not KEPT.found


def test_a_vector_of_places_is_made_once_and_not_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    def vector() -> Any:
        x = torch.zeros(1, 3, 40, 8)
        return next(iter(sides.sides(prepare(CURVE, x, x, x, tables={})).vectors.values()))

    assert vector() is vector()
    monkeypatch.setattr(sides, "is_captured", lambda _: True)
    assert vector() is not vector()


def test_a_start_that_is_written_moves_what_depends_on_it() -> None:
    attention = rg.Attention(score=rg.dot - rg.log(1 + rg.i), weight=rg.sigmoid)
    q, k, v = (torch.randn(1, 2, 9, 8, device=DEVICE) for _ in range(3))
    start = torch.tensor([3], device=DEVICE)
    for _ in range(2):
        found = attention(q, k, v, start=start, engine="triton")
        torch.testing.assert_close(found, attention(q, k, v, start=start, engine="dense"), atol=1e-5, rtol=1e-5)
        start += 40


# -- indices that were looked at ---------------------------------------------------------------------------------

BUCKETS = rg.Attention(score=rg.dot + rg.table("line")[rg.table("bucket")[rg.j]])


def bucketed(bucket: Any, line: Any) -> Any:
    x = torch.ones(1, 1, 19, 8, device=DEVICE)
    return BUCKETS(x, x, x, engine="triton", bucket=bucket, line=line)


def test_indices_are_looked_at_anew_in_memory_that_another_table_had() -> None:
    line = torch.randn(5, device=DEVICE)
    for _ in range(10):
        fine = torch.full((19,), 4, device=DEVICE)
        bucketed(fine, line)
        del fine
        wrong = torch.full((19,), 5, device=DEVICE)
        with pytest.raises(TableError, match=r"line: .* within its 5 entries .* from 5 to 5"):
            bucketed(wrong, line)
        del wrong


def test_indices_are_not_looked_at_again_because_a_parameter_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(ranges, "reading", lambda call, kind: looks.append(kind) or reading(call, kind))
    bucket, line = torch.arange(19, device=DEVICE) % 5, torch.randn(5, device=DEVICE)
    for _ in range(3):
        bucketed(bucket, line)
        line += 1
    assert len(looks) == 1
    bucket += 1  # up to 5
    with pytest.raises(TableError, match="from 5 to 5"):
        bucketed(bucket, line)


def test_tables_of_inference_mode_are_looked_at_every_time() -> None:
    with torch.inference_mode():
        line, bucket = torch.randn(5, device=DEVICE), torch.arange(19, device=DEVICE, dtype=torch.int32) % 5
        y = bucketed(bucket, line)
        assert torch.isfinite(y).all()
        bucket += 1
        with pytest.raises(TableError, match="from 5 to 5"):
            bucketed(bucket, line)


def test_indices_of_narrow_integers_are_looked_at_once_and_read_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where something wrote past PyTorch, which then knows of no writing."""
    looks: list[Any] = []
    monkeypatch.setattr(ranges, "reading", lambda call, kind: looks.append(kind) or reading(call, kind))
    bucket, line = (torch.arange(19, device=DEVICE) % 5).int(), torch.randn(5, device=DEVICE)
    q, k, v = torch.randn(3, 1, 1, 19, 8, device=DEVICE)
    for _ in range(2):
        y = BUCKETS(q, k, v, engine="triton", bucket=bucket, line=line)
        torch.testing.assert_close(y, BUCKETS(q, k, v, engine="dense", bucket=bucket, line=line), atol=1e-5, rtol=1e-4)
        bucket.data.copy_(bucket.flip(0))
    assert len(looks) == 1


# -- what is kept serves every kind of call ----------------------------------------------------------------------

KINDS = {
    "a mask of narrow integers": (rg.Attention(mask=rg.documents("ids")), {"ids": torch.arange(19).int() // 5}),
    "a vector of positions": (rg.Attention(score=rg.dot - (rg.i - rg.j) ** 2 * 0.01), {}),
    "indices": (BUCKETS, {"bucket": torch.arange(19) % 5, "line": torch.randn(5)}),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_call_in_inference_mode_leaves_nothing_that_a_call_with_gradients_cannot_use(name: str) -> None:
    attention, tables = KINDS[name]
    tables = {table: x.to(DEVICE).clone() for table, x in tables.items()}
    q = torch.randn(1, 2, 19, 8, device=DEVICE, requires_grad=True)
    with torch.inference_mode():
        y = attention(q, q, q, engine="triton", **tables)
    again = attention(q, q, q, engine="triton", **tables)
    again.sum().backward()
    torch.testing.assert_close(again.detach(), y.clone())
    assert q.grad is not None


@pytest.mark.parametrize("name", KINDS)
def test_torch_func_differentiates_where_tables_are_read(name: str) -> None:
    attention, tables = KINDS[name]
    tables = {table: x.to(DEVICE) for table, x in tables.items()}
    q, k, v = torch.randn(3, 1, 2, 19, 8, device=DEVICE)

    def of(engine: str) -> Any:
        return torch.func.grad(lambda q: attention(q, k, v, engine=engine, **tables).square().sum())(q)

    torch.testing.assert_close(of("triton"), of("tiled"), atol=1e-4, rtol=1e-4)
