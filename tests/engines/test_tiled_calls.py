"""`tiled` on calls of every shape: grouped heads, starts, masks of the call, tables, dropout, totals, dtypes, NaN."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import regard as rg
from regard import causal, cosine, documents, dot, exp, given, h, i, j, n, padding, share, sqdist, table
from regard.engines.tiled import tiles

B, H, G, QUERIES, KEYS, D, E = 3, 6, 2, 31, 47, 5, 7
BLOCKS = tiles.Limits(rows=8, columns=12, cell=4, pairs=8 * 12 * 4)
GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64)


Q, K, V = normal(B, H, QUERIES, D), normal(B, G, KEYS, D), normal(B, G, KEYS, E)
ADMITTED = torch.rand(B, H, QUERIES, KEYS, generator=GENERATOR) > 0.5
ADMITTED[:, :, 8:24], ADMITTED[..., 12:36] = False, True
STARTS = torch.tensor([0, 5, 16])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: Any) -> None:
    monkeypatch.setattr(tiles, "LIMITS", BLOCKS)


def agree(attention: rg.Attention, q: Any = Q, k: Any = K, v: Any = V, **options: Any) -> None:
    """y, totals and every gradient of tiled are those of dense."""
    shared = attention.weight.over is not None
    parts = [attention(q, k, v, totals=shared, engine=engine, **options) for engine in ("dense", "tiled")]
    expected, found = parts if shared else [(part,) for part in parts]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)
    dy = torch.cos(torch.arange(expected[0].numel(), dtype=torch.float64)).view(expected[0].shape)
    first, second = (attention.vjp(q, k, v, dy, engine=engine, **options) for engine in ("dense", "tiled"))
    for one, other in zip([*second, *second.tables.values()], [*first, *first.tables.values()], strict=True):
        torch.testing.assert_close(
            one, other, rtol=1e-10, atol=1e-10 * (1 + max(other.abs().flatten().tolist(), default=0))
        )


CALLS: dict[str, tuple[rg.Attention, dict[str, Any]]] = {
    "a mask for every head": (rg.Attention(mask=given("m")), {"m": ADMITTED}),
    "one mask for all": (rg.Attention(mask=given("m")), {"m": ADMITTED[0, 0]}),
    "a mask with one row": (rg.Attention(mask=given("m") & causal), {"m": ADMITTED[:1, :, :1]}),
    "a mask for each batch": (rg.Attention(mask=given("m") & causal), {"m": ADMITTED[:, :1]}),
    "a whole bias": (rg.Attention(score=dot + table("t")[rg.b, h, i, j]), {"t": normal(B, H, KEYS, KEYS)}),
    "a relative bias": (rg.Attention(score=dot + table("t")[h, i - j + n]), {"t": normal(H, 2 * KEYS)}),
    "a causal bias": (rg.Attention(score=dot + table("t")[h, i - j], mask=causal), {"t": normal(H, KEYS)}),
    "starts apart": (rg.Attention(mask=causal), {"start": STARTS}),
    "a bias, starts apart": (
        rg.Attention(score=dot + table("t")[h, i - j], mask=causal),
        {"t": normal(H, KEYS), "start": STARTS},
    ),
    "documents": (
        rg.Attention(mask=documents("ids") & causal),
        {"ids": torch.randint(0, 4, (B, KEYS), generator=GENERATOR).sort()[0]},
    ),
    "padding": (rg.Attention(mask=padding("lengths")), {"lengths": torch.tensor([0, 10, KEYS])}),
    "sinks": (rg.Attention(weight=share(exp, sink=exp(table("t")[h]))), {"t": 3 * normal(H)}),
    "sinks by row": (
        rg.Attention(weight=share(lambda s: s * s, sink=table("t")[rg.b, i])),
        {"t": normal(B, KEYS) ** 2},
    ),
    "a mask of scores": (rg.Attention(mask=(dot > 0) & causal, score=sqdist), {}),
    "a metric for each head": (rg.Attention(score=-sqdist(table("t")[h])), {"t": normal(H, D, D)}),
    "a matrix for each head": (rg.Attention(score=dot(table("t")[h])), {"t": normal(H, D, D)}),
    "a temperature for each head": (rg.Attention(score=table("t")[h] * cosine), {"t": normal(H)}),
    "distances of both signs": (rg.Attention(score=table("t")[h] * sqdist), {"t": normal(H)}),
    "weights from a table": (rg.Attention(weight=share(lambda s: exp(s) * table("t")[j])), {"t": normal(KEYS) ** 2}),
    "a table read by score": (
        rg.Attention(weight=lambda s: table("t")[rg.floor(rg.minimum(4, rg.maximum(0, s + 2)))] * s),
        {"t": normal(5)},
    ),
    "dropout": (rg.Attention(), {"dropout": 0.3, "seed": 5}),
    "dropout without a sum": (rg.Attention(weight=rg.sigmoid, mask=causal), {"dropout": 0.3, "seed": 5}),
}


@pytest.mark.parametrize("name", CALLS)
def test_agrees_with_dense(name: str) -> None:
    attention, options = CALLS[name]
    agree(attention, **options)


def test_layouts() -> None:
    swapped = Q.transpose(1, 2).contiguous().transpose(1, 2), K.mT.contiguous().mT, V[..., ::2]
    agree(rg.Attention(mask=causal), *swapped)
    agree(rg.Attention(mask=causal), Q[0], K[0].repeat_interleave(3, 0), V[0].repeat_interleave(3, 0))
    agree(rg.Attention(mask=causal), Q[0, 0], K[0, 0], V[0, 0])
    agree(rg.Attention(mask=causal), Q[:1], K, V)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (5, 0), (0, 0), (1, 1), (1, 47)])
def test_few_or_none(queries: int, keys: int) -> None:
    for score in (dot, -sqdist, cosine):
        agree(rg.Attention(score=score), Q[:, :, :queries], K[:, :, :keys], V[:, :, :keys], start=0)


def test_gradients_of_totals() -> None:
    weights = [rg.softmax, share(rg.relu), share(exp, sink=2)]
    for attention in [*(rg.Attention(weight=weight) for weight in weights), rg.Attention(score=-sqdist)]:
        found = []
        for engine in ("tiled", "dense"):
            leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
            y, totals = attention(*leaves, totals=True, engine=engine)
            bent = torch.arange(totals.numel(), dtype=torch.float64).view(totals.shape).cos()
            found.append(torch.autograd.grad(y.sum() + (totals * bent).sum(), leaves))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (31, 47), (8, 100)])
def test_every_tiling_drops_the_same(size: tuple[int, int], monkeypatch: Any) -> None:
    rows, columns = size
    whole = rg.Attention()(Q, K, V, dropout=0.5, seed=3, engine="dense")
    monkeypatch.setattr(tiles, "LIMITS", tiles.Limits(rows, columns, 1, rows * columns))
    torch.testing.assert_close(rg.Attention()(Q, K, V, dropout=0.5, seed=3, engine="tiled"), whole)


MASKED = [
    rg.Attention(mask=causal),
    rg.Attention(weight=share(rg.relu), mask=causal),
    rg.Attention(score=-sqdist, mask=rg.window(9)),
    rg.Attention(score=cosine, mask=causal),
    rg.Attention(weight=rg.sigmoid, mask=causal),
]


@pytest.mark.parametrize("attention", MASKED, ids=repr)
@pytest.mark.parametrize("spoiled", ["k", "v"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_stays_in_the_rows_that_read_it(attention: rg.Attention, spoiled: str, value: float) -> None:
    call = {"q": Q, "k": K.clone(), "v": V.clone()}
    call[spoiled][:, :, 30] = value
    torch.testing.assert_close(
        attention(**call, engine="tiled"), attention(**call, engine="dense"), rtol=0, atol=1e-11, equal_nan=True
    )


@pytest.mark.parametrize("attention", MASKED, ids=repr)
def test_nan_that_no_one_reads_reaches_no_gradient(attention: rg.Attention) -> None:
    unread = rg.Attention(attention.score, attention.weight, attention.mask & (j > 0))
    k, v = K.clone(), V.clone()
    k[:, :, 0], v[:, :, 0] = math.nan, math.inf
    dy = torch.ones(B, H, QUERIES, E, dtype=torch.float64)
    for one, other in zip(unread.vjp(Q, k, v, dy), unread.vjp(Q, K, V, dy), strict=True):
        torch.testing.assert_close(one, other)


def test_a_table_that_is_too_short_is_refused() -> None:
    attention = rg.Attention(score=dot + table("bias")[h, i - j], mask=causal)
    with pytest.raises(rg.TableError, match=r"must stay within its 46 entries along axis 1; got indices from 46 to 46"):
        attention(Q, K, V, bias=normal(H, KEYS - 1), engine="tiled")
    late = rg.Attention(weight=lambda s: table("t")[rg.floor(s)] * s)
    with pytest.raises(rg.TableError, match=r"t: .* must stay within its 3 entries along axis 0"):
        late(Q, K, V, t=normal(3), engine="tiled")


def test_what_it_refuses() -> None:
    with pytest.raises(rg.EngineError, match="it streams over keys; this weight is shared over i"):
        rg.Attention(weight=share(exp, over=i))(Q, K, V, engine="tiled")
    with pytest.raises(rg.EngineError, match="its totals count the admitted pairs; this weight counts others"):
        rg.Attention(weight=share(exp, among=j >= 0), mask=causal)(Q, K, V, engine="tiled")
    with pytest.raises(rg.EngineError, match="it streams tensors of PyTorch; got numpy"):
        rg.Attention()(Q.numpy(), K.numpy(), V.numpy(), engine="tiled")
    with pytest.raises(rg.EngineError, match="it never holds whole matrices of scores or weights"):
        rg.Attention().weights(Q, K, engine="tiled")
