"""Writes what the documents show and nobody should write by hand: pictures, and the parts of pages between two marks.

    python website/write.py             write what has changed
    python website/write.py --check     write nothing; end with 1 and name what has changed

A part of a page stands between <!-- name --> and <!-- /name -->.
"""

from __future__ import annotations

import sys
from pathlib import Path

import figures
import house
import zoo_page
import zoo_pictures

DOCS = Path(__file__).parents[1] / "docs"


def written() -> dict[Path, str]:
    """Every file that is written here, as it should be."""
    pictures = {f"zoo/{name}.svg": text for name, text in zoo_pictures.pictures().items()}
    pictures |= {"performance.svg": figures.picture(), "house.svg": house.picture()}
    pages = {"zoo.md": {"entries": zoo_page.entries()}, "performance.md": figures.tables()}
    return {DOCS / "pictures" / name: text for name, text in pictures.items()} | {
        DOCS / name: filled((DOCS / name).read_text(encoding="utf-8"), parts) for name, parts in pages.items()
    }


def filled(page: str, parts: dict[str, str]) -> str:
    """The page with each part between its marks."""
    for name, text in parts.items():
        before, opening, rest = page.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- /{name} -->")
        if not closing:
            raise ValueError(f"the page must have <!-- {name} --> and then <!-- /{name} -->")
        page = f"{before}{opening}\n{text}\n\n{closing}{after}"
    return page


def stale() -> dict[Path, str]:
    """What is missing, or is not as it should be."""
    return {path: text for path, text in written().items() if not path.exists() or path.read_text("utf-8") != text}


def main(arguments: list[str]) -> int:
    changed = stale()
    for path, text in changed.items():
        print(path.relative_to(DOCS.parent))
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    return int("--check" in arguments and bool(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
