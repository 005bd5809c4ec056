"""What MkDocs is told beside mkdocs.yml: pages from elsewhere in the repository, links to it, mathematics, prompts.

The documents are written for GitHub first. What differs on the site is put right here, page by page:

    CHANGELOG.md, CONTRIBUTING.md, bench/README.md and the reference become pages of the site
    links to them lead there; a link to any other file of the repository becomes plain text
    ```math and $$…$$ become MathML, which browsers draw without a script
    a Python block of prompts is coloured as a session
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from reference import PAGES, page_of, title_of

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = {  # page of the site: file of the repository
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "measurements.md": "bench/README.md",
}
OPTIONAL = {"course.md", "gpu.md"}  # in the navigation where they have been written
FENCE = re.compile(r"^( *)(```+)(.*?)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
LONG = 200  # characters of LaTeX
DISPLAY = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what has not been written, and put the reference into it."""
    absent = {page for page in OPTIONAL if not (Path(config.docs_dir) / page).exists()}
    config.nav = [entry for entry in config.nav or [] if _only_page(entry) not in absent]
    for entry in config.nav:
        for title, below in entry.items():
            if isinstance(below, list):
                entry[title] = [one for one in below if _only_page(one) not in absent]
        if "Reference" in entry:
            entry["Reference"] = [{title_of(name): f"reference/{name}.md"} for name in PAGES]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in docs/."""
    for page, source in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for module in PAGES:
        files.append(File.generated(config, f"reference/{module}.md", content=page_of(module)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page as the site shows it."""
    pieces, last = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [_prose(markdown[last : fence.start()], page), _block(fence)]
        last = fence.end()
    return "".join([*pieces, _prose(markdown[last:], page)])


def _only_page(entry: Any) -> str | None:
    found = next(iter(entry.values())) if isinstance(entry, dict) else entry
    return found if isinstance(found, str) else None


# -- links -----------------------------------------------------------------------------------------------------


def _prose(text: str, page: Page) -> str:
    text = LINK.sub(lambda link: _link(link, page), text)
    return DISPLAY.sub(lambda found: _mathml(found[1]), text)


def _link(link: re.Match[str], page: Page) -> str:
    picture, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    uri = page.file.src_uri
    source = ROOT / ELSEWHERE.get(uri, f"docs/{uri}")
    path = (source.parent / target).resolve()
    if not path.exists():
        return link[0]  # MkDocs names it
    found = _on_site(path)
    if found is None:
        return text
    return f"{picture}[{text}]({os.path.relpath(found, PurePosixPath(uri).parent).replace(os.sep, '/')}{anchor})"


def _on_site(path: Path) -> str | None:
    """The page or file of the site that stands for a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    pages = {source: page for page, source in ELSEWHERE.items()} | {"README.md": "index.md"}
    return pages.get(name, name.removeprefix("docs/") if name.startswith("docs/") else None)


# -- blocks ----------------------------------------------------------------------------------------------------


def _block(fence: re.Match[str]) -> str:
    indent, ticks, language, body = fence.groups()
    change: Callable[[str], str] | None = {"math": _mathml}.get(language.strip())
    if change is not None:
        return indent + change(body)
    if language.strip() in {"python", "py"} and body.lstrip().startswith(">>>"):
        return f"{indent}{ticks}pycon\n{body.rstrip()}\n{indent}{ticks}"
    return fence[0]


def _mathml(latex: str) -> str:
    """Equations that stand side by side, and wrap where there is no room; a very long one has the width of the page."""
    parts = re.split(r",?\s*\\q?quad", latex.strip())
    equations = parts if all(part.count("{") == part.count("}") for part in parts) else [latex]
    drawn = "".join(convert(equation.strip(), display="block") for equation in equations)
    return f'<div class="math{" long" if max(map(len, equations)) > LONG else ""}">{drawn}</div>'
