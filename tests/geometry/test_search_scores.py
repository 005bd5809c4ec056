"""search by any score of the algebra finds what the whole matrix of scores says."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from neighbours import (
    CASES,
    KINDS,
    known,
    numpy,
    one_thread,  # noqa: F401 - a fixture of every test here
)
from regard import b, cosine, d, dot, equal, h, i, j, log, n, relu, sqdist, sqrt, table, tanh, where, window
from regard.geometry import search
from regard.geometry.nearest import scores as scoring
from regard.geometry.nearest import searching
from regard.geometry.nearest.pairs import products
from strategies import Case, arrays, cases, environment

masked = rg.given  # of which hypothesis has another
COUNT, ROWS, WIDTH = 11, 41, 3
RNG = np.random.default_rng(5)
Q, C = RNG.integers(-4, 5, (COUNT, WIDTH)) / 2, RNG.integers(-4, 5, (ROWS, WIDTH)) / 2  # no sum of products is rounded
TABLES: dict[str, Any] = {
    "M": RNG.integers(-2, 3, (WIDTH, WIDTH)) * 1.0,
    "P": np.diag([1.0, 2.0, 4.0]) + 0.5,
    "Ps": RNG.integers(-2, 3, (2, WIDTH, WIDTH)) * 1.0,
    "bias": RNG.integers(-5, 6, ROWS) / 4,
    "full": RNG.integers(-5, 6, (COUNT, ROWS)) / 4,
    "offset": RNG.integers(-5, 6, COUNT + ROWS) / 4,
    "heads": RNG.integers(-5, 6, (1, ROWS)) / 4,
    "scale": np.asarray(0.25),
    "ids": RNG.integers(0, 4, ROWS),
    "few": RNG.integers(0, 4, COUNT).astype(np.int8),
    "some": RNG.random(ROWS) < 0.5,
    "mask": RNG.random((COUNT, ROWS)) < 0.2,
    "rows": RNG.random((1, ROWS)) < 0.3,
    "lengths": np.asarray([17]),
}
SCORES: dict[str, Any] = {
    "dot": dot,
    "scaled": dot / sqrt(d),
    "cosine": cosine,
    "distance": -sqdist / 2,
    "bilinear": dot(table("M")),
    "mahalanobis": -sqdist(table("P")),
    "one of many matrices": dot(table("Ps")[h + 1]),
    "bias": dot + table("bias")[j],
    "full": table("full")[i, j] - sqdist / 8,
    "relative": dot + table("offset")[i - j + ROWS - 1],
    "head": dot * (h + 2) + table("heads")[h, j],
    "through a table": table("bias")[table("ids")[j] + 3] + dot,
    "scale": table("scale") * dot - table("some")[j],
    "small integers": table("few")[i] * 100 + table("ids")[j] * dot,
    "functions": 30 * tanh(dot / 30) + relu(cosine) - log(1 + sqdist),
    "pieces": where(dot > 1, rg.minimum(dot, 3), rg.maximum(-dot, rg.floor(cosine * 3))),
    "whole numbers": (i - 2 * j) // 3 + (i + j) % 5,
    "sizes": dot / d + n - h - rg.H + b,
    "a number": 1.5 + 0 * dot,
    "never": log(relu(dot)),
}
ROUNDED = {"scaled", "cosine", "functions", "pieces", "sizes", "never"}  # libraries differ in the last digit
MASKS: dict[str, Any] = {
    "none": None,
    "causal": j <= i,
    "given": masked("mask"),
    "given for all": masked("rows"),
    "window": window(3),
    "others": ~equal(i, j),
    "same kind": equal(table("few")[i], table("ids")[j]),
    "near": sqdist < 2,
    "padding": rg.padding("lengths"),
    "nothing": j < 0 * i,
    "both": masked("mask") & (dot > 0) | equal(i, j),
}


COMBINED = [*product(SCORES, ["none", "both"]), *product(["full"], MASKS)]


def whole_matrix(score: Any, mask: Any) -> Any:
    """Every score, −∞ where the mask admits no pair."""
    plain, admits = rg.Attention(score), rg.Attention(0 * dot, rg.each(lambda s: 1 + 0 * s), mask)
    scores, admitted = (
        ask(Q, C, start=0, engine="dense", **{name: TABLES[name] for name in attention.ranks})
        for ask, attention in ((plain.scores, plain), (admits.weights, admits))
    )
    return np.where(admitted > 0, scores, -np.inf)


def assert_largest(found: Any, scores: Any, k: int, rounding: float) -> None:
    """The k largest of each row, −1 where there is none; those that only rounding tells apart in any order."""
    indices, values = numpy(found.indices), numpy(found.values)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    largest = np.take_along_axis(scores, order, 1)
    empty = largest == -np.inf
    np.testing.assert_array_equal(indices == -1, empty)
    np.testing.assert_allclose(values, largest, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(values[~empty], np.take_along_axis(scores, indices, 1)[~empty], rounding, rounding)
    assert all(len(set(row[~gone])) == (~gone).sum() for row, gone in zip(indices, empty, strict=True))
    if not rounding:
        np.testing.assert_array_equal(indices, np.where(empty, -1, order))


# -- the whole matrix ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("score", "mask"), COMBINED)
def test_finds_what_the_whole_matrix_says(score: str, mask: str, kind: str, monkeypatch: Any) -> None:
    attention, scores = rg.Attention(score=SCORES[score], mask=MASKS[mask]), whole_matrix(SCORES[score], MASKS[mask])
    tables = {name: KINDS[kind](TABLES[name]) for name in attention.ranks}
    metric = SCORES[score] if MASKS[mask] is None else attention
    monkeypatch.setattr(scoring, "PAIRS", 7 * WIDTH)
    for k, block, at_once in (1, None, 1024), (7, 10, 5), (ROWS, 13, 3):
        monkeypatch.setattr(searching, "QUERIES", at_once)
        found = search(KINDS[kind](Q), KINDS[kind](C), k, metric=metric, block=block, **tables)
        assert_largest(found, scores, k, 1e-14 if score in ROUNDED else 0.0)


CALL = arrays()
ENV = environment(CALL, start=0)


@given(case=cases(), k=st.integers(1, 7), block=st.integers(1, 8), kind=st.sampled_from(list(KINDS)))
@settings(max_examples=200)
def test_random_formulas(case: Case, k: int, block: int, kind: str) -> None:
    """Formulas with a plain twin; search has one head and one batch, the first of the twin's."""
    formula = rg.Attention(score=case.attention.score, mask=case.attention.mask)
    first = {"heads": CALL["heads"][:1], "batch": CALL["batch"][:1]}
    tables = {name: KINDS[kind]({**CALL, **first}[name]) for name in formula.ranks}
    queries, corpus = (KINDS[kind](CALL[name][0, 0]) for name in "qk")
    with np.errstate(all="ignore"):
        admitted = np.broadcast_to(case.plain_mask(ENV), case.scores(ENV).shape)[0, 0]
        scores = np.where(admitted, case.scores(ENV)[0, 0], -np.inf)
    if np.isnan(scores).any():
        with pytest.raises(rg.CallError, match="metric: a number for every pair; got NaN for query"):
            search(queries, corpus, k, metric=formula, block=block, **tables)
    else:
        scale = np.abs(scores, where=np.isfinite(scores), out=np.zeros_like(scores)).max()
        found = search(queries, corpus, k, metric=formula, block=block, **tables)
        assert_largest(found, scores, k, 1e-11 * max(1.0, float(scale)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["plain", "both 1e+06 away", "queries 1e+06 away", "two clouds", "itself", "tiny"])
def test_distances_do_not_cancel(case: str, kind: str) -> None:
    """−sqdist finds what Euclidean distance finds, also far from the origin and from the other queries."""
    (queries, corpus), told = CASES[case], known(case, "euclidean")
    x, y = (KINDS[kind](part.astype(float)) for part in (queries, corpus))
    found = search(x, y, 9, metric=-sqdist, block=37)
    by_matrix = search(x, y, 9, metric=-sqdist(table("P")), block=37, P=KINDS[kind](np.eye(x.shape[1])))
    for way in (found, by_matrix):
        for query, ours in enumerate(numpy(way.indices).tolist()):
            for row, best in zip(ours, told.order(query), strict=False):
                assert told.alike(query, row, best)
        np.testing.assert_allclose(
            numpy(way.values), -(np.take_along_axis(told.values, numpy(way.indices), 1) ** 2), 1e-12
        )


def test_few_distances_are_taken_from_differences(monkeypatch: Any) -> None:
    """Seen from a query, products are as small as distances, and few cancel."""
    taken: list[int] = []
    monkeypatch.setattr(scoring, "products", lambda x, y: taken.append(len(x)) or products(x, y))
    queries, corpus = (RNG.standard_normal((count, 7)) + 1e6 for count in (13, 499))
    search(queries, corpus, 3, metric=-sqdist)
    assert sum(taken) < 13 * 499 / 10


def test_an_attention_is_asked_for_its_score_and_mask_alone() -> None:
    sinks = rg.Attention(dot, rg.share(rg.exp, sink=rg.exp(table("sink")[h])), j <= i)
    found = search(Q, C, 3, metric=sinks)
    np.testing.assert_array_equal(found.indices, search(Q, C, 3, metric=rg.Attention(dot, mask=j <= i)).indices)


def test_infinite_scores_are_found_and_minus_infinity_is_not() -> None:
    found = search(np.zeros((1, 2)), np.eye(3)[:, :2], 3, metric=where(equal(j, 1), 1 / dot, log(dot) - j))
    np.testing.assert_array_equal(found.indices, [[1, -1, -1]])
    np.testing.assert_array_equal(found.values, [[np.inf, -np.inf, -np.inf]])
    many = search(np.zeros((2, 2)), np.zeros((307, 2)), 3, metric=where(j < 100, dot, 1 / dot), block=151)
    np.testing.assert_array_equal(many.indices, [[100, 101, 102]] * 2)


# -- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tables_as_lists_keep_every_digit(kind: str) -> None:
    queries, corpus = KINDS[kind](np.zeros((2, 2))), KINDS[kind](np.zeros((3, 2)))
    found = search(queries, corpus, 3, metric=table("bias")[j] + table("scale"), bias=[0.1, 0.3, 0.2], scale=1)
    np.testing.assert_array_equal(numpy(found.values), [[1.3, 1.2, 1.1]] * 2)
    found = search(queries, corpus, 2, metric=rg.Attention(dot - j, mask=masked("mask")), mask=[False, True, False])
    np.testing.assert_array_equal(numpy(found.indices), [[1, -1]] * 2)
    found = search(queries, corpus, 1, metric=table("line")[table("ids")[j]], line=[1.0, 2.0], ids=[0, 0, 1])
    np.testing.assert_array_equal(numpy(found.indices), [[2]] * 2)


def test_a_table_by_batch_may_come_without_that_axis() -> None:
    metric = rg.Attention(dot, mask=rg.padding("lengths"))
    expected = search(Q, C, 3, metric=metric, lengths=TABLES["lengths"])
    np.testing.assert_array_equal(search(Q, C, 3, metric=metric, lengths=17).indices, expected.indices)


def test_small_integers_do_not_wrap() -> None:
    ids = np.array([100, 120], np.int8)
    found = search(Q, C[:2], 1, metric=table("ids")[j] * 100, ids=ids)
    np.testing.assert_array_equal(found.values, np.full((COUNT, 1), 12_000.0))
    signed = search(Q, C[:2], 1, metric=table("ids")[0] - table("ids")[j], ids=ids.astype(np.uint8))
    np.testing.assert_array_equal(signed.values, np.zeros((COUNT, 1)))


def test_what_the_mask_takes_away_may_read_outside() -> None:
    metric = rg.Attention(dot + table("offset")[i - j], mask=j <= i)
    found = search(Q, C, 3, metric=metric, offset=TABLES["offset"][:COUNT])
    expected = whole_matrix(dot + table("offset")[rg.maximum(i - j, 0)], j <= i)
    assert_largest(found, expected, 3, 0.0)
    branches = where(j < 5, table("few")[rg.minimum(j, 4)], where(j < 9, table("bias")[j], 0))
    search(Q, C, 3, metric=branches, few=np.arange(5), bias=TABLES["bias"][:9])


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "missing": (dot + table("bias")[j], {}, rg.TableError, "tables: the score reads bias; got none; pass each"),
    "unused": (dot, {"bias": [1.0]}, rg.TableError, "tables: the score reads no table; got bias; pass each"),
    "axes": (table("bias")[j], {"bias": TABLES["full"]}, rg.TableError, r"bias: read with 1 axes; got shape \(11, 41"),
    "real index": (
        table("bias")[table("ids")[j]], {"bias": [1.0], "ids": TABLES["bias"]}, rg.TableError,
        "ids: stands in an index, so it holds integers; got dtype float64; convert it",
    ),
    "too short": (
        dot + table("bias")[j], {"bias": np.ones(40)}, rg.TableError,
        r'bias: table\("bias"\)\[j\] stays within its 40 entries along axis 0; got 40 to 40; make the table longer',
    ),
    "negative": (
        table("full")[i, j - 2], {"full": TABLES["full"]}, rg.TableError,
        r'full: table\("full"\)\[i, j - 2\] stays within its 41 entries along axis 1; got -2 to -1; make the',
    ),
    "empty": (table("bias")[0], {"bias": np.ones(0)}, rg.TableError, r"bias: table.* stays within its 0 entries"),
    "empty where it does not count": (
        where(j < 0 * i, table("bias")[j], dot), {"bias": np.ones(0)}, rg.TableError,
        "bias: at least one entry along each axis; got none along axis 0",
    ),
    "a matrix": (dot(table("M")), {"M": np.eye(2)}, rg.TableError, "M: 3 × 3 for vectors of that width; got shape"),
    "matrices": (
        sqdist(table("P")[h]), {"P": np.ones((1, 3, 2))}, rg.TableError, r"P: 3 × 3 .*; got shape \(1, 3, 2\)",
    ),
    "a mask of numbers": (
        rg.Attention(mask=masked("mask")), {"mask": np.ones((COUNT, ROWS))}, rg.TableError,
        "mask: given.* takes truths, True where a pair is admitted; got dtype float64",
    ),
    "a mask for fewer queries": (
        rg.Attention(mask=masked("mask")), {"mask": np.ones((COUNT - 1, ROWS), bool)}, rg.TableError,
        r"mask: broadcasts to \(queries, rows\), \(11, 41\); got shape \(10, 41\)",
    ),
    "a mask for more rows": (
        rg.Attention(mask=masked("mask")), {"mask": np.ones((COUNT, ROWS + 1), bool)}, rg.TableError,
        r"mask: broadcasts to \(queries, rows\), \(11, 41\); got shape \(11, 42\)",
    ),
    "a mask for heads": (
        rg.Attention(mask=masked("mask")), {"mask": np.ones((1, COUNT, ROWS), bool)}, rg.TableError,
        r"mask: broadcasts to \(queries, rows\), \(11, 41\); got shape \(1, 11, 41\)",
    ),
    "text": (table("bias")[j], {"bias": "abc"}, rg.KindError, "bias: an array, a number or nested lists.*; got str"),
    "ragged": (table("bias")[j], {"bias": [[1.0], [1, 2]]}, rg.KindError, "bias: an array, a number or .*got list"),
    "complex": (table("bias")[j], {"bias": np.ones(ROWS) * 1j}, rg.KindError, "bias: real numbers; got dtype complex"),
    "tensors": (
        table("bias")[j], {"bias": torch.ones(ROWS)}, rg.KindError, "bias: comes from the library of queries, numpy",
    ),
    "integer tensors": (
        table("ids")[j], {"ids": torch.ones(ROWS, dtype=torch.int64)}, rg.KindError, "ids: comes from the library of",
    ),
    "jax": (table("bias")[j], {"bias": jnp.ones(ROWS)}, rg.KindError, "bias: comes from the library of queries, n"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name: str) -> None:
    metric, tables, error, text = REFUSED[name]
    with pytest.raises(error, match=f"^{text}"):
        search(Q, C, 3, metric=metric, block=7, **tables)


def test_a_table_lies_where_the_queries_lie() -> None:
    with pytest.raises(rg.CallError, match="bias: lies where queries lies, on cpu; got meta; move it"):
        search(torch.asarray(Q), C, 3, metric=table("bias")[j], bias=torch.ones(ROWS, device="meta"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_that_is_no_number_is_named(kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(searching, "QUERIES", 4)
    corpus = C.copy()
    full = np.zeros((COUNT, ROWS))
    full[6, 23] = full[9, 30] = np.nan
    metric = dot + table("full")[i, j]
    with pytest.raises(
        rg.CallError,
        match=r'^metric: a number for every pair; got NaN for query 6 and row 23 of dot \+ table\("full"\)\[i, j\]$',
    ):
        search(KINDS[kind](Q), KINDS[kind](corpus), 3, metric=metric, block=10, full=KINDS[kind](full))
    admitted = rg.Attention(metric, mask=equal(i, 0 * j) & (j < 3))
    assert (
        numpy(search(KINDS[kind](Q), corpus, 3, metric=admitted, full=KINDS[kind](full)).indices)[6].tolist()
        == [-1] * 3
    )
