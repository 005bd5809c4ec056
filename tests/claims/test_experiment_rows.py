"""Rows that experiments decide: they pass on the outcomes that were measured, and fail where nothing differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from regard import claims
from regard.claims.registry import measured
from regard.experiments import store
from regard.experiments.record import Outcome
from regard.experiments.registry import EXPERIMENTS, find

OUTCOMES = Path(__file__).parents[2] / "bench" / "results" / "experiments"
LEDGER = {claim.id: claim for claim in claims.ledger()}
TRAINING = "K4 N2 N3 N8 N9 M2 V1 V2 P2 P5 L1 L2 L3 T2 T3 T4 I3 N7 E1 P6 P8".split()


def kept(name: str) -> Outcome:
    """The outcome that bench/experiments.py measured."""
    return Outcome.of_json((OUTCOMES / f"{name}.json").read_text(encoding="utf-8"))


def alike(name: str) -> Outcome:
    """The same experiment, had it seen no difference between anything."""
    found = kept(name)
    return replace(found, numbers=dict.fromkeys(found.numbers, fmean(found.numbers.values())))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], Outcome]], None]:
    return lambda outcome: monkeypatch.setattr(store, "known", lambda name, *_: outcome(name))


def test_each_row_belongs_to_one_experiment() -> None:
    decided = [claim for name in EXPERIMENTS for claim in find(name).claims]
    assert sorted(decided) == sorted(TRAINING)
    assert set(TRAINING) <= set(LEDGER)


@pytest.mark.parametrize("name", TRAINING)
def test_passes_on_what_was_measured(known: Callable[..., None], name: str) -> None:
    known(kept)
    result = measured(LEDGER[name])
    assert result.passed, claims.full(result)


@pytest.mark.parametrize("name", TRAINING)
def test_fails_where_nothing_differs(known: Callable[..., None], name: str) -> None:
    known(alike)
    assert not measured(LEDGER[name]).passed


def test_a_row_whose_experiment_was_not_run_is_skipped_with_the_command(known: Callable[..., None]) -> None:
    known(lambda name: None)  # type: ignore[arg-type,return-value]
    result = measured(LEDGER["L2"])
    assert result.status == "skipped"
    assert "`regard experiment recall` does, in about" in (result.skipped or "")
