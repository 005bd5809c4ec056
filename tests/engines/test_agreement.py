"""Every engine, on every kind of array, gives what the equation says; gradients too."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import regard as rg
from agreement import CALL, ENV, TROUBLE, close, roughness
from regard import zoo
from regard.example import example
from strategies import Case, cases

KINDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}


@settings(max_examples=200)
@given(cases())
def test_dense_is_the_equation(case: Case) -> None:
    scores, weights = case.scores(ENV), case.weights(ENV)
    tables, scale = case.tables(CALL), roughness(case)
    close(case.attention.scores(CALL["q"], CALL["k"], **tables), scores, scale)
    close(case.attention.weights(CALL["q"], CALL["k"], **tables), weights, scale)
    close(case.attention(CALL["q"], CALL["k"], CALL["v"], **tables), weights @ ENV["v"], scale)


@settings(max_examples=40)
@given(cases())
def test_python_is_the_equation(case: Case) -> None:
    y = case.attention(CALL["q"], CALL["k"], CALL["v"], engine="python", **case.tables(CALL))
    close(y, case.weights(ENV) @ ENV["v"], roughness(case))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(cases())
def test_every_array_library_agrees(kind: str, case: Case) -> None:
    q, k, v = (KINDS[kind](CALL[name]) for name in "qkv")
    tables = {name: KINDS[kind](value) for name, value in case.tables(CALL).items()}
    y = case.attention(q, k, v, **tables)
    assert type(y) is type(q)
    close(y, case.weights(ENV) @ ENV["v"], roughness(case))


@settings(max_examples=100)
@given(cases())
def test_vjp_is_automatic_differentiation(case: Case) -> None:
    tables = case.tables(CALL)
    leaves = {name: torch.tensor(CALL[name], requires_grad=True) for name in "qkv"}
    reads = {name: torch.as_tensor(value) for name, value in tables.items()}
    reads = {name: r.clone().requires_grad_() if r.is_floating_point() else r for name, r in reads.items()}
    case.attention(*leaves.values(), **reads).backward(torch.as_tensor(CALL["dy"]))
    gradients = case.attention.vjp(CALL["q"], CALL["k"], CALL["v"], CALL["dy"], **tables)
    for name, found in zip("qkv", gradients, strict=True):
        expected = leaves[name].grad
        close(found, np.zeros_like(CALL[name]) if expected is None else expected, roughness(case) ** 2, 1e-9)
    for name, found in gradients.tables.items():
        expected = reads[name].grad
        close(found, np.zeros_like(CALL[name]) if expected is None else expected, roughness(case) ** 2, 1e-9)


@settings(max_examples=25)
@given(cases())
def test_vjp_of_python_is_that_of_dense(case: Case) -> None:
    call, tables = [CALL[name] for name in ("q", "k", "v", "dy")], case.tables(CALL)
    dense, python = (case.attention.vjp(*call, engine=engine, **tables) for engine in ("dense", "python"))
    for found, expected in zip([*python, *python.tables.values()], [*dense, *dense.tables.values()], strict=True):
        close(found, expected, roughness(case) ** 2, 1e-9)


@settings(max_examples=40)
@given(cases(smooth=True))
def test_vjp_is_the_slope(case: Case) -> None:
    """⟨∇, u⟩ by the algebra equals the fourth-order difference of Σ dy·y along u."""
    rng, tables = np.random.default_rng(1), case.tables(CALL)
    real = {
        name: value for name, value in (CALL | tables).items() if name in (*"qkv", *tables) and value.dtype.kind == "f"
    }
    along = {name: rng.standard_normal(value.shape) for name, value in real.items()}

    def loss(step: float) -> float:
        moved = {name: CALL[name] + step * along[name] if name in along else CALL[name] for name in (*"qkv", *tables)}
        return float((case.attention(**moved) * CALL["dy"]).sum())

    gradients = case.attention.vjp(CALL["q"], CALL["k"], CALL["v"], CALL["dy"], **tables)
    by_name = dict(zip("qkv", gradients, strict=True)) | gradients.tables
    slope = sum(float((by_name[name] * along[name]).sum()) for name in along)
    h = 1e-3 / roughness(case)
    difference = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    size = sum(float(np.abs(by_name[name] * along[name]).sum()) for name in along)
    assert slope == pytest.approx(difference, rel=1e-5, abs=1e-6 * (1 + size))


@pytest.mark.parametrize("name", zoo.ENTRIES)
@pytest.mark.parametrize("kind", [*KINDS, "lists"])
def test_zoo_agrees_everywhere(name: str, kind: str) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=5, width=7)
    expected = attention(call.q, call.k, call.v, engine="python", **call.tables)
    convert = KINDS.get(kind, lambda x: x.tolist())
    tables = {name: convert(value) if kind != "lists" else value for name, value in call.tables.items()}
    found = attention(convert(call.q), convert(call.k), convert(call.v), **tables)
    close(found, expected)


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_zoo_has_the_right_gradients(name: str) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=5, width=7)
    dy = np.random.default_rng(1).standard_normal(call.v.shape)
    leaves = [torch.tensor(x, requires_grad=True) for x in (call.q, call.k, call.v)]
    tables = {name: torch.tensor(x, requires_grad=x.dtype.kind == "f") for name, x in call.tables.items()}
    attention(*leaves, **tables).backward(torch.as_tensor(dy))
    gradients = attention.vjp(call.q, call.k, call.v, dy, **call.tables)
    for found, leaf in zip(gradients, leaves, strict=True):
        close(found, leaf.grad)
    for name, found in gradients.tables.items():
        close(found, tables[name].grad)


@pytest.mark.parametrize("attention", TROUBLE, ids=repr)
def test_what_is_undefined_where_no_one_reads_spoils_nothing(attention: rg.Attention) -> None:
    tables = {name: CALL[name] for name in attention.ranks}
    call = [CALL[name] for name in ("q", "k", "v", "dy")]
    dense, python = (attention.vjp(*call, engine=engine, **tables) for engine in ("dense", "python"))
    leaves = [torch.tensor(CALL[name], requires_grad=True) for name in "qkv"]
    reads = {name: torch.tensor(value, requires_grad=value.dtype.kind == "f") for name, value in tables.items()}
    y = attention(*leaves, **reads)
    y.backward(torch.as_tensor(CALL["dy"]))
    close(attention(*call[:3], engine="python", **tables), y.detach())
    for found, other, leaf in zip(dense, python, leaves, strict=True):
        assert np.isfinite(found).all()
        close(found, other, accuracy=1e-10)
        close(found, leaf.grad, accuracy=1e-10)
    for name, found in dense.tables.items():
        close(found, python.tables[name], accuracy=1e-10)
        close(found, reads[name].grad, accuracy=1e-10)


i, j, s, dot, exp, where = rg.i, rg.j, rg.s, rg.dot, rg.exp, rg.where
UNREAD = [
    rg.Attention(mask=j < 6),
    rg.Attention(score=-rg.sqdist, mask=j > 0),
    rg.Attention(score=rg.cosine, mask=j > 0),
]


@pytest.mark.parametrize("attention", [*UNREAD, rg.Attention(score=dot(rg.table("M")), mask=j > 0)], ids=repr)
def test_a_key_that_no_one_reads_may_be_nan(attention: rg.Attention) -> None:
    tables = {name: CALL[name] for name in attention.ranks}
    k, v, unread = CALL["k"].copy(), CALL["v"].copy(), [0, 6][attention.mask == (j < 6)]
    k[:, :, unread], v[:, :, unread] = np.nan, np.inf
    clean = attention.vjp(CALL["q"], CALL["k"], CALL["v"], CALL["dy"], **tables)
    for engine in ("dense", "python"):
        found = attention.vjp(CALL["q"], k, v, CALL["dy"], engine=engine, **tables)
        for gradient, expected in zip([*found, *found.tables.values()], [*clean, *clean.tables.values()], strict=True):
            close(gradient, expected)
    leaves = [torch.tensor(x, requires_grad=True) for x in (CALL["q"], k, v)]
    attention(*leaves, **{name: torch.as_tensor(x) for name, x in tables.items()}).sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


def test_tables_beyond_reach_have_a_gradient_of_zero() -> None:
    attention = rg.Attention(mask=rg.table("line")[j] > 0)
    for engine in ("dense", "python"):
        found = attention.vjp(CALL["q"], CALL["k"], CALL["v"], CALL["dy"], engine=engine, line=CALL["line"])
        np.testing.assert_array_equal(found["line"], np.zeros(23))


def test_torch_gradcheck_twice() -> None:
    """`dense` on PyTorch is differentiable as often as one likes."""
    attention = rg.Attention(score=rg.tanh(rg.dot) - rg.sqdist / 7, mask=rg.causal)
    leaves = [torch.randn(1, 1, n, 2, dtype=torch.float64, requires_grad=True) for n in (3, 3, 3)]
    assert torch.autograd.gradgradcheck(partial(attention, engine="dense"), leaves)
