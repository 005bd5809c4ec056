"""Dropout by counting: one mask for every engine, library, tiling and backward pass, and a good one."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import regard as rg
from regard import causal, dot, exp, h, i, j, share, sigmoid, table
from regard._arrays import library
from regard.engines.dropout import STEPS, Dropout

NUMPY = library(np.zeros(1))
KINDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
SEEDS = [0, 1, -1, 5, 2**31 - 1, 2**31 + 5, -(2**31), 2**40 + 3, 2**63 - 1, -(2**63)]
PINNED = [[0, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 0, 0, 1]], [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 0, 1, 0]]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


Q, K, V, DY = normal(2, 6, 5, 3), normal(2, 2, 7, 3), normal(2, 2, 7, 11), normal(2, 6, 5, 11)
TABLES = {"bias": normal(6, 13), "rest": normal(6)}
FORMULAS = {
    "plain": rg.Attention(),
    "causal": rg.Attention(mask=causal),
    "each": rg.Attention(weight=sigmoid, mask=causal),
    "over i": rg.Attention(weight=share(exp, over=i), mask=causal),
    "among": rg.Attention(weight=share(exp, among=j <= i + 1), mask=causal),
    "sink": rg.Attention(dot / 2 + table("bias")[h, i - j + 6], share(exp, sink=exp(table("rest")[h])), causal),
    "powers": rg.Attention(weight=share(lambda s: 1 + s**2, sink=1), score=dot - rg.sqdist / 3),
}
every_formula = pytest.mark.parametrize("name", FORMULAS)


def tables_of(attention: rg.Attention) -> dict[str, Any]:
    return {name: TABLES[name] for name in attention.ranks}


def mask(p: float, seed: Any, *shape: int, xp: Any = NUMPY, convert: Any = np.asarray) -> Any:
    """Which pairs are kept, (batch, heads, rows, columns)."""
    dropout = Dropout(p, seed)
    b, head, row, column = (convert(part) for part in np.ix_(*map(np.arange, shape)))
    return dropout.kept(xp, dropout.rows(xp, b, head, row), dropout.columns(xp, column))


# -- one definition ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_arrays_hash_as_python_integers_do(kind: str, seed: int) -> None:
    convert, dropout = KINDS[kind], Dropout(0.3, seed)
    xp = library(convert(np.zeros(1)))
    places = RNG.integers(0, 2**31, (4, 31))
    places[:, :5] = np.arange(5)
    b, head, row, column = map(convert, places)
    for given in (seed, convert(np.asarray(seed))) if kind != "numpy" else (seed,):
        arrays = Dropout(0.3, given)
        rows, columns = arrays.rows(xp, b, head, row), arrays.columns(xp, column)
        assert rows.dtype == columns.dtype == xp.int32
        expected = [dropout.rows(NUMPY, *map(int, place)) for place in places[:3].T]
        np.testing.assert_array_equal(np.asarray(rows), expected)
        others = [dropout.columns(NUMPY, int(place)) for place in places[3]]
        np.testing.assert_array_equal(np.asarray(columns), others)
        kept = [dropout.kept(NUMPY, x, y) for x, y in zip(expected, others, strict=True)]
        np.testing.assert_array_equal(np.asarray(arrays.kept(xp, rows, columns)), kept)


def test_the_steps_may_be_taken_in_place() -> None:
    dropout, xp = Dropout(0.3, 5), library(torch.zeros(1))
    rows, columns = dropout.rows(xp, 1, 2, torch.arange(13)[:, None]), dropout.columns(xp, torch.arange(17))
    x, shifted = rows ^ columns, torch.empty(13, 17, dtype=torch.int32)
    for shift, factor in STEPS:
        torch.bitwise_right_shift(x, shift, out=shifted)
        x.bitwise_xor_(shifted).mul_(factor)
    assert x.dtype == torch.int32
    assert torch.equal(x > dropout.threshold, dropout.kept(xp, rows, columns))


def test_a_mask_is_the_same_in_every_release() -> None:
    np.testing.assert_array_equal(mask(0.5, 42, 1, 2, 3, 5)[0], PINNED)


def test_small_seeds_of_every_dtype_are_one_number() -> None:
    expected = torch.as_tensor(rg.Attention().weights(Q, K, dropout=0.3, seed=7))
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64):
        found = rg.Attention().weights(torch.tensor(Q), torch.tensor(K), dropout=0.3, seed=torch.tensor(7, dtype=dtype))
        torch.testing.assert_close(found, expected)
    for dtype in (jnp.uint8, jnp.int32, jnp.uint32):
        found = rg.Attention().weights(jnp.asarray(Q), jnp.asarray(K), dropout=0.3, seed=jnp.asarray(7, dtype))
        np.testing.assert_allclose(found, expected)


# -- a good mask -------------------------------------------------------------------------------------------------


def deviation(products: Any, p: float, factors: int) -> float:
    """Σ of products of centred truths, in standard deviations of independent ones."""
    return float(products.sum() / math.sqrt(products.size * (p * (1 - p)) ** factors))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_keeps_the_right_share(p: float) -> None:
    for seed in range(11):
        assert abs(deviation(mask(p, seed, 2, 3, 251, 257) - (1 - p), p, 1)) < 4


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_neighbours_are_independent(p: float) -> None:
    """Rows, columns, heads, batches and seeds near each other: no correlation beyond 4 standard deviations."""
    masks = [mask(p, seed, 2, 3, 251, 257) - (1 - p) for seed in range(7)]
    for m in masks:
        for axis in range(4):
            for lag in {1, 2, 16, 128} if axis > 1 else {1}:
                here, there = (np.take(m, range(a, m.shape[axis] - lag + a), axis) for a in (0, lag))
                assert abs(deviation(here * there, p, 2)) < 4.5, (axis, lag)
        diagonal = m[..., 1:, 1:] * m[..., :-1, :-1]
        assert abs(deviation(diagonal, p, 2)) < 4
        square = diagonal * m[..., 1:, :-1] * m[..., :-1, 1:]
        assert abs(deviation(square, p, 4)) < 4
    for one, other in combinations(masks, 2):
        assert abs(deviation(one * other, p, 2)) < 4


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("axis", [2, 3])
def test_sums_of_rows_and_columns_scatter_as_they_should(p: float, axis: int) -> None:
    """χ² of the sums of all rows, and of all columns."""
    m = mask(p, 3, 5, 7, 251, 257) - (1 - p)
    spread, count = p * (1 - p), m.shape[axis]
    squares = m.sum(axis) ** 2 / (count * spread)
    variance = 2 + (1 / spread - 6) / count  # of one square: that of χ² and the kurtosis of a truth
    assert abs(squares.sum() - squares.size) < 4 * math.sqrt(squares.size * variance)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_or_column_is_empty_or_equal_to_another(seed: int) -> None:
    m = mask(0.5, seed, 2, 3, 251, 257)
    assert m.any(-1).all()
    assert m.any(-2).all()
    assert len(np.unique(m.reshape(-1, 257), axis=0)) == 2 * 3 * 251
    assert len(np.unique(np.swapaxes(m, -1, -2).reshape(-1, 251), axis=0)) == 2 * 3 * 257


def test_positions_never_share_a_hash() -> None:
    dropout, many = Dropout(0.5, 11), np.arange(2**20)
    for hashes in (dropout.rows(NUMPY, 1, 2, many), dropout.columns(NUMPY, many)):
        assert len(np.unique(hashes)) == 2**20
        assert hashes.min() >= 0


# -- what it does to a call ----------------------------------------------------------------------------------------


@every_formula
def test_weights_are_dropped_after_the_total(name: str) -> None:
    attention, p = FORMULAS[name], 0.3
    tables = tables_of(attention)
    plain, kept = attention.weights(Q, K, **tables), mask(p, 5, 2, 6, 7, 7)[:, :, 2:]
    expected = np.where(kept, plain / (1 - p), 0)
    np.testing.assert_allclose(attention.weights(Q, K, dropout=p, seed=5, **tables), expected, rtol=1e-14)
    trace = attention.trace(Q, K, V, dropout=p, seed=5, **tables)
    assert "w = ψ(s)" in str(trace)
    assert str(trace).count(", dropped with p = 0.3") == 1
    assert "dropped" not in str(attention.trace(Q, K, V, **tables))
    np.testing.assert_allclose(trace.weights, expected, rtol=1e-14)
    np.testing.assert_allclose(trace.y, expected @ np.repeat(V, 3, 1), atol=1e-13)
    if attention.weight.over is not None:
        both = attention(Q, K, V, totals=True, dropout=p, seed=5, **tables)
        np.testing.assert_array_equal(both[1], attention(Q, K, V, totals=True, **tables)[1])


@every_formula
@pytest.mark.parametrize("kind", [*KINDS, "lists"])
def test_every_engine_and_library_agrees(name: str, kind: str) -> None:
    attention = FORMULAS[name]
    tables = tables_of(attention)
    expected = attention(Q, K, V, dropout=0.4, seed=-3, engine="python", **tables)
    convert: Any = KINDS.get(kind, lambda x: x.tolist())
    given = {name: convert(value) for name, value in tables.items()}
    found = attention(convert(Q), convert(K), convert(V), dropout=0.4, seed=-3, **given)
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-13)
    assert not np.allclose(expected, attention(Q, K, V, **tables))


@every_formula
def test_gradients_agree(name: str) -> None:
    attention, options = FORMULAS[name], {"dropout": 0.4, "seed": 17}
    tables = tables_of(attention)
    leaves = {name: torch.tensor(x, requires_grad=True) for name, x in {"q": Q, "k": K, "v": V, **tables}.items()}
    attention(**leaves, **options).backward(torch.as_tensor(DY))
    for engine in ("dense", "python"):
        found = attention.vjp(Q, K, V, DY, engine=engine, **options, **tables)
        for name, gradient in [*zip("qkv", found, strict=True), *found.tables.items()]:
            np.testing.assert_allclose(gradient, leaves[name].grad, atol=1e-12, err_msg=f"{engine} {name}")


@every_formula
def test_gradients_are_slopes(name: str) -> None:
    attention, options = FORMULAS[name], {"dropout": 0.4, "seed": 17, "start": np.array([1, 2])}
    arguments = {"q": Q, "k": K, "v": V, **tables_of(attention)}
    along = {name: normal(*x.shape) for name, x in arguments.items()}

    def loss(step: float) -> float:
        moved = {name: x + step * along[name] for name, x in arguments.items()}
        return float((attention(**moved, **options) * DY).sum())

    found = attention.vjp(dy=DY, **arguments, **options)
    by_name = dict(zip("qkv", found, strict=True)) | found.tables
    slope = sum(float((by_name[name] * along[name]).sum()) for name in along)
    difference = (8 * (loss(1e-3) - loss(-1e-3)) - (loss(2e-3) - loss(-2e-3))) / 12e-3
    assert slope == pytest.approx(difference, rel=1e-8)


@pytest.mark.parametrize("engine", ["dense", "python"])
def test_a_step_of_decoding_drops_what_the_whole_drops(engine: str) -> None:
    attention, options = rg.Attention(mask=causal), {"dropout": 0.4, "seed": 3, "engine": engine}
    q, k, v = normal(2, 3, 7, 5), normal(2, 3, 7, 5), normal(2, 3, 7, 11)
    whole = attention(q, k, v, **options)
    np.testing.assert_allclose(attention(q[..., 4:, :], k, v, **options), whole[..., 4:, :], atol=1e-14)
    for x in range(7):
        upto = slice(None, x + 1)
        step = attention(q[..., x : x + 1, :], k[..., upto, :], v[..., upto, :], **options)
        np.testing.assert_allclose(step, whole[..., x : x + 1, :], atol=1e-14)


def test_the_mean_over_seeds_is_the_plain_weight() -> None:
    attention, p, count = rg.Attention(mask=causal), 0.3, 400
    plain = attention.weights(Q, K)
    mean = sum(attention.weights(Q, K, dropout=p, seed=seed) for seed in range(count)) / count
    assert (np.abs(mean - plain) <= 4.5 * plain * math.sqrt(p / (1 - p) / count)).all()


@every_formula
@pytest.mark.parametrize("engine", ["dense", "python"])
def test_none_and_all(name: str, engine: str) -> None:
    attention = FORMULAS[name]
    tables = tables_of(attention)
    none, plain = (attention(Q, K, V, engine=engine, **o, **tables) for o in ({"dropout": 0, "seed": 1}, {}))
    np.testing.assert_array_equal(none, plain)
    gradients = attention.vjp(Q, K, V, DY, dropout=1, seed=1, engine=engine, **tables)
    for zero in (attention(Q, K, V, dropout=1.0, engine=engine, **tables), *gradients, *gradients.tables.values()):
        np.testing.assert_array_equal(zero, np.zeros_like(zero))


def test_all_dropped_leaves_no_nan_in_the_graph() -> None:
    leaves = [torch.tensor(x, requires_grad=True) for x in (Q, K, V)]
    rg.Attention()(*leaves, dropout=1.0).sum().backward()
    assert all(torch.equal(leaf.grad, torch.zeros_like(leaf)) for leaf in leaves)


def test_a_value_that_is_nan_is_read_with_a_weight_of_zero() -> None:
    v = V.copy()
    v[:, :, 3] = np.nan
    found, other = (rg.Attention(mask=causal)(Q, K, v, dropout=0.5, seed=1, engine=e) for e in ("dense", "python"))
    np.testing.assert_allclose(found, other, atol=1e-14)
    assert np.isnan(found[:, :, 1:]).all()
    assert np.isfinite(found[:, :, 0]).all()


def test_half_precision_keeps_its_dtype() -> None:
    q, k, v = (torch.tensor(x, dtype=torch.bfloat16) for x in (Q, K, V))
    assert rg.Attention()(q, k, v, dropout=0.5, seed=1).dtype == torch.bfloat16
    assert rg.Attention()(Q.astype("f2"), K.astype("f2"), V.astype("f2"), dropout=0.5, seed=1).dtype == np.float16


# -- seeds ---------------------------------------------------------------------------------------------------------

PLAIN = rg.Attention()
TORCH, JAX = [torch.tensor(x) for x in (Q, K, V)], [jnp.asarray(x) for x in (Q, K, V)]


def test_torch_draws_from_its_own_generator() -> None:
    def drawn() -> Any:
        return PLAIN(*TORCH, dropout=0.3)

    torch.manual_seed(1)
    first, second = drawn(), drawn()
    torch.manual_seed(1)
    assert torch.equal(drawn(), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist])
def test_numpy_and_lists_draw_from_the_global_state(convert: Any) -> None:
    def drawn() -> Any:
        return np.asarray(PLAIN(*map(convert, (Q, K, V)), dropout=0.3))

    state = np.random.get_state()  # noqa: NPY002
    first, second = drawn(), drawn()
    np.random.set_state(state)  # noqa: NPY002
    np.testing.assert_array_equal(drawn(), first)
    assert not np.array_equal(first, second)


def test_what_drops_nothing_draws_nothing() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    PLAIN(*TORCH)
    PLAIN(*TORCH, dropout=0.3, seed=1)
    PLAIN.plan(*TORCH, dropout=0.3)
    assert torch.equal(torch.get_rng_state(), before)


def test_plan_counts_the_hashes() -> None:
    more, less = (PLAIN.plan(Q, K, V, dropout=p).bytes for p in (0.3, 0))
    assert more - less == 8 * 2 * 6 * 5 * 7


def test_a_compiled_call_takes_a_seed_that_it_does_not_know() -> None:
    expected = PLAIN(Q, K, V, dropout=0.3, seed=9)
    jitted = jax.jit(lambda seed: PLAIN(*JAX, dropout=0.3, seed=seed))
    np.testing.assert_allclose(jitted(9), expected, atol=1e-13)
    assert not np.allclose(jitted(10), expected)
    with pytest.raises(rg.EngineError, match="python cannot run this call: it reads numbers, which are not known"):
        jax.jit(lambda seed: PLAIN(*JAX, dropout=0.3, seed=seed, engine="python"))(9)


def test_jax_differentiates_it() -> None:
    found = jax.grad(lambda *x: (PLAIN(*x, dropout=0.3, seed=9) * DY).sum(), argnums=(0, 1, 2))(*JAX)
    for gradient, expected in zip(found, PLAIN.vjp(Q, K, V, DY, dropout=0.3, seed=9), strict=True):
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


@pytest.mark.parametrize("seed", [None, torch.tensor(9, device="meta")])
def test_a_tensor_of_a_seed_is_never_read(seed: Any) -> None:
    """So that a compiler can trace it: on the device that holds no numbers, any reading fails."""
    q, k, v = (x.to("meta").requires_grad_() for x in TORCH)
    y = PLAIN(q, k, v, dropout=0.3, seed=seed)
    y.sum().backward()
    assert y.shape == DY.shape


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "above 1": (TORCH, {"dropout": 1.5}, "dropout: .* a number from 0 to 1; got 1.5; pass 0"),
    "below 0": (JAX, {"dropout": -0.1}, "dropout: .*got -0.1"),
    "NaN": (TORCH, {"dropout": math.nan}, "dropout: .*got nan"),
    "a string": (TORCH, {"dropout": "0.1"}, "dropout: .*got '0.1'"),
    "a bool": (TORCH, {"dropout": True}, "dropout: .*got True"),
    "None": (TORCH, {"dropout": None}, "dropout: .*got None"),
    "float seed": (TORCH, {"dropout": 0.1, "seed": 1.0}, "seed: an integer, or .* library of q, torch; got 1.0; pass"),
    "bool seed": ((Q, K, V), {"dropout": 0.1, "seed": True}, "seed: an integer, .*got True"),
    "seed of nothing": ((Q, K, V), {"seed": "1"}, "seed: an integer, .*got '1'"),
    "large seed": (TORCH, {"dropout": 0.1, "seed": 2**63}, "seed: an integer of 64 bits, .*got 9223372036854775808"),
    "two seeds": ((Q, K, V), {"dropout": 0.1, "seed": np.arange(2)}, r"seed: .*got array\(\[0, 1\]\)"),
    "two tensors": (TORCH, {"dropout": 0.1, "seed": torch.arange(2)}, r"seed: .*got int64 of shape \(2,\)"),
    "float tensor": (TORCH, {"dropout": 0.1, "seed": torch.tensor(1.0)}, "seed: .*got float32"),
    "bool tensor": (TORCH, {"dropout": 0.1, "seed": torch.tensor(True)}, "seed: .*got bool"),
    "foreign": (JAX, {"dropout": 0.1, "seed": torch.tensor(1)}, "library of q, jax; got int64 .* from torch"),
    "key": (JAX, {"dropout": 0.1, "seed": jax.random.key(0)}, "library of q, jax; got key"),
    "elsewhere": (
        TORCH,
        {"dropout": 0.1, "seed": torch.tensor(1, device="meta")},
        "seed lies where q .*cpu; got .*meta",
    ),
    "none of jax": (JAX, {"dropout": 0.1}, "seed: jax keeps no random state, .*got None; pass seed="),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    arrays, options, text = BAD[name]
    with pytest.raises(rg.CallError, match=text):
        PLAIN(*arrays, **options)


def test_vmap_hides_what_dropout_counts() -> None:
    with pytest.raises(rg.CallError, match="vmap: dropout counts the batch axis"):
        torch.func.vmap(lambda *x: PLAIN(*x, dropout=0.1, seed=0))(*(x[:, None] for x in TORCH))


# -- other doors ---------------------------------------------------------------------------------------------------


def test_the_drop_in_passes_it_on() -> None:
    torch.manual_seed(3)
    found = rg.scaled_dot_product_attention(*TORCH, dropout_p=0.3, enable_gqa=True)
    torch.manual_seed(3)
    assert torch.equal(found, PLAIN(*TORCH, start=0, dropout=0.3))
    zero = rg.scaled_dot_product_attention(*TORCH, dropout_p=1.0, enable_gqa=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(*TORCH, dropout_p=1.0, enable_gqa=True)
    assert torch.equal(zero, theirs)


def test_self_attention_passes_it_on() -> None:
    x, matrix = normal(2, 5, 7), normal(7, 7)
    found = rg.self_attention(x, M=matrix, dropout=0.3, seed=3)
    np.testing.assert_array_equal(found, rg.Attention(score=dot)(x @ matrix, x, x, dropout=0.3, seed=3))
