"""A formula's forward pass as one module that needs torch and triton alone: the engine's kernel, printed.

rewriting   source with what is known put in        kernel   the kernel of a formula, as text
host        `attention` in PyTorch, which launches it
"""

from __future__ import annotations

import builtins
import re
import textwrap

from ....algebra.errors import FormulaError
from ....algebra.formula import Formula
from ....algebra.nodes import J
from ....algebra.printing.code import check_form
from ....algebra.printing.flavours.helpers import helpers
from ....algebra.printing.flavours.module import self_attention, wrapped
from ....algebra.printing.flavours.page import Page
from ..counting import is_long
from ..program import Program, program
from ..source import Written, written
from .host import Host
from .kernel import Kernel, Texts, definitions, kernel

MOST_PRODUCTS = 3
HEAD = "# Save this text as a file and import it: Triton reads the source of its kernels from there."
ABOUT = """In Triton, for a GPU: y alone, without gradients. With TRITON_INTERPRET=1 in the environment it also runs
on a CPU, slowly."""
TILES = """ROWS, COLUMNS = 64, 32  # of a block of pairs; larger ones are faster where they fit. ROWS divides 128
WARPS, STAGES = 4, 2
"""
REHEARSAL = """if INTERPRETED.value:
    from triton.runtime import interpreter

    _patch_tensor = interpreter._patch_lang_tensor

{index}
    interpreter._patch_lang_tensor = _index
"""
FOUR_AXES = '''def four_axes(x):
    """(..., rows, width) as (batch, heads, rows, width)"""
    return x[None, None] if x.ndim == 2 else x.reshape(-1, *x.shape[-3:])
'''
SPREAD = '''def spread(x, *shape):
    """x for every batch and head, float32"""
    return x.expand(*shape).float().contiguous()
'''
NAMES = ("torch", "triton", "math", "ROWS", "COLUMNS", "WARPS", "STAGES", "four_axes", "spread")
MODULES = {"hashlib": "import hashlib", "math": "import math", "Any": "from typing import Any"}


def code(formula: Formula, form: str) -> str:
    """Source of a module that defines `attention` (and `self_attention`, in that form)."""
    check_form(form)
    made = program(formula)
    text = written(made, formula.integer_tables, long=is_long(made))
    _check(formula, made, text)
    texts = kernel(made, text)
    return _module(formula, texts, "\n".join(Host(made, text, texts).lines()), form)


def _check(formula: Formula, made: Program, text: Written) -> None:
    weight, advice = formula.weight, 'ask for code("torch")'
    if weight.over is not None and weight.over.node != J:
        raise FormulaError(f"code: a triton kernel shares weights over j; got over={weight.over!r}; {advice}")
    if weight.among is not None:
        raise FormulaError(f"code: a triton kernel counts the admitted pairs; got among={weight.among!r}; {advice}")
    if len(made.products) > MOST_PRODUCTS:
        count = len(made.products)
        raise FormulaError(f"code: a triton kernel multiplies at most 3 pairs of matrices; got {count}; {advice}")
    if any(slot.what == "table" and slot.name not in formula.ranks for slot in text.slots):
        raise FormulaError(f"code: a triton kernel's mask compares by dot alone; got mask={formula.mask!r}; {advice}")


def _module(formula: Formula, made: Kernel, host: str, form: str) -> str:
    page = Page(formula.ranks, depth=0)
    host, called = _with_helpers(host, made, page)
    parts = [*_section("the formula", made.formula), *_section("the kernel", made.forward)]
    parts += [*_section("what it calls", made.shared), *_section("the host's side", made.host)]
    parts += [FOUR_AXES, *([SPREAD] if "spread(" in host else []), *called]
    parts += ["\n".join(aliases) + "\n"] if (aliases := _aliases(made, host, page)) else []
    parts += [host + "\n", *([self_attention(formula, "torch") + "\n"] if form == "self_attention" else [])]
    constants = "".join(made.constants.values()) + TILES
    body = "\n\n".join([constants + "\n" + _rehearsal(), *parts])
    imports = [line for name, line in MODULES.items() if re.search(rf"(?<![\w.]){name}\b(?!=)", body)]
    top = [HEAD, f'"""{wrapped(repr(formula))}\n\n{ABOUT}\n"""', "\n".join(imports),
           "import torch\nimport triton\nimport triton.language as tl", body]  # fmt: skip
    return "\n\n".join(part for part in top if part)


def _section(title: str, texts: Texts) -> list[str]:
    first, *rest = texts.values()
    return [f"# -- {title} {'-' * (104 - len(title))}\n\n\n{first}", *rest]


def _with_helpers(host: str, made: Kernel, page: Page) -> tuple[str, list[str]]:
    """The host's side and the small functions that it calls, out of the way of the kernel's."""
    called = [text.strip("\n") + "\n" for text in helpers("torch", host, page)]
    for name in re.findall(r"^def (\w+)", "\n".join(called), re.MULTILINE):
        if name in made.formula or name in made.shared:
            word = re.compile(rf"(?<![\w.])(def )?{name}\(")
            host, *called = (word.sub(rf"\g<1>torch_{name}(", text) for text in (host, *called))
    return host, called


def _aliases(made: Kernel, host: str, page: Page) -> list[str]:
    """Names that the host's side uses and a table has too, under other names."""
    known = {*made.forward, *made.host, *NAMES, *dir(builtins)}
    used = [name for name in sorted(known & page.tables) if re.search(rf"(?<![\w.]){page.ours(name)}\b", host)]
    return [f"{page.ours(name)} = {name}  # which is also the name of a table" for name in used]


def _rehearsal() -> str:
    return REHEARSAL.format(index=textwrap.indent(definitions("rehearsal")["_index"], "    "))
