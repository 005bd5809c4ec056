"""The forward kernel of one formula as text: that of the engine, with the formula's own functions and flags put in.

Nothing is written twice: the text is that of `templates`, read from there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from ..program import Program
from ..source import Written
from .layout import laid_out
from .rewriting import branches, by_name, counts, parameters, renamed, rewritten, without, without_unread

TEMPLATES = Path(__file__).parents[1] / "templates"
HOST = ("FAR", "padded", "near", "plain")  # what the host's side calls, of `launch`
ABSENT = frozenset({"drops"})  # hashes of dropout
NEVER = dict.fromkeys(("S.LISTED", "S.DROPS", "S.EXACT", "isinstance(x, tl.tensor_descriptor)", "TYPE_CHECKING"), False)
Texts = dict[str, str]
Flags = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Kernel:
    """What a module prints before its host function: texts of definitions by name."""

    constants: Texts
    formula: Texts  # the functions that the formula makes
    forward: Texts  # the kernel and its two parts
    shared: Texts  # what it calls
    host: Texts  # what the host calls

    @property
    def parameters(self) -> list[str]:
        return parameters(self.forward["forward"])

    @property
    def sizes(self) -> list[str]:
        """The attributes of S, in the order in which they are read."""
        text = "\n".join([*self.forward.values(), *self.shared.values()])
        return list(dict.fromkeys(re.findall(r"\bS\.(\w+)", text)))


def kernel(made: Program, text: Written) -> Kernel:
    """The texts of one formula."""
    careful = {"SCALED": not made.is_exponential, "ROUNDED": not made.is_softmax_like}  # whatever the type of v
    known = (*made.flags.items(), *((name, made.is_shared and truth) for name, truth in careful.items()))
    own = _own(_reached(known), _definitions(text.text))
    jitted, plain = _finished(known, frozenset(own)), _split(_reached(known))[1]
    first = set(definitions("forward"))
    return Kernel(
        {name: source for name, source in plain.items() if name.isupper()},
        own,
        {name: source for name, source in jitted.items() if name in first},
        {name: source for name, source in jitted.items() if name not in first},
        {name: source for name, source in plain.items() if not name.isupper()},
    )


# -- definitions -----------------------------------------------------------------------------------------------


@cache
def definitions(module: str) -> Texts:
    """The functions, classes and constants of a template by name, each as its text."""
    return _definitions((TEMPLATES / f"{module}.py").read_text(encoding="utf-8"))


def _definitions(source: str) -> Texts:
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body:
        if name := _name(node):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            found[name] = "\n".join(lines[first - 1 : node.end_lineno]) + "\n"
    return found


def _name(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


# -- what one formula leaves of them ---------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _reached(flags: Flags) -> Texts:
    """The definitions that a kernel with these flags reaches, in the order of their files."""
    known = NEVER | {f"F.{name}": value for name, value in flags}
    host = {name: definitions("launch")[name] for name in HOST}
    every, rules = (
        definitions("forward") | definitions("common") | host,
        (branches(known), counts(known), without(ABSENT)),
    )
    found: Texts = {}
    waiting = ["forward", "Constants", *HOST]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rewritten(every[name], *rules).replace("\n\n\n", "\n\n")
            waiting += [used for used in _names(found[name]) if used in every]
    return {name: found[name] for name in every if name in found}


@lru_cache(maxsize=64)
def _finished(flags: Flags, own: frozenset[str]) -> Texts:
    """The jitted functions, which call those of the formula by their names, with no argument too many."""
    jitted, _ = _split(_reached(flags))
    others = {name: f"{name}_block" for name in jitted if name in own}
    jitted = {others.get(name, name): rewritten(source, renamed(others)) for name, source in jitted.items()}
    jitted = {name: rewritten(source, renamed(_hiding(source))) for name, source in jitted.items()}
    return without_unread({name: rewritten(source, by_name("F")) for name, source in jitted.items()})


def _split(texts: Texts) -> tuple[Texts, Texts]:
    """Jitted functions, and others."""
    jitted = {name: source for name, source in texts.items() if source.startswith("@triton.jit")}
    return jitted, {name: source for name, source in texts.items() if name not in jitted}


def _own(reached: Texts, written: Texts) -> Texts:
    """The formula's functions that a kernel calls by F, and those that they call."""
    waiting = [name for source in reached.values() for name in re.findall(r"\bF\.([a-z_]+)\(", source)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [used for used in _names(written[name]) if used in written]
    return {name: laid_out(source.replace("@jit\n", "@triton.jit\n"))
            for name, source in written.items() if name in found}  # fmt: skip


def _hiding(source: str) -> Texts:
    """Other names for variables that would hide a function of the formula where it is called."""
    called = set(re.findall(r"\bF\.([a-z_]+)\(", source))
    return {name: f"{name}_here" for name in _names(source) if name in called}


def _names(source: str) -> Iterator[str]:
    return (node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
