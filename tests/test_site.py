"""The documentation site: built strictly, whole, and without anything from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from test_docs import PACKAGES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OPTIONAL = {"course.md", "gpu.md"}  # in the navigation where they have been written
LOADED = dict.fromkeys(["script", "img", "iframe", "source"], "src") | dict.fromkeys(["link", "image", "use"], "href")
CALM = {"NO_MKDOCS_2_WARNING": "1", "PYTHONIOENCODING": "utf-8"}
pytest.importorskip("mkdocs", reason='pip install -e ".[docs]"')


def run(*command: str) -> str:
    """What a command says; it must end well."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=os.environ | CALM, capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@dataclass
class Reader(HTMLParser):
    """What a page loads, where it links to, and the places that can be linked to."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADED.get(tag) in given:
            self.loads.append(given[LOADED[tag]])


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def outside(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def test_site_is_whole_and_needs_nobody_else(tmp_path: Path) -> None:
    """Strict: MkDocs fails on a link, an anchor or a page that is missing. Then the pages are read as browsers do."""
    run("-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path))
    pages = {path: read(path) for path in tmp_path.rglob("*.html")}
    assert not [f"{path.name} loads {one}" for path, page in pages.items() for one in page.loads if outside(one)]
    for sheet in [*tmp_path.rglob("*.css"), *tmp_path.rglob("*.svg"), *pages]:
        text = sheet.read_text(encoding="utf-8")
        assert not re.findall(r"""(?:url\(["']?|@import\s+["'])(?:https?:)?//[^)"']*""", text), f"{sheet.name} fetches"
    broken = [
        f"{path.relative_to(tmp_path)}: {link}"
        for path, page in pages.items()
        if path.name != "404.html"
        for link in [*page.links, *page.loads]
        if not (urlsplit(link).scheme or outside(link) or arrives(link, path, pages))
    ]
    assert not broken

    documents = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert not {page for page in documents if tmp_path / page not in pages}
    assert not {name for name in PACKAGES if not (tmp_path / "reference" / f"{name}.html").exists()}
    formula = (tmp_path / "formula.html").read_text(encoding="utf-8")
    assert "<math " in formula
    assert "```" not in formula
    assert "contributing.html" in " ".join(pages[tmp_path / "built.html"].links), "a link out of docs/ finds its page"


def arrives(link: str, page: Path, pages: dict[Path, Reader]) -> bool:
    """Whether a link within the site leads to a file, and to a place in it."""
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if not parts.fragment or target not in pages:
        return target.exists()
    return unquote(parts.fragment) in pages[target].places or parts.fragment.startswith("__")


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w/-]+\.md", settings[settings.index("\nnav:") : settings.index("\ntheme:")]))
    assert not {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - named
    pages = {"changelog.md", "contributing.md", "measurements.md"}  # from elsewhere in the repository
    assert not {page for page in named - pages - OPTIONAL if not (DOCS / page).exists()}


def test_pictures_and_figures_are_those_of_today() -> None:
    """`python website/write.py` writes them again; every entry of the zoo has one."""
    run("website/write.py", "--check")
    from regard import zoo

    assert {path.stem for path in (DOCS / "pictures" / "zoo").glob("*.svg")} == set(zoo.ENTRIES)


@pytest.mark.parametrize("page", sorted((DOCS / "extending").glob("*.md")), ids=lambda page: page.stem)
def test_extending_takes_a_page(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) < 120
