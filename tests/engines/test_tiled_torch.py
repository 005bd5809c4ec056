"""`tiled` inside PyTorch: compiled, under autocast, in half precision, and where it cannot follow."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

import regard as rg
from regard import causal, dot, h, i, j, table, tanh, zoo
from regard.engines.tiled import tiles
from regard.engines.tiled.operator import text_of
from regard.example import example

CAPPED = rg.Attention(score=3 * tanh(dot / 3) + table("bias")[h, i - j + 40], mask=causal)


def leaves(*shape: int, dtype: Any = torch.float32) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for _ in range(3)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.func itself
@pytest.mark.parametrize(
    ("what", "run"),
    [
        ("double backward", lambda f, q: torch.autograd.grad(f(q).sum(), q, create_graph=True)[0].sum().backward()),
        ("vmap", lambda f, q: torch.vmap(f)(q[None])),
        ("jvp", lambda f, q: torch.func.jvp(f, (q.detach(),), (torch.ones_like(q),))),
    ],
)  # fmt: skip
def test_where_it_cannot_follow_it_names_dense(what: str, run: Any) -> None:
    q, k, v = leaves(1, 2, 5, 3, dtype=torch.float64)
    attention = rg.Attention(score=tanh(dot))
    with pytest.raises(rg.EngineError, match=f'{what}: .*engine="dense"'):
        run(lambda x: attention(x, k.detach(), v.detach(), engine="tiled"), q)


def test_gradients_by_torch_func() -> None:
    q, k, v = (x.detach() for x in leaves(1, 2, 5, 3, dtype=torch.float64))
    attention = rg.Attention(score=tanh(dot))
    found, expected = (
        torch.func.grad(lambda x, engine=engine: attention(x, k, v, engine=engine).square().sum())(q)
        for engine in ("tiled", "dense")
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_gradcheck() -> None:
    q, k, v = leaves(2, 2, 5, 3, dtype=torch.float64)
    bias = torch.randn(2, 90, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *x: CAPPED(*x[:3], bias=x[3], engine="tiled"), (q, k, v, bias))


COMPILED = """
import torch, warnings
import regard as rg
warnings.filterwarnings("error", category=UserWarning)
attention = rg.Attention(score=3 * rg.tanh(rg.dot / 3) + rg.table("bias")[rg.h, rg.i - rg.j + 40], mask=rg.causal)
made = [torch.randn(2, 3, 37, 8, requires_grad=True) for _ in range(3)] + [torch.randn(3, 90, requires_grad=True)]
def loss(q, k, v, bias):
    y, totals = attention(2 * q, k, v, bias=bias, totals=True)
    return (y.sin().sum() + totals.sum())
compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
for one, other in zip(torch.autograd.grad(compiled(*made), made), torch.autograd.grad(loss(*made), made)):
    torch.testing.assert_close(one, other)
def drop(q, k, v, bias):
    return attention(q, k, v, bias=bias, dropout=0.5)
dropped = torch.compile(drop, fullgraph=True, backend="aot_eager")(*made)
assert dropped.shape == made[0].shape
q, k, v, bias = (x.detach() for x in made)
arguments = (q, k, v, torch.zeros(2, dtype=torch.int64), [bias], None, attention.text, 0.0)
tests = ("test_schema", "test_faketensor")
torch.library.opcheck(torch.ops.regard.tiled.default, arguments, test_utils=tests)
"""


@pytest.mark.slow
def test_compiles_whole() -> None:
    """In a process of its own: the type checks of this one are not for Dynamo to read."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_autocast_is_that_of_pytorch() -> None:
    q, k, v = leaves(1, 2, 37, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine = rg.Attention(score=tanh(dot))(q, k.to(torch.bfloat16), v)
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k.to(torch.bfloat16), v.to(torch.bfloat16))
    assert mine.dtype == theirs.dtype == torch.bfloat16
    mine.float().sum().backward()
    assert q.grad is not None
    assert q.grad.dtype == torch.float32


