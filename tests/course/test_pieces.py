"""Pieces: Markdown with mathematics, coloured code, three programs that agree; the same in a notebook and in a file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard.course.figures.charts import curves_of, matrix_of
from regard.course.pieces import programs
from regard.course.pieces.code import coloured
from regard.course.pieces.piece import Piece, element, joined, same
from regard.course.pieces.prose import prose, typeset
from regard.course.pieces.styling import style


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
