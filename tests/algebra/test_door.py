# ruff: noqa: E501 - one case a line
"""What may stand in a formula, what is refused, and how: argument, rule, what was given, what to do instead."""

from __future__ import annotations

import copy
import math
import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import sympy
import torch

import regard as rg
from regard import Attention, H, b, cosine, d, dot, each, equal, exp, h, i, j, n, relu, s, share, softmax, sqdist, table

# -- foreign things beside operators ---------------------------------------------------------------------------------

TABLE, NUMBER, WORDS = r'write table\("name"\)', r"int\(x\) or float\(x\) for a constant", "use dot, sqdist, cosine"
FOREIGN = {
    "string": ("x", r"the string 'x'; table\(\"name\"\) reads an array.*regard.parse\(text\) reads a formula"),
    "numpy": (np.ones(3), rf"numpy.ndarray of shape \(3,\); {TABLE}"),
    "torch": (torch.ones(3), rf"torch.Tensor of shape \(3,\); {TABLE}"),
    "parameter": (torch.nn.Parameter(torch.ones(2)), rf"Parameter of shape \(2,\); {TABLE}"),
    "jax": (jnp.ones(3), rf"of shape \(3,\); {TABLE}"),
    "numpy scalar": (np.float32(2), rf"numpy.\w+ of shape \(\); {NUMBER}"),
    "numpy integer": (np.int64(2), rf"numpy.\w+ of shape \(\); {NUMBER}"),
    "torch scalar": (torch.tensor(2.0), rf"of shape \(\); {NUMBER}"),
    "sympy symbol": (sympy.Symbol("x"), "foreign symbols mean nothing here"),
    "sympy number": (sympy.Integer(2), "foreign symbols"),
    "none": (None, rf"NoneType; {WORDS}"),
    "list": ([1], rf"list; {WORDS}"),
    "complex": (1j, rf"complex; {WORDS}"),
    "weight": (softmax, rf"Weight; {WORDS}"),
    "function": (exp, rf"Function; {WORDS}"),
    "bool": (True, r"got True; where\(mask, 1, 0\) makes a number of a mask"),
    "mask": (j <= i, r"got j <= i; where\(mask, 1, 0\)"),
}
ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("sign", ARITHMETIC)
def test_foreign_things_are_refused_on_both_sides(sign: str, name: str) -> None:
    value, text = FOREIGN[name]
    with pytest.raises(rg.KindError, match=text):
        ARITHMETIC[sign](dot, value)
    if (sign, name) != ("%", "string"):  # Python gives 'x' % anything to the string itself
        with pytest.raises(rg.KindError, match=text) as caught:
            ARITHMETIC[sign](value, dot)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("sign", ARITHMETIC)
def test_numbers_are_finite(sign: str, value: float) -> None:
    for pair in ((dot, value), (value, dot)):
        with pytest.raises(
            rg.FormulaError, match=rf"finite numbers; got {value!r}; what must not count belongs in mask="
        ):
            ARITHMETIC[sign](*pair)


@pytest.mark.parametrize("sign", ["&", "|"])
@pytest.mark.parametrize("name", ["string", "numpy", "torch", "none", "bool", "weight"])
def test_masks_join_masks_only(sign: str, name: str) -> None:
    join = {"&": operator.and_, "|": operator.or_}[sign]
    for pair in ((j <= i, FOREIGN[name][0]), (FOREIGN[name][0], j <= i)):
        with pytest.raises(rg.KindError, match="mask: a relation between expressions, as in j <= i; got"):
            join(*pair)


def test_float64_scalars_are_floats() -> None:
    assert np.float64(1.5) * dot == dot * 1.5


# -- refused, one by one -----------------------------------------------------------------------------------------------

