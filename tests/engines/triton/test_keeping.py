"""What is kept of tensors is theirs: until one is written, and while it lives."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

import regard as rg
from regard.engines.call import prepare
from regard.engines.triton.blocks import KEPT, lists
from regard.engines.triton.keeping import Kept


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
    assert [kept.get("a", [x], make) for _ in range(3)] == [0, 0, 0]
    assert kept.get("a", [x.view(6)], make) == 0, "the same numbers in the same memory"
    assert kept.get("a", [x[1:]], make) == 1
    assert kept.get("b", [x], make) == 2
    assert len(made) == 3


def test_it_is_made_anew_once_a_tensor_is_written_be_it_through_a_view() -> None:
    kept: Kept[int] = Kept(4)
    _, make = counting()
    x = torch.arange(6)
    assert kept.get("a", [x], make) == 0
    x[2:3].add_(1)
    assert kept.get("a", [x], make) == 1


def test_memory_that_another_tensor_takes_is_not_mistaken_for_the_first() -> None:
    kept: Kept[int] = Kept(4)
    made, make = counting()
    for _ in range(20):
        x = torch.zeros(4096)
        kept.get("a", [x], make)
        del x
        gc.collect()
    assert len(made) == 20
    assert len(kept.found) <= 2, "what belongs to no tensor any more is forgotten"


def test_only_the_last_few_are_kept_and_nothing_of_tensors_that_count_no_writing() -> None:
    kept: Kept[int] = Kept(2)
    made, make = counting()
    xs = [torch.zeros(2) for _ in range(3)]
    for x in xs:
        kept.get("a", [x], make)
    assert kept.get("a", [xs[0]], make) == 3
    assert kept.get("a", [xs[2]], make) == 2
    with torch.inference_mode():
        uncounted = torch.zeros(2)
    assert [kept.get("a", [uncounted], make) for _ in range(2)] == [4, 5]
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
