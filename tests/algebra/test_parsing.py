# ruff: noqa: E501 - one case a line
"""Text to formula: what `repr` prints is read back, everything else is refused at its place, quickly, unevaluated."""

from __future__ import annotations

import ast
import builtins
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from regard import dot, exp, i, j, table
from regard.algebra import expressions, parsing

ALGEBRA = Path(parsing.__file__).parent


def refusal(text: object) -> rg.ParseError:
    """The error that the text gives; any other exception, or more than a second of work, fails the test."""
    began = time.thread_time()
    with pytest.raises(rg.ParseError) as caught:
        parsing.parse(text)  # not rg.parse, where a type checker stands before ours while tests run
    assert time.thread_time() - began < 1
    assert isinstance(caught.value, rg.RegardError)
    assert isinstance(caught.value, ValueError)
    return caught.value


# -- refused, with the place and what to do ----------------------------------------------------------------------

# text, column of the caret, a part of the message; None where versions of Python see the problem in different places
HOSTILE = [
    # names
    ("__import__('os')", 0, "is not a word"),
    ("1 + exec('1')", 4, "exec is not a word"),
    ("open", 0, "open is not a word"),
    ("exp(eval)", 4, "eval is not a word"),
    ("exp(__builtins__)", 4, "__builtins__ is not a word"),
    ("foo + dot", 0, "foo is not a word of formulas"),
    ("dot + i + foo", 10, "foo is not a word"),
    ("   dot + foo", 6, "foo is not a word"),
    ("(dot\n+ foo)", 7, "foo is not a word"),
    ("d" * 9000, 0, "d is not a word"),
    ("share", 0, "share is called, as in share(…)"),
    ("dot + table", 6, "table is called"),
    ("exp", 0, "call it, as in exp(dot)"),
    # attributes
    ("dot.__class__", 3, "names have no attributes"),
    ("dot + (i).real", 9, "names have no attributes"),
    ("__import__('os').system('true')", 16, "names have no attributes"),
    ("dot.node.func(1)", 8, "names have no attributes"),
    ("exp(1).__globals__['x']", 6, "names have no attributes"),
    # other syntax
    ("[x for x in dot]", 0, "ListComp has no place"),
    ("dot + (x for x in i)", 6, "GeneratorExp has no place"),
    ("{dot: 1}", 0, "Dict has no place"),
    ("[dot][0]", 0, "List has no place"),
    ("(dot, i)", 0, "Tuple has no place"),
    ("share(lambda s: s)", 6, "write ψ as an expression in s"),
    ("(x := 3)", 1, "NamedExpr has no place"),
    ("x = 3", None, "not an expression"),
    ("dot; dot", None, "not an expression"),
    ("import os", None, "not an expression"),
    ("await dot", 0, "Await has no place"),
    ("dot if i else j", 0, "write where(condition, a, b)"),
    ("dot @ dot", 4, "q·k is written dot"),
    ("dot ^ 2", 4, "powers are written **"),
    ("dot << 2", 4, "LShift has no place"),
    ("causal and causal", 0, "write & and |"),
    ("not causal", 0, "write ~ for not"),
    ("dot +", None, "not an expression"),
    ("exp(dot", None, "not an expression"),
    ("dot)", None, "not an expression"),
    # relations
    ("i == j", 2, "write equal(a, b)"),
    ("i != j", 2, "write ~equal(a, b)"),
    ("i < j < n", 2, "write (a <= b) & (b <= c)"),
    ("i is j", 2, "is not a relation"),
    ("i in j", 2, "is not a relation"),
    # constants
    ('"dot"', 0, 'only inside table("…")'),
    ("exp('s')", 4, 'only inside table("…")'),
    ('f"{dot}"', 0, "JoinedStr has no place"),
    ('b"dot"', 0, "is no number"),
    ("dot * 1j", 6, "numbers are int and float"),
    ("True", 0, "numbers are int and float"),
    ("None", 0, "numbers are int and float"),
    ("...", 0, "numbers are int and float"),
    ("dot * 1e400", 6, "at most 1023 bits"),
    ("1" * 400, 0, "at most 1023 bits"),
    ("0x" + "F" * 400, 0, "at most 1023 bits"),
    ("9" * 5000, None, "not an expression"),
    # powers and products
    ("2 ** 10 ** 9", 2, "exponents up to 1024"),
    ("dot ** 999999999", 4, "exponents up to 1024; got 999999999; write exp(…)"),
    ("9**9**9**9", 4, "exponents up to 1024"),
    ("dot ** 1e29", 4, "exponents up to 1024"),
    ("(2**1000)**1000", 9, "more than 1023 bits"),
    ("10**400", 2, "more than 1023 bits"),
    ("2**1000 * 2**1000", 8, "at most 1023 bits"),
    ("*".join(["10**29"] * 300), 69, "at most 1023 bits"),
    ("*".join(["1.1e29"] * 300), 69, "finite numbers"),
    ("1/0", 1, "the divisor is 0"),
    ("dot + i//0", 7, "the divisor is 0"),
    ("dot / (i - i)", 4, "the divisor is 0"),
    ("0 ** -1", 2, "0 has no negative power"),
    ("(-8) ** (1/3)", 5, "whole powers only"),
    # calls
    ("exp(*dot)", 4, "without *"),
    ("softmax(dot, **causal)", 13, "each once: mask=; got **"),
    ("softmax(dot, mask=causal, mask=causal)", 26, "each once: mask=; got mask"),
    ("softmax(dot, causal, mask=causal)", 0, "multiple values for argument 'mask'"),
    ("softmax(score=dot)", 8, "got score"),
    ("softmax()", 0, "missing a required argument: 'score'"),
    ("softmax(dot)(dot)", 0, "cannot be called"),
    ("exp(x=1)", 4, "got x"),
    ("exp()", 0, "exp: takes 1 argument; got 0"),
    ("minimum(i)", 0, "minimum: takes 2 arguments; got 1"),
    ("where(causal, 1)", 0, "where: takes 3 arguments; got 2"),
    ("share()", 0, "missing a required argument: 'psi'"),
    ("share(exp, 1)", 0, "too many positional arguments"),
    ("share(exp, bogus=1)", 11, "among=, over=, sink=; got bogus"),
    ("2(3)", 0, "cannot be called"),
    ("dot + dot(3)", 6, "the metric is a table"),
    ("dot()", 0, "missing a required argument: 'metric'"),
    ("dot('M')", 4, 'only inside table("…")'),
    ("-causal", 0, "where(mask, 1, 0)"),
    ("causal + 1", 7, "where(mask, 1, 0)"),
    ("1 + softmax", 2, "got a regard.algebra.weights.Weight"),
    # tables
    ('table("t")(i)', 0, "cannot be called"),
    ("table(name)", 0, 'one name in quotes, as in table("bias")'),
    ('table("a" + "b")', 0, "one name in quotes"),
    ('table(*"ab")', 0, "one name in quotes"),
    ('table(f"{dot}")', 0, "one name in quotes"),
    ('dot + table("q")', 6, '"q" has a meaning of its own'),
    ('table("self")', 0, "has a meaning of its own"),
    ('table("__class__")', 0, "plain identifier"),
    ('table("a b")', 0, "plain identifier"),
    ('table("t")[1:2]', 11, "Slice has no place"),
    ('table("t")[...]', 11, "is no number"),
    ('table("t")[i, *j]', 14, "without *"),
    ('table("t")[i / 2]', 0, "write floor(i / 2)"),
    ('table("t")[0.5]', 0, "an index is an integer"),
    ('table("t")[dot]', 0, "an index is an integer"),
    ('table("t")[i][j]', 0, "only a table has entries"),
    ("dot[i]", 0, "only a table has entries"),
    ('softmax(table("t") + table("t")[i])', 0, "reads with 0 and 1"),
    # characters
    ("", 0, "the text is empty"),
    (" \n\t", 0, "the text is empty"),
    ("dot\0", 3, r"got '\x00'"),
    ("dot \x1b[31m", 4, r"got '\x1b'"),
    ("dot\ud800", 3, "ud800"),
    ("ｄot", 0, "plain text"),  # NFKC makes it dot
    ("dоt", 1, "plain text"),  # a Cyrillic letter
    ("dot − 1", 4, "write -"),
    ("j ≤ i", 2, "write <="),
    ("\ufeffdot", 0, "plain text"),
    ("dot # a comment", 4, "plain text; got #; leave it out"),
    ("dot \\\n + 1", None, "not an expression"),
    # depth and length
    ("(" * 5000, 80, "brackets nest at most 80 deep"),
    ("exp(" * 500 + "dot" + ")" * 500, 323, "brackets nest at most"),
    ("-" * 500 + "dot", 81, "nested at most 80 deep"),
    ("-" * 9000 + "dot", None, ""),
    ("~" * 9000 + "causal", None, ""),
    ('table("m")' + "[i]" * 3000, None, ""),
    ("+".join(["dot"] * 20000), None, ""),
    ("exp(" * 50 + "dot" + ")" * 50, 40, "at most 40 levels"),
    ("d" * 200_000, 100_001, "at most 100000 characters"),
    ("dot" + " " * 200_000, 3, "at most 100000 characters"),
]


