"""The text form is a fixed point: what repr prints, parse reads; and equal formulas print alike."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings

import regard as rg
from regard import H, causal, cosine, d, dot, each, equal, exp, h, i, j, n, relu, share, sqdist, sqrt, table, tanh, zoo
from strategies import Case, Twin, cases, expressions, index_masks


@settings(max_examples=300)
@given(expressions())
def test_expressions_return(twin: Twin) -> None:
    assert rg.parse(repr(twin.value)) == twin.value


@settings(max_examples=200)
@given(index_masks())
def test_masks_return(twin: Twin) -> None:
    assert rg.parse(repr(twin.value)) == twin.value


@settings(max_examples=200)
@given(cases())
def test_attentions_return(case: Case) -> None:
    again = rg.parse(repr(case.attention))
    assert again == case.attention
    assert hash(again) == hash(case.attention)
    assert type(again) is rg.Attention
    assert repr(again) == repr(case.attention)
    assert pickle.loads(pickle.dumps(case.attention)) == case.attention


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_the_zoo_returns(name: str) -> None:
    formula = zoo.ENTRIES[name].formula
    assert rg.parse(repr(formula)) == formula
    assert formula.key == rg.parse(repr(formula)).key


ONE_FORM = [
    (0.5 * sqdist, sqdist / 2),
    (j <= i, i >= j),
    (j < i, i - j >= 1),
    (2 * j < 2 * i + 1, j <= i),
    (i / 2 >= j, i >= 2 * j),
    (~(j <= i), j > i),
    (~((j <= i) & (i < 5)), (j > i) | (i >= 5)),
    (equal(i, j), equal(j, i)),
    (equal(2 * i, 2 * j), equal(i, j)),
    (dot / sqrt(d) / sqrt(d), dot / d),
    (dot * d**-0.5, dot / sqrt(d)),
    (dot - (i - j), dot - i + j),
    (-8 * (h + 1) / H, (-8 * h - 8) / H),
    (n * (2 * i + 2), 2 * n * (i + 1)),
    (1 / (2 * dot + 2), 0.5 / (dot + 1)),
    (0.1 * dot * 5, dot / 2),
    (tanh(-dot), -tanh(dot)),
    (rg.abs(j - i), rg.abs(i - j)),
    (rg.minimum(i, j), rg.minimum(j, i)),
    (rg.Attention(mask=equal(i, i)), rg.Attention()),
    (rg.Attention(weight=share(exp)), rg.Attention()),
    (rg.Attention(weight=rg.sigmoid), rg.Attention(weight=each(rg.sigmoid))),
    (share(exp, sink=0), rg.softmax),
    (share(lambda anything: relu(anything) ** 2), share(relu(rg.s) ** 2)),
]


@pytest.mark.parametrize(("a", "b"), ONE_FORM, ids=[repr(a) for a, _ in ONE_FORM])
def test_two_ways_to_write_one_thing(a: object, b: object) -> None:
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == repr(b)


DIFFERENT = [
    (dot, sqdist),
    (0.1 * dot, dot / 10),
    (j <= i, i <= j),
    (dot(table("M")), dot(table("P"))),
    (rg.Attention(), rg.Attention(mask=causal)),
    (share(exp), each(exp)),
    (cosine, "cosine"),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=[repr(a) for a, _ in DIFFERENT])
def test_two_things(a: object, b: object) -> None:
    assert a != b


PRINTED = {
    "softmax(dot / sqrt(d))": rg.Attention(),
    "softmax(dot / sqrt(d), mask=j <= i)": rg.Attention(mask=j <= i),
    "softmax(30 * tanh(dot / (30 * sqrt(d))))": rg.Attention(score=30 * tanh(dot / sqrt(d) / 30)),
    "softmax(dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=j <= i)": zoo.alibi(),
    'softmax(dot(table("M")))': rg.Attention(score=dot(table("M"))),
    "each(relu(s) / n)(dot)": rg.Attention(score=dot, weight=lambda s: relu(s) / n),
    "share(exp(s), sink=1)(dot)": rg.Attention(score=dot, weight=share(exp, sink=1)),
    'softmax(dot, mask=(j < i) & equal(table("keep")[i, j], 0))': rg.Attention(
        score=dot, mask=(j < i) & ~table("keep")[i, j]
    ),
    'softmax(dot, mask=j < table("lengths")[b])': rg.Attention(score=dot, mask=rg.padding("lengths")),
    "softmax(dot + 0.1)": rg.Attention(score=dot + 0.1),
    "softmax(dot + 1 / 8)": rg.Attention(score=dot + 0.125),
}


@pytest.mark.parametrize("text", PRINTED)
def test_printed_as_people_write(text: str) -> None:
    assert repr(PRINTED[text]) == text


def test_the_key_is_the_same_in_every_process() -> None:
    code = "import regard as rg; print(rg.zoo.alibi().key, rg.zoo.document_packing().key)"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert keys == {f"{zoo.alibi().key} {zoo.document_packing().key}\n"}
