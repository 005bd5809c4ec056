"""Numbers as they are set: in prose, in tables, in pictures; and not in code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course import lesson
from regard.course.pieces.numbers import as_set, percent
from regard.course.pieces.prose import prose


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.sampled_from([".3g", ".2f", ".0e", "g"]))
def test_a_number_that_is_read_has_a_true_minus(number: float, form: str) -> None:
    shown = as_set(f"{number:{form}}")
    assert "-" not in shown
    assert "e" not in shown
    assert shown.startswith("−") == f"{number:{form}}".startswith("-")


@pytest.mark.parametrize("text", ["a-1", "2024-05-01", "x-ray", "well-known", "- 3 of them", "--1", "T-3e"])
def test_hyphens_stay_hyphens(text: str) -> None:
    assert as_set(text) == text


def test_numbers_of_prose_are_set_and_code_stays_code() -> None:
    assert prose("By -0.5, or 3e-17, in `x[-1]` and `1e-5`.") == (
        "<p>By −0.5, or 3\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁷, in <code>x[-1]</code> and <code>1e-5</code>.</p>"
    )
    assert "<mo>&#x02212;</mo>" in prose("$-1$"), "mathematics has its own"
    assert "axis=-1" in prose("```\naxis=-1\n```")


def test_a_table_holds_code_and_numbers() -> None:
    table = lesson(5).table(["to", "write"], [("a < b", "`f(x[-1]) & g`"), (-0.25, -3), ("3e-19", "*plain*")]).still
    assert "<td>a &lt; b</td><td><code>f(x[-1]) &amp; g</code></td>" in table
    assert '<td class="number">−0.25</td><td class="number">−3</td>' in table
    assert "<td>3\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁹</td><td>*plain*</td>" in table


def test_the_words_of_a_picture_are_set_and_its_places_are_not() -> None:
    picture = '<svg><title>from -2</title><text x="-2">-2</text></svg>'
    shown = lesson(5).figure(picture, "At -2.").still
    assert 'x="-2"' in shown
    assert ">−2</text>" in shown
    assert "<title>from −2</title>" in shown
    assert "At −2." in shown


@pytest.mark.parametrize(
    ("share", "told"), [(1.0, "100.0%"), (0.046, "4.6%"), (0.001, "0.1%"), (2e-6, "less than 0.1%")]
)
def test_a_share_that_is_there_is_never_nothing(share: float, told: str) -> None:
    assert percent(share) == told