@pytest.mark.parametrize(("text", "column", "part"), HOSTILE, ids=[ascii(text[:24]) for text, _, _ in HOSTILE])
def test_refused_at_its_place(text: str, column: int | None, part: str) -> None:
    error = refusal(text)
    assert part in error.problem
    column = error.column if column is None else column
    assert error.column == column <= len(error.text)
    shown, caret = str(error).splitlines()[-2:]
    assert caret.strip() == "^"
    if column < len(error.text):
        assert shown[caret.index("^")] == error.text[column]
    assert len(str(error)) < 2000
    str(error).encode()  # can be printed: no lone surrogate
    assert pickle.loads(pickle.dumps(error)).column == column


@pytest.mark.parametrize("value", [None, 5, b"dot", ["dot"], dot], ids=repr)
def test_only_strings_are_read(value: object) -> None:
    assert f"read from a string; got {type(value).__name__}" in refusal(value).problem


@pytest.mark.parametrize(
    "text", ["2 ** 10 ** 9", "9**9**9**9", "(" * 9999, "-" * 9999 + "i", "i" + "[i]" * 3000, "~" * 99_000]
)
def test_dangerous_texts_end_in_another_process_too(text: str) -> None:
    code = "import sys, regard\ntry: regard.parse(sys.argv[1])\nexcept regard.ParseError: print('refused')"
    ran = subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "refused"), ran.stderr[-500:]


