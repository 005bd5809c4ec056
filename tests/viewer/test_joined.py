"""The page's modules joined into one: each after what it needs, and nothing of imports and exports left."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from regard.viewer import joined

PAGE = files("regard.viewer") / "page"
MODULES = sorted(one.name.removesuffix(".js") for one in PAGE.iterdir() if one.name.endswith(".js"))
DEFINED = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let)\s+(\{[^}]*\}|\[[^\]]*\]|[\w$]+)", re.MULTILINE
)
ENTRIES = ("main", "widget", "alone")


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_a_module_needs_stands_before_it(entry: str) -> None:
    order = joined.order(entry)
    assert order[-1] == entry
    assert len(set(order)) == len(order)
    needed = {name: joined.IMPORT.findall(joined.source(name)) for name in order}
    assert all(order.index(other) < order.index(name) for name in order for other in needed[name])
    code = re.sub(r"/\*.*?\*/", "", joined.script(entry), flags=re.DOTALL)
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE)


def test_every_module_is_used() -> None:
    assert set(MODULES) == {name for entry in ENTRIES for name in joined.order(entry)}


def test_every_style_is_there() -> None:
    assert sorted(joined.STYLES) == sorted(one.name for one in PAGE.iterdir() if one.name.endswith(".css"))
    assert ".regard" in joined.style()
