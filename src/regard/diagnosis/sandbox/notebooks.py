"""A notebook as a module: its cells of code in order, up to the first after which the name exists.

Lines for the notebook alone (`%magic`, `!command`, `help?`) are left out.
"""

from __future__ import annotations

import json
import linecache
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

from .limits import TargetError
from .tracebacks import users_part

ASIDE = re.compile(r"^(\s*)(?:[%!?]|[\w, ]+=\s*[%!](?!=)|.*\w\?{1,2}\s*$).*$")
WHOLE = re.compile(r"\s*%%(?!time|timeit|capture|prun)")  # magics of cells that hold no Python of ours


def module_of(path: Path, name: str) -> ModuleType:
    """The module that the cells make; without a name, of all cells."""
    module = ModuleType(_free(path.stem))
    sys.modules[module.__name__] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    for number, text in enumerate(cells(path), start=1):
        place = f"<{path.name}, cell {number}>"
        users_part(partial(_run, module, text, place), f"{path.name}, cell {number} of code")
        if name and hasattr(module, name):
            break
    return module


def cells(path: Path) -> list[str]:
    """The texts of the cells of code."""
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        found = book["cells"] if "cells" in book else [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
        return ["".join(cell.get("source", cell.get("input", ""))) for cell in found if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise TargetError(f"{path}: a Jupyter notebook; got no cells ({error}); save it again, or pass a .py") from None


def python_of(text: str) -> str:
    """The cell without lines that only a notebook understands; the lines keep their numbers.

    >>> python_of("%matplotlib inline\\nx = 7\\nif x:\\n    !ls")
    'pass\\nx = 7\\nif x:\\n    pass'
    """
    if WHOLE.match(text):
        return ""
    lines = text.split("\n")
    while (number := _fault(lines)) and ASIDE.match(lines[number - 1]):  # a % within a formula is no fault, and stays
        lines[number - 1] = ASIDE.sub(r"\1pass", lines[number - 1])
    return "\n".join(lines)


def _fault(lines: list[str]) -> int:
    """The first line that is not Python; 0 where all are."""
    try:
        compile("\n".join(lines), "cell", "exec", dont_inherit=True)
    except SyntaxError as error:
        return min(error.lineno or 0, len(lines))
    return 0


def _run(module: ModuleType, text: str, place: str) -> None:
    code = python_of(text)
    linecache.cache[place] = (len(code), None, code.splitlines(keepends=True), place)  # for tracebacks and `inspect`
    exec(compile(code, place, "exec", dont_inherit=True), vars(module))  # noqa: S102 - to run it is what was asked for


def _free(stem: str) -> str:
    name = re.sub(r"\W", "_", stem)
    while name in sys.modules or name in sys.stdlib_module_names:
        name += "_"
    return name
