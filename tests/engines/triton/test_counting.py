"""Integers have 32 bits where they fit, and 64 where they may not: in a mask that scatters, in i² far behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import INTERPRETED, agrees, needs_triton
from gluon_rehearsal import whole
from regard import H, b, d, dot, equal, h, i, j, minimum, n, table, where
from regard.engines.triton.counting import is_long, rounded_up
from regard.engines.triton.program import program
from regard.engines.triton.source import written

pytestmark = needs_triton

MASKS: dict[str, Any] = {
    "scattered": (1103515245 * i + 12345 * j) // 65536 % 7 < 3,
    "powers": (100000 * i**3 + 777777 * j**2) % 97 < 40,
    "a bound": j <= 100000 * i**3 - 5 * 10**9,
    "a bound without a sign": i + 3 * 10**9 >= 10**8 * j,
    "of heads and batches": (3 * 10**9 * (h + 1) + 5 * 10**9 * b + 7 * i + j) % 11 < 6,
    "of sizes": (3 * 10**9 * n + 10**12 * H + 10**10 * d + i * j) % 13 < 7,
    "divided by a large one": (10**9 * i + j) // (3 * 10**9) < 5,
    "the rest of a large one": (10**9 * i - 10**8 * j) % (3 * 10**9) < 10**9,
    "the less": minimum(i * 10**9, 10**10) >= j * 10**9,
    "chosen": where(i * 10**9 >= j * 10**9, i * 10**9, 4 * 10**9) % 7 < 4,
    "of a table of rows": (table("line")[i] * 10**9 + i * j) % 5 < 3,
    "beside a table": (table("line")[i] + 3 * 10**9) % 5 < (table("line")[j] // (3 * 10**9) + j) % 5,
    "at a place": table("line")[(i * 1103515245 + j * 12345) // 65536 % 29] > 1,
}
LINE = {"line": np.arange(29) * 5 % 4}


def call(mask: Any, width: int = 8) -> tuple[rg.Attention, list[Any], dict[str, Any]]:
    """A formula with this mask, which its score sees too; q, k, v and dy; tables."""
    attention = rg.Attention(dot / 3 + where(mask, 0.5, -1), mask=mask | equal(i, j))
    arrays = list(np.random.default_rng(0).standard_normal((4, 2, 3, 29, width)))
    return attention, arrays, {name: LINE[name] for name in attention.ranks}


@pytest.mark.parametrize("name", MASKS)
def test_numbers_beyond_32_bits_are_counted(name: str) -> None:
    attention, arrays, tables = call(MASKS[name])
    assert is_long(program(attention), 32) == (name != "of a table of rows")  # which holds 64 bits already
    agrees(attention, *arrays, **tables)


@pytest.mark.skipif(not INTERPRETED, reason="a rehearsal on the CPU: set TRITON_INTERPRET=1")
@pytest.mark.parametrize("name", MASKS)
def test_on_hopper_too(name: str) -> None:
    attention, (q, k, v, dy), tables = call(MASKS[name], 24)
    with whole() as ran:
        agrees(attention, q, k, v + 0.5, dy + 0.5, dtype=torch.bfloat16, **tables)
    assert "forward" in ran


@pytest.mark.parametrize(
    ("mask", "longest"),
    [
        (j <= i, 2**29), (i - j <= 1023, 2**29), (i * j % 7 < 3, 2**15), (j <= i**2, 2**15),
        (i // 64 >= j // 64, 2**29), (equal(table("ids")[i], table("ids")[j]), 2**29), (dot + i > 10**10, 2**29),
    ],
)  # fmt: skip
def test_what_fits_is_counted_in_32_bits(mask: Any, longest: int) -> None:
    made = program(rg.Attention(mask=mask))
    assert not is_long(made, longest)
    assert longest == 2**29 or is_long(made, 4 * longest)


def test_lengths_share_an_answer() -> None:
    assert [rounded_up(length) for length in (1, 3, 4, 5, 8191, 8192)] == [2, 4, 8, 8, 8192, 16384]


def test_only_long_formulas_are_written_with_64_bits() -> None:
    made = program(rg.Attention(mask=i * j % 7 < 3))
    assert "int64" not in written(made).text.replace("(tl.int64)", "")
    assert "i = tl.cast(i, tl.int64)" in written(made, long=True).text


def test_positions_may_be_large() -> None:
    """i² at 60 000 is beyond 32 bits, at 29 it is not."""
    q, k, v = torch.randn(3, 1, 1, 29, 8)
    attention = rg.Attention(mask=(i**2 - j) % 9 < 5)
    found, wanted = (attention(q, k, v, start=60_000, engine=engine) for engine in ("triton", "dense"))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
