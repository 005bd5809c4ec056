"""What can be known of a target without calling it. Runs in the child process, where the target lives."""

from __future__ import annotations

import dis
import inspect
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .signature import Parameter, parameters

LIBRARY_OF = {"torch": "torch", "numpy": "numpy", "jax": "jax"}
TENSORS = frozenset("softmax unsqueeze masked_fill permute view mT unflatten contiguous bmm size log_softmax".split())
ORDER = ("torch", "jax", "numpy", "python")


@dataclass(frozen=True)
class Description:
    """The arguments, the libraries that its code names, its source, and of a module what it holds."""

    name: str
    parameters: tuple[Parameter, ...]
    languages: tuple[str, ...]  # those to try, best first
    source: str = ""
    line: int = 1  # where the source begins
    module: Any = None  # modules.Facts of a module, None of a function
    projections: tuple[Any, ...] = ()
    instance: Any = None
    aside: tuple[str, ...] = ()

    @property
    def order(self) -> str:
        """`bn` where its text says of an argument that the batch comes first, `nb` where positions do; else nothing."""
        said = {_order(self.source, one.name) for one in self.parameters if one.required} - {""}
        return said.pop() if len(said) == 1 else ""

    @property
    def roles(self) -> frozenset[str]:
        """What it takes."""
        return frozenset(parameter.role for parameter in self.parameters)


@dataclass(frozen=True)
class Describe:
    """Look at the target. `init` makes an instance of a class; `names` says where its projections are."""

    init: Mapping[str, Any] | None = None
    names: Mapping[str, str] | None = None
    about: str = "looking at the target"

    def run(self, target: Any) -> Description:
        """The description, of a function or of a module."""
        if _is_layer(target):
            from .modules import describing

            return describing.described(target, self.init, self.names)
        if not isinstance(target, FunctionType):
            from .modules import plain

            if plain.is_plain(target):
                return plain.described(target, self.init, self.names)
        name = getattr(target, "__name__", type(target).__name__)
        text, line = source(target)
        return Description(name, parameters(target), languages(target), text, line)


def _is_layer(target: Any) -> bool:
    kind = target if isinstance(target, type) else type(target)
    return any(base.__module__.startswith("torch.nn") and base.__name__ == "Module" for base in kind.__mro__)


BATCH_WORD, LENGTH_WORD = r"(?:batch\w*|b|bs|bsz)", r"(?:seq\w*|len\w*|pos\w*|tok\w*|time\w*|[tnl])"


def _order(text: str, name: str) -> str:
    """From words such as `x: (batch, positions, width)` or `x is [T, B, C]`."""
    said = rf"\b{re.escape(name)}\b\W{{0,4}}(?:is|has|of|shape|tensor|\s){{0,6}}[:=]?\s*[(\[]\s*"
    if re.search(rf"{said}{BATCH_WORD}\s*,", text, re.IGNORECASE):
        return "bn"
    return "nb" if re.search(rf"{said}{LENGTH_WORD}\s*,\s*{BATCH_WORD}\s*,", text, re.IGNORECASE) else ""


def source(target: Any) -> tuple[str, int]:
    """The text of a function or class and the number of its first line; nothing where there is none.

    What it calls in the same file is there too, and what lies between is blank, so that lines keep their numbers.
    """
    for _ in range(8):
        target = getattr(target, "__wrapped__", None) or getattr(target, "func", None) or target
    own = target if inspect.isroutine(target) else _kind(target)
    lines, first = _lines(own)
    if not lines or lines[0][:1].isspace():
        return textwrap.dedent("".join(lines)), first
    parts = [(lines, first), *(found for helper in _helpers(own, 2) if (found := _lines(helper))[0])]
    start, end = min(at for _, at in parts), max(at + len(some) for some, at in parts)
    page = ["\n"] * (end - start)
    for some, at in parts:
        page[at - start : at - start + len(some)] = some
    return "".join(page), start


def _lines(target: Any) -> tuple[list[str], int]:
    try:
        lines, first = inspect.getsourcelines(target)
    except (OSError, TypeError):
        return [], 1
    return lines, max(first, 1)


def _helpers(target: Any, depth: int) -> list[Any]:
    """Functions and classes of the target's own file that its code names, and those that they name."""
    functions = (
        [target] if inspect.isroutine(target) else [one for one in vars(target).values() if inspect.isroutine(one)]
    )
    found: dict[int, Any] = {}
    for function in functions:
        code, known = getattr(function, "__code__", None), getattr(function, "__globals__", {})
        for value in (known.get(name) for name in (_names(code) if code is not None else ())):
            here = inspect.isroutine(value) or isinstance(value, type)
            if here and getattr(value, "__module__", None) == target.__module__ and value is not target:
                found[id(value)] = value
    deeper = [one for value in found.values() for one in (_helpers(value, depth - 1) if depth > 1 else ())]
    return list({id(one): one for one in (*found.values(), *deeper) if one is not target}.values())


def _kind(target: Any) -> Any:
    return target if isinstance(target, type) else type(target)


def languages(*targets: Any) -> tuple[str, ...]:
    """The libraries to try: those that the code names, in the order of ORDER; all, where it names none."""
    modules = [getattr(target, "__module__", None) or type(target).__module__ or "" for target in targets]
    named = {LIBRARY_OF[top] for module in modules if (top := module.partition(".")[0]) in LIBRARY_OF}
    for target in targets:
        named |= _named(_unwrapped(target), set())
    first = [name for name in ORDER if name in named] or _by_methods(targets)
    return tuple(dict.fromkeys([*first, "numpy", "python"] if first else ["python", "numpy", *_loaded()]))


def _by_methods(targets: tuple[Any, ...]) -> list[str]:
    """PyTorch, where the code calls methods that its tensors alone have."""
    functions = [one for target in targets if isinstance(one := _unwrapped(target), FunctionType)]
    return ["torch"] if any(TENSORS & _names(one.__code__, ATTRIBUTES) for one in functions) else []


def _loaded() -> list[str]:
    """Libraries that the target's file has loaded: only these can it have been written for."""
    return [name for name in ("torch", "jax") if name in sys.modules]


def _unwrapped(target: Any) -> Any:
    for _ in range(8):
        target = getattr(target, "__wrapped__", None) or getattr(target, "func", None) or target
        target = getattr(target, "__func__", target)
    return target if isinstance(target, FunctionType) else getattr(type(target), "__call__", target)  # noqa: B004 - its code is read


def _named(function: Any, seen: set[int]) -> set[str]:
    """The libraries that a function's code names, itself or through functions of its module that it calls."""
    if not isinstance(function, FunctionType) or id(function) in seen:
        return set()
    seen.add(id(function))
    found: set[str] = set()
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    values = [function.__globals__.get(name) for name in _names(function.__code__)] + cells
    for value in values:
        if isinstance(value, ModuleType):
            found |= {LIBRARY_OF.get(value.__name__.partition(".")[0], "")}
        elif isinstance(value, FunctionType):
            found |= _named(value, seen)
        elif value is not None:
            found |= {LIBRARY_OF.get((getattr(value, "__module__", None) or "").partition(".")[0], "")}
    return found - {""}


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


def _names(code: CodeType, loads: frozenset[str] = GLOBALS) -> set[str]:
    """The names that a code, and the codes inside it, load in these ways."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    own = {str(one.argval) for one in dis.get_instructions(code) if one.opname in loads}
    return own.union(*(_names(part, loads) for part in inner))
