"""What is left out is counted by its reason, named, and refused if it is most."""

from __future__ import annotations

import pytest

from regard.algebra.errors import CallError
from regard.train.data.skipped import Skipped


def skipped(count: int) -> Skipped:
    found = Skipped("line")
    for number in range(count):
        found.add("too long" if number % 2 else "empty", f"line {number}")
    return found


def test_reasons_are_told_apart_and_the_first_named() -> None:
    assert skipped(9).notes() == (
        "5 lines skipped, empty: line 0, line 2, line 4, …",
        "4 lines skipped, too long: line 1, line 3, line 5, …",
    )
    assert skipped(1).notes() == ("1 line skipped, empty: line 0",)
    assert skipped(0).notes() == ()
    assert len(skipped(9)) == 9


def test_half_may_be_left_out_and_no_more() -> None:
    skipped(5).refuse_most(10, "'here'", "look")
    with pytest.raises(
        CallError, match=r"at least half of the lines of use; got 'here', where 5 of 9 .*line 0.*; look"
    ):
        skipped(5).refuse_most(9, "'here'", "look")
