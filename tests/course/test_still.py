"""The course as plain pages: links lead somewhere, nothing is fetched, nothing needs a script."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("marimo", reason='pip install "regard[learn]"')

from regard.algebra.errors import CallError
from regard.course.notebook import NotebookError, cells_of, run_once
from regard.course.still import _page, _plain, export
from small_course import BROKEN, FIRST, SECOND, Small, small_course

LOADING = {"src", "srcset", "data", "action", "poster", "background"}


class Page(HTMLParser):
    """What a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def links(self) -> list[str]:
        return [given["href"] or "" for tag, given in self.tags if tag == "a" and "href" in given]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    folder = tmp_path_factory.mktemp("course")
    told: list[str] = []
    paths = export(small_course(folder), folder / "out", told.append)
    assert told == [" 1  The <first> & all", " 2  The <second> & all"]
    assert [path.name for path in paths] == ["index.html", "c01_first.html", "c02_second.html"]
    return {path.name: Page(path.read_text(encoding="utf-8")) for path in paths}


def test_links_between_pages_lead_to_pages(written: dict[str, Page]) -> None:
    for page in written.values():
        inside = [link for link in page.links() if not link.startswith("https://")]
        assert inside
        assert set(inside) <= set(written)
    assert written["index.html"].links() == ["c01_first.html", "c02_second.html"]
    assert "https://example.org/paper" in written["c01_first.html"].links()


def test_the_first_has_a_next_and_the_last_a_previous(written: dict[str, Page]) -> None:
    steps = {name: {given.get("rel") for tag, given in page.tags if tag == "a"} for name, page in written.items()}
    assert steps["c01_first.html"] & {"prev", "next"} == {"next"}
    assert steps["c02_second.html"] & {"prev", "next"} == {"prev"}


def test_nothing_is_loaded_and_nothing_runs(written: dict[str, Page]) -> None:
    for page in written.values():
        names = {tag for tag, _ in page.tags}
        assert not names & {"script", "iframe", "object", "embed", "img"}
        assert not [tag for tag in names if tag.startswith("marimo")]
        loaded = [
            given for tag, given in page.tags if LOADING & set(given) or (tag == "link" and given["href"] != "data:,")
        ]
        assert loaded == []
        assert "url(" not in page.words
        assert "@import" not in page.words


def test_what_cells_show(written: dict[str, Page]) -> None:
    words = written["c01_first.html"].words
    assert "Still words, with the next" in words
    assert "live words" not in words.replace('Piece("live words"', "")
    assert "twice is 6" in words
    assert "how many 3" in words
    assert "the end, a < b" in written["c02_second.html"].words


def test_code_is_in_folds_unless_it_is_hidden(written: dict[str, Page]) -> None:
    page = written["c01_first.html"]
    assert "doubled = 2 * many.value" in page.words
    assert "nothing = None" in page.words
    assert "import marimo as mo" not in page.words
    assert 'Piece("live words"' not in page.words
    folds = [given for tag, given in page.tags if tag == "details"]
    assert len(folds) == 3
    assert all("open" not in fold for fold in folds)


def test_titles_are_escaped_and_the_language_is_said(written: dict[str, Page]) -> None:
    for page in written.values():
        assert ("html", {"lang": "en"}) in page.tags
        assert not {"first", "second"} & {tag for tag, _ in page.tags}
    assert "Why “first”?" in written["index.html"].words


def test_a_chapter_that_is_not_written_is_not_linked(tmp_path: Path) -> None:
    first, _ = small_course(tmp_path)
    export([first], tmp_path / "out")
    page = Page((tmp_path / "out" / "c01_first.html").read_text(encoding="utf-8"))
    assert {link for link in page.links() if not link.startswith("https")} == {"index.html"}


def test_a_chapter_that_fails_names_its_cell_and_the_others_are_written(tmp_path: Path) -> None:
    chapters = small_course(tmp_path, BROKEN, SECOND)
    with pytest.raises(NotebookError, match=r"c01_first\.py: cell 2 \(broken\), line 15: ZeroDivisionError: division"):
        export(chapters, tmp_path / "out")
    assert "It could not be run" in (tmp_path / "out" / "c01_first.html").read_text(encoding="utf-8")
    assert "the end" in (tmp_path / "out" / "c02_second.html").read_text(encoding="utf-8")


STOPPED = BROKEN.replace("    x = 1", "    import marimo\n    marimo.stop(True)\n    x = 1").replace("y / 0", "y")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def (", "a notebook; got one that cannot be read"),
        ("import marimo\napp = marimo.App()\nraise KeyError('no')\n", "outside of its cells: KeyError"),
        (STOPPED, "an output of each of 2 cells; got 1; use no mo.stop"),
    ],
)
def test_notebooks_that_cannot_be_shown(tmp_path: Path, text: str, says: str) -> None:
    (chapter,) = small_course(tmp_path, text)
    with pytest.raises(NotebookError, match=says):
        run_once(chapter.file)


def test_cells_are_read_in_order(tmp_path: Path) -> None:
    first, second = small_course(tmp_path)
    assert [(cell.place, cell.name, cell.hidden) for cell in cells_of(first.file)] == [
        (1, "setup", True), (2, "_", True), (3, "_", False), (4, "_", False), (5, "_", False),
    ]  # fmt: skip
    assert cells_of(second.file)[0].code == '"the end, a < b"'
    assert FIRST.splitlines()[cells_of(first.file)[2].line - 1].strip() == "doubled = 2 * many.value"


def test_what_can_be_moved_is_its_label_and_its_value() -> None:
    text = (
        "<div><marimo-ui-element object-id='a'><marimo-slider data-initial-value='[1, 2]' "
        "data-label='&quot;&#92;u003cspan&#92;u003erange&#92;u003c/span&#92;u003e&quot;'></marimo-slider>"
        "</marimo-ui-element><marimo-tex>||(x &lt; y||)</marimo-tex></div>"
    )
    assert _plain(text) == "<div><span class='still-value'>range <b>1, 2</b></span><code>x &lt; y</code></div>"


def test_the_script_of_widgets_is_in_a_page_that_has_some(tmp_path: Path) -> None:
    chapters = small_course(tmp_path)
    pages = [_page(chapters, 0, body) for body in ("<p>data-hand</p>", '<div data-hand="rows"></div>' * 2)]
    assert [page.count("mountHands(document)") for page in pages] == [0, 1]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    chapters: tuple[Small, ...] = small_course(tmp_path)
    with pytest.raises(CallError, match=r"--html: a folder; got .*, which is a file; name another"):
        export(chapters, chapters[0].file)