Refused = tuple[Callable[[], Any], type[Exception], str]
t = table("t")
REFUSED: dict[str, Refused] = {
    # masks
    "== as mask": (lambda: Attention(mask=i == j), rg.KindError, r"plain bool False, which == and != give; write equal\(a, b\)"),
    "bool as mask": (lambda: Attention(mask=True), rg.KindError, "got the plain bool True"),
    "array as mask": (lambda: Attention(mask=np.ones((2, 2), bool)), rg.KindError, r'shape \(2, 2\); given\("mask"\)'),
    "tensor as mask": (lambda: Attention(mask=torch.ones(2, 2)), rg.KindError, r'given\("mask"\)'),
    "string as mask": (lambda: Attention(mask="causal"), rg.KindError, "got the string 'causal'; write j <= i"),
    "function as mask": (lambda: Attention(mask=lambda i, j: j <= i), rg.KindError, "got a function; write j <= i"),
    "number as mask": (lambda: Attention(mask=dot), rg.KindError, r"got the number dot; write equal\(…, 0\)"),
    "mask as score": (lambda: Attention(j <= i), rg.KindError, "score: numbers and expressions go in; got j <= i"),
    "chained": (lambda: 0 <= j <= i, rg.KindError, r"\(a <= b\) & \(b <= c\) for a <= b <= c"),
    "and": (lambda: (j <= i) and (i <= n), rg.KindError, "write & | ~ for and, or, not".replace("|", r"\|")),
    "not": (lambda: not j <= i, rg.KindError, "no single truth value"),
    "max": (lambda: max(i, j), rg.KindError, "no single truth value"),
    "if dot": (lambda: bool(dot), rg.KindError, "dot has no truth value; compare it"),
    "number in &": (lambda: (j <= i) & dot, rg.KindError, "got the number dot"),
    "where on a number": (lambda: rg.where(dot, 1, 2), rg.KindError, "got the number dot"),
    "where on a bool": (lambda: rg.where(True, 1, 2), rg.KindError, "plain bool"),
    "s in a mask": (lambda: Attention(mask=s >= 0), rg.FormulaError, "mask: s is the score itself"),
    # scores
    "string as score": (lambda: Attention("dot"), rg.KindError, r"score: .*the string 'dot'; .*regard.parse\(text\)"),
    "None as score": (lambda: Attention(None), rg.KindError, "score: .*NoneType"),
    "weight as score": (lambda: Attention(softmax), rg.KindError, "score: .*Weight"),
    "function as score": (lambda: Attention(exp), rg.KindError, "score: .*Function"),
    "attention as score": (lambda: Attention(Attention()), rg.KindError, "score: .*Attention"),
    "s as score": (lambda: Attention(s + dot), rg.FormulaError, "s is the score itself and stands in the weight only"),
    "unknown keyword": (lambda: Attention(causal=True), TypeError, "causal"),
    # weights
    "negative psi": (lambda: share(lambda s: -s), rg.FormulaError, r"must not be negative; got ψ\(s\) = -s.*each\(…\)"),
    "identity": (lambda: share(lambda s: s), rg.FormulaError, r"got ψ\(s\) = s, which is at most -40 at s = -40"),
    "tanh": (lambda: share(rg.tanh), rg.FormulaError, "must not be negative"),
    "gelu": (lambda: share(rg.gelu), rg.FormulaError, "must not be negative"),
    "np.exp": (lambda: share(np.exp), rg.KindError, "np.exp: takes arrays; got s; for formulas regard has regard.exp"),
    "torch.exp": (lambda: share(torch.exp), rg.KindError, "made of regard's functions"),
    "math.exp": (lambda: share(math.exp), rg.KindError, "made of regard's functions"),
    "psi of two": (lambda: share(lambda a, b: a), rg.KindError, "made of regard's functions"),
    "psi with if": (lambda: share(lambda s: max(0, s)), rg.KindError, "no single truth value"),
    "psi with an array": (lambda: share(lambda s: s * np.ones(3)), rg.KindError, "numpy.ndarray"),
    "psi that is a mask": (lambda: share(lambda s: s >= 0), rg.KindError, r"where\(mask, 1, 0\)"),
    "psi that is None": (lambda: share(lambda s: None), rg.KindError, "NoneType"),
    "string psi": (lambda: share("exp"), rg.KindError, "the string 'exp'"),
    "softmax of softmax": (lambda: share(softmax), rg.KindError, "a function of the score, such as exp; got the weight softmax"),
    "each of softmax": (lambda: each(softmax), rg.KindError, "got the weight softmax"),
    "dot in psi": (lambda: share(lambda s: exp(s) * dot), rg.FormulaError, "got dot; move it to score="),
    "sink of j": (lambda: share(exp, sink=j), rg.FormulaError, "one number a row.*depends on j"),
    "sink of s": (lambda: share(exp, sink=s), rg.FormulaError, "depends on s"),
    "sink of dot": (lambda: share(exp, sink=dot), rg.FormulaError, "depends on dot"),
    "sink of i over i": (lambda: share(exp, sink=i, over=i), rg.FormulaError, "depends on i"),
    "negative sink": (lambda: share(exp, sink=-1), rg.FormulaError, "must not be negative; got -1; .*exp"),
    "sink True": (lambda: share(exp, sink=True), rg.KindError, "sink: .*got True"),
    "sink array": (lambda: share(exp, sink=np.ones(3)), rg.KindError, f"sink: .*{TABLE}"),
    "over a string": (lambda: share(exp, over="j"), rg.KindError, "one of the indices i, j, h, b; got 'j'"),
    "over a size": (lambda: share(exp, over=n), rg.KindError, "one of the indices"),
    "over a sum": (lambda: share(exp, over=i + j), rg.KindError, "one of the indices"),
    "among a bool": (lambda: share(exp, among=True), rg.KindError, "plain bool"),
    "among of s": (lambda: Attention(weight=share(exp, among=s >= 0)), rg.FormulaError, "s is the score itself"),
    # metrics
    "metric of cosine": (lambda: cosine(table("M")), rg.FormulaError, "cosine: takes no metric"),
    "metric by name": (lambda: dot("M"), rg.KindError, r'the metric is a table, as in dot\(table\("M"\)\); got the string \'M\''),
    "array as metric": (lambda: sqdist(np.eye(2)), rg.KindError, "sqdist: the metric is a table"),
    "sum as metric": (lambda: dot(table("M") + 1), rg.KindError, "the metric is a table"),
    "metric of i": (lambda: dot(table("M")[i]), rg.FormulaError, "may differ by h and b only; .*depends on i"),
    "metric of a table of j": (lambda: dot(table("M")[table("ids")[j]]), rg.FormulaError, "depends on j"),
    # tables
    "array as name": (lambda: table(np.ones(2)), rg.KindError, "pass the array with the call"),
    "two ranks": (lambda: Attention(dot + t + t[i]), rg.FormulaError, r'table\("t"\): .*with 0 and 1; use two names'),
    "metric and entry": (lambda: Attention(dot(t) + t[i]), rg.FormulaError, "with 1 and 2"),
    "half index": (lambda: t[i / 2], rg.FormulaError, r"an index is an integer.*got i / 2; write floor\(i / 2\)"),
    "float index": (lambda: t[0.5], rg.FormulaError, "an index is an integer"),
    "dot index": (lambda: t[dot], rg.FormulaError, r"write floor\(dot\)"),
    "scaled dot index": (lambda: t[2 * dot + i], rg.FormulaError, "an index is an integer"),
    "score index": (lambda: t[s + 1], rg.FormulaError, "an index is an integer"),
    "slice": (lambda: t[:, i], rg.KindError, "one integer for each axis; got slice.*write j for it"),
    "ellipsis": (lambda: t[..., i], rg.KindError, "one integer for each axis"),
    "None index": (lambda: t[None], rg.KindError, "one integer for each axis"),
    "string index": (lambda: t["a"], rg.KindError, "the string 'a'"),
    "bool index": (lambda: t[True], rg.KindError, "got True"),
    "mask index": (lambda: t[i <= j], rg.KindError, "got i <= j"),
    "documents of a number": (lambda: rg.documents(3), rg.KindError, "the name of an argument"),
    "given an array": (lambda: rg.given(np.ones(2)), rg.KindError, "the name of an argument"),
    "window of a string": (lambda: rg.window("3"), rg.KindError, "window: .*the string '3'"),
    # numbers
    "division by 0": (lambda: dot / 0, rg.FormulaError, "the divisor is 0; got dot / 0"),
    "division by i - i": (lambda: dot / (i - i), rg.FormulaError, "the divisor is 0"),
    "// 0": (lambda: i // 0, rg.FormulaError, "//: the divisor is 0"),
    "% 0": (lambda: i % 0, rg.FormulaError, "%: the divisor is 0"),
    "dot // 0.0": (lambda: dot // 0.0, rg.FormulaError, "the divisor is 0"),
    "0 ** -1": (lambda: (i - i) ** -1, rg.FormulaError, r"0 has no negative power; got 0 \*\* -1"),
    "(-1) ** 0.5": (lambda: (i - i - 1) ** 0.5, rg.FormulaError, r"whole powers only; got \(-1\) \*\* \(1/2\)"),
    "huge power": (lambda: dot**2000, rg.FormulaError, r"exponents up to 1024; got 2000; write exp\(…\)"),
    "huge integer": (lambda: dot * 10**5000, rg.FormulaError, "at most 1023 bits; got one of 16610"),
    "huge product": (lambda: dot * 10**300 * 10**300, rg.FormulaError, "at most 1023 bits"),
    # functions
    "no argument": (lambda: exp(), rg.FormulaError, "exp: takes 1 argument; got 0"),
    "one of two": (lambda: rg.minimum(i), rg.FormulaError, "minimum: takes 2 arguments; got 1"),
    "two of three": (lambda: rg.where(j <= i, 1), rg.FormulaError, "where: takes 3 arguments; got 2"),
    "string argument": (lambda: exp("s"), rg.KindError, "exp: .*the string 's'"),
    "array argument": (lambda: relu(np.ones(2)), rg.KindError, f"relu: .*{TABLE}"),
    "equal to a string": (lambda: equal(i, "x"), rg.KindError, "equal: .*the string 'x'"),
    "np.exp of dot": (lambda: np.exp(dot), TypeError, "np.exp: takes arrays; got dot; for formulas regard has regard.exp"),
    "math.sqrt of d": (lambda: math.sqrt(d), TypeError, "Expression"),
    "iteration": (lambda: list(dot), TypeError, "not iterable"),
    # values do not change
    "set": (lambda: setattr(dot, "node", 3), AttributeError, "cannot be changed; write a new one"),
    "set another": (lambda: setattr(i, "x", 3), AttributeError, "cannot be changed"),
    "delete": (lambda: delattr(i, "node"), AttributeError, "cannot be changed"),
    "set in a mask": (lambda: setattr(rg.causal, "node", 3), AttributeError, "cannot be changed"),
    "delete in a mask": (lambda: delattr(rg.causal, "node"), AttributeError, "cannot be changed"),
    "set in a formula": (lambda: setattr(Attention(), "score", dot), AttributeError, "score"),
    "set in a weight": (lambda: setattr(softmax, "psi", s), AttributeError, "psi"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    act, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        act()


@pytest.mark.parametrize(
    "name", "q k v dy x Wq Wk Wv attention start totals engine self dot exp i j n share softmax".split()
)
def test_reserved_names(name: str) -> None:
    with pytest.raises(rg.FormulaError, match=rf'"{name}" has a meaning of its own; .*table\("{name}_table"\)'):
        table(name)


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b", 'a"b', "_a", "__init__", "class", "None", "é", "ｔ", "a\n"])
def test_names_are_plain_identifiers(name: str) -> None:
    with pytest.raises(rg.FormulaError, match="a plain identifier names it; got"):
        table(name)


# -- equality, hash, pickle ----------------------------------------------------------------------------------------------

SAME = {
    "halves": (0.5 * sqdist, sqdist / 2),
    "relations turned": (j <= i, i >= j),
    "strict": (j < i, j + 1 <= i),
    "lowest terms": (2 * i - 2 * j + 1 >= 0, j <= i),
    "fractions": (i / 2 >= j, i >= 2 * j),
    "negation": (~(j <= i), j > i),
    "De Morgan": (~((j <= i) & (i < n)), (j > i) | (i >= n)),
    "floats that meet": (dot * 0.1 * 5, dot / 2),
    "order": (i + j * dot, dot * j + i),
    "common factor": (dot * (2 * i + 2), 2 * dot * (i + 1)),
    "half power": (d**0.5, rg.sqrt(d)),
    "variable of psi": (share(lambda x: relu(x) ** 2), share(relu(s) ** 2)),
    "softmax": (share(exp), softmax),
    "no sink": (share(exp, sink=0), softmax),
    "everywhere": (Attention(mask=rg.everywhere), Attention()),
    "parsed": (rg.parse("softmax(dot / sqrt(d), mask=j <= i)"), Attention(mask=i >= j)),
}
OTHER = {
    "0.1 and 1/10": (dot * 0.1, dot / 10),
    "0.1 + 0.2 and 0.3": (dot * 0.1 + dot * 0.2, dot * 0.3),
    "strict on reals": (dot > 0, dot >= 0),
    "reals are not rounded": (dot <= 1.5, dot <= 1),
    "twice a real": (2 * dot >= 1, dot >= 1),
    "each and share": (each(exp), softmax),
    "names": (table("t"), table("u")),
    "expression and mask": (t, rg.Mask(sympy.true)),
}


@pytest.mark.parametrize(("one", "two"), SAME.values(), ids=SAME)
def test_same(one: Any, two: Any) -> None:
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two)


@pytest.mark.parametrize(("one", "two"), OTHER.values(), ids=OTHER)
def test_other(one: Any, two: Any) -> None:
    assert one != two


def test_a_float_stays_itself() -> None:
    assert repr(0.1 * dot) == "0.1 * dot"


VALUES = [dot, i, 0.1 * dot, j <= i, rg.given("m"), softmax, share(relu(s) ** 2, sink=exp(table("z")[h])), exp, table("M")[h, -1],
          Attention(dot(table("M")) / rg.sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), each(rg.sigmoid), rg.window(3) & (b >= 0))]  # fmt: skip


def test_values_and_keys_are_the_same_in_every_process() -> None:
    code = """if True:
        import pickle, sys
        values = pickle.load(sys.stdin.buffer)
        assert len({*values, *pickle.loads(pickle.dumps(values))}) == len(values)
        sys.stdout.buffer.write(pickle.dumps((values, values[-1].key, [repr(value) for value in values])))"""
    for seed in "0", "1", "77":
        run = subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(VALUES), capture_output=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )  # fmt: skip
        values, key, texts = pickle.loads(run.stdout)
        assert values[:-1] == VALUES[:-1]
        assert values[-1] == VALUES[-1]
        assert (key, texts) == (VALUES[-1].key, [repr(value) for value in VALUES])


@pytest.mark.parametrize("weight", [share(exp(s) / n), share(exp, sink=exp(table("z")[h]))], ids=repr)
def test_a_weight_that_was_used_can_be_pickled(weight: rg.Weight) -> None:
    assert weight.terms
    assert weight.slope_terms
    assert weight.sink_terms or weight.sink is None
    assert pickle.loads(pickle.dumps(weight)) == copy.deepcopy(weight) == weight
