"""Numbers at the edge: NaN, infinities, overflow, rows without a key, vectors of zero, sizes of zero, every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import torch

import regard as rg
from regard import (
    Attention,
    cosine,
    d,
    dot,
    each,
    exp,
    h,
    i,
    j,
    log,
    relu,
    s,
    share,
    sigmoid,
    softmax,
    sqdist,
    sqrt,
    table,
)
from runs import DY, ENGINES, EVERY_RUN, KEYS, LIBRARIES, QUERIES, TK, TQ, TV, K, Q, V, normal

PLAIN, CAUSAL = Attention(), Attention(mask=j <= i)

# -- NaN and ±∞ stay in the rows that read them -----------------------------------------------------------------------


@EVERY_RUN
@pytest.mark.parametrize("weight", [softmax, each(sigmoid), share(relu), share(exp, sink=1)], ids=repr)
@pytest.mark.parametrize("score", [dot / sqrt(d), -sqdist / 2, 3 * cosine], ids=repr)
@pytest.mark.parametrize("mask", [None, j <= i], ids=["all", "causal"])
def test_wild_numbers_stay_in_the_rows_that_read_them(
    engine: str, library: str, weight: Any, score: Any, mask: Any
) -> None:
    attention, make = Attention(score, weight, mask), LIBRARIES[library]
    clean = {"q": Q[0, 0], "k": K[0, 0], "v": V[0, 0]}
    wanted = attention(*clean.values())
    for name in "qkv":
        for wild in (np.nan, np.inf, -np.inf):
            spoilt = {key: value.copy() for key, value in clean.items()}
            spoilt[name][3, 1] = wild
            y = np.asarray(attention(*map(make, spoilt.values()), engine=engine))
            reads = np.arange(QUERIES) == 3 if name == "q" else (np.arange(2, 7) >= 3) | (mask is None)
            np.testing.assert_allclose(y[~reads], wanted[~reads], rtol=1e-12)
            if name == "v":  # and in its column
                np.testing.assert_allclose(np.delete(y, 1, 1), np.delete(wanted, 1, 1), rtol=1e-12)
                assert not np.isfinite(y[reads][:, 1]).any() or weight.over is None or weight == share(relu)


# -- large scores -----------------------------------------------------------------------------------------------------

CURVES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "exp(s)": (exp(s), mpmath.exp),
    "exp(2 s)": (exp(2 * s), lambda x: mpmath.exp(2 * x)),
    "exp(-s)": (exp(-s), lambda x: mpmath.exp(-x)),
    "exp(s) s²": (exp(s) * s**2, lambda x: mpmath.exp(x) * x**2),
    "exp(s) relu(s)": (exp(s) * relu(s), lambda x: mpmath.exp(x) * max(x, 0)),
    "exp(s) + 1": (exp(s) + 1, lambda x: mpmath.exp(x) + 1),
    "(exp(s) + 1)²": ((exp(s) + 1) ** 2, lambda x: (mpmath.exp(x) + 1) ** 2),
    "exp(s) + exp(-s)": (exp(s) + exp(-s), lambda x: mpmath.exp(x) + mpmath.exp(-x)),
    "2^s": (2**s, lambda x: mpmath.mpf(2) ** x),
    "exp(-s²)": (exp(-(s**2)), lambda x: mpmath.exp(-(x**2))),
    "sigmoid": (sigmoid(s), lambda x: 1 / (1 + mpmath.exp(-x))),
    "softplus": (rg.softplus(s), lambda x: mpmath.log(1 + mpmath.exp(x))),
    "exp(-s) relu(s)": (exp(-s) * relu(s), lambda x: mpmath.exp(-x) * max(x, 0)),
    "exp(s) where s > 0": (rg.where(s > 0, exp(s), 0), lambda x: mpmath.exp(x) if x > 0 else mpmath.mpf(0)),
    "√exp(s)": (sqrt(exp(s)), lambda x: mpmath.exp(x / 2)),
    "relu(s)²": (relu(s) ** 2, lambda x: max(x, 0) ** 2),
}


HIDDEN = ["exp(s) where s > 0", "√exp(s)"]


@pytest.mark.parametrize("sink", [0, 1])
@pytest.mark.parametrize("scale", [1e5, -1e5, 1.0])
@pytest.mark.parametrize("name", CURVES)
def test_large_scores_do_not_overflow(name: str, scale: float, sink: int) -> None:
    psi, exact = CURVES[name]
    attention = Attention(dot, share(psi, sink=sink))
    keys, values = np.array([[1.0], [0.75], [0.5], [-0.25], [-1.0]]), np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
    queries = np.full((1, 1), scale)
    with mpmath.workdps(50):
        psis = [exact(mpmath.mpf(float(x))) for x in scale * keys[:, 0]]
        total = sum(psis) + sink
        wanted = float(sum(p * v for p, v in zip(psis, values[:, 0], strict=True)) / total) if total else 0.0
    kinds = [
        (np.asarray, "dense", "f8", 1e-9),
        (np.asarray, "python", "f8", 1e-9),
        (np.asarray, "dense", "f4", 1e-5),
        (torch.asarray, "dense", "f4", 1e-5),
    ]
    kinds += [(np.asarray, "dense", "f2", 2e-3)] if scale == 1 else []  # 1e5 is infinite in float16
    for make, engine, dtype, tolerance in kinds:
        call = [make(x.astype(dtype)) for x in (queries, keys, values)]
        y = attention(*call, engine=engine)
        np.testing.assert_allclose(float(y[0, 0]), wanted, rtol=tolerance, atol=1e-30, err_msg=f"{engine} {dtype}")
        for gradient in attention.vjp(*call, y, engine=engine):
            assert np.isfinite(np.asarray(gradient)).all()
    graph = [torch.asarray(x).requires_grad_() for x in (queries, keys, values)]
    attention(*graph).sum().backward()
    assert all(bool(torch.isfinite(x.grad).all()) for x in graph)


def test_a_sigmoid_by_hand_is_right_or_not_a_number() -> None:
    y = Attention(dot, share(exp(s) / (1 + exp(s))))(
        np.full((1, 1), 1e5), np.array([[1.0], [0.5], [-1.0]]), np.array([[1.0], [2.0], [4.0]])
    )
    assert np.isnan(y[0, 0]) or abs(y[0, 0] - 1.5) < 1e-9


# -- nothing to read, and vectors of zero -----------------------------------------------------------------------------

EMPTY = {
    "first row": Attention(mask=j < i),
    "first row, sink": Attention(weight=share(exp, sink=2), mask=j < i),
    "first row, sigmoid": Attention(weight=sigmoid, mask=j < i),
    "no pair": Attention(mask=~rg.everywhere),
    "no total": Attention(-1 - sqdist, share(relu)),
    "-inf scores": Attention(dot + log(table("zero"))),
}


@EVERY_RUN
@pytest.mark.parametrize("name", EMPTY)
def test_empty_rows_are_zero_and_send_no_gradient(engine: str, library: str, name: str) -> None:
    attention, make, x = EMPTY[name], LIBRARIES[library], normal(5, 4)
    tables = {"zero": make(np.array(0.0))} if "inf" in name else {}
    rows = slice(0, 1) if "first" in name else slice(None)
    assert (np.asarray(attention(make(x), make(x), make(x), engine=engine, **tables))[rows] == 0).all()
    gradients = attention.vjp(*(make(x) for _ in range(4)), engine=engine, **tables)
    assert all(np.isfinite(np.asarray(gradient)).all() for gradient in gradients)
    assert (np.asarray(gradients.q)[rows] == 0).all()
    if library == "torch":
        q = torch.asarray(x).requires_grad_()
        attention(q, make(x), make(x), **tables).sum().backward()
        assert torch.isfinite(q.grad).all()
        assert (q.grad[rows] == 0).all()


@EVERY_RUN
def test_zero_vectors_under_cosine(engine: str, library: str) -> None:
    q, k = normal(3, 4), normal(5, 4)
    q[1], k[2] = 0, 0
    make, attention = LIBRARIES[library], Attention(cosine)
    scores = np.asarray(attention.scores(make(q), make(k), engine=engine))
    assert (scores[1] == 0).all()
    assert (scores[:, 2] == 0).all()
    gradients = attention.vjp(make(q), make(k), make(k), make(normal(3, 4)), engine=engine)
    assert all(np.isfinite(np.asarray(gradient)).all() for gradient in gradients)
    assert (np.asarray(gradients.q)[1] == 0).all()
    assert (np.asarray(gradients.k)[2] == 0).all()


@EVERY_RUN
@pytest.mark.parametrize("score", [-sqrt(sqdist), 1 / (1 + sqrt(sqdist)), -rg.abs(dot)], ids=repr)
def test_identical_vectors_have_finite_gradients(engine: str, library: str, score: Any) -> None:
    make, x = LIBRARIES[library], np.zeros((3, 4)) + normal(3, 4)
    assert all(
        np.isfinite(np.asarray(g)).all() for g in Attention(score).vjp(*(make(x) for _ in range(4)), engine=engine)
    )
    if library == "torch":
        graph = torch.asarray(x).requires_grad_()
        Attention(score)(graph, graph, graph).sum().backward()
        assert torch.isfinite(graph.grad).all()


# -- sizes of zero, dtypes --------------------------------------------------------------------------------------------

NOTHING = {
    "no queries": (2, 3, 0, 7, 4),
    "no keys": (2, 3, 5, 0, 4),
    "no batch": (0, 3, 5, 7, 4),
    "no heads": (2, 0, 5, 7, 4),
    "no values": (2, 3, 5, 7, 0),
}


@EVERY_RUN
@pytest.mark.parametrize("sizes", NOTHING.values(), ids=NOTHING)
def test_sizes_of_zero(engine: str, library: str, sizes: tuple[int, ...]) -> None:
    batch, heads, queries, keys, width = sizes
    make, scored = LIBRARIES[library], {"sum": dot + cosine - sqdist, "bias": dot + table("t")[h, i - j + 9]}
    call = [
        make(np.ones(shape))
        for shape in ((batch, heads, queries, 4), (batch, heads, keys, 4), (batch, heads, keys, width))
    ]
    for name, score in scored.items():
        for weight in (softmax, each(sigmoid), share(exp, sink=1), share(relu, over=i)):
            attention, options = Attention(score, weight, j <= i), {"start": 0, "engine": engine}
            options |= {"t": make(np.ones((3, 20)))} if name == "bias" else {}
            y = attention(*call, **options)
            assert tuple(y.shape) == (batch, heads, queries, width)
            assert (np.asarray(y) == 0).all() or keys
            found = attention.vjp(*call, y, **options)
            assert [tuple(gradient.shape) for gradient in found] == [tuple(x.shape) for x in call]
            assert tuple(attention.weights(*call[:2], **options).shape) == (batch, heads, queries, keys)


@EVERY_RUN
@pytest.mark.parametrize("sizes", NOTHING.values(), ids=NOTHING)
def test_a_trace_of_nothing(engine: str, library: str, sizes: tuple[int, ...]) -> None:
    batch, heads, queries, keys, width = sizes
    shapes = (batch, heads, queries, 4), (batch, heads, keys, 4), (batch, heads, keys, width)
    trace = PLAIN.trace(*(LIBRARIES[library](np.ones(shape)) for shape in shapes), engine=engine)
    assert tuple(trace.y.shape) == (batch, heads, queries, width)


def test_shapes_alone_can_be_asked_for() -> None:
    y = CAUSAL(*(x.to("meta") for x in (TQ, TK, TV)))
    assert tuple(y.shape) == DY.shape


@ENGINES
def test_totals_over_queries_have_the_axes_of_the_call(engine: str) -> None:
    assert Attention(weight=share(exp, over=i))(Q[0, 0], K[0, 0], V[0, 0], totals=True, engine=engine)[1].shape == (
        KEYS,
    )


DTYPES = [(np.asarray, x) for x in (np.float16, np.float32, np.float64)]
DTYPES += [(torch.asarray, x) for x in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
DTYPES += [(jnp.asarray, x) for x in (jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64)]


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize(
    ("make", "dtype"),
    [pytest.param(*x, id=f"{x[0].__module__} {x[1]}") for x in DTYPES],
)
def test_dtypes_come_back(make: Any, dtype: Any) -> None:
    call = [make(x).to(dtype) if make is torch.asarray else make(x).astype(dtype) for x in (Q[0, 0], K[0, 0], V[0, 0])]
    exact = [x.double().numpy() if make is torch.asarray else np.asarray(x, np.float64) for x in call]
    for attention in (CAUSAL, Attention(-sqdist / 2, share(relu(s + 9)))):
        for engine in ("dense", "python"):
            y = attention(*call, engine=engine)
            assert y.dtype == dtype
            rounding = float((torch.finfo if make is torch.asarray else jnp.finfo)(dtype).eps)
            found = y.double().numpy() if make is torch.asarray else np.asarray(y, np.float64)
            np.testing.assert_allclose(found, attention(*exact), atol=max(rounding, 1e-15) * 8)
            assert all(gradient.dtype == dtype for gradient in attention.vjp(*call, y, engine=engine))
