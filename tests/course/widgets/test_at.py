"""What the page sends is brought back into range, or refused; the kernel never sees an exception."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=2),
    max_leaves=6,
)
numbers = st.floats() | st.integers() | st.booleans() | st.none()
pairs = st.lists(numbers, min_size=2, max_size=2)
parts = {
    "query": pairs | numbers | anything, "angle": numbers | anything, "spread": pairs | anything,
    "row": numbers | anything, "head": st.sampled_from(["one", "own"]) | anything, "mistake": anything,
}  # fmt: skip
places = anything | st.fixed_dictionaries({}, optional=parts)
varied = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(a: Any, b: Any) -> bool:
    return json.dumps(a) == json.dumps(b)


@varied
@given(at=places)
def test_whatever_comes_leaves_a_place_that_there_is(widget: Any, at: Any) -> None:
    keys = set(widget.at)
    widget.set_state({"at": at})  # as the page's messages arrive
    assert set(widget.at) == keys
    assert same(widget.allowed(widget.at), widget.at)
    assert same(widget.found, widget.find(widget.at))
    json.dumps([widget.given, widget.at, widget.found], allow_nan=False)


@pytest.mark.parametrize("at", [None, 3, "text", [], {"query": [math.nan, 0]}, {"row": "1"}, {"row": 1.5}, {"head": 7},
                                {"mistake": "no such"}, {"spread": [1, math.nan]}, {"angle": True}])  # fmt: skip
def test_what_means_nothing_changes_nothing(widget: Any, at: Any) -> None:
    before = widget.at, widget.found
    widget.at = at
    assert (widget.at, widget.found) == before


def test_parts_that_are_not_named_stay(widget: Any) -> None:
    before = dict(widget.at)
    widget.at = {}
    assert widget.at == before
