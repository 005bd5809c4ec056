"""Shapes, heads, positions, totals, dtypes and kinds: one path inside, every form outside."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import regard as rg
from regard import H, b, causal, d, dot, exp, h, i, j, n, relu, share, sqrt, table, zoo
from regard.example import example

RNG = np.random.default_rng(0)
ALIBI = zoo.alibi()


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


# -- leading axes ------------------------------------------------------------------------------------------------


def test_two_axes_are_one_head_of_one_batch() -> None:
    q, k, v = normal(5, 3), normal(7, 3), normal(7, 11)
    np.testing.assert_array_equal(ALIBI(q, k, v), ALIBI(q[None, None], k[None, None], v[None, None])[0, 0])


def test_the_first_of_three_axes_is_the_batch() -> None:
    q, k, v = normal(2, 5, 3), normal(2, 7, 3), normal(2, 7, 11)
    by_batch = rg.Attention(score=dot + table("t")[b, j] + 100 * h + 0 * H)
    t = normal(2, 7)
    y = by_batch(q, k, v, t=t)
    np.testing.assert_allclose(y, np.stack([by_batch(q[x], k[x], v[x], t=t[x : x + 1]) for x in range(2)]), atol=1e-14)


def test_further_axes_are_batch_too() -> None:
    q, k, v = normal(2, 3, 4, 5, 7), normal(2, 3, 4, 5, 7), normal(2, 3, 4, 5, 11)
    y, log_z = ALIBI(q, k, v, totals=True)
    assert y.shape == (2, 3, 4, 5, 11)
    assert log_z.shape == (2, 3, 4, 5)
    flat = ALIBI(*(x.reshape(6, 4, 5, -1) for x in (q, k, v)))
    np.testing.assert_array_equal(y.reshape(6, 4, 5, 11), flat)


def test_batch_axes_broadcast() -> None:
    q, k, v = normal(3, 2, 5, 7), normal(1, 2, 5, 7), normal(1, 2, 5, 7)
    whole = ALIBI(q, np.repeat(k, 3, 0), np.repeat(v, 3, 0))
    np.testing.assert_array_equal(ALIBI(q, k, v), whole)
    dy = normal(*whole.shape)
    gradients = ALIBI.vjp(q, k, v, dy)
    assert [g.shape for g in gradients] == [q.shape, k.shape, v.shape]
    full = ALIBI.vjp(q, np.repeat(k, 3, 0), np.repeat(v, 3, 0), dy)
    np.testing.assert_allclose(gradients.k, full.k.sum(0, keepdims=True), atol=1e-13)


@pytest.mark.parametrize("engine", ["dense", "python"])
def test_grouped_heads_are_repeated_in_order(engine: str) -> None:
    q, k, v = normal(2, 6, 5, 3), normal(2, 2, 5, 3), normal(2, 2, 5, 7)
    repeated = [np.repeat(x, 3, axis=1) for x in (k, v)]
    np.testing.assert_allclose(ALIBI(q, k, v, engine=engine), ALIBI(q, *repeated), atol=1e-14)


# -- positions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["dense", "python"])
def test_queries_are_the_last_rows(engine: str) -> None:
    q, k, v = normal(1, 2, 7, 3), normal(1, 2, 7, 3), normal(1, 2, 7, 5)
    whole = ALIBI(q, k, v)
    np.testing.assert_allclose(ALIBI(q[:, :, 4:], k, v, engine=engine), whole[:, :, 4:], atol=1e-14)
    np.testing.assert_allclose(ALIBI(q[:, :, 2:4], k, v, start=2, engine=engine), whole[:, :, 2:4], atol=1e-14)


@pytest.mark.parametrize("engine", ["dense", "python"])
def test_each_batch_may_start_elsewhere(engine: str) -> None:
    q, k, v = normal(2, 3, 2, 5), normal(2, 3, 7, 5), normal(2, 3, 7, 5)
    y = ALIBI(q, k, v, start=np.array([1, 4]), engine=engine)
    for x, start in enumerate((1, 4)):
        np.testing.assert_allclose(y[x], ALIBI(q[x : x + 1], k[x : x + 1], v[x : x + 1], start=start)[0], atol=1e-14)


def test_the_past_does_not_see_the_future() -> None:
    q, k, v = normal(1, 2, 7, 3), normal(1, 2, 7, 3), normal(1, 2, 7, 5)
    before = ALIBI(q, k, v)
    k[:, :, 5:], v[:, :, 5:] = np.nan, np.inf
    for engine in ("dense", "python"):
        np.testing.assert_array_equal(ALIBI(q, k, v)[:, :, :5], before[:, :, :5], err_msg=engine)


def test_a_leading_b_may_be_left_out() -> None:
    q = normal(2, 3, 6, 5)
    ids = np.array([0, 0, 1, 1, 1, 2])
    packed = zoo.document_packing()
    np.testing.assert_array_equal(packed(q, q, q, ids=ids), packed(q, q, q, ids=np.stack([ids, ids])))
    lengths = rg.Attention(mask=rg.padding("lengths"))
    np.testing.assert_array_equal(lengths(q, q, q, lengths=4), lengths(q, q, q, lengths=np.array([4, 4])))


# -- totals ------------------------------------------------------------------------------------------------------

TOTALS = {
    "softmax": (rg.softmax, lambda s: np.log(np.exp(s).sum(-1))),
    "sink": (share(exp, sink=2), lambda s: np.log(np.exp(s).sum(-1) + 2)),
    "squares": (share(lambda s: relu(s) ** 2), lambda s: (np.maximum(s, 0) ** 2).sum(-1)),
    "two exponentials": (share(lambda s: exp(s) + exp(-s)), lambda s: np.log((np.exp(s) + np.exp(-s)).sum(-1))),
}


@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("engine", ["dense", "python"])
def test_totals(name: str, engine: str) -> None:
    weight, plain = TOTALS[name]
    attention = rg.Attention(weight=weight)
    q, k, v = normal(2, 3, 5, 3), normal(2, 3, 7, 3), normal(2, 3, 7, 3)
    _, found = attention(q, k, v, totals=True, engine=engine)
    np.testing.assert_allclose(found, plain(attention.scores(q, k)), atol=1e-13)


def test_an_empty_row_has_total_zero() -> None:
    q = normal(3, 2)
    for engine in ("dense", "python"):
        y, log_z = rg.Attention(mask=j < i)(q, q, q, totals=True, engine=engine)
        assert log_z[0] == -np.inf
        np.testing.assert_array_equal(y[0], 0)


@pytest.mark.parametrize("engine", ["dense", "tiled"])
def test_a_row_of_minus_infinity_has_no_gradient_beside_its_total(engine: str) -> None:
    attention = rg.Attention(dot + table("t")[h])
    q, k, v = (torch.tensor(normal(1, 2, 5, 3)) for _ in range(3))
    q.requires_grad_()
    y, log_z = attention(q, k, v, t=torch.tensor([-torch.inf, 0.0]).double(), totals=True, engine=engine)
    torch.where(log_z.isfinite(), log_z, 0.0).sum().add(y.sum()).backward()
    assert (log_z[:, 0] == -torch.inf).all()
    assert (q.grad[:, 0] == 0).all()
    assert (q.grad[:, 1] != 0).all()


def test_no_total_where_nothing_is_shared() -> None:
    q = normal(3, 2)
    with pytest.raises(rg.CallError, match="totals: this weight shares nothing"):
        rg.Attention(weight=rg.sigmoid)(q, q, q, totals=True)


# -- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", zoo.ENTRIES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_accuracy_of_narrow_dtypes(name: str, dtype: torch.dtype) -> None:
    """At most twice the error of float32 arithmetic with weights rounded to the dtype."""
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=61, width=17)
    q, k, v = (torch.as_tensor(x).to(dtype) for x in (call.q, call.k, call.v))
    tables = {key: torch.as_tensor(x) for key, x in call.tables.items()}
    wide = {key: x.to(dtype).double() if x.is_floating_point() else x for key, x in tables.items()}
    narrow = {key: x.to(dtype) if x.is_floating_point() else x for key, x in tables.items()}
    exact = attention(q.double(), k.double(), v.double(), **wide)
    weights = attention.weights(q.float(), k.float(), **wide).to(dtype).float()
    allowed = ((weights @ v.float()).to(dtype).double() - exact).abs().max()
    y = attention(q, k, v, **narrow)
    assert y.dtype == dtype
    assert (y.double() - exact).abs().max() <= 2 * allowed


def test_numpy_half_precision() -> None:
    q = normal(1, 2, 5, 3).astype(np.float16)
    y = ALIBI(q, q, q)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, ALIBI(*[q.astype(float)] * 3), atol=2e-3)


def test_integers_stay_integers_beside_floats() -> None:
    """2 ** (-h - 1) on integer arrays is silently 0 otherwise."""
    q = torch.as_tensor(normal(1, 4, 5, 3))
    scores = rg.Attention(score=2 ** (-h - 1) + 0 * dot + (i // 2) / 3).scores(q, q)
    expected = 2.0 ** -np.arange(1, 5)[:, None, None] + (np.arange(5) // 2)[:, None] / 3
    np.testing.assert_allclose(scores[0], np.broadcast_to(expected, (4, 5, 5)), rtol=1e-15)


@pytest.mark.parametrize("scale", [1e4, 1e30, 1e300])
def test_large_scores_do_not_overflow(scale: float) -> None:
    q, k, v = normal(3, 2) * scale, normal(5, 2), normal(5, 3)
    for weight in (
        rg.softmax,
        share(lambda s: exp(3 * s)),
        share(lambda s: exp(s) * rg.softplus(s)),
        share(exp, sink=1),
    ):
        for engine in ("dense", "python"):
            y = rg.Attention(weight=weight)(q, k, v, engine=engine)
            assert np.isfinite(y).all(), (weight, engine)


def test_distance_far_from_the_origin() -> None:
    x = (normal(64, 8) + 1e4).astype(np.float32)
    distances = rg.Attention(score=rg.sqdist).scores(x, x)
    assert (np.diag(distances) == 0).all()
    exact = ((x[:, None].astype(float) - x[None].astype(float)) ** 2).sum(-1)
    np.testing.assert_allclose(distances, exact, rtol=1e-5)


# -- kinds -------------------------------------------------------------------------------------------------------


def test_lists_in_lists_out() -> None:
    q = normal(5, 3)
    y = ALIBI(q.tolist(), q.tolist(), q.tolist())
    assert isinstance(y, list)
    np.testing.assert_allclose(y, ALIBI(q, q, q), atol=1e-14)
    gradients = ALIBI.vjp(*[q.tolist()] * 4)
    np.testing.assert_allclose(gradients.q, ALIBI.vjp(q, q, q, q).q, atol=1e-13)


def test_jax_differentiates_and_compiles() -> None:
    q, k, v = (jnp.asarray(normal(1, 2, 5, 3)) for _ in range(3))
    attention = rg.Attention(score=dot / sqrt(d) + table("bias")[h, i - j + 4], mask=causal)
    bias = jnp.asarray(normal(2, 9))

    def loss(q: Any, bias: Any) -> Any:
        return (attention(q, k, v, bias=bias) ** 2).sum()

    found = jax.jit(jax.grad(loss, argnums=(0, 1)))(q, bias)
    y = attention(q, k, v, bias=bias)
    expected = attention.vjp(q, k, v, 2 * y, bias=bias)
    np.testing.assert_allclose(found[0], expected.q, atol=1e-12)
    np.testing.assert_allclose(found[1], expected["bias"], atol=1e-12)


@pytest.mark.parametrize("vmap", [jax.vmap, torch.vmap], ids=["jax", "torch"])
def test_a_mapped_batch_has_no_b(vmap: Any) -> None:
    make = jnp.asarray if vmap is jax.vmap else torch.as_tensor
    q = make(normal(3, 2, 5, 4))
    mapped = vmap(lambda x: ALIBI(x[None], x[None], x[None], engine="dense")[0])
    np.testing.assert_allclose(mapped(q), ALIBI(q, q, q), atol=1e-12)
    by_batch = rg.Attention(score=dot * (b + 1))
    with pytest.raises(rg.CallError, match="vmap: b counts the batch axis, which vmap hides"):
        vmap(lambda x: by_batch(x, x, x))(q)


def test_pytorch_maps_whole_matrices_alone() -> None:
    q = torch.as_tensor(normal(3, 2, 5, 4))
    with pytest.raises(rg.EngineError, match=r'vmap: .*engine="dense"'):
        torch.vmap(lambda x: ALIBI(x[None], x[None], x[None]))(q)


def test_numpy_arrays_that_are_not_contiguous() -> None:
    q = normal(3, 5, 2, 4).transpose(2, 0, 1, 3)[..., ::2]
    np.testing.assert_array_equal(ALIBI(q, q, q), ALIBI(*[np.ascontiguousarray(q)] * 3))


def test_widths_of_keys_and_values_differ() -> None:
    q, k, v = normal(2, 3, 5, 3), normal(2, 3, 7, 4), normal(2, 3, 7, 11)
    bilinear = zoo.bilinear()
    m = normal(3, 4)
    y = bilinear(q, k, v, M=m)
    assert y.shape == (2, 3, 5, 11)
    np.testing.assert_allclose(bilinear.scores(q, k, M=m), q @ m @ np.swapaxes(k, -1, -2), atol=1e-14)
    assert (rg.Attention(score=d).scores(q, k) == 4).all(), "d is the key width"
    assert (rg.Attention(score=n).scores(q, k) == 7).all()
