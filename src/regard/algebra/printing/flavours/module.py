"""A whole module: docstring, imports, helpers, and the functions with their signatures and docstrings."""

from __future__ import annotations

import builtins
import re
import textwrap
from typing import TYPE_CHECKING

from ...nodes import Read, walk
from ..text import text
from .array_weights import Weights
from .arrays import Body, kept_tables
from .helpers import helpers
from .page import Page
from .python import PythonBody

if TYPE_CHECKING:
    from ...formula import Formula

FORMS = ("attention", "self_attention")
LIBRARIES = {"python": (), "numpy": (("numpy", "np"),), "torch": (("torch", "torch"),)}
KINDS = {
    "python": "plain Python, with lists and loops",
    "numpy": "NumPy",
    "torch": "PyTorch, differentiable by autograd",
}
ROOM = 96  # for the text of a docstring


def module(formula: Formula, flavour: str, form: str) -> str:
    """The text of a file."""
    functions = [_attention(formula, flavour)]
    if form == "self_attention":
        functions.append(self_attention(formula, flavour))
    page = Page(formula.ranks, depth=0)
    functions = helpers(flavour, "\n".join(functions), page) + functions
    head = [
        f'"""{wrapped(repr(formula))}\n\nIn {KINDS[flavour]}.\n"""',
        *_imports(flavour, page, "\n".join(functions)),
    ]
    return "\n\n".join(head) + "".join(f"\n\n\n{function}" for function in functions) + "\n"


def _imports(flavour: str, page: Page, source: str) -> list[str]:
    """What the source needs; a table that is called like a module, or like `sum`, hides it under that name."""
    found = []
    for module_name, name in (("math", "math"), *LIBRARIES[flavour]):
        if re.search(rf"(?<![\w.]){page.ours(name)}\.", source):
            alias = "" if page.ours(name) == module_name else f" as {page.ours(name)}"
            found.append(f"import {module_name}{alias}")
    hidden = [
        name
        for name in sorted(page.tables & set(dir(builtins)))
        if re.search(rf"(?<![\w.]){page.ours(name)}\(", source)
    ]
    return found + [f"{page.ours(name)} = {name}  # which is also the name of a table" for name in hidden]


def four_axes(formula: Formula) -> bool:
    """Whether the formula tells heads or batches apart."""
    over = formula.weight.over
    return formula.uses("h", "b", "H") or (over is not None and over.node.name in ("h", "b"))


# -- attention -----------------------------------------------------------------------------------------------------


def _attention(formula: Formula, flavour: str) -> str:
    deep = four_axes(formula)
    if flavour == "python":
        lines = PythonBody(formula, deep).lines()
    else:
        body = Body(formula, flavour, deep)
        body.write_pairs()
        body.write_masks()
        body.write_scores()
        Weights(body).write()
        body.write_mix()
        lines = body.prelude() + body.page.lines
    return "\n".join([*signature(formula, flavour), *lines])


def signature(formula: Formula, flavour: str) -> list[str]:
    """The first lines of `attention`: its arguments, and what they are."""
    page = Page(formula.ranks, depth=0)
    page.call("def attention", ["q", "k", "v", *_keywords(formula, start=True)], ":")
    return [*page.lines, *_docstring(_about(formula, flavour, four_axes(formula)))]


def _keywords(formula: Formula, *, start: bool) -> list[str]:
    names = [f"‹{name}›" for name in formula.ranks] + (["start=None"] if start and formula.uses("i") else [])
    return ["*", *names] if names else []


def _about(formula: Formula, flavour: str, deep: bool) -> list[str]:
    lines = [*formula.unicode().split(",  "), ""]
    lines += _shapes(formula, flavour, deep)
    for name, rank in formula.ranks.items():
        lines.append(f"{name}: {_table(formula, name, rank, flavour, deep)}")
    if formula.uses("i"):
        lines.append("start: the position of the first query; by default the queries are the last rows of the keys")
    return lines


