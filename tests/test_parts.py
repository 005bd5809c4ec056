"""Parts of a formula's matrices are what the whole holds there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import regard as rg
from regard import CallError, KindError, causal, dot, each, exp, given, h, i, share, sigmoid, zoo
from regard.example import example

RNG = np.random.default_rng(0)
Q, K = RNG.standard_normal((2, 6, 17, 5)), RNG.standard_normal((2, 3, 19, 5))
PART = {"batch": 1, "heads": [4, 1], "rows": slice(3, 11), "columns": [7, 2, 13]}


def cut(whole: Any) -> Any:
    """PART of a matrix (2, heads, rows, columns)."""
    return np.asarray(whole)[1:2][:, [4, 1]][:, :, 3:11][..., [7, 2, 13]]


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_a_part_of_every_formula(name: str, kind: Any) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=6, n=17, width=5)
    tables = {name: kind(table) for name, table in call.tables.items()}
    parts = attention.parts(kind(call.q), kind(call.k), **tables)
    whole = attention.weights(call.q, call.k, **call.tables)
    np.testing.assert_allclose(np.asarray(parts.weights(**PART)), cut(whole), atol=1e-12)
    np.testing.assert_allclose(np.asarray(parts.scores(**PART)), cut(attention.scores(call.q, call.k, **call.tables)))


@pytest.mark.parametrize(
    "attention",
    [
        rg.Attention(),
        rg.Attention(mask=causal),
        rg.Attention(mask=given("mask")),
        rg.Attention(weight=share(exp, sink=exp(rg.table("sink")[h])), mask=causal),
        rg.Attention(weight=share(lambda s: rg.relu(s) ** 2)),
        rg.Attention(weight=share(exp, over=i)),
        rg.Attention(weight=share(exp, over=h)),
    ],
    ids=repr,
)
def test_totals_that_are_handed_in(attention: rg.Attention) -> None:
    given_tables = {"mask": RNG.random((2, 1, 17, 19)) > 0.3, "sink": RNG.standard_normal(6)}
    tables = {name: given_tables[name] for name in attention.ranks}
    parts = attention.parts(Q, K, **tables)
    rest = {name: value for name, value in PART.items() if name != parts.shared}
    totals = parts.totals(**rest)
    found = parts.weights(totals, **PART)
    np.testing.assert_allclose(found, cut(attention.weights(Q, K, **tables)), atol=1e-12)
    np.testing.assert_allclose(parts.weights(totals + 1.0, **PART), found / (np.e if attention.weight.is_exponential
                               else (totals + 1.0)[..., None] / totals[..., None]), atol=1e-12)  # fmt: skip


def test_a_row_that_the_mask_leaves_empty_has_no_weight() -> None:
    mask = np.ones((1, 1, 17, 19), bool)
    mask[..., 4, :] = False
    parts = rg.Attention(mask=given("mask")).parts(Q, K, mask=mask)
    totals = parts.totals()
    assert (totals[:, :, 4] == -np.inf).all()
    assert not parts.weights(totals[:, :, 4:5], rows=[4]).any()
    assert parts.weights(totals[:, :, 5:6], rows=[5]).sum() == pytest.approx(12)
    with pytest.raises(CallError, match=r"totals: those of the part, with shape \(2, 6, 1\); got \(2, 6, 17\)"):
        parts.weights(totals, rows=[4])


def test_nothing_shared_needs_no_totals() -> None:
    attention = rg.Attention(weight=sigmoid)
    parts = attention.parts(Q, K)
    assert parts.shared is None
    np.testing.assert_allclose(parts.weights(**PART), cut(attention.weights(Q, K)))
    with pytest.raises(CallError, match="totals: this weight shares nothing"):
        parts.totals()


def test_queries_stand_where_start_says() -> None:
    attention = rg.Attention(score=dot * 0, mask=causal)
    parts = attention.parts(Q, K, start=1)
    np.testing.assert_allclose(parts.weights(rows=[2], columns=[0, 3, 4]).reshape(-1, 3)[0], [0.25, 0.25, 0])


def test_shape_and_slices() -> None:
    parts = rg.Attention(weight=each(rg.s)).parts(Q, K)
    assert parts.shape == (2, 6, 17, 19)
    assert parts.formula == rg.Attention(weight=each(rg.s))
    assert parts.weights(heads=2, rows=slice(1, 14, 4)).shape == (2, 1, 4, 19)
    assert parts.weights(rows=slice(5, 3)).shape == (2, 6, 0, 19)
    assert parts.weights(columns=[]).shape == (2, 6, 17, 0)


@pytest.mark.parametrize(
    ("part", "kind", "said"),
    [
        ({"rows": 17}, CallError, "rows: from 0 to 16; got 17 to 17"),
        ({"columns": [3, -1]}, CallError, "columns: from 0 to 18; got -1 to 3"),
        ({"heads": "all"}, KindError, "heads: an integer, a slice, or a sequence of integers; got 'all'"),
        ({"heads": [1.5]}, KindError, r"heads: an integer, a slice, or a sequence of integers; got \[1.5\]"),
        ({"head": 2}, CallError, "part: named by batch, heads, rows, columns; got head="),
    ],
)
def test_wrong_parts_are_refused(part: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        rg.Attention().parts(Q, K).weights(**part)


def test_totals_want_all_that_they_share() -> None:
    with pytest.raises(CallError, match="totals: sum over all columns; got columns=3; leave it out"):
        rg.Attention().parts(Q, K).totals(columns=3)


def test_a_watcher_sees_every_call() -> None:
    from regard.attention import watched

    seen: list[Any] = []
    with watched(seen.append):
        rg.Attention(mask=causal)(Q, Q, Q)
        with watched(lambda call: seen.append("inner")):
            rg.Attention()(Q, Q, Q)
    rg.Attention()(Q, Q, Q)
    assert [getattr(call, "formula", call) for call in seen] == [rg.Attention(mask=causal), rg.Attention(), "inner"]
