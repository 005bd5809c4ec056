"""Up in a straight line, then down along a cosine."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.schedule import Schedule

SCHEDULES = st.integers(1, 400).flatmap(
    lambda steps: st.builds(
        Schedule,
        st.just(steps),
        st.floats(1e-6, 1.0),
        st.none() | st.integers(0, steps),
        st.floats(0.0, 1.0),
    )
)


@given(SCHEDULES)
def test_up_then_down_and_never_out_of_bounds(schedule: Schedule) -> None:
    rates = [schedule(step) for step in range(schedule.steps + 3)]
    up, down = rates[: schedule.warmed], rates[schedule.warmed :]
    assert up == sorted(up)
    assert all(one >= two - 1e-12 for one, two in pairwise(down))
    assert all(0 < rate <= schedule.rate * (1 + 1e-12) for rate in up)
    assert all(schedule.rate * schedule.floor * (1 - 1e-9) <= rate <= schedule.rate * (1 + 1e-9) for rate in down)
    assert len(set(rates[schedule.steps :])) == 1, "past the end it stays"


@given(SCHEDULES)
def test_the_formula(schedule: Schedule) -> None:
    T, w, eta, f = schedule.steps, schedule.warmed, schedule.rate, schedule.floor
    for t in range(T):
        cosine = f + (1 - f) * (1 + math.cos(math.pi * (t - w) / max(1, T - w))) / 2
        assert schedule(t) == pytest.approx(eta * ((t + 1) / w if t < w else cosine), rel=1e-12)


def test_a_tenth_warms_up_and_at_most_a_hundred() -> None:
    assert [Schedule(steps, 1.0).warmed for steps in (9, 10, 370, 1000, 5000)] == [0, 1, 37, 100, 100]


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"steps": 0}, CallError, "steps: an integer of at least 1; got 0"),
        ({"steps": 1.5}, KindError, "steps: an integer; got 1.5"),
        ({"rate": -1.0}, CallError, "rate: a finite number of at least 0; got -1.0"),
        ({"rate": math.nan}, CallError, "rate: a finite number of at least 0; got nan"),
        ({"warmup": -1}, CallError, "warmup: an integer of at least 0; got -1"),
        ({"warmup": 8}, CallError, "warmup: at most the steps, 7; got 8; train longer, or warm up less"),
        ({"floor": 1.5}, CallError, "floor: a share of the rate, 0 to 1; got 1.5"),
        ({"floor": math.nan}, CallError, "floor: a share of the rate, 0 to 1; got nan"),
    ],
)
def test_refused(given: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as error:
        Schedule(**{"steps": 7, "rate": 0.1, **given})
    assert str(error.value) == says
