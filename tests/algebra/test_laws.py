"""Laws hold: what they say of a formula is what the numbers do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from regard import H, b, causal, d, dot, exp, h, i, j, n, share, sqdist, sqrt, table, tanh, where, zoo
from regard.algebra.fold import fold
from regard.algebra.laws import Admits, Kind, hoist
from regard.algebra.nodes import BATCH as B_SYMBOL
from regard.algebra.nodes import HEAD, I, J
from regard.engines.call import prepare
from regard.engines.dense import Matrices
from strategies import BATCH, HEADS, KEYS, Case, Twin, arrays, cases, environment, expressions, index_masks

CALL = arrays()


# -- symmetry ----------------------------------------------------------------------------------------------------

SYMMETRIC = [dot / sqrt(d), -sqdist / 2, rg.cosine * 3, dot - rg.abs(i - j), tanh(dot) * (i + j), dot + rg.cos(i - j)]
NOT_SYMMETRIC = {
    "-2 ** (-8 * (h + 1) / H) * (i - j) becomes 2 ** (-8 * (h + 1) / H) * (i - j)": zoo.alibi().score,
    'table("bias")[i - j] becomes table("bias")[j - i]': dot + table("bias")[i - j],
    "-i becomes -j": dot - i,
}


@pytest.mark.parametrize("score", SYMMETRIC, ids=repr)
def test_symmetric(score: rg.Expression) -> None:
    attention = rg.Attention(score=score)
    assert attention.laws.symmetry
    x = np.random.default_rng(0).standard_normal((7, 3))
    scores = attention.scores(x, x)
    np.testing.assert_allclose(scores, scores.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("why", NOT_SYMMETRIC)
def test_not_symmetric_and_why(why: str) -> None:
    law = rg.Attention(score=NOT_SYMMETRIC[why]).laws.symmetry
    assert not law
    assert why in law.why


def test_a_bilinear_score_is_as_symmetric_as_its_matrix() -> None:
    attention = zoo.bilinear()
    assert not attention.laws.symmetry
    assert attention.laws.symmetry.given == ("M",)
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
    for metric, gap in ((m + m.T, 0.0), (m, 1.0)):
        scores = attention.scores(x, x, M=metric)
        assert (np.abs(scores - scores.T).max() > 1e-12) == bool(gap)


def test_mahalanobis_is_symmetric_whatever_the_matrix() -> None:
    rng = np.random.default_rng(0)
    x, p = rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
    scores = zoo.mahalanobis().scores(x, x, P=p)
    assert zoo.mahalanobis().laws.symmetry
    np.testing.assert_allclose(scores, scores.T, atol=1e-12)


# -- what cancels ------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(expressions())
def test_row_terms_change_no_softmax(twin: Twin) -> None:
    attention = rg.Attention(score=twin.value)
    row = attention.laws.row_term
    reduced = rg.Attention(score=twin.value - row)
    tables = {name: CALL[name] for name in attention.ranks}
    left = {name: CALL[name] for name in reduced.ranks}
    full, without = attention.weights(CALL["q"], CALL["k"], **tables), reduced.weights(CALL["q"], CALL["k"], **left)
    scale = 1 + np.abs(attention.scores(CALL["q"], CALL["k"], **tables)).max()
    np.testing.assert_allclose(full, without, atol=1e-12 * scale)


def test_the_row_term_of_alibi() -> None:
    laws = zoo.alibi().laws
    assert laws.row_term == -(2 ** (-8 * (h + 1) / H)) * i
    assert laws.cancels
    assert not rg.Attention(weight=share(exp, sink=1)).laws.cancels


def test_distance_is_a_dot_product_with_row_and_column_terms() -> None:
    law = zoo.euclidean().laws.affine
    assert law is not None
    q, k = np.random.default_rng(0).standard_normal((2, 5, 3))
    norms = (q**2).sum(-1)[:, None] + (k**2).sum(-1)
    slope = float(law.slope.node)
    np.testing.assert_allclose(zoo.euclidean().scores(q, k), slope * (norms - 2 * q @ k.T), atol=1e-12)
    same = rg.Attention(score=dot + table("column")[j])
    weights = same.weights(q, k, column=-((k**2).sum(-1)) / 2)
    np.testing.assert_allclose(zoo.euclidean().weights(q, k), weights, atol=1e-12)


def test_affine_only_where_it_is() -> None:
    assert rg.Attention(score=2 * dot + i).laws.affine is not None
    assert rg.Attention(score=tanh(dot)).laws.affine is None
    assert rg.Attention(score=dot + sqdist).laws.affine is None


# -- hoisting ----------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(expressions())
def test_hoisting_changes_no_score(twin: Twin) -> None:
    hoisted = hoist(twin.value.node)
    attention = rg.Attention(score=twin.value)
    tables = {name: CALL[name] for name in attention.ranks}
    call = prepare(attention, CALL["q"], CALL["k"], tables=tables)
    reading = Matrices.of(call)
    with np.errstate(all="ignore"):
        known = {name.node: reading.real(fold(value.node, reading)) for name, (_, value) in hoisted.vectors.items()}
        found = reading.whole(fold(hoisted.rest.node, reading, dict(known)))
    expected = attention.scores(CALL["q"], CALL["k"], **tables)
    np.testing.assert_allclose(found, expected, atol=1e-11 * (1 + np.abs(expected).max()))


ALLOWED = {
    Kind.HEAD: {HEAD, B_SYMBOL},
    Kind.ROW: {HEAD, B_SYMBOL, I},
    Kind.COLUMN: {HEAD, B_SYMBOL, J},
    Kind.OFFSET: {HEAD, I, J},
    Kind.FULL: {HEAD, B_SYMBOL, I, J},
}


@settings(max_examples=100)
@given(expressions())
def test_vectors_depend_on_what_they_say(twin: Twin) -> None:
    env = environment(CALL)
    for kind, value in hoist(twin.value.node).vectors.values():
        indices = {symbol for symbol in value.node.free_symbols if symbol in ALLOWED[Kind.FULL]}
        assert indices <= ALLOWED[kind]
        if kind == Kind.OFFSET:
            attention = rg.Attention(score=value)
            tables = {name: CALL[name] for name in attention.ranks}
            scores = attention.scores(CALL["q"], CALL["k"], **tables)
            for offset in np.unique(env["i"] - env["j"]):
                along = scores[..., (env["i"] - env["j"]) == offset]
                assert np.allclose(along, along[..., :1])


def test_what_is_hoisted() -> None:
    laws = rg.Attention(score=dot / sqrt(d) + table("bias")[h, i - j + 9] + table("c")[b, j] - 3 * i + 3 * j).laws
    assert laws.hoisted.of(Kind.COLUMN) + laws.hoisted.of(Kind.OFFSET) + laws.hoisted.of(Kind.ROW)
    alibi = zoo.alibi().laws.hoisted
    assert [kind for kind, _ in alibi.vectors.values()] == [Kind.OFFSET]
    split = rg.Attention(score=dot - 5 * i + 5 * j).laws.hoisted
    assert [kind for kind, _ in split.vectors.values()] == [Kind.OFFSET], "i − j stays together"
    assert not rg.Attention().laws.hoisted.vectors
    assert rg.Attention(score=dot * table("t")[i, j]).laws.hoisted.of(Kind.FULL) == [table("t")[i, j]]


# -- blocks ------------------------------------------------------------------------------------------------------

RANGES = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=300)
@given(index_masks(), RANGES, RANGES)
def test_a_block_is_what_its_pairs_are(twin: Twin, rows: tuple[int, int], columns: tuple[int, int]) -> None:
    attention = rg.Attention(mask=twin.value)
    env = environment(CALL) | {"i": np.arange(*rows)[:, None], "j": np.arange(*columns)}
    admitted = np.broadcast_to(twin.plain(env), (BATCH, HEADS, rows[1] - rows[0], columns[1] - columns[0]))
    said = attention.laws.block(
        rows, columns, sizes={"n": KEYS, "H": HEADS}, heads=(0, HEADS), batch=(0, BATCH), tables={"ids": CALL["ids"]}
    )
    if said == Admits.ALL:
        assert admitted.all()
    if said == Admits.NONE:
        assert not admitted.any()
    if admitted.any() and not admitted.all():
        assert said == Admits.SOME


def test_plain_masks_are_told_exactly() -> None:
    for mask in (causal, rg.window(5), rg.prefix(4), j >= i, rg.abs(i - j) <= 2):
        laws = rg.Attention(mask=mask).laws
        for row in range(0, 12, 3):
            for column in range(0, 12, 3):
                admitted = rg.Attention(mask=mask).trace(*np.ones((3, 12, 2))).mask[row : row + 3, column : column + 3]
                expected = Admits.ALL if admitted.all() else Admits.SOME if admitted.any() else Admits.NONE
                if mask == rg.prefix(4) and expected == Admits.ALL:
                    continue  # one side of the or covers part of the block, the other the rest
                assert laws.block((row, row + 3), (column, column + 3)) == expected


def test_documents_by_lowest_and_highest() -> None:
    laws = rg.Attention(mask=rg.documents("ids")).laws
    ids = {"ids": np.array([[0] * 8 + [1] * 8])}
    assert laws.block((0, 4), (4, 8), tables=ids, batch=(0, 1)) == "all"
    assert laws.block((0, 4), (8, 12), tables=ids, batch=(0, 1)) == "none"
    assert laws.block((4, 12), (4, 12), tables=ids, batch=(0, 1)) == "some"
    assert laws.block((0, 4), (8, 12)) == "some", "unknown tables may hold anything"


def test_empty_blocks_admit_nothing() -> None:
    assert rg.Attention().laws.block((3, 3), (0, 4)) == "none"
    assert rg.Attention().laws.block((0, 3), (0, 4)) == "all"


# -- what comes after ----------------------------------------------------------------------------------------------

PLACES = 12
CAUSAL = [
    causal,
    j < i,
    i >= j,
    ~(j > i),
    rg.equal(i, j),
    j + 2 <= i,
    2 * j <= 2 * i,
    rg.window(5),
    rg.window(table("reach")[h]),
    causal & rg.documents("ids"),
    causal & rg.given("pairs"),
    causal & rg.padding("lengths"),
    (causal & (i - j < 3)) | (causal & (j < 2)),
    ~((j > i) | (j < 2)),
    (i > 3) & (j <= i) | (i <= 3) & (j < i),
    causal & (j % 3 < 1),
]
NOT_CAUSAL = [
    rg.prefix(3),
    rg.everywhere,
    rg.documents("ids"),
    rg.given("pairs"),
    rg.padding("lengths"),
    j <= i + 1,
    j <= 2 * i,
    j >= i,
    ~causal,
    ~rg.documents("ids"),
    causal | rg.given("pairs"),
    rg.abs(i - j) < 3,
    j < i + table("reach")[h],
    j < n,
]


@pytest.mark.parametrize("mask", CAUSAL, ids=repr)
def test_nothing_after_the_query_is_read(mask: rg.Mask) -> None:
    assert rg.Attention(mask=mask).laws.causal


@pytest.mark.parametrize("mask", NOT_CAUSAL, ids=repr)
def test_something_after_the_query_may_be_read(mask: rg.Mask) -> None:
    assert not rg.Attention(mask=mask).laws.causal


def test_what_is_shared_over_queries_or_among_later_keys_sees_what_comes_after() -> None:
    assert not rg.Attention().laws.causal
    assert rg.Attention(weight=share(exp, sink=2), mask=causal).laws.causal
    assert rg.Attention(weight=rg.sigmoid, mask=causal).laws.causal
    assert rg.Attention(weight=share(exp, over=h), mask=causal).laws.causal
    assert rg.Attention(weight=share(exp, among=j < i), mask=causal).laws.causal
    assert not rg.Attention(weight=share(exp, among=j <= i + 1), mask=causal).laws.causal
    assert not rg.Attention(weight=share(exp, among=causal)).laws.causal
    for over in (i, b):
        assert not rg.Attention(weight=share(exp, over=over), mask=causal).laws.causal


@settings(max_examples=200)
@given(index_masks())
def test_a_causal_mask_admits_nothing_after_the_query(twin: Twin) -> None:
    places = {"i": np.arange(PLACES)[:, None], "j": np.arange(PLACES)}
    for value, joined in ((twin.value, True), (twin.value & causal, places["j"] <= places["i"])):
        admitted = np.broadcast_to(twin.plain(environment(CALL) | places) & joined, (BATCH, HEADS, PLACES, PLACES))
        if rg.Attention(mask=value).laws.causal:
            assert not np.triu(admitted, 1).any()
    assert rg.Attention(mask=twin.value & causal).laws.causal


# -- words -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(cases())
def test_every_formula_has_words(case: Case) -> None:
    words = case.attention.laws.words()
    assert len(words) >= 3
    assert all(sentence.endswith(".") for sentence in words)


def test_words_name_the_law() -> None:
    assert any("cancels under softmax" in words for words in zoo.alibi().laws.words())
    assert any("‖q‖² − 2 q·k + ‖k‖²" in words for words in zoo.euclidean().laws.words())
    assert any("28 all, 28 none, 8 some" in words for words in zoo.causal_dot().laws.words())
    assert any("offset" in words for words in rg.Attention(score=dot + where(i - j < n, i - j, 0)).laws.words())


def test_one_key_ahead_is_ahead() -> None:
    """The nearest key that a causal formula must not read is the very next one."""
    assert rg.Attention(mask=j <= i).laws.causal
    assert not rg.Attention(mask=j <= i + 1).laws.causal