# -- read ----------------------------------------------------------------------------------------------------------

READ = {
    "dot\n + 1": dot + 1,
    "\t dot": dot,
    "++i": i,
    "1_000 * i": 1000 * i,
    "(" * 70 + "dot" + ")" * 70: dot,
    "+".join(["dot"] * 900): 900 * dot,
    "2**1000 * dot": 2**1000 * dot,
    "1e300 * dot": 1e300 * dot,
    'table("t")[-1]': table("t")[-1],
    'table("t")[i,]': table("t")[i],
    "Attention(mask=causal)": rg.Attention(mask=j <= i),
    "share(exp)(dot)": rg.Attention(dot),
    "window(3)": rg.window(3),
}


@pytest.mark.parametrize(("text", "value"), READ.items(), ids=[ascii(text[:24]) for text in READ])
def test_read(text: str, value: object) -> None:
    assert rg.parse(text) == value


def tower(step: Callable[[rg.Expression], rg.Expression], levels: int) -> rg.Expression:
    value = dot
    for _ in range(levels):
        value = step(value)
    return value


LARGE = {
    "many terms": lambda: sum(table("t")[k] for k in range(200)),
    "many factors": lambda: rg.parse(" * ".join(f"(i + {k})" for k in range(150))),
    "many relations": lambda: rg.parse(" & ".join(f"(i <= {k} * j * j)" for k in range(2, 90))),
    "large integer": lambda: dot * 10**300,
    "small fraction": lambda: dot / 10**300,
    "large float": lambda: dot * 1.1e300,
    "small float": lambda: dot * 1.1e-300,
    "nested functions": lambda: tower(exp, 38),
    "nested where": lambda: tower(lambda x: rg.where(x > 0.5, 1 / (x + 1), -x), 4),
    "nested quotients": lambda: tower(lambda x: -1 / (1 - exp(x)), 9),
    "nested powers": lambda: tower(lambda x: (1 - x) ** (j + 1), 12),
}


@pytest.mark.parametrize("build", LARGE.values(), ids=LARGE)
def test_what_can_be_written_can_be_read_back(build: Callable[[], rg.Expression | rg.Mask]) -> None:
    value = build()
    assert rg.parse(repr(value)) == value
    assert pickle.loads(pickle.dumps(value)) == value


# found by random texts; each printed something else than it was
TREACHEROUS = [
    "h + -1 % d", "dot - (-2 * i) // 3", "~equal(table(\"t\"), 0)", "j > 0.5 ** j - H", "(2 / 3) ** j <= dot",
    "0.1 / h * (table(\"t\") + 2)", "1 / (2 * (sin(0.1) + dot + 0.1))", "2 * (dot + 0.1) * (i + 0.1)", "-3 * (dot + 0.1) * (i + 0.1) / 7",
]  # fmt: skip


@pytest.mark.parametrize("text", TREACHEROUS)
def test_treacherous_texts_return(text: str) -> None:
    value = rg.parse(text)
    again = rg.parse(repr(value))
    assert type(again) is type(value)
    assert again == value


