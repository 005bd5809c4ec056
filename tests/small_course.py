"""A course of two tiny chapters, for tests that need no real one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIRST = """import marimo

app = marimo.App(width="medium", app_title="First")

with app.setup(hide_code=True):
    import marimo as mo
    from dataclasses import dataclass

    @dataclass
    class Piece:
        live: str
        still: str

        def _mime_(self):
            return "text/html", self.live


@app.cell(hide_code=True)
def _():
    Piece("live words", "<p class='still-words'>Still words, with <a href='../2' data-chapter='2'>the next</a>, "
          "<a href='../'>all</a> and <a href='https://example.org/paper' rel='noreferrer'>a paper</a>.</p>")
    return


@app.cell
def _(many):
    doubled = 2 * many.value
    mo.md(f"twice is <b id='twice'>{doubled}</b>")
    return


@app.cell
def _():
    many = mo.ui.slider(1, 9, value=3, label="how many", show_value=True)
    many
    return (many,)


@app.cell
def _():
    nothing = None
    return


if __name__ == "__main__":
    app.run()
"""
SECOND = """import marimo

app = marimo.App()


@app.cell
def _():
    "the end, a < b"
    return
"""
BROKEN = """import marimo

app = marimo.App()


@app.cell
def fine():
    x = 1
    return (x,)


@app.cell
def broken(x):
    y = x
    y / 0
    return
"""


@dataclass(frozen=True)
class Small:
    """A chapter, as the course has them."""

    number: int
    name: str
    title: str
    question: str
    file: Path


def small_course(folder: Path, *texts: str) -> tuple[Small, ...]:
    """Chapters with these notebooks; the usual two without."""
    made = []
    for number, text in enumerate(texts or (FIRST, SECOND), 1):
        name = ("first", "second", "third")[number - 1]
        path = folder / f"c{number:02}_{name}.py"
        path.write_text(text, encoding="utf-8")
        made.append(Small(number, name, f"The <{name}> & all", f"Why “{name}”?", path))
    return tuple(made)