def test_is_deterministic() -> None:
    q, k, v = leaves(1, 2, 301, 16)
    bias = torch.randn(2, 400, requires_grad=True)
    runs = [torch.autograd.grad(CAPPED(q, k, v, bias=bias, engine="tiled").sin().sum(), (q, k, v, bias)) for _ in "ab"]
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_blocks_that_no_one_reads_are_never_computed(monkeypatch: Any) -> None:
    monkeypatch.setattr(tiles, "LIMITS", tiles.Limits(rows=16, columns=32, cell=8, pairs=2 * 16 * 32))
    q, k, v = (x.detach() for x in leaves(1, 2, 256, 8))
    from regard.engines.tiled.run import Run

    filled: list[tuple[int, bool]] = []
    fill = Run.fill
    monkeypatch.setattr(
        Run,
        "fill",
        lambda self, code, registers, band, block: (
            filled.append((band.height * (block.last - block.first), block.masked)),
            fill(self, code, registers, band, block),
        ),
    )
    full = 256 * 256

    def share_of(attention: rg.Attention, **tables: Any) -> tuple[float, float]:
        filled.clear()
        attention(q, k, v, engine="tiled", **tables)
        return sum(size for size, _ in filled) / full, sum(size for size, masked in filled if masked) / full

    assert share_of(rg.Attention()) == (1.0, 0.0)
    computed, masked = share_of(rg.Attention(mask=causal))
    assert computed == (256 / 2 + 16 / 2) / 256  # the diagonal's blocks are whole
    assert masked == 16 / 256
    computed, _ = share_of(rg.Attention(mask=rg.window(32)))
    assert computed < 0.25
    ids = torch.arange(256) // 64
    computed, masked = share_of(rg.Attention(mask=rg.documents("ids")), ids=ids)
    assert (computed, masked) == (0.25, 0.0)


DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def error(found: Any, exact: Any) -> float:
    """Root mean square: the largest of one draw is a lottery."""
    return float((found.double() - exact).square().mean().sqrt())


def bound(attention: rg.Attention, q: Any, k: Any, v: Any, tables: dict[str, Any]) -> Any:
    """`dense` with inputs in the dtype, float32 arithmetic, weights rounded to the dtype."""
    weights = attention.weights(q, k, engine="dense", **tables).to(q.dtype)
    return (weights.float() @ v.float()).to(q.dtype)


CLOUDS = {
    "plain": lambda x: x,
    "mean 100": lambda x: x + 100,
    "eight times": lambda x: 8 * x,
    "a hundredth": lambda x: x / 100,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_accuracy(name: str, cloud: str, dtype: str) -> None:
    """The error is at most twice that of plain arithmetic."""
    attention = zoo.ENTRIES[name].formula
    call = example(attention, heads=2, n=389, width=32, seed=1)
    real = {name: torch.tensor(x) for name, x in call.tables.items()}
    tables = {name: x.to(DTYPES[dtype]) if x.is_floating_point() else x for name, x in real.items()}
    q, k, v = (CLOUDS[cloud](torch.tensor(x)).to(DTYPES[dtype]) for x in (call.q, call.k, call.v))
    wide = {name: x.double() if x.is_floating_point() else x for name, x in tables.items()}
    exact = attention(q.double(), k.double(), v.double(), engine="dense", **wide)
    allowed = 2 * error(bound(attention, q, k, v, tables), exact)
    assert error(attention(q, k, v, engine="tiled", **tables), exact) <= allowed


def test_j_counts_far() -> None:
    """Long ALiBi: differences of positions keep their digits at a million."""
    q, k, v = (x.detach() for x in leaves(1, 2, 64, 8))
    attention = rg.Attention(score=dot / 8 - (i - j) / 8, mask=causal)
    near = attention(q, k, v, start=0, engine="tiled")
    shifted = rg.Attention(score=dot / 8 - (i - (j + 2**20)) / 8, mask=j + 2**20 <= i)
    torch.testing.assert_close(shifted(q, k, v, start=2**20, engine="tiled"), near)


def test_operators_lay_out_what_they_announce() -> None:
    """q, k, v as models have them, (batch, positions, heads, width) turned: no gradient takes their strides over."""
    q, k, v = torch.randn(3, 2, 37, 3, 8).transpose(2, 3)
    text = text_of(rg.Attention(score=30 * rg.tanh(rg.dot / 30)))
    rest = (q, k, v, torch.zeros(2, dtype=torch.int64), [], None, text, 0.0)
    y, *totals = torch.ops.regard.tiled(*rest)
    made = [y, *totals, *torch.ops.regard.tiled_backward(torch.randn_like(y), None, y, *totals[1:], *rest, [])]
    assert all(one.is_contiguous() for one in made)
