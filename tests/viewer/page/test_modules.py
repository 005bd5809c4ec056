"""What every module of the page keeps to, so that a server, a notebook and one file can hold the same modules."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

FOLDER = Path(str(files("regard.viewer") / "page"))
MODULES = sorted(FOLDER.glob("*.js"))
IMPORT = re.compile(r'import \{ (?P<names>[\w$, ]+) \} from "\./(?P<file>[\w]+\.js)";')
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (?P<name>[\w$]+)", re.MULTILINE)
TOP = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (?P<name>[\w$]+)", re.MULTILINE)
UNSAFE = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
WHOLE = 300_000  # bytes of a page load


def test_there_are_modules() -> None:
    assert {"app.js", "main.js", "packet.js", "source.js", "text.js", "wall.js"} <= {path.name for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
class TestModule:
    def test_imports_stand_on_one_line_and_name_what_is_exported(self, path: Path) -> None:
        for line in path.read_text().splitlines():
            if line.startswith("import "):
                found = IMPORT.fullmatch(line)
                assert found, line
                exported = set(EXPORT.findall((FOLDER / found["file"]).read_text()))
                assert {name.strip() for name in found["names"].split(",")} <= exported, line

    def test_what_is_imported_is_used(self, path: Path) -> None:
        text = path.read_text()
        for found in IMPORT.finditer(text):
            for name in found["names"].split(", "):
                assert len(re.findall(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text)) > 1, name

    def test_exports_are_named_declarations(self, path: Path) -> None:
        lines = [line for line in path.read_text().splitlines() if line.startswith("export")]
        assert all(EXPORT.match(line) for line in lines)

    def test_nothing_is_fetched_or_awaited_while_loading(self, path: Path) -> None:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"^await |(?<![\w.])import\(|https?://(?!www\.w3\.org)", text, re.MULTILINE)

    def test_data_never_becomes_markup(self, path: Path) -> None:
        text = path.read_text()
        assert [word for word in UNSAFE if word in text] == []


def test_no_two_modules_define_one_name() -> None:
    counts = Counter(name for path in MODULES for name in TOP.findall(path.read_text()))
    assert [name for name, count in counts.items() if count > 1] == []


def test_only_the_entry_looks_at_the_whole_document() -> None:
    for path in MODULES:
        if path.name != "main.js":
            assert not re.search(r"document\.(querySelector|getElementBy|body)", path.read_text()), path.name


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.css")), ids=lambda path: path.name)
def test_styles_stay_inside_the_page(path: Path) -> None:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    assert "url(" not in text
    assert "@import" not in text
    for selector in re.findall(r"(?:^|[{}])\s*([^{}@]+)\{", text):
        assert ".regard" in selector, selector


def test_a_page_load_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < WHOLE