@pytest.mark.parametrize(
    "text", ["(dot ** 1000) ** 1000", "dot ** 1000 * dot ** 1000", "sqrt(dot) ** 1000 * sqrt(dot) ** 1000"]
)
def test_powers_of_powers_are_bounded(text: str) -> None:
    assert "exponents up to 1024" in refusal(text).problem


@pytest.mark.parametrize(
    "step", [exp, lambda x: 1 / (1 + x), lambda x: rg.where(x > 0, x, 1), lambda x: x + exp(x + i)]
)
def test_growth_ends_in_an_error_that_says_what_to_do(step: Callable[[rg.Expression], rg.Expression]) -> None:
    with pytest.raises(rg.FormulaError, match=rf"at most {expressions.DEEPEST} levels.*put what varies into a table"):
        tower(step, 200)


def test_masks_have_the_same_bounds() -> None:
    with pytest.raises(rg.FormulaError, match="mask: at most"):
        reduce(lambda mask, k: (mask & (i <= k * j)) | (j <= k * i * i), range(200), rg.causal)


# -- never evaluated -------------------------------------------------------------------------------------------------


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [
        entry.formula for entry in vars(rg.zoo).values() if isinstance(getattr(entry, "formula", None), rg.Attention)
    ]
    texts = [repr(value) for value in [*values, rg.Attention(mask=j <= i), rg.window(3)]]

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a text was evaluated")

    compiler = builtins.compile

    def only_trees(source: object, filename: str, mode: str, flags: int = 0, *rest: object, **named: object) -> object:
        assert flags & ast.PyCF_ONLY_AST, "a text was compiled"
        return compiler(source, filename, mode, flags, *rest, **named)

    real = sympy.sympify

    def no_strings(a: object, *rest: object, **named: object) -> object:
        assert not isinstance(a, str), "a text reached sympify"
        return real(a, *rest, **named)

    for module in [m for m in list(sys.modules.values()) if getattr(m, "__name__", "").startswith("sympy")]:
        if vars(module).get("sympify") is real:
            monkeypatch.setattr(module, "sympify", no_strings)
    monkeypatch.setattr("sympy.parsing.sympy_parser.parse_expr", forbidden)
    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, forbidden)
    monkeypatch.setattr(builtins, "compile", only_trees)
    for text in texts:
        assert repr(rg.parse(text)) == text
    for text, _, _ in HOSTILE:
        refusal(text)


def test_no_source_calls_an_evaluator() -> None:
    forbidden = {"eval", "exec", "sympify", "parse_expr", "lambdify", "__import__", "S"}
    for path in ALGEBRA.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                bare = isinstance(node.func, ast.Name)  # re.compile is another
                called = f"{path.name}:{node.lineno} calls {name}"
                assert name not in forbidden, called
                assert not (bare and name == "compile"), called


# -- random texts ----------------------------------------------------------------------------------------------------

WORDS = [*parsing.WORDS, *parsing.CALLS, *parsing.NAMES_TABLE, "sink=", "over=", "among=", "mask=", "score=", "weight="]
PIECES = [
    *WORDS,
    *"()[],+-*/%&|~<>=.0129",
    "**",
    "//",
    "<=",
    ">=",
    "==",
    " ",
    '"t"',
    '"q"',
    "0.5",
    "1e5",
    "1e308",
    "s",
    "@",
    "#",
    "é",
]
REPRS = [
    "share(exp(s), sink=exp(table(\"sink\")[h]))(dot / sqrt(d), mask=(j <= i) & (i - j <= 2))",
    "each(sigmoid(s))(30 * tanh(dot / (30 * sqrt(d))) - log(n), mask=given(\"m\") | ~equal(table(\"ids\")[b, i], 0))",
    "softmax(where(j <= i, dot(table(\"M\")[h]), -sqdist / 2) - 2 ** (-8 * (h + 1) / H) * (i - j) // 3)",
]  # fmt: skip


def read_or_refused(text: str) -> None:
    began = time.thread_time()
    try:
        value = rg.parse(text)
    except rg.ParseError:
        value = None
    assert time.thread_time() - began < 2
    if value is not None:
        assert rg.parse(repr(value)) == value
        assert hash(rg.parse(repr(value))) == hash(value)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_random_texts_are_read_or_refused(text: str) -> None:
    read_or_refused(text)


@settings(max_examples=200)
@given(st.text(max_size=12))
def test_any_characters_are_read_or_refused(text: str) -> None:
    read_or_refused(text)


@settings(max_examples=300)
@given(st.sampled_from(REPRS), st.data())
def test_mutated_formulas_are_read_or_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        first, last = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
        last = min(last, first + 6)
        text = text[:first] + data.draw(st.sampled_from([*PIECES, "", text[first:last] * 2])) + text[last:]
    read_or_refused(text)
