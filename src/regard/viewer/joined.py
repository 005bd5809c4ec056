"""Modules of a page as one: for a notebook's widget, and for a file that opens without a server.

    import { a } from "./b.js";       dropped: b stands before
    export function c() …             function c() …

That is all that joining takes, because every module imports by plain names in one line, and no two define the same
top-level name. Modules may lie in the pages of several packages, which are looked through in turn: those of the course
import the lens's own. Tests hold all three.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class|let)\b)", re.MULTILINE)
STYLES = ("style.css", "map.css")
LENS = ("regard.viewer",)


def script(entry: str, packages: tuple[str, ...] = LENS) -> str:
    """The module of a name and all that it imports, as one script without imports and exports."""
    sources = (source(name, packages) for name in order(entry, packages))
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in sources)


def order(entry: str, packages: tuple[str, ...] = LENS) -> tuple[str, ...]:
    """The module and all that it imports, each after what it needs; functions may need each other in a circle."""
    found: dict[str, None] = {}
    _visit(entry, packages, found, set())
    return tuple(found)


def _visit(name: str, packages: tuple[str, ...], found: dict[str, None], begun: set[str]) -> None:
    if name in begun:
        return
    begun.add(name)
    for other in IMPORT.findall(source(name, packages)):
        _visit(other, packages, found, begun)
    found[name] = None


@lru_cache(maxsize=128)
def source(name: str, packages: tuple[str, ...] = LENS) -> str:
    """The text of a module, from the first of the packages whose page has it."""
    return _text(f"{name}.js", packages)


@lru_cache(maxsize=8)
def style(names: tuple[str, ...] = STYLES, packages: tuple[str, ...] = LENS) -> str:
    """Styles one after another: all of the lens's page, unless said otherwise."""
    return "\n".join(_text(name, packages) for name in names)


def _text(name: str, packages: tuple[str, ...]) -> str:
    places = [files(package) / "page" / name for package in packages]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{name}: in the page of {' or '.join(packages)}; there is none")
    return found.read_text(encoding="utf-8")
