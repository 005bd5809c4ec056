"""What a row compares keys with is made once for the row: `bound0 <= j`, and not `i - j <= 1023` for every pair."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import DEVICE, agrees, needs_triton
from regard import H, cosine, dot, h, i, j, table, where, window
from regard.engines.triton.program import program
from regard.engines.triton.source import written

pytestmark = needs_triton

MASKS: dict[str, tuple[Any, list[str]]] = {
    "a window": (window(7) & rg.causal, ["i - 6"]),
    "both sides": ((i - j < 5) & (j - i < 3), ["i + 2", "i - 4"]),
    "outside": ((j > i + 3) | (i - j >= 9), ["i + 4", "i - 9"]),
    "no, said twice": (~(i - j <= 4) | (i - j <= 1), ["i - 5", "i - 1"]),
    "of each head": (i - j <= 3 * h, ["i - 3 * h"]),
    "floored": (2 * j <= i, []),
    "every second row": (j <= i // 2 + 1, ["floor_divide(i, 2) + 1"]),
    "in a choice": (where(j <= i + 2, i - j, 0) > -1, ["i + 2"]),
    "plain": ((j <= i) & (j >= 2), []),
    "of rows alone": (i >= 5, []),
    "not whole": (j <= i * H / 3, []),
    "of a table": (i - j < table("reach")[h], []),
    "of q and k": (dot + j - i > 0, []),
    "chosen by a table": (
        j <= where(table("reach")[h] >= 5, i + 2, i // 2),
        ["tl.where((tl.load(data[1] + within(h, data[3]) * data[2]) >= 5), i + 2, floor_divide(i, 2))"],
    ),
    "chosen by a table of rows": (
        j <= where(table("line")[i] >= 2, i + 2, i // 2),
        ["tl.where((row_mark0 >= 2), i + 2, floor_divide(i, 2))"],
    ),
    "a square": (j >= (i - 7) ** 2, ["(i - 7) * (i - 7)"]),
}


def ends(mask: Any) -> list[str]:
    text = written(program(rg.Attention(mask=mask)), frozenset({"reach", "line"})).text
    return sorted(re.findall(r"bound\d+ = (.*)", text))


@pytest.mark.parametrize("name", MASKS)
def test_a_bound_is_what_stands_beside_j(name: str) -> None:
    mask, wanted = MASKS[name]
    assert ends(mask) == sorted(wanted)


def test_pairs_are_compared_with_bounds_alone() -> None:
    text = written(program(rg.Attention(mask=window(1024) & rg.causal))).text
    assert "    bound0 = i - 1023\n    return ((j <= i) & (bound0 <= j))\n" in text


@pytest.mark.parametrize("name", MASKS)
def test_it_admits_the_same_pairs(name: str) -> None:
    mask, _ = MASKS[name]
    arrays = np.random.default_rng(0).standard_normal((4, 1, 3, 29, 8))
    made = {"reach": np.array([2, 5, 11]), "line": np.arange(29) * 5 % 4}
    tables = {name: made[name] for name in rg.Attention(mask=mask).ranks}
    agrees(rg.Attention(score=2 * cosine, mask=mask), *arrays, **tables)


def test_bounds_far_away_stay_whole() -> None:
    """3.6 · 10⁹, which (i − 60000)² holds when multiplied out, is beyond 32 bits."""
    q, k, v = (torch.randn(1, 1, 29, 8, device=DEVICE) for _ in range(3))
    attention = rg.Attention(mask=j >= (i - 60_000) ** 2)
    found, wanted = (attention(q, k, v, start=60_000, engine=engine) for engine in ("triton", "dense"))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_rows_that_start_later_have_later_bounds() -> None:
    q, k, v = (
        torch.tensor(x, dtype=torch.float32, device=DEVICE) for x in np.random.default_rng(1).random((3, 1, 1, 90, 8))
    )
    attention = rg.Attention(mask=(i - j < 4) & (j <= i))
    for start in (0, 17, 83):
        found = attention(q[:, :, :7], k, v, engine="triton", start=start)
        torch.testing.assert_close(
            found, attention(q[:, :, :7], k, v, engine="dense", start=start), atol=1e-6, rtol=1e-5
        )
