"""Results of slow rows: kept under the hash of the code that they depend on, and never where they would mislead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import claims
from regard.claims import Claim, Figure, Measured, Measurements, Result, Verdict, keeping
from regard.claims.keeping import as_json, kept, measured_and_kept, measured_or_kept, of_json, place
from regard.experiments import store
from regard.experiments.record import Experiment
from regard.experiments.registry import EXPERIMENTS, find


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, in which even quick rows are kept."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(keeping, "SLOW", 0)
    return tmp_path / "claims"


def row(
    *parts: Measured | Figure, error: Exception | None = None, needs: tuple[str, ...] = ()
) -> tuple[Claim, list[int]]:
    """A claim that yields these, as if it stood in a module of rows; and how often it was measured."""
    runs = list[int]()

    def measure() -> Measurements:
        runs.append(1)
        yield from parts
        if error is not None:
            raise error

    measure.__module__ = "regard.claims.rows.similarity"
    return Claim("X1", "A", "All is well.", Verdict.HOLDS, measure, needs), runs


GOOD, BAD = Measured(1, "a number", at_most=2, detail="told"), Measured(3, "another", at_most=2)
SEEN = Figure("<svg></svg>", "A figure.")
WAITING = Experiment("late", "Will it be?", ("X1",), 1.0, lambda *_: pytest.fail("run"), lambda *_: None)


def test_what_passed_is_measured_once() -> None:
    claim, runs = row(GOOD, SEEN)
    first, second = (measured_or_kept(claim) for _ in range(2))
    assert len(runs) == 1
    assert (first.stored, second.stored) == (False, True)
    assert second == replace(first, stored=True)
    assert measured_and_kept(claim).stored is False
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("parts", "options"),
    [
        ([GOOD, BAD], {}),
        ([GOOD], {"error": ZeroDivisionError("by 0")}),
        ([GOOD], {"error": store.NotMeasured(WAITING)}),
        ([GOOD], {"needs": ("no_such_package",)}),
        ([], {}),
    ],
    ids=["failed", "error", "not measured", "no package", "no number"],
)
def test_nothing_else_is_ever_kept(cache: Path, parts: list[Measured], options: dict[str, object]) -> None:
    claim, _ = row(*parts, **options)  # type: ignore[arg-type]
    assert not measured_or_kept(claim).passed
    assert not cache.exists()


def test_a_quick_row_is_measured_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "SLOW", 3600)
    claim, runs = row(GOOD)
    assert not any(measured_or_kept(claim).stored for _ in range(2))
    assert len(runs) == 2


def test_other_code_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    claim, runs = row(GOOD)
    measured_or_kept(claim)
    monkeypatch.setattr(store, "code_hash", lambda *_: "f" * 64)
    assert not measured_or_kept(claim).stored
    assert measured_or_kept(claim).stored
    assert len(runs) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"id": "X2", "seconds": 1, "measurements": [], "figures": []}']
)
def test_a_file_that_is_not_ours_is_measured_again(text: str) -> None:
    claim, runs = row(GOOD)
    path = place(claim)
    assert path is not None
    store.write(path, text)
    assert kept(claim) is None
    assert measured_or_kept(claim).passed
    assert kept(claim) is not None
    assert len(runs) == 1


def test_a_result_is_that_of_its_claim() -> None:
    claim, _ = row(GOOD)
    text = as_json(Result(claim, (GOOD,), 1.0)).replace("X1", "X2")
    with pytest.raises(ValueError, match="text: the result of X1; got that of X2"):
        of_json(claim, text)


def test_a_cache_that_is_closed_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "file"
    closed.write_text("no folder")
    monkeypatch.setenv("REGARD_CACHE", str(closed))
    claim, _ = row(GOOD)
    assert measured_or_kept(claim).passed


def test_a_row_of_someone_else_is_not_kept() -> None:
    claim, _ = row(GOOD)
    claim.measure.__module__ = "lesson.rows"
    assert place(claim) is None


def test_a_row_has_a_place_exactly_if_it_reads_no_outcome() -> None:
    readers = {claim for name in EXPERIMENTS for claim in find(name).claims}
    assert {claim.id for claim in claims.ledger() if place(claim) is None} == readers


numbers = st.floats(allow_nan=False)
words = st.text(max_size=20)


@given(st.lists(st.tuples(numbers, words, numbers, words), min_size=1), st.lists(st.tuples(words, words)), numbers)
def test_what_is_kept_comes_back(
    parts: list[tuple[float, str, float, str]], figures: list[tuple[str, str]], seconds: float
) -> None:
    measurements = tuple(Measured(value, what, at_most=most, detail=detail) for value, what, most, detail in parts)
    claim, _ = row()
    result = Result(claim, measurements, seconds, figures=tuple(Figure(*one) for one in figures))
    assert of_json(claim, as_json(result)) == replace(result, stored=True)


def test_seconds_and_the_word_are_told() -> None:
    claim, _ = row(GOOD)
    stored = Result(claim, (GOOD,), 12.3, stored=True)
    assert claims.row(stored)[6] == "12.30 kept"
    assert "holds; passed in 12.30 s, kept from a run of the same code" in claims.full(stored)
    assert claims.summary([stored, replace(stored, stored=False, seconds=1.0)]) == "2 passed in 1.0 s, 1 of them kept"


def test_python_measures_always(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Callable[..., Result] = lambda claim: pytest.fail("asked what is kept")  # noqa: E731
    monkeypatch.setattr(keeping, "kept", found)
    assert not claims.run(["G12"])[0].stored
