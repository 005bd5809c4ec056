"""What one formula computes in a block: vectors that are prepared or counted, gradients that come for free."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

import regard as rg
from regard import cosine, d, dot, each, h, i, j, log, maximum, minimum, share, sigmoid, sqdist, sqrt, table
from regard.algebra.functions import FUNCTIONS
from regard.algebra.laws import Kind
from regard.engines.triton.choice import _is_curved
from regard.engines.triton.passes import offsets_of
from regard.engines.triton.program import program
from regard.engines.triton.source import Wanted, written

SCORE = dot / sqrt(d)


def kinds(attention: Any) -> list[Kind]:
    return [kind for kind, _ in program(attention, True).vectors.values()]


@pytest.mark.parametrize("bent", [abs(i - j), minimum(abs(i - j), 5), maximum(i - j, 3) / 2, abs(2 * i - 2 * j + 3)])
def test_a_bent_line_in_i_j_is_counted(bent):
    assert Kind.OFFSET not in kinds(rg.Attention(SCORE - bent / (h + 1)))


@pytest.mark.parametrize("read", [table("t")[h, abs(i - j)], log(1 + abs(i - j)), abs(i - j) * abs(i - j - 3) * 2])
def test_what_takes_longer_is_a_vector(read):
    assert Kind.OFFSET in kinds(rg.Attention(SCORE - read))


@pytest.mark.parametrize("bent", [abs(i - j) / (h + 2), minimum(abs(i - j), 5) / 3, table("slopes")[h] * abs(i - j)])
@pytest.mark.parametrize("start", [None, 40])
def test_a_bent_line_gives_the_right_numbers(bent, start):
    torch.manual_seed(2)
    attention = rg.Attention(SCORE - bent)
    q, k, v, dy = (torch.randn(2, 3, 41, 16, requires_grad=True) for _ in range(4))
    tables = {name: torch.rand(3, requires_grad=True) for name in attention.ranks}
    leaves = (q, k, v, *tables.values())
    found, wanted = (
        torch.autograd.grad(attention(q, k, v, engine=engine, start=start, **tables), leaves, dy)
        for engine in ("triton", "dense")
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("attention", [
    rg.Attention(8 * cosine), rg.Attention(weight=each(sigmoid), score=3 * cosine), rg.Attention(cosine**2),
    rg.Attention(8 * cosine - table("t")[h] * (i - j)),
])  # fmt: skip
def test_a_cosine_sees_directions(attention):
    made = program(attention, True)
    assert {made.vectors[symbol][0]: side for symbol, side in made.directions.items()} == {
        Kind.ROW: "q",
        Kind.COLUMN: "k",
    }


@pytest.mark.parametrize("score", [8 * cosine + SCORE, table("t")[i] * dot, -sqdist / 4])
def test_what_sees_lengths_sees_more_than_directions(score):
    assert not program(rg.Attention(score), True).directions


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_gradients_of_a_cosine_with_vectors_of_length_0(groups):
    torch.manual_seed(3)
    q, dy = (torch.randn(2, 4, 37, 16) for _ in range(2))
    k, v = (torch.randn(2, groups, 37, 16) for _ in range(2))
    q[0, 1, 3], k[1, 0, 5] = 0.0, 0.0
    leaves = [x.requires_grad_() for x in (q, k, v)]
    attention = rg.Attention(8 * cosine, mask=rg.causal)
    found, wanted = (
        torch.autograd.grad(attention(q, k, v, engine=engine), leaves, dy) for engine in ("triton", "dense")
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-5)


def text(attention: Any, *kinds_wanted: Kind) -> Any:
    made = program(attention, True)
    vectors = tuple(symbol for symbol, (kind, _) in made.vectors.items() if kind in kinds_wanted)
    return made, written(made, frozenset({"ids"}), Wanted(vectors, ()), False)


def test_vectors_of_columns_are_staged_unless_a_mask_reads_columns_too():
    assert text(rg.Attention(-sqdist / 4))[1].staged == 1
    assert text(rg.Attention(8 * cosine))[1].staged == 1
    assert text(rg.Attention())[1].staged == 0
    assert text(rg.Attention(-sqdist / 4, mask=rg.documents("ids")))[1].staged == 0


BIAS = table("t")[h, i - j + 9]


@pytest.mark.parametrize("score", [SCORE + BIAS, 5 * rg.tanh((SCORE + BIAS) / 5)])
def test_the_gradient_of_a_bias_is_that_of_the_product_times_a_number(score):
    made, found = text(rg.Attention(score), Kind.OFFSET)
    (pull,) = offsets_of(made, found)
    heads = {symbol for symbol, (kind, _) in made.vectors.items() if kind == Kind.HEAD}
    assert pull.scale.free_symbols <= heads
    own, product = found.pulls["offsets"][0], found.pulls["products"][0]
    assert (pull.scale * product.block - own.scale * own.block).simplify() == 0


def test_the_gradient_of_a_factor_is_not():
    assert offsets_of(*text(rg.Attention(SCORE * BIAS), Kind.OFFSET)) == ()


def test_a_product_that_stands_in_the_mask_alone_pulls_nothing():
    assert offsets_of(*text(rg.Attention(BIAS, each(sigmoid), mask=dot > 0), Kind.OFFSET)) == ()


def test_only_special_functions_make_a_score_curved():
    assert _is_curved(program(rg.Attention(30 * rg.tanh(SCORE / 30)), True))
    assert not _is_curved(program(rg.Attention(SCORE - abs(i - j)), True))
    assert not _is_curved(program(rg.Attention(SCORE + BIAS), True))


# -- exponents that stay small ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attention", "bounded"),
    [
        (rg.Attention(8 * cosine), True),
        (rg.Attention(8 * cosine, mask=rg.causal), True),
        (rg.Attention(10 * rg.tanh(dot)), True),
        (rg.Attention(11 * cosine), False),  # 11 log₂ e > 15
        (rg.Attention(8 * cosine - sqdist), False),
        (rg.Attention(8 * cosine + table("t")[h]), False),
        (rg.Attention(8 * cosine - rg.i / 1000), False),  # what cancels is left out: what is left was not looked at
        (rg.Attention(8 * cosine, share(rg.exp, sink=rg.exp(table("rest")[h]))), False),
        (rg.Attention(), False),
        (rg.Attention(weight=each(sigmoid), score=cosine), False),
    ],
)
def test_a_score_that_stays_small_needs_no_maximum(attention, bounded):
    assert program(attention, True).is_bounded == bounded


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("score", [10 * cosine, -10 * cosine, 10 * rg.tanh(dot)])
def test_weights_at_both_ends_of_what_is_small(score, dtype):
    """Keys along q and against it: weights from e^−10 to e^10, in one row, and in rows that read one kind alone."""
    torch.manual_seed(4)
    q = torch.randn(1, 2, 9, 16).to(dtype)
    k = torch.cat([q, -q, torch.zeros_like(q)], 2)
    v = torch.randn(1, 2, 27, 16).to(dtype)
    for mask in (None, rg.equal(j, i), rg.equal(j, i + 9), j > i + 30):
        attention = rg.Attention(score) if mask is None else rg.Attention(score, mask=mask)
        assert program(attention, True).is_bounded
        found = attention(q, k, v, engine="triton", start=0).double()
        wanted = attention(*(x.double() for x in (q, k, v)), engine="dense", start=0)
        torch.testing.assert_close(found, wanted, atol=4 * torch.finfo(dtype).eps, rtol=4 * torch.finfo(dtype).eps)


def test_numbers_and_vectors_are_multiplied_before_they_meet_pairs():
    made = written(program(rg.Attention(8 * cosine), True), exact=False).text
    assert "return 11.541560327111707 * row0 * column0 * product0" in made
    made = written(program(rg.Attention(table("t")[h] * dot * table("u")[j]), True), exact=False).text
    assert "column0 * product0" in made


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("softmax(dot / sqrt(d))", True),
        ("softmax(30 * tanh(dot / sqrt(d) / 30))", True),
        ("each(relu(s) / n)(dot / sqrt(d))", True),  # 1 / n alone may be too small for float16
        ("share(relu(s) ** 2)(dot / sqrt(d))", True),
        ("softmax((dot / d) ** 3)", False),
        ("share(1 / (1 + s ** 2))((dot / d) ** 3)", False),
    ],
)
def test_what_grows_faster_than_its_product_has_its_scale_in_float16(text: str, waits: bool) -> None:
    for narrow in (False, True):
        (pull,) = written(program(rg.parse(text), True), narrow=narrow).pulls["products"]
        assert (pull.scale != 1) == (waits or not narrow)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("where", "minimum", "maximum")])
def test_every_function_that_is_called_is_written_too(name, exact):
    attention = rg.Attention(weight=each(lambda s: getattr(rg, name, abs)(s)))
    tree = ast.parse(written(program(attention, True), exact=exact).text)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called <= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} | {"float"}
