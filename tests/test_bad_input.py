# ruff: noqa: E501 - one case a line
"""Calls: arrays that do not fit, tables read outside, positions: a defined result, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from regard import (
    Attention,
    dot,
    exp,
    h,
    i,
    j,
    relu,
    share,
    sigmoid,
    softmax,
    table,
)
from runs import BATCH, DY, ENGINES, EVERY_RUN, HEADS, KEYS, LIBRARIES, QUERIES, TK, TQ, TV, VALUES, K, Q, V, normal

PLAIN, CAUSAL, GIVEN = Attention(), Attention(mask=j <= i), Attention(mask=rg.given("m"))
BIAS, BIASES = Attention(dot + table("bias")[h, i - j + 6]), normal(HEADS, 20)
IDS = Attention(dot + table("line")[table("ids")[j]])

# -- refused ----------------------------------------------------------------------------------------------------------

Refused = tuple[Callable[[], Any], type[Exception], str]
REFUSED: dict[str, Refused] = {
    # shapes
    "width": (lambda: PLAIN(Q, K[..., :3], V), rg.CallError, r"width: .*q \(2, 3, 5, 4\) and k \(2, 3, 7, 3\); project them"),
    "lengths": (lambda: PLAIN(Q, K, V[:, :, :5]), rg.CallError, r"one value for each key; got k \(2, 3, 7, 4\) and v \(2, 3, 5, 11\)"),
    "heads": (lambda: PLAIN(Q, K[:, :2], V[:, :2]), rg.CallError, r"multiple of the key heads; got q \(2, 3, 5, 4\) and k \(2, 2,"),
    "heads of v": (lambda: PLAIN(Q, K, V[:, :1]), rg.CallError, "k and v have the same heads"),
    "batch": (lambda: PLAIN(Q, normal(3, 3, 7, 4), normal(3, 3, 7, 4)), rg.CallError, "leading axes of q, k and v are equal, or 1"),
    "axes": (lambda: PLAIN(Q[0], K, V), rg.CallError, "as many axes as each other; .*add axes of size 1"),
    "one axis": (lambda: PLAIN(Q[0, 0, 0], K[0, 0, 0], V[0, 0, 0]), rg.CallError, r"at least two axes.*\(4,\)"),
    "no width": (lambda: PLAIN(Q[..., :0], K[..., :0], V), rg.CallError, "at least one entry"),
    "more queries": (lambda: CAUSAL(normal(9, 4), normal(7, 4), normal(7, 4)), rg.CallError, "9 queries .*7 keys; .*start=0"),
    # kinds
    "integers": (lambda: PLAIN(Q.astype(int), K, V), rg.KindError, "q: real floating numbers; got dtype int64; convert it"),
    "truths": (lambda: PLAIN(Q, K > 0, V), rg.KindError, "k: real floating numbers; got dtype bool"),
    "complex": (lambda: PLAIN(Q, K, V + 0j), rg.KindError, "v: real floating numbers; got dtype complex128"),
    "dtypes": (lambda: PLAIN(Q.astype("f4"), K, V), rg.CallError, "share one dtype; got q has float32, k has float64"),
    "libraries": (lambda: PLAIN(Q, TK, V), rg.KindError, "one library; got q is numpy, k is torch, v is numpy; convert"),
    "devices": (lambda: PLAIN(TQ, TK.to("meta"), TV), rg.CallError, "share one device; got q has cpu, k has meta"),
    "no q": (lambda: PLAIN(None, K, V), rg.KindError, "q: an array or nested lists of numbers; got NoneType"),
    "no k": (lambda: PLAIN(Q, None, V), rg.KindError, "k: an array or nested lists"),
    "string": (lambda: PLAIN("q", K, V), rg.KindError, "q: an array or nested lists of numbers; got str"),
    "ragged lists": (lambda: PLAIN([[1, 2], [1]], [[1, 2]], [[3]]), rg.KindError, "q: nested lists.*all rows of one length"),
    "lists of strings": (lambda: PLAIN([["a"]], [["b"]], [["c"]]), rg.KindError, "nested lists of numbers"),
    # tables
    "missing": (lambda: BIAS(Q, K, V), rg.TableError, "reads bias; got none; pass bias= an array by that name"),
    "misspelt": (lambda: BIAS(Q, K, V, Bias=BIASES), rg.TableError, "reads bias; got Bias; pass bias="),
    "None": (lambda: BIAS(Q, K, V, bias=None), rg.TableError, "pass bias="),
    "unused": (lambda: PLAIN(Q, K, V, scale=2.0), rg.TableError, "got scale, which it does not read; a mask or scale is part"),
    "unused table": (lambda: PLAIN(Q, K, V, t=2.0), rg.TableError, "reads no table; got t, which it does not read; leave"),
    "rank": (lambda: BIAS(Q, K, V, bias=BIASES[0]), rg.TableError, r"bias: .*with 2 axes.*got shape \(20,\)"),
    "rank of a list": (lambda: BIAS(Q, K, V, bias=[1.0, 2.0]), rg.TableError, r"got shape \(2,\)"),
    "number": (lambda: BIAS(Q, K, V, bias=1.0), rg.TableError, r"got shape \(\)"),
    "table string": (lambda: BIAS(Q, K, V, bias="B"), rg.KindError, "bias: an array, a number or nested lists.*got str"),
    "table dict": (lambda: BIAS(TQ, TK, TV, bias={}), rg.KindError, "bias: .*got dict"),
    "ragged table": (lambda: BIAS(Q, K, V, bias=[[1.0], [1.0, 2.0]]), rg.KindError, "bias: .*got list"),
    "complex table": (lambda: BIAS(Q, K, V, bias=BIASES + 0j), rg.TableError, "real numbers, integers or truths; got dtype complex128"),
    "table of torch": (lambda: BIAS(Q, K, V, bias=torch.asarray(BIASES)), rg.KindError, "library of q, numpy; got torch"),
    "table elsewhere": (lambda: BIAS(TQ, TK, TV, bias=torch.ones(3, 20, device="meta")), rg.CallError, "on cpu; got bias on meta"),
    "float index": (lambda: IDS(Q, K, V, line=BIASES[0], ids=np.arange(7.0)), rg.TableError, "ids: stands in an index, so it holds integers"),
    "metric widths": (lambda: Attention(dot(table("M")))(Q, K, V, M=normal(4, 5)), rg.TableError, r"M: dot needs .*\(4, 4\); got \(4, 5\)"),
    "metric rank": (lambda: Attention(dot(table("M")))(Q, K, V, M=normal(4)), rg.TableError, "M: .*2 axes"),
    "(batch, keys) mask": (lambda: GIVEN(Q, K, V, m=np.ones((2, 7), bool)), rg.TableError, r"\(2, 3, 5, 7\); got shape \(2, 7\); .*m\[:, None, :\]"),
    "(batch, keys) mask, 3": (lambda: GIVEN(Q[0], K[0], V[0], m=np.ones((2, 7), bool)), rg.TableError, r"\(3, 5, 7\); got shape \(2, 7\)"),
    "float mask": (lambda: GIVEN(Q, K, V, m=np.ones((5, 7))), rg.TableError, "m: .*truths, True where a pair is admitted; got dtype float64"),
    # start
    "start 1.0": (lambda: CAUSAL(Q, K, V, start=1.0), rg.KindError, "start: an integer, or one for each batch; got 1.0"),
    "start True": (lambda: CAUSAL(Q, K, V, start=True), rg.KindError, "start: .*got True"),
    "start string": (lambda: CAUSAL(Q, K, V, start="0"), rg.KindError, "start: .*got '0'"),
    "start floats": (lambda: CAUSAL(Q, K, V, start=np.array([1.0, 2.0])), rg.KindError, "start: an integer"),
    "starts": (lambda: CAUSAL(Q, K, V, start=[1, 2, 3]), rg.CallError, r"one for each of 2 batches; got shape \(3,\)"),
    "start elsewhere": (lambda: CAUSAL(TQ, TK, TV, start=torch.ones(2, dtype=int, device="meta")), rg.CallError, "start lies where q lies, on cpu"),
    # engines, totals, gradients
    "engine": (lambda: PLAIN(Q, K, V, engine="Dense"), rg.EngineError, "one of auto, sdpa, triton, tiled, dense, python; got 'Dense'"),
    "python graph": (lambda: PLAIN(TQ.clone().requires_grad_(), TK, TV, engine="python"), rg.EngineError, "no graph.*use dense, or vjp"),
    "totals of each": (lambda: Attention(weight=sigmoid)(Q, K, V, totals=True), rg.CallError, "totals: this weight shares nothing"),
    "dy shape": (lambda: PLAIN.vjp(Q, K, V, Q), rg.CallError, r"dy: has the shape of y, \(2, 3, 5, 11\); got \(2, 3, 5, 4\)"),
    "dy library": (lambda: PLAIN.vjp(Q, K, V, torch.asarray(DY)), rg.KindError, "dy: comes from the library of q, numpy; got torch"),
    "dy None": (lambda: PLAIN.vjp(Q, K, V, None), rg.KindError, "dy: an array or nested lists"),
    # self_attention
    "no matrices": (lambda: rg.self_attention(Q), rg.CallError, "both Wq and Wk, or M alone; got none of them"),
    "Wq alone": (lambda: rg.self_attention(Q, Wq=normal(4, 3), Wv=normal(4, 3)), rg.CallError, "got Wq"),
    "all three": (lambda: rg.self_attention(Q, normal(4, 3), normal(4, 3), M=normal(4, 4)), rg.CallError, "got Wq, Wk, M"),
    "transposed": (lambda: rg.self_attention(Q, normal(3, 4), normal(4, 3)), rg.CallError, r"Wq: .*4 rows for x .*got \(3, 4\); transpose it"),
    "matrix of torch": (lambda: rg.self_attention(Q, torch.ones(4, 3), normal(4, 3)), rg.KindError, "Wq: comes from the library of x, numpy"),
    "M that is not square": (lambda: rg.self_attention(Q, M=normal(4, 5)), rg.CallError, "width"),
    # scaled_dot_product_attention
    "dropout": (lambda: rg.scaled_dot_product_attention(TQ, TK, TV, dropout_p=1.1), rg.CallError, "dropout: .*from 0 to 1; got 1.1; pass 0"),
    "mask and causal": (lambda: rg.scaled_dot_product_attention(TQ, TK, TV, torch.ones(5, 7) > 0, is_causal=True), rg.CallError, "got both; join them"),
    "unequal heads": (lambda: rg.scaled_dot_product_attention(TQ, TK[:, :2], TV[:, :2]), rg.CallError, "pass enable_gqa=True"),
    "bias shape": (lambda: rg.scaled_dot_product_attention(TQ, TK, TV, torch.ones(4, 7)), rg.CallError, r"\(2, 3, 5, 7\); got shape \(4, 7\)"),
}  # fmt: skip


REPORTED: dict[str, Refused] = {
    "no v": (lambda: PLAIN(Q, K, None), rg.KindError, "v: an array or nested lists"),
    "dy complex": (lambda: PLAIN.vjp(Q, K, V, DY + 0j), rg.KindError, "dy: real floating numbers; got dtype complex128"),
    "dy integers": (lambda: PLAIN.vjp(Q, K, V, DY.astype(int)), rg.KindError, "dy: real floating numbers; got dtype int64"),
    "graph of k": (lambda: PLAIN(TQ, TK.clone().requires_grad_(), TV, engine="python"), rg.EngineError, "no graph"),
    "graph of a table": (
        lambda: BIAS(TQ, TK, TV, bias=torch.ones(3, 20, requires_grad=True), engine="python"), rg.EngineError, "no graph",
    ),
    "matrix dtype": (lambda: rg.self_attention(TQ, torch.ones(4, 3), torch.ones(4, 3)), rg.CallError, "Wq: has the dtype of x"),
    "matrix elsewhere": (lambda: rg.self_attention(TQ, TQ[0, 0].T.to("meta"), TQ[0, 0].T), rg.CallError, "Wq: has the device of x"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*REFUSED, *REPORTED])
def test_refused(name: str) -> None:
    act, kind, text = (REFUSED | REPORTED)[name]
    with pytest.raises(kind, match=text) as caught:
        act()
    assert isinstance(caught.value, rg.RegardError)


# -- tables: the range counts for admitted pairs only -----------------------------------------------------------------


@EVERY_RUN
@pytest.mark.parametrize(("size", "axis", "low", "high"), [((3, 8), 1, 2, 12), ((2, 20), 0, 0, 2), ((3, 0), 1, 2, 12)])
def test_reads_outside_a_table(
    engine: str, library: str, size: tuple[int, int], axis: int, low: int, high: int
) -> None:
    make = LIBRARIES[library]
    text = rf"table\(\"bias\"\)\[h, i - j \+ 6\] must stay within its {size[axis]} entries along axis {axis}; got indices from \d+ to {high}"
    with pytest.raises(rg.TableError, match=text + r" for admitted pairs; make the table longer, mask .*, or clamp"):
        BIAS(make(Q), make(K), make(V), bias=make(normal(*size)), engine=engine)


CLAMPED = {
    "above": (dot + table("line")[i + j], j + i < 6, lambda i, j: min(i + j, 5)),
    "below": (dot + table("line")[i - j], j <= i, lambda i, j: max(i - j, 0)),
    "branch not taken": (dot + rg.where(j <= i, table("line")[i - j], 0), None, lambda i, j: i - j if j <= i else None),
    "branch nested": (
        rg.where(j < 2, dot, rg.where(j < 6, dot + table("line")[j], dot)),
        None,
        lambda i, j: j if 2 <= j < 6 else None,
    ),
}


@EVERY_RUN
@pytest.mark.parametrize("name", CLAMPED)
def test_masked_reads_never_wrap(engine: str, library: str, name: str) -> None:
    score, mask, place = CLAMPED[name]
    q, k, v, line, dy = normal(7, 4), normal(7, 4), normal(7, 3), normal(6 if name == "above" else 7), normal(7, 3)
    attention = Attention(score, mask=mask)
    admitted = np.array([[{"above": i + j < 6, "below": j <= i}.get(name, True) for j in range(7)] for i in range(7)])
    added = np.array(
        [[0.0 if place(i, j) is None else line[min(place(i, j), len(line) - 1)] for j in range(7)] for i in range(7)]
    )
    weights = np.where(admitted, np.exp(q @ k.T + added), 0)
    weights = weights / np.where(weights.sum(1) == 0, 1, weights.sum(1))[:, None]
    make = LIBRARIES[library]
    call = [make(x) for x in (q, k, v)]
    np.testing.assert_allclose(np.asarray(attention(*call, line=make(line), engine=engine)), weights @ v, rtol=1e-12)
    gradient = np.zeros_like(line)
    dw = dy @ v.T
    ds = weights * (dw - (dw * weights).sum(1, keepdims=True))
    for row in range(7):
        for column in range(7):
            if place(row, column) is not None and admitted[row, column]:
                gradient[place(row, column)] += ds[row, column]
    found = attention.vjp(*call, make(dy), line=make(line), engine=engine)["line"]
    np.testing.assert_allclose(np.asarray(found), gradient, rtol=1e-9, atol=1e-12)


# -- positions and totals ---------------------------------------------------------------------------------------------

STARTS = [
    0,
    2,
    -3,
    -100,
    np.int64(2),
    np.int32(2),
    np.array(2),
    [1, 2],
    (0, 6),
    np.array([1, 2], np.uint8),
    np.array([[-4], [2]]),
]


@EVERY_RUN
@pytest.mark.parametrize("start", STARTS, ids=repr)
def test_start(engine: str, library: str, start: Any) -> None:
    make = LIBRARIES[library]
    first = np.broadcast_to(np.asarray(start, int).reshape(-1), (BATCH,))
    position = first[:, None, None, None] + np.arange(QUERIES)[:, None]
    weights = np.where(np.arange(KEYS) <= position, np.exp(Q @ np.swapaxes(K, -1, -2) / 2), 0)
    total = weights.sum(-1, keepdims=True)
    wanted = weights / np.where(total == 0, 1, total) @ V
    np.testing.assert_allclose(
        np.asarray(CAUSAL(make(Q), make(K), make(V), start=start, engine=engine)), wanted, rtol=1e-12
    )


@ENGINES
def test_more_queries_than_keys(engine: str) -> None:
    q = normal(9, 4)
    assert PLAIN(q, K[0, 0], V[0, 0], engine=engine).shape == (9, VALUES)
    assert CAUSAL(q, K[0, 0], V[0, 0], start=0, engine=engine).shape == (9, VALUES)


@EVERY_RUN
def test_totals(engine: str, library: str) -> None:
    make = LIBRARIES[library]
    scores = Q @ np.swapaxes(K, -1, -2) / 2
    logs, axes = {softmax: np.exp(scores).sum(-1), share(exp, sink=3): 3 + np.exp(scores).sum(-1)}, {-1: j, -2: i}
    for weight, total in logs.items():
        found = Attention(weight=weight)(make(Q), make(K), make(V), totals=True, engine=engine)[1]
        np.testing.assert_allclose(np.asarray(found), np.log(total), rtol=1e-12)
    for axis, over in axes.items():
        found = Attention(weight=share(relu, over=over))(make(Q), make(K), make(V), totals=True, engine=engine)[1]
        np.testing.assert_allclose(np.asarray(found), np.maximum(scores, 0).sum(axis), rtol=1e-12)


# -- PyTorch's own function -------------------------------------------------------------------------------------------

SDPA: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal, L < S": {"is_causal": True},
    "scale": {"scale": 0.3},
    "scale 0": {"scale": 0.0},
    "bool mask": {"attn_mask": torch.asarray(normal(BATCH, HEADS, QUERIES, KEYS) > -1)},
    "bool mask (L, S)": {"attn_mask": torch.asarray(normal(QUERIES, KEYS) > -1)},
    "bool mask (B, 1, 1, S)": {"attn_mask": torch.asarray(normal(BATCH, 1, 1, KEYS) > -1)},
    "float mask": {"attn_mask": torch.asarray(normal(BATCH, HEADS, QUERIES, KEYS))},
    "float mask (1, S)": {"attn_mask": torch.asarray(normal(1, KEYS))},
    "float mask (B, 1, L, 1)": {"attn_mask": torch.asarray(normal(BATCH, 1, QUERIES, 1))},
    "float mask with -inf": {"attn_mask": torch.zeros(QUERIES, KEYS, dtype=torch.float64).masked_fill(torch.ones(QUERIES, KEYS).triu(1) > 0, -torch.inf)},
}  # fmt: skip


@pytest.mark.parametrize("name", SDPA)
@pytest.mark.parametrize("axes", [4, 3, 2])
def test_scaled_dot_product_attention(name: str, axes: int) -> None:
    options = dict(SDPA[name])
    call = [x[(0,) * (4 - axes)] for x in (TQ, TK, TV)]
    if "attn_mask" in options and options["attn_mask"].ndim > 2:
        options["attn_mask"] = options["attn_mask"][(0,) * (4 - axes)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*call, **options)
    torch.testing.assert_close(rg.scaled_dot_product_attention(*call, **options), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("queries", "keys"), [(9, 7), (7, 7)])
def test_scaled_dot_product_attention_causal_and_grouped(queries: int, keys: int) -> None:
    q, k, v = (torch.asarray(normal(2, heads, length, 4)) for heads, length in ((6, queries), (2, keys), (2, keys)))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(
        rg.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), wanted, rtol=1e-12, atol=1e-12
    )
