"""Pieces: Markdown with mathematics, coloured code, three programs that agree; the same in a notebook and in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard.course import lesson
from regard.course.figures.charts import curves_of, matrix_of
from regard.course.pieces import programs
from regard.course.pieces.code import coloured
from regard.course.pieces.piece import Piece, element, joined, same
from regard.course.pieces.prose import prose, typeset
from regard.course.pieces.styling import style
from regard.course.pieces.told import at_rest


def test_mathematics_becomes_mathml_and_code_stays_code() -> None:
    page = prose("Here $x_i^2$ and `$HOME` cost $5 or $6.\n\n$$\\sum_j w_j$$\n\n```\n$$not$$\n```")
    assert page.count("<math") == 2
    assert 'display="block"' in page
    assert "<code>$HOME</code> cost $5 or $6" in page
    assert "$$not$$" in page


def test_indented_prose_is_no_code() -> None:
    assert prose("\n    one\n\n    two\n    ") == "<p>one</p>\n<p>two</p>"


@given(st.text())
def test_elements_hold_any_text(text: str) -> None:
    piece = element("p", text, class_="note")
    assert piece.live == piece.still
    assert "<" not in piece.still.removeprefix('<p class="note">').removesuffix("</p>")


def test_pieces_keep_both_forms_apart() -> None:
    piece = element("div", joined([same("a"), Piece("<b>", "c")]))
    assert (piece.live, piece.still) == ("<div>a<b></div>", "<div>ac</div>")
    assert piece._mime_() == ("text/html", piece.live)


@pytest.mark.parametrize(
    ("make", "stands_at"),
    [
        (lambda ui: ui.dropdown({"of three": (3, 3), "of all": None}, value="of three", label="rule"), "of three"),
        (lambda ui: ui.radio({"yes": 1, "no": 2}, value="no", label="rule"), "no"),
        (lambda ui: ui.switch(value=False, label="rule"), "off"),
        (lambda ui: ui.slider(-2, 2, value=-1.0, step=0.5, label="rule"), "−1"),
        (lambda ui: ui.slider(steps=[1, 8, 64], value=64, label="rule"), "64"),
    ],
)
def test_what_can_be_moved_rests_at_what_the_reader_would_see(make: Callable[[Any], Any], stands_at: str) -> None:
    ui = pytest.importorskip("marimo", reason='pip install "regard[learn]"').ui
    assert at_rest(make(ui)) == f"<p class='values'>rule <b>{stands_at}</b></p>"


def test_what_is_said_may_differ_where_nothing_moves() -> None:
    piece = lesson("model").say("Point at *it*.", resting="Here is *it*.")
    assert piece.live == '<div class="lesson"><p>Point at <em>it</em>.</p></div>'
    assert piece.still == '<div class="lesson"><p>Here is <em>it</em>.</p></div>'


def test_code_is_escaped() -> None:
    assert "<script>" not in coloured("x = '<script>'")


def test_latex_that_is_none_is_said() -> None:
    assert "<math" in typeset(r"\frac{a}{b}")


# -- programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["attention", "self_attention"])
def test_printed_programs_run_and_agree(form: str) -> None:
    found = programs.printed(rg.Attention(mask=rg.causal), form, form)
    arrays = tuple(np.random.default_rng(0).standard_normal((3, 5, 5)))
    outcomes = programs.ran(found, arrays)
    assert list(outcomes) == ["python", "numpy", "torch"]
    assert programs.apart(outcomes) < 1e-14
    right = rg.Attention(mask=rg.causal)(*arrays) if form == "attention" else None
    if right is not None:
        np.testing.assert_allclose(outcomes["python"], right, atol=1e-14)


def test_programs_that_differ_say_by_how_much() -> None:
    two = [programs.Program("python", "", lambda x: x), programs.Program("numpy", "", lambda x: x + 0.25)]
    arrays = (np.zeros((2, 3)),)
    assert programs.apart(programs.ran(two, arrays)) == 0.25
    assert "is 0.2." in programs.side_by_side(two, arrays).still or "0.25" in programs.side_by_side(two, arrays).still


def test_a_program_whose_library_is_missing_says_what_to_install() -> None:
    three = [programs.Program("numpy", "", lambda x: x), programs.Program("torch", "import torch", None)]
    assert (
        "PyTorch is not installed here: pip install regard[torch]." in programs.side_by_side(three, (np.ones(2),)).still
    )


# -- pictures --------------------------------------------------------------------------------------------------


def test_a_matrix_has_a_cell_for_each_weight() -> None:
    picture = matrix_of(np.eye(3), "abc", "xyz", says="three")
    assert picture.count("<rect") == 9
    assert "<title>three</title>" in picture
    assert matrix_of(np.eye(3), says="three", lit=1).count("<rect") == 10


def test_curves_end_with_their_names() -> None:
    picture = curves_of([0, 1, 2], {"up": [0, 1, 2], "down": [2, 1, 0]}, says="two", across="x", up="y")
    assert picture.count("<path") == 2
    assert ">up</text>" in picture
    assert ">down</text>" in picture


def test_styles_fetch_nothing() -> None:
    assert "url(" not in style()
    assert "@import" not in style()
