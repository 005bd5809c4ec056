"""What a caller hands over may lie anywhere, repeat itself, and hold −∞: results are those of `dense`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

import regard as rg
from fused import DEVICE, INTERPRETED, needs_triton
from gluon_rehearsal import whole
from regard import causal, cosine, dot, exp, floor, h, i, j, log, maximum, minimum, share, sqdist, sqrt, table

pytestmark = needs_triton

STARTS = {
    "one number for all": (torch.tensor(7), 2),
    "every second": (torch.tensor([7, 9, 20, 9])[::2], 2),
    "a column": (torch.tensor([[3], [20]]), 2),
    "expanded": (torch.tensor([11]).expand(2), 2),
}


def arrays(*sizes: int, count: int = 3) -> list[Any]:
    return list(torch.randn(count, *sizes, generator=torch.Generator().manual_seed(0)).to(DEVICE))


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize(
    "attention", [rg.Attention(mask=causal), rg.Attention(dot / 4 + table("t")[i - j + 50], mask=causal)], ids=repr
)
def test_starts_may_lie_anywhere(attention: rg.Attention, name: str) -> None:
    start, batch = STARTS[name]
    q, k, v = arrays(batch, 1, 40, 16)
    tables = {name: torch.linspace(-1, 1, 100, device=DEVICE) for name in attention.ranks}
    found = {}
    for engine in ("triton", "dense"):
        x = q[:, :, :5].clone().requires_grad_()
        y = attention(x, k, v, start=start.to(DEVICE), engine=engine, **tables)
        found[engine] = (y, *torch.autograd.grad(y.square().sum(), x))
    torch.testing.assert_close(found["triton"], found["dense"], atol=1e-5, rtol=1e-5)


REPEATED = {  # shapes of a table whose axes of size 1 are expanded
    "rows": (table("t")[h, i, j], (2, 1, 6), (2, 6, 6)),
    "columns": (table("t")[h, i, j], (2, 6, 1), (2, 6, 6)),
    "heads": (table("t")[h, i, j], (1, 6, 6), (2, 6, 6)),
    "all": (table("t")[rg.b, h, i, j], (1, 1, 1, 1), (2, 2, 6, 6)),
    "differences": (table("t")[h, i - j + 6], (1, 13), (2, 13)),
    "vectors": (table("t")[h, j], (1, 6), (2, 6)),
}


@pytest.mark.parametrize("name", REPEATED)
def test_tables_that_repeat_themselves_have_whole_gradients(name: str) -> None:
    read, short, long = REPEATED[name]
    attention = rg.Attention(dot / 4 + read)
    q, k, v, dy = arrays(2, 2, 6, 16, count=4)
    made = torch.randn(short, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    found: dict[str, Any] = {}
    for engine in ("triton", "dense"):
        leaf = made.clone().requires_grad_()
        y = attention(q, k, v, t=leaf.expand(long), engine=engine)
        of_entries = attention.vjp(q, k, v, dy, t=made.expand(long), engine=engine)["t"]
        found[engine] = (torch.autograd.grad(y, leaf, dy)[0], of_entries)
    torch.testing.assert_close(found["triton"], found["dense"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "attention",
    [
        rg.Attention(-sqdist / 2), rg.Attention(5 * cosine + table("line")[j]), rg.Attention(dot(table("metric"))),
        rg.Attention(dot + table("line")[i - j + 12], share(exp, sink=exp(table("rest")[h]))),
    ],
    ids=repr,
)  # fmt: skip
def test_gradients_by_hand_in_inference_mode(attention: rg.Attention) -> None:
    shapes = {"line": (30,), "metric": (16, 16), "rest": (2,)}
    found: dict[str, Any] = {}
    for engine in ("triton", "dense"):
        with torch.inference_mode():
            q, k, v, dy = arrays(1, 2, 13, 16, count=4)
            tables = {name: torch.linspace(-1, 1, 256, device=DEVICE)[: torch.Size(shapes[name]).numel()]
                      .reshape(shapes[name]).clone() for name in attention.ranks}  # fmt: skip
            grads = attention.vjp(q, k, v, dy, engine=engine, **tables)
            found[engine] = (*grads, *(grads[name] for name in tables))
    for one, other in zip(found["triton"], found["dense"], strict=True):
        torch.testing.assert_close(one.clone(), other.clone(), atol=1e-4, rtol=1e-4)


ROWS = {
    "of heads": dot / 4 + table("t")[h],
    "of rows": dot / 4 + table("r")[i],
    "by a slope": dot / 4 + table("t")[h] * (i + 1),
    "of a logarithm": dot / 4 + log(i),
    "and distances": -sqdist / 8 + table("r")[i],
}


@pytest.mark.parametrize("template", ["triton", "hopper"])
@pytest.mark.parametrize("name", ROWS)
def test_minus_infinity_takes_every_key_from_a_row(name: str, template: str) -> None:
    """What is the same for a whole row cancels under softmax, unless it is no number."""
    if template == "hopper" and not INTERPRETED:
        pytest.skip("a rehearsal on the CPU: set TRITON_INTERPRET=1")
    attention = rg.Attention(ROWS[name])
    made = {"t": torch.tensor([-torch.inf, 1.0]), "r": torch.where(torch.arange(19) % 3 == 0, -torch.inf, 0.5)}
    tables = {name: made[name].to(DEVICE) for name in attention.ranks}
    dtype = torch.float32 if template == "triton" else torch.bfloat16
    given, found = [x.bfloat16() for x in arrays(1, 2, 19, 16, count=4)], []
    for engine, kind in (("triton", dtype), ("dense", torch.float64)):
        q, k, v, dy = (x.to(kind, copy=True).requires_grad_() for x in given)
        with whole() if engine == "triton" and template == "hopper" else nullcontext():
            y, z = attention(q, k, v, engine=engine, totals=True, **tables)
            y.backward(dy.detach())
        by_hand = () if template == "hopper" else tuple(attention.vjp(q, k, v, dy, engine=engine, **tables))
        found.append([x.detach().double() for x in (y, q.grad, k.grad, v.grad, *by_hand)])
        assert torch.equal(z.isinf(), (y == 0).all(-1))
    rounding = 1e-5 if template == "triton" else 2e-2
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm()) <= rounding * float(other.norm())


def test_the_gradient_of_a_table_at_places_that_the_score_decides() -> None:
    attention = rg.Attention(dot / 4 + table("t")[minimum(7, maximum(0, floor(dot)))])
    q, k, v = arrays(1, 2, 6, 16)
    found = {}
    for engine in ("triton", "dense"):
        t = torch.linspace(-1, 1, 8, device=DEVICE).requires_grad_()
        with rg.fused(atomics=True):
            y = attention(q, k, v, t=t, engine=engine)
        found[engine] = torch.autograd.grad(y.square().sum(), t)[0]
    torch.testing.assert_close(found["triton"], found["dense"], atol=1e-4, rtol=1e-4)


def test_positions_beyond_32_bits_are_refused() -> None:
    q, k, v = arrays(1, 1, 6, 16)
    with pytest.raises(rg.EngineError, match="it counts positions in 32 bits; got start=2147483648"):
        rg.Attention(mask=j <= i)(q, k, v, start=2**31, engine="triton")


def test_a_compiler_is_told_that_offsets_need_a_start_that_is_known() -> None:
    attention = rg.Attention(dot + table("t")[i - j + 50], mask=causal)
    q, k, v = arrays(2, 1, 40, 16)

    def run(start: Any, engine: str) -> Any:
        return attention(q[:, :, :5], k, v, t=torch.linspace(-1, 1, 100), start=start, engine=engine)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="needs a start that is one int; got a tensor"):
        compiled(torch.tensor([30, 12]), "triton")
    torch.testing.assert_close(compiled(30, "triton"), run(30, "dense"), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("template", ["triton", "hopper"])
@pytest.mark.parametrize("score", [-sqrt(sqdist), 3 / (1 + sqrt(sqdist)), -sqrt(sqdist) / 2 + dot / 8], ids=repr)
def test_vectors_may_be_equal(score: Any, template: str) -> None:
    """Where rounding leaves 10⁻⁶ of a distance that is 0, its root would have a slope of 500."""
    if template == "hopper" and not INTERPRETED:
        pytest.skip("a rehearsal on the CPU: set TRITON_INTERPRET=1")
    attention = rg.Attention(score)
    x, v, dy = (x.bfloat16() for x in arrays(1, 2, 64, 16))
    with whole() if template == "hopper" else nullcontext():
        found = attention.vjp(x, x, v, dy, engine="triton")
    wanted = attention.vjp(*(x.double() for x in (x, x, v, dy)), engine="dense")
    for one, other in zip(found, wanted, strict=True):
        assert float((one.double() - other).norm()) <= 0.01 * float(other.norm())


@pytest.mark.parametrize("template", ["triton", "hopper"])
@pytest.mark.parametrize("mask", [rg.everywhere, causal, j < 90], ids=repr)
def test_gradients_of_queries_do_not_see_where_the_origin_is(mask: Any, template: str) -> None:
    """Rounded dS times keys far from 0 would lose digits; keys that no one reads may be any numbers."""
    if template == "hopper" and not INTERPRETED:
        pytest.skip("a rehearsal on the CPU: set TRITON_INTERPRET=1")
    attention = rg.Attention(-sqdist / 17, mask=mask)
    q, k, v, dy = (x.bfloat16() for x in arrays(1, 2, 140, 72, count=4))
    q, k = q + 100, k + 100
    wanted = attention.vjp(*(x.double() for x in (q, k, v, dy)), engine="dense")
    if mask == (j < 90):
        k[:, :, 90:] = -1e6
    with whole() if template == "hopper" else nullcontext(), rg.fused(memory=2**26):
        found = attention.vjp(q, k, v, dy, engine="triton")
    assert float((found.q.double() - wanted.q).norm()) <= 0.01 * float(wanted.q.norm())


@pytest.mark.parametrize("template", ["triton", "hopper"])
def test_the_mean_of_many_keys_has_a_place_in_float16(template: str) -> None:
    """1 400 · 50 is more than 65 504, the largest number of float16."""
    if template == "hopper" and not INTERPRETED:
        pytest.skip("a rehearsal on the CPU: set TRITON_INTERPRET=1")
    attention = rg.Attention(-sqdist / 17, mask=causal)
    q, k, v, dy = (x.half() for x in arrays(1, 1, 1400, 72, count=4))
    q, k, dy = q[:, :, :20] + 50, k + 50, dy[:, :, :20]
    with whole() if template == "hopper" else nullcontext(), rg.fused(memory=2**26):
        found = attention.vjp(q, k, v, dy, engine="triton").q.double()
    wanted = attention.vjp(*(x.double() for x in (q, k, v, dy)), engine="dense").q
    assert float((found - wanted).norm()) <= 0.01 * float(wanted.norm())


@pytest.mark.parametrize("case", ["dropout", "totals", "groups"])
def test_rows_of_slopes_sum_to_nothing_or_are_not_taken_to(case: str) -> None:
    """What lets dq meet the keys without their mean; a gradient of log Z, which does not, has them whole."""
    attention = rg.Attention(-sqdist / 17, mask=causal)
    q, k, v, dy = (x.bfloat16() for x in arrays(1, 2, 140, 72, count=4))
    q, k = (q, k) if case == "totals" else (q + 3, k + 3)
    k, v = (k[:, :1], v[:, :1]) if case == "groups" else (k, v)
    chosen: dict[str, Any] = {"dropout": 0.3, "seed": 5} if case == "dropout" else {}
    found = []
    for engine, dtype in (("triton", torch.bfloat16), ("dense", torch.float64)):
        x = q.to(dtype, copy=True).requires_grad_()
        with rg.fused(memory=2**26):
            y, z = attention(x, k.to(dtype), v.to(dtype), engine=engine, totals=True, **chosen)
            ((y * dy.to(dtype)).sum() + (z.sum() if case == "totals" else 0)).backward()
        found.append(x.grad.double())
    assert float((found[0] - found[1]).norm()) <= 0.03 * float(found[1].norm())
