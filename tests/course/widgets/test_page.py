"""The widgets' modules keep to what the lens's keep to, so that they can be joined with them."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from regard.viewer import joined

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets.base import PACKAGES, joined_script, joined_style

OURS, LENS = (Path(str(files(package) / "page")) for package in PACKAGES)
MODULES = sorted(OURS.glob("*.js"))
ALL = {path.name: path for path in (*sorted(LENS.glob("*.js")), *MODULES)}
IMPORT = re.compile(r'import \{ (?P<names>[\w$, ]+) \} from "\./(?P<file>\w+\.js)";')
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (?P<name>[\w$]+)", re.MULTILINE)
TOP = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (?P<name>[\w$]+)", re.MULTILINE)
UNSAFE = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")


def test_no_module_hides_one_of_the_lens() -> None:
    assert not {path.name for path in MODULES} & {path.name for path in LENS.glob("*.js")}


def test_no_two_modules_define_one_name() -> None:
    counts = Counter(name for path in ALL.values() for name in TOP.findall(path.read_text()))
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_module_is_used_and_stands_after_what_it_needs() -> None:
    order = joined.order("hands", PACKAGES)
    assert {path.stem for path in MODULES} <= set(order)
    assert {"dom", "colour"} <= set(order)
    needed = {name: joined.IMPORT.findall(joined.source(name, PACKAGES)) for name in order}
    assert all(order.index(other) < order.index(name) for name in order for other in needed[name])
    code = re.sub(r"/\*.*?\*/", "", joined_script(), flags=re.DOTALL)
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE)
    assert "</script" not in code.lower()


def test_a_module_that_is_nowhere_is_told() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.js: in the page of regard\.course or regard\.viewer"):
        joined.script("nowhere", PACKAGES)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
class TestModule:
    def test_imports_stand_on_one_line_and_name_what_is_exported_and_used(self, path: Path) -> None:
        text = path.read_text()
        for line in text.splitlines():
            if line.startswith("import "):
                found = IMPORT.fullmatch(line)
                assert found, line
                names = {name.strip() for name in found["names"].split(",")}
                assert names <= set(EXPORT.findall(ALL[found["file"]].read_text())), line
                assert all(len(re.findall(rf"(?<![\w$]){name}(?![\w$])", text)) > 1 for name in names), line

    def test_it_opens_with_what_it_is(self, path: Path) -> None:
        assert path.read_text().startswith("/**")

    def test_data_never_becomes_markup_and_nothing_is_fetched(self, path: Path) -> None:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        assert [word for word in UNSAFE if word in text] == []
        assert not re.search(r"fetch\(|https?://|(?<![\w.])import\(", text)

    def test_only_the_entry_looks_at_the_whole_document(self, path: Path) -> None:
        assert not re.search(r"(?<![\w.])document\.(querySelector|getElementBy|body)", path.read_text())


def test_styles_stay_inside_the_widgets() -> None:
    text = re.sub(r"/\*.*?\*/", "", (OURS / "hands.css").read_text(), flags=re.DOTALL)
    assert "url(" not in text
    assert "@import" not in text
    for selector in re.findall(r"(?:^|[{}])\s*([^{}@]+)\{", text):
        assert ".regard" in selector, selector
    assert "--paper" in joined_style()


def test_a_widget_brings_its_page_along(widget: Any) -> None:
    assert widget._esm.rstrip().endswith("export default { render: renderHand };")
    assert ".hand" in widget._css
