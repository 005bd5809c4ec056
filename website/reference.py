"""The reference: every public name with its signature and docstring, read from the package itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import regard
from regard.zoo import ENTRIES

WIDE = 96  # a longer signature has a line for each parameter
GUIDES = {  # where a page tells the same as a story
    "regard": "formula.md",
    "zoo": "zoo.md",
    "geometry": "geometry.md",
    "inputs": "inputs.md",
    "nn": "models.md",
    "hf": "transformers.md",
    "train": "training.md",
    "experiments": "experiments.md",
    "diagnosis": "check.md",
    "testing": "check.md",
    "viewer": "lens.md",
    "course": "course.md",
}
PAGES = [name for name in GUIDES if name == "regard" or find_spec(f"regard.{name}")]


def title_of(name: str) -> str:
    """The module's own name."""
    return "regard" if name == "regard" else f"regard.{name}"


def page_of(name: str) -> str:
    """The page of a module as Markdown."""
    module = import_module(title_of(name))
    guide = f"To read first: [{GUIDES[name]}](../{GUIDES[name]})."
    head = f"# {title_of(name)}\n\n{described(module.__doc__ or '')}\n\n{guide}"
    named = {one: getattr(module, one) for one in _public(name, module)}
    plain = {one: value for one, value in named.items() if not (inspect.isclass(value) or inspect.isfunction(value))}
    seen: dict[int, str] = {}
    told = [_told(one, value, seen) for one, value in named.items() if one not in plain]
    return "\n\n".join([head, *told, *_values(plain)]) + "\n"


def _public(name: str, module: ModuleType) -> list[str]:
    """The names of a page: the face first, and what is an error last."""
    if name == "zoo":
        return ["Entry", *ENTRIES]
    names = [one for one in module.__all__ if not inspect.ismodule(getattr(module, one))]
    if name == "regard":
        order = {one: place for place, one in enumerate(regard._NAMES)}
        return sorted(names, key=lambda one: order[one])
    return names


def _values(named: dict[str, Any]) -> Iterator[str]:
    """Names that stand for a value: symbols, functions of the algebra, styles."""
    if not named:
        return
    yield "## Values"
    if "dot" in named:
        yield "What the symbols mean: [formula.md](../formula.md#symbols)."
    rows = [f"| `{one}` | {type(value).__name__} | {_word(value)} |" for one, value in named.items()]
    yield "\n".join(["| name | is | |", "|---|---|---|", *rows])


def _word(value: Any) -> str:
    """What a value says of itself: how it prints, or what its own docstring says."""
    if type(value).__name__ == "Function":
        return (inspect.getdoc(value) or "").replace("|", "\\|")
    if isinstance(value, tuple | dict):
        return f"{len(value)} entries"
    return "`" + repr(value).replace("|", "\\|") + "`"


# -- a class or a function -------------------------------------------------------------------------------------


def _told(name: str, value: Any, seen: dict[int, str]) -> str:
    """seen: what was told of a class before, and where; a class that inherits it names it only."""
    parts = [f"## {name}", _signature(name, value), described(inspect.getdoc(value) or "")]
    if inspect.isclass(value):
        again: dict[str, list[str]] = {}
        for key, member in _members(value):
            if id(member) in seen:
                again.setdefault(seen[id(member)], []).append(f"`{key}`")
            else:
                seen[id(member)] = name
                parts.append(_member(name, key, member))
        parts[3:3] = [f"As in [{other}](#{other.lower()}): {', '.join(keys)}." for other, keys in again.items()]
    return "\n\n".join(filter(None, parts))


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public attributes that the class or its bases of ours define, and that say what they are."""
    bases = [base for base in reversed(owner.__mro__) if base.__module__.startswith("regard")]
    keys = dict.fromkeys(key for base in bases for key in vars(base) if not key.startswith("_"))
    for key in ["__call__", *keys]:
        member = inspect.getattr_static(owner, key, None)
        ours = key in keys or any(key in vars(base) for base in bases)
        if ours and (callable(member) or isinstance(member, property | classmethod | staticmethod)):
            yield key, member


def _member(owner: str, key: str, member: Any) -> str:
    bare = getattr(member, "__func__", member)
    words = inspect.getdoc(bare) or ""
    if isinstance(member, property) or not callable(bare):
        return f"### {owner}.{key}\n\n{described(words)}"
    shown = owner[0].lower() + owner[1:] if key == "__call__" else f"{owner}.{key}"
    heading = f"{owner}(…)" if key == "__call__" else f"{owner}.{key}"
    return (
        f"### {heading}\n\n{_signature(shown, bare, bound=not isinstance(member, staticmethod))}\n\n{described(words)}"
    )


def _signature(name: str, value: Callable[..., Any], *, bound: bool = False) -> str:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    found = list(signature.parameters.values())[1 if bound else 0 :]
    parameters = list(_parameters(found))
    back = "" if inspect.isclass(value) else _annotation(signature.return_annotation, " -> ")
    line = f"{name}({', '.join(parameters)}){back}"
    if len(line) > WIDE:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){back}"
    return f"```python\n{line}\n```"


def _parameters(found: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in found:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = "*" * (one.kind is one.VAR_POSITIONAL) + "**" * (one.kind is one.VAR_KEYWORD)
        kind = _annotation(one.annotation, ": ")
        default = "" if one.default is one.empty else f"{' = ' if kind else '='}{_default(one.default)}"
        yield f"{stars}{one.name}{kind}{default}"


def _annotation(kind: Any, before: str) -> str:
    if kind is inspect.Parameter.empty:
        return ""
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    return before + text


def _default(value: Any) -> str:
    text = value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
    return "…" if " at 0x" in text or "<" in text else text


# -- docstrings ------------------------------------------------------------------------------------------------


def described(docstring: str) -> str:
    """A docstring as Markdown: lines of code and of mathematics as blocks, arguments as a list."""
    first, *rest = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(filter(None, [_plain(first), *map(_paragraph, rest)]))


def _plain(text: str) -> str:
    """Prose; what looks like a tag is none, but for code."""
    pieces = re.split(r"(`[^`]*`)", "\n".join(line.strip() for line in text.splitlines()))
    return "".join(one if one.startswith("`") else one.replace("<", "&lt;") for one in pieces)


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if not text.strip():
        return ""
    if lines[0].lstrip().startswith(">>>"):
        return f"```pycon\n{inspect.cleandoc(text)}\n```"
    if all(line.startswith("    ") for line in lines):
        return f"```text\n{inspect.cleandoc(text)}\n```"
    if re.match(r"\*{0,2}\w+(, \*{0,2}\w+)*:\s", lines[0]) and len(lines[0].split(":")[0]) < 40 and _is_list(lines):
        return "\n".join(_arguments(lines))
    if re.search(r"\S {3,}\S", text):  # columns
        return f"```text\n{text}\n```"
    return _plain(text)


def _is_list(lines: list[str]) -> bool:
    return all(re.match(r"\s|\*{0,2}\w+(, \*{0,2}\w+)*:\s", line) for line in lines)


def _arguments(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(" "):
            yield f"  {_plain(line)}"
        else:
            name, _, words = line.partition(":")
            yield f"- `{name.strip()}`: {_plain(words)}"
