"""Vectors that tables make: what no pair reads spoils no gradient, and is looked for only where it could."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import regard as rg
from fused import DEVICE, needs_triton

pytestmark = needs_triton

LINEAR = {
    'table("line")[i - j + 18]': True,
    '2 * table("line")[i - j + 18] / sqrt(d) - table("line")[j] + log(i - j)': True,
    'table("line")[table("ids")[j]]': True,
    'log(1 + abs(i - j)) * table("line")[i]': False,
    'table("line")[i] * table("line")[18 - i]': False,
    'exp(table("line")[i])': False,
    'table("line")[i] / (1 + i)': False,
}


@pytest.mark.parametrize("text", LINEAR)
def test_what_is_linear_in_its_tables(text: str) -> None:
    from regard.engines.triton.sides import is_linear

    attention = rg.parse(f"softmax({text})")
    assert isinstance(attention, rg.Attention)
    assert is_linear(attention.score.node) == LINEAR[text]


@pytest.mark.parametrize("wild", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(
    "score", ['table("line")[i - j + 18]', 'table("line")[i - j + 18] * table("rows")[i - j + 18]']
)
def test_entries_that_no_pair_reads_may_be_anything(score: str, wild: float) -> None:
    """Of i − j below 0, where the mask admits none."""
    attention = rg.parse(f"softmax(dot + {score}, mask=j <= i)")
    assert isinstance(attention, rg.Attention)
    x = torch.randn(1, 1, 19, 8, device=DEVICE)
    read = torch.arange(37, device=DEVICE) >= 18
    found: dict[str, list[Any]] = {}
    for engine in ("triton", "dense"):
        tables = {name: torch.where(read, torch.linspace(-1, 1, 37, device=DEVICE), wild) for name in attention.ranks}
        tables = {name: table.requires_grad_() for name, table in tables.items()}
        attention(x, x, x, engine=engine, **tables).square().sum().backward()
        found[engine] = [table.grad for table in tables.values()]
    for one, other in zip(found["triton"], found["dense"], strict=True):
        assert (one[~read] == 0).all()
        torch.testing.assert_close(one[read], other[read], rtol=1e-4, atol=1e-5)


FORBIDDEN = {  # scores of which a table's −∞ takes keys away
    "a slope of heads": '(h + 1) * table("line")[j]',
    "a product of tables": 'table("temper")[h] * table("line")[j]',
    "the larger one": 'maximum(table("line")[j], table("line")[18 - j])',
    "a choice": 'where(table("ids")[j] > 0, table("line")[j], 0)',
    "an offset": 'table("temper")[h] * table("offset")[i - j + 18]',
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_minus_infinity_in_a_table_stays(name: str) -> None:
    attention = rg.parse(f"softmax(dot / sqrt(d) + {FORBIDDEN[name]})")
    assert isinstance(attention, rg.Attention)
    made = {
        "line": torch.where(torch.arange(19) % 3 == 0, -torch.inf, torch.linspace(-1, 1, 19)),
        "offset": torch.where(torch.arange(37) % 3 == 0, -torch.inf, torch.linspace(-1, 1, 37)),
        "temper": torch.tensor([0.5, 2.0]),
        "ids": torch.arange(19) % 4,
    }
    q, k, v = torch.randn(3, 1, 2, 19, 8, device=DEVICE)
    found = []
    for engine, dtype in (("triton", torch.float32), ("dense", torch.float64)):
        leaves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        tables = {name: made[name].to(DEVICE) for name in attention.ranks}
        tables = {name: x.to(dtype) if x.is_floating_point() else x for name, x in tables.items()}
        y = attention(*leaves, engine=engine, **tables)
        found.append([y, *torch.autograd.grad(y.square().sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("garbage", [1e3, 1e20, float("nan")])
@pytest.mark.parametrize("mask", [rg.padding("lengths"), rg.causal & rg.padding("lengths"), rg.given("seen")], ids=repr)
def test_keys_that_no_row_reads_do_not_move_the_origin_of_distances(mask: rg.Mask, garbage: float) -> None:
    q, k, v = torch.randn(3, 2, 2, 19, 8, device=DEVICE) + 5
    lengths = torch.tensor([7, 12], device=DEVICE)
    inside = torch.arange(19, device=DEVICE) < lengths[:, None, None, None]
    k = torch.where(inside.mT, k, garbage)
    attention = rg.Attention(-rg.sqdist / 8, mask=mask)
    tables = {"lengths": lengths} if "lengths" in attention.ranks else {"seen": inside}
    y, z = attention(q, k, v, engine="triton", totals=True, **tables)
    exact = attention(q.double(), k.double(), v.double(), engine="dense", totals=True, **tables)
    for found, wanted in zip((y, z), exact, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
