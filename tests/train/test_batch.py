"""A batch in parts: every example in exactly one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError
from regard.train.batch import Batch


def batch(size: int) -> Batch:
    x = torch.arange(size * 3).reshape(size, 3)
    return Batch({"x": x, "y": x[:, 0]}, 17, [f"row {row}" for row in range(size)])


@given(st.integers(1, 13).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size))))
def test_parts_divide_it(sizes: tuple[int, int]) -> None:
    size, parts = sizes
    whole = batch(size)
    found = [whole.part(at, parts) for at in range(parts)]
    assert sorted(row for part in found for row in part.rows) == sorted(whole.rows)
    assert sorted(torch.cat([part["y"] for part in found]).tolist()) == whole["y"].tolist()
    assert sum(map(len, found)) == len(whole)
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert {part.count for part in found} == {17}, "the mean is over the whole batch"
    for part in found:
        assert [int(row.split()[1]) * 3 for row in part.rows] == part["y"].tolist() == part["x"][:, 0].tolist()


def test_too_many_parts() -> None:
    with pytest.raises(CallError) as error:
        batch(3).part(0, 4)
    assert str(error.value) == (
        "batch: at least one example for each of 4 parts (accumulate × processes); got 3; "
        "make it larger, or accumulate less"
    )


def test_to_a_device_keeps_all() -> None:
    moved = batch(3).to(torch.device("meta"))
    assert (moved["x"].device.type, moved.count, moved.rows) == ("meta", 17, ["row 0", "row 1", "row 2"])