def _shapes(formula: Formula, flavour: str, deep: bool) -> list[str]:
    width = "d_q" if formula.pairs and all(pair.metric is not None for pair in formula.pairs) else "d"
    if flavour == "python":
        lead = "[batch][head]" if deep else ""
        shapes = [f"q{lead}: rows of {width} numbers", f"k{lead}: n rows of d", f"v{lead}: n rows of d_v"]
    else:
        lead = "batch, heads" if deep else "..."
        shapes = [f"q: ({lead}, queries, {width})", f"k: ({lead}, n, d)", f"v: ({lead}, n, d_v)"]
    if flavour == "triton":
        kinds = "float16, bfloat16 or float32"
        return [", ".join(shapes), f"{kinds}; the heads of q, axis -3, may be a multiple of those of k and v"]
    return [*shapes, "k and v have as many heads as q"] if deep else [", ".join(shapes)]


def _table(formula: Formula, name: str, rank: int, flavour: str, deep: bool) -> str:
    if rank < 0:
        lead = "batch, heads, " if deep else ""
        if flavour == "python":
            return f"truths, {'[batch][head]' if deep else ''}[row of q][row of k], True where a pair is admitted"
        return f"truths, True where a pair is admitted; broadcasts to ({lead or '..., '}queries, n)"
    metrics = [pair.metric for pair in formula.pairs if pair.metric is not None and pair.metric.table == name]
    if metrics:
        return f"a matrix between q and k, read as {_shown(metrics[0])}"
    reads = {part for node in formula.nodes for part in walk(node) if isinstance(part, Read) and part.table == name}
    shown = " and ".join(sorted(_shown(read) for read in reads))
    kind = (
        "integers" if name in formula.integer_tables else "numbers" if name in kept_tables(formula) else "real numbers"
    )
    return f"{kind}, read as {shown}" if rank else "a number"


def _shown(read: Read) -> str:
    return re.sub(r'table\("(\w+)"\)', r"\1", text(read))


# -- self-attention ------------------------------------------------------------------------------------------------


def self_attention(formula: Formula, flavour: str) -> str:
    """Y from X, by `attention` of the same module."""
    page, deep = Page(formula.ranks, depth=0), four_axes(formula)
    page.call("def self_attention", ["x", "Wq", "Wk", "Wv=None", *_keywords(formula, start=False)], ":")
    page.lines += _docstring(_about_self(flavour, deep))
    page.depth = 1
    times = "x @ {}"
    if flavour == "python":
        times = "[[project(rows, {}) for rows in heads] for heads in x]" if deep else "project(x, {})"
    page.line(f"q = {times.format('Wq')}")
    page.line(f"k = {times.format('Wk')}")
    page.line(f"v = x if Wv is None else {times.format('Wv')}")
    page.call("return attention", ["q", "k", "v", *(f"‹{name}›=‹{name}›" for name in formula.ranks)], "")
    return "\n".join(page.lines)


def _about_self(flavour: str, deep: bool) -> list[str]:
    lead = ("[batch][head]" if deep else "") if flavour == "python" else ("batch, heads, " if deep else "..., ")
    x = f"x{lead}: n rows" if flavour == "python" else f"x: ({lead}n, width)"
    return ["Y from X: q = x Wq, k = x Wk, v = x Wv.", "", f"{x}; Wq, Wk, Wv: (width, d), (width, d), (width, d_v)",
            "Without Wv the values are x itself."]  # fmt: skip


# -- docstrings ----------------------------------------------------------------------------------------------------


def _docstring(lines: list[str]) -> list[str]:
    first, *rest = [part for line in lines for part in (textwrap.wrap(line, ROOM - 4, break_long_words=False) or [""])]
    return [f'    """{first}', *(f"    {line}" if line else "" for line in rest), '    """']


def wrapped(line: str) -> str:
    """A line of a module's docstring, broken where it is too long."""
    return "\n".join(textwrap.wrap(line, ROOM, break_long_words=False, break_on_hyphens=False))
