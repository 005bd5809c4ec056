"""Every notebook runs as a program, and has all that a chapter has."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from regard.course import CHAPTERS, Chapter, lesson
from regard.course.pieces.piece import Piece

ONCE = "opening answer exercise judged choice quiz answered closing".split()
OFTEN = "say hand figure mathematics".split()
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.key)


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader has written elsewhere is neither read nor changed."""
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))


@cache
def outputs(chapter: Chapter) -> tuple[Any, ...]:
    """What the cells of a notebook show."""
    spec = spec_from_file_location(chapter.key, chapter.file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(module.app.run()[0])


@every_chapter
def test_runs_and_shows_pieces_alone(chapter: Chapter) -> None:
    shown = [output for output in outputs(chapter) if output is not None]
    assert all(isinstance(output, Piece) for output in shown), [type(output) for output in shown]
    assert f"<h1>{chapter.title}</h1>" in shown[0].live


@every_chapter
def test_has_all_that_a_chapter_has(chapter: Chapter) -> None:
    tree = ast.parse(chapter.file.read_text(encoding="utf-8"))
    calls = Counter(
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _name(node.func.value) == "page"
    )
    assert {name: calls[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert all(calls[name] for name in OFTEN), calls
    assert calls["printed"] + calls["written"] >= 1, "the same in three languages"
    assert ast.get_docstring(tree)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


@every_chapter
def test_asks_nothing_of_the_world(chapter: Chapter) -> None:
    links = {one.link for one in chapter.reading}
    for output in outputs(chapter):
        for form in (output.live, output.still) if isinstance(output, Piece) else ():
            fetched = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(https?:[^"'\s>)]+)""", form)
            assert set(fetched) <= links


@every_chapter
def test_still_form_needs_no_notebook(chapter: Chapter) -> None:
    still = "".join(output.still for output in outputs(chapter) if isinstance(output, Piece))
    assert "<marimo-" not in still
    assert lesson(chapter.number).task.function in still
