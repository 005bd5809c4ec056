"""Gradients of numbers that all keys of a row, or all rows, share: what δ has of roundings does not add up in them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from fused import DEVICE, INTERPRETED, needs_triton
from gluon_rehearsal import whole

pytestmark = [needs_triton, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
BOUND = 1e-4  # of sums of rows, in float32; δ as it was rounded leaves 1e-3 to 1
ROUNDING = 2**-9 / 3**0.5  # of one number of dS that is kept, on average
SIZES = {"t": (), "a": (2,), "c": (9,), "rest": (2,)}
TEXTS = {
    "a temperature": 'softmax(dot * table("t") / sqrt(d))',
    "one of each head, causal": 'softmax(dot * table("a")[h] / sqrt(d), mask=j <= i)',
    "a slope of distances": 'softmax(dot / sqrt(d) - table("a")[h] * log(1 + abs(i - j)))',
    "a slope of keys": 'softmax(dot / sqrt(d) + table("t") * log(1 + j))',
    "buckets": 'softmax(dot / sqrt(d) + table("c")[minimum(maximum(i - j, 0), 8)])',
    "beside a sink": 'share(exp(s), sink=exp(table("rest")[h]))(dot * table("a")[h] / sqrt(d))',
    "no exponential": 'share(softplus(s))(dot * table("t") / sqrt(d) - table("a")[h] * log(1 + abs(i - j)))',
    "no exponential, a sink": 'share(relu(s) ** 2, sink=exp(table("rest")[h]))(1 + dot * table("t") / sqrt(d))',
    "two exponentials": 'share(exp(s) + exp(s / 2))(dot * table("t") / sqrt(d), mask=j <= i)',
}


DISTANCE = torch.log(1.0 + (torch.arange(261.0)[:, None] - torch.arange(261.0)).abs())
BUCKET = (torch.arange(261)[:, None] - torch.arange(261)).clamp(0, 8)
FROM_KEPT = {  # ∂s/∂table of each entry and pair
    "a slope of distances": ("a", DISTANCE[None]),
    "no exponential": ("a", DISTANCE[None]),
    "buckets": ("c", torch.nn.functional.one_hot(BUCKET, 9).permute(2, 0, 1)),
}


def arrays(rows: int, width: int, mean: float = 1.0) -> list[Any]:
    """q, k, v, dy; the mean of values and slopes cancels in dS and not in δ."""
    random = np.random.default_rng(rows)
    q, k, v, dy = random.standard_normal((4, 1, 2, rows, width))
    return [torch.tensor(x, device=DEVICE).bfloat16() for x in (q, k, v + 2 * mean, dy + mean)]


def attention_of(text: str) -> rg.Attention:
    found = rg.parse(text)
    assert isinstance(found, rg.Attention)
    return found


def tables_of(attention: rg.Attention) -> dict[str, Any]:
    random = np.random.default_rng(1)
    made = {name: 0.3 + 0.1 * random.standard_normal(SIZES[name]) for name in attention.ranks}
    return {name: torch.tensor(x, device=DEVICE) for name, x in made.items()}


def loss_of(attention: rg.Attention, given: list[Any], tables: dict[str, Any], engine: str, *, totals: bool) -> Any:
    *arguments, dy = given
    y, z = attention(*arguments, engine=engine, totals=True, **tables)
    return (y * dy).sum() + (3 * z.sum() if totals else 0)


def slopes(text: str, given: list[Any], engine: str, dtype: Any, *, totals: bool) -> dict[str, Any]:
    attention = attention_of(text)
    reads = {name: x.to(dtype).requires_grad_() for name, x in tables_of(attention).items()}
    found = torch.autograd.grad(loss_of(attention, given, reads, engine, totals=totals), list(reads.values()))
    return dict(zip(reads, found, strict=True))


def compared(
    text: str, template: str, memory: int, *, totals: bool, mean: float = 1.0
) -> tuple[set[str], dict[str, Any], dict[str, Any]]:
    """The kernels that were rehearsed, gradients of the tables as found, and exactly."""
    if template == "hopper" and not INTERPRETED and torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the template in Gluon runs on Hopper; elsewhere it is rehearsed with TRITON_INTERPRET=1")
    given = arrays(261, 72, mean)
    played = whole() if template == "hopper" and INTERPRETED else nullcontext([])
    with played as ran, rg.fused(template=template, memory=memory, exact=True):
        found = slopes(text, given, "triton", torch.float32, totals=totals)
    exact = slopes(text, [x.double() for x in given], "dense", torch.float64, totals=totals)
    return set(ran), found, exact


WAYS = pytest.mark.parametrize(("memory", "totals"), [pytest.param(0, True, marks=pytest.mark.slow), (2**26, False)])
TEMPLATES = pytest.mark.parametrize("template", ["triton", "hopper"])


@WAYS
@TEMPLATES
@pytest.mark.parametrize("name", TEXTS)
def test_what_all_keys_share(name: str, template: str, memory: int, totals: bool) -> None:
    ran, found, exact = compared(TEXTS[name], template, memory, totals=totals)
    assert not ran or "backward_rows" in ran
    wide = [x.double() for x in arrays(261, 72)]
    for table, wanted in exact.items():
        error, bound = (found[table].double() - wanted).norm(), BOUND * wanted.norm()
        if memory and FROM_KEPT.get(name, ("",))[0] == table:
            bound += 4 * ROUNDING * (slants(TEXTS[name], wide, totals=totals) * FROM_KEPT[name][1]).norm()
        assert error < bound, f"{table}: {error:.1e} off, where {bound:.1e} is allowed, of {wanted.norm():.1e}"


SINKS = {
    "of each head": 'share(exp(s), sink=exp(table("rest")[h]))(dot / sqrt(d))',
    "a number, causal": 'share(exp(s), sink=table("t"))(dot / sqrt(d), mask=j < i)',
    "two exponentials": 'share(exp(s) + exp(s / 2), sink=exp(table("rest")[h]))(dot / sqrt(d), mask=j <= i)',
    "a slope over rows": 'share(exp(s), sink=exp(table("rest")[h] * i / 100))(dot / sqrt(d), mask=j <= i)',
    "no exponential": 'share(softplus(s), sink=exp(table("rest")[h]))(dot / sqrt(d))',
}


@WAYS
@TEMPLATES
@pytest.mark.parametrize("name", SINKS)
def test_a_sink_that_all_rows_share(name: str, template: str, memory: int, totals: bool) -> None:
    ran, found, exact = compared(SINKS[name], template, memory, totals=totals, mean=0)  # so that δ cancels over rows
    assert not ran or "backward_rows" in ran
    for table, wanted in exact.items():
        error, bound = (found[table].double() - wanted).norm(), BOUND * wanted.norm()
        assert error < bound, f"{table}: {error:.1e} off, where {bound:.1e} is allowed, of {wanted.norm():.1e}"


def slants(text: str, wide: list[Any], *, totals: bool) -> Any:
    """dS, exactly, (H, 1, N, n): what a table with an entry of its own for each pair receives."""
    plain = attention_of(text)
    raised = rg.Attention(plain.score + rg.table("own")[rg.h, rg.i, rg.j], plain.weight, plain.mask)
    own = torch.zeros(2, 261, 261, dtype=torch.float64, device=DEVICE, requires_grad=True)
    loss = loss_of(raised, wide, tables_of(plain) | {"own": own}, "dense", totals=totals)
    return torch.autograd.grad(loss, own)[0].cpu()[:, None]


REHEARSED = pytest.mark.skipif(not INTERPRETED, reason="a rehearsal on the CPU: set TRITON_INTERPRET=1")


@REHEARSED
@pytest.mark.parametrize(
    ("text", "learned", "again"),
    [
        ('softmax(dot / sqrt(d) + table("bias")[h, i - j + 300])', "bias", False),
        ('softmax(dot / sqrt(d) + table("t") * table("bias")[h, i - j + 300])', "bias", False),
        ('softmax(dot / sqrt(d) + table("t") * table("bias")[h, i - j + 300])', "t", True),
        ('softmax(dot / sqrt(d) + table("own")[h, i, j])', "own", False),
        ('softmax(dot / sqrt(d) + table("line")[j])', "line", False),
        ('share(exp(s), sink=exp(table("line")[i]))(dot / sqrt(d))', "line", False),
        ('share(exp(s), sink=table("t"))(dot / sqrt(d))', "t", True),
    ],
)
def test_only_what_keys_share_makes_ds_twice(text: str, learned: str, again: bool) -> None:
    q, k, v, dy = arrays(131, 72)
    sizes = {"bias": (2, 600), "t": (), "own": (2, 131, 131), "line": (131,)}
    attention = attention_of(text)
    tables = {name: torch.ones(sizes[name], requires_grad=name == learned) for name in attention.ranks}
    with whole() as ran:
        torch.autograd.grad(attention(q, k, v, engine="triton", **tables), tables[learned], dy)
    assert "backward_keys" in ran
    assert ("backward_rows" in ran, "backward_queries" in ran) == (again, not again)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("mask", ["j <= i", "j < i - 3"])
def test_float32_with_groups_and_rows_that_read_nothing(mask: str, dropout: float) -> None:
    attention = attention_of(f'softmax(dot * table("a")[h] / sqrt(d) - table("a")[h] * log(1 + i - j), mask={mask})')
    random = np.random.default_rng(5)
    shapes = (2, 37, 16), (1, 37, 16), (1, 37, 24), (2, 37, 24)
    given = [torch.tensor(random.standard_normal((2, *shape)) + 2, device=DEVICE) for shape in shapes]
    found = []
    for engine, dtype in (("triton", torch.float32), ("dense", torch.float64)):
        a = torch.tensor([0.4, -0.3], dtype=dtype, device=DEVICE, requires_grad=True)
        q, k, v, dy = (x.to(dtype) for x in given)
        y = attention(q, k, v, engine=engine, a=a, dropout=dropout, seed=3)
        found.append(torch.autograd.grad(y, a, dy)[0].double())
    assert (found[0] - found[1]).norm() < BOUND * found[1].norm()
