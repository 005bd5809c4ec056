"""Vectors that tables make: what no pair reads spoils no gradient, and is looked for only where it could."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

import regard as rg
from fused import DEVICE, INTERPRETED, needs_triton
from gluon_rehearsal import whole

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


UNREAD = {  # scores that measure vectors
    "cosine": "softmax(8 * cosine",
    "a temperature": 'softmax(3 * cosine * table("temper")[h]',
    "cosine, not shared": "each(sigmoid(s))(cosine",
    "Euclid": "softmax(-sqdist / 4",
    "Laplace": "softmax(-sqrt(sqdist)",
    "both": "softmax(-sqdist / 4 + cosine",
    "a metric": 'softmax(-sqdist(table("metric"))',
}


FINEST = {"triton": torch.float32, "hopper": torch.bfloat16}


@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")  # of the interpreter, which is NumPy
@pytest.mark.parametrize("template", FINEST)
@pytest.mark.parametrize("name", UNREAD)
def test_keys_and_queries_that_no_one_reads_have_no_gradient(name: str, template: str) -> None:
    """In Hopper's kernels what shares a block must be finite: there, numbers whose squares are not."""
    if template == "hopper" and not INTERPRETED:
        pytest.skip("a rehearsal on the CPU: set TRITON_INTERPRET=1")
    attention = rg.parse(f"{UNREAD[name]}, mask=(j < 20) & (i > 3))")
    assert isinstance(attention, rg.Attention)
    made = {"temper": torch.tensor([0.5, 2.0]), "metric": torch.eye(24) / 9 + torch.diag(torch.full((23,), 0.02), 1)}
    arrays = torch.randn(4, 1, 2, 33, 24).bfloat16()
    found = []
    for engine, dtype in ((template, FINEST[template]), ("dense", torch.float64)):
        q, k, v, dy = (x.to(DEVICE, dtype) for x in arrays)
        tables = {name: made[name].to(DEVICE, torch.promote_types(dtype, torch.float32)) for name in attention.ranks}
        if engine == "triton":
            q[:, :, :4], k[:, :, 20:] = torch.nan, torch.nan
        elif engine == "hopper":
            q[:, :, :4], k[:, :, 20:] = 1e30, 1e30
        tables = {name: table.clone() for name, table in tables.items()}
        leaves = [x.requires_grad_() for x in (q, k, v, *tables.values())]
        with whole() if engine == "hopper" else nullcontext():
            attention(q, k, v, engine="dense" if engine == "dense" else "triton", **tables).backward(dy)
        found.append([x.grad.double() for x in leaves])
    (dq, dk, *_), _ = found
    assert not dq[:, :, :4].any()
    assert not dk[:, :, 20:].any()
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm()) <= (1e-5 if template == "triton" else 0.1) * float(other.norm())
