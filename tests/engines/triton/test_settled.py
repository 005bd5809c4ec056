"""Weights that are taken relative to the highest score of a row's first block, wherever the others lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import DEVICE, INTERPRETED, agrees, needs_triton
from regard import causal, cosine, dot, equal, exp, i, j, share, table
from regard.engines.triton.program import program

triton = pytest.importorskip("triton")
pytestmark = needs_triton

ARRAYS = np.random.default_rng(0).standard_normal((4, 1, 2, 100, 16))
AT = np.arange(100)
FAR = {
    "far above the first block": ({}, torch.bfloat16, 200.0 * (AT >= 70)),
    "above what float16 holds": ({}, torch.float16, 20.0 * (AT >= 70)),
    "above, and a mask": ({"mask": causal}, torch.float32, 200.0 * (AT >= 40)),
    "far below, where the first block is not read": ({"mask": j >= i}, torch.float32, 0 * AT - 300.0),
    "the same in float16": ({"mask": j >= i}, torch.float16, 0 * AT - 20.0),
    "far below what is not read": ({"mask": j >= i}, torch.float16, -20.0 * (AT >= 96)),
    "far below what is not read, the other way": ({"mask": j <= i}, torch.float16, -20.0 * (AT < 32)),
    "minus infinity": ({}, torch.float32, np.where(AT % 64 < 32, -np.inf, 0.0)),
    "above a sink": ({"weight": share(exp, sink=1.0)}, torch.float32, 200.0 * (AT >= 70)),
    "falling, and a sink": ({"weight": share(exp, sink=1.0)}, torch.float32, -3.0 * AT),
}


@pytest.mark.parametrize("name", FAR)
def test_other_blocks_may_lie_far_away(name: str) -> None:
    """A tile whose sums show that its first block was not enough is done again."""
    words, dtype, rise = FAR[name]
    attention = rg.Attention(score=dot / 4 + table("rise")[j], **words)
    agrees(attention, *ARRAYS, dtype=dtype, rise=rise.astype(np.float32))


def test_values_may_be_small_where_weights_lie_far_below_the_first_block() -> None:
    """Rows from 96 on read none of the keys in their first block, which lie 65 above those that they read."""
    attention = rg.Attention(score=dot / 4 + table("rise")[j], mask=j >= i)
    q, k, v, _ = (torch.tensor(x, dtype=torch.float32, device=DEVICE) for x in ARRAYS)
    rise = torch.tensor(-65.0 * (AT >= 96), dtype=torch.float32, device=DEVICE)
    y = attention(q, k, v * 1e-16, engine="triton", rise=rise).double()[:, :, 96:]
    exact = attention(q.double(), k.double(), (v * 1e-16).double(), rise=rise.double(), engine="dense")[:, :, 96:]
    assert float((y - exact).norm() / exact.norm()) < 1e-5


@pytest.mark.skipif(not INTERPRETED, reason="a kernel that is compiled does not see what a test puts in its place")
@pytest.mark.parametrize("n", [1, 17, 64, 100, 129])
@pytest.mark.parametrize("words", [{}, {"mask": causal}, {"weight": share(exp, sink=1.0)}], ids=repr)
def test_a_usual_tile_is_done_once(words: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows stick out of the array."""
    from regard.engines.triton.templates import forward

    asked, found = forward.astray, []

    def spy(*arguments: Any) -> Any:
        again = asked(*arguments)
        found.append(bool(again))
        return again

    monkeypatch.setattr(forward, "astray", spy)
    q, k, v = (torch.tensor(x[:, :, :1].repeat(n, 2), dtype=torch.bfloat16) for x in ARRAYS[:3])
    rg.Attention(score=dot / 4, **words)(q, k, v, engine="triton")
    assert found == [False] * (2 * -(-n // 64))


def test_a_weight_that_dropout_takes_out_spoils_no_other() -> None:
    """In float16: the sum that y is divided by holds weights that do not reach y."""
    attention = rg.Attention(weight=share(lambda s: exp(s) * (1 + s**2)), score=dot + table("rise")[j], mask=j < 99)
    q, k, v = (torch.tensor(x, dtype=torch.float16, device=DEVICE) for x in ARRAYS[:3])
    rise = torch.zeros(100, device=DEVICE)
    rise[70], rise[80] = 7.5, 6.5
    for seed in range(12):
        found = attention(q[:, :, :1] * 0, k, v, engine="triton", rise=rise, start=0, dropout=0.5, seed=seed)
        wide = [x.double() for x in (q[:, :, :1] * 0, k, v)]
        exact = attention(*wide, engine="dense", rise=rise.double(), start=0, dropout=0.5, seed=seed)
        assert float((found - exact).norm()) <= 4e-3 * max(1.0, float(exact.norm()))


@triton.jit
def never(acc, l, inside, v, F):  # type: ignore[no-untyped-def]
    return False


@pytest.mark.skipif(not INTERPRETED, reason="a kernel that is compiled does not see what a test puts in its place")
def test_a_mask_alone_does_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that read nothing of their first block take the highest score that they do not read: it is near enough."""
    from regard.engines.triton.templates import forward

    monkeypatch.setattr(forward, "astray", never)
    attention = rg.Attention(score=dot / 4 + table("rise")[j], mask=j >= i)
    agrees(attention, *ARRAYS, dtype=torch.float16, rise=np.full(100, -30.0, np.float32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_where_no_score_is_large_the_largest_weight_is_a_power_of_two(dtype: Any) -> None:
    """So that no type rounds it, and a row that reads one key gives its value."""
    q, k, v, _ = (torch.tensor(x[:, :, :30], dtype=dtype, device=DEVICE) for x in ARRAYS)  # a block
    assert torch.equal(rg.Attention(score=9 * cosine, mask=equal(i, j))(q, k, v, engine="triton"), v)


def test_where_no_score_is_large_float16_holds_every_weight() -> None:
    """Weights of later blocks may be exp 18 times those of the first."""
    away = np.where(AT < 70, -1.0, 1.0)[:, None] * np.ones(16)
    q, k = np.ones((1, 2, 100, 16)), np.tile(away, (1, 2, 1, 1))
    agrees(rg.Attention(score=9 * cosine), q, k, *ARRAYS[2:], dtype=torch.float16)


@pytest.mark.parametrize("first", [71, 74, 79, 85, 90])
def test_no_digit_of_a_total_is_lost(first: int) -> None:
    """Where weights are large relative to their first block, log₂ of their sum is; its rounding would be that of w."""
    attention = rg.Attention(score=0 * dot + table("rise")[j])
    lifted = torch.tensor(60.0 * (first <= AT), dtype=torch.float32, device=DEVICE)
    q, k, v, dy = (torch.tensor(x, dtype=torch.float32, device=DEVICE) for x in ARRAYS)
    _, _, dv = attention.vjp(q, k, v, dy, engine="triton", rise=lifted)
    _, _, exact = attention.vjp(*(x.double() for x in (q, k, v, dy)), engine="dense", rise=lifted.double())
    assert float((dv - exact).norm() / exact.norm()) < 4e-7


@pytest.mark.parametrize(
    ("attention", "is_settled"),
    [
        (rg.Attention(), True),
        (rg.Attention(mask=causal), True),
        (rg.Attention(score=dot + table("bias")[i - j]), True),
        (rg.Attention(score=dot - (i - j) / 8), False),
        (rg.Attention(score=dot - abs(i - j)), False),
        (rg.Attention(score=dot - j), False),
        (rg.Attention(score=rg.cosine), True),
        (rg.Attention(weight=share(rg.relu)), False),
    ],
)
def test_what_grows_with_positions_is_not_settled(attention: Any, is_settled: bool) -> None:
    assert program(attention).is_settled == is_settled
