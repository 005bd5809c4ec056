"""The modules of the page as one: for a notebook's widget, and for a file that opens without a server.

    import { a } from "./b.js";       dropped: b stands before
    export function c() …             function c() …

That is all that joining takes, because every module imports by plain names in one line, and no two define the same
top-level name. A test holds both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class|let)\b)", re.MULTILINE)
STYLES = ("style.css", "map.css")


def script(entry: str) -> str:
    """The module of a name and all that it imports, as one script without imports and exports."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", source(name))) for name in order(entry))


def order(entry: str) -> tuple[str, ...]:
    """The module and all that it imports, each after what it needs; functions may need each other in a circle."""
    found: dict[str, None] = {}
    _visit(entry, found, set())
    return tuple(found)


def _visit(name: str, found: dict[str, None], begun: set[str]) -> None:
    if name in begun:
        return
    begun.add(name)
    for other in IMPORT.findall(source(name)):
        _visit(other, found, begun)
    found[name] = None


@lru_cache(maxsize=64)
def source(name: str) -> str:
    """The text of a module."""
    return (files("regard.viewer") / "page" / f"{name}.js").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def style() -> str:
    """All styles of the page."""
    return "\n".join((files("regard.viewer") / "page" / name).read_text(encoding="utf-8") for name in STYLES)
