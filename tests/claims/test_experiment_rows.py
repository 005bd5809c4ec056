"""Rows that experiments decide: they pass on the outcomes that were measured, and fail where nothing differs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import fmean

import pytest
from rich.console import Console

from regard import claims
from regard.claims.registry import measured
from regard.experiments import store
from regard.experiments.record import Outcome
from regard.experiments.registry import EXPERIMENTS, find

OUTCOMES = store.OUTCOMES
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


def test_a_row_whose_experiment_was_not_run_is_skipped_with_the_command(
    known: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    known(lambda name: None)  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(store, "shipped", lambda name: None)
    result = measured(LEDGER["L2"])
    assert result.status == "skipped"
    assert "`regard experiment recall` does, in about" in (result.skipped or "")


# -- outcomes that come with the package -----------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither this user's cache nor the package's own outcomes."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "OUTCOMES", tmp_path / "outcomes")
    return tmp_path


def test_a_shipped_outcome_is_known_while_its_source_stands(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = kept("recall")
    assert store.known("recall") is None
    assert not store.is_older("recall")
    store.ship("recall", found)
    assert store.known("recall") == store.outcome("recall") == found
    assert store.known("recall", store.Scale(0.5)) is None
    assert not store.is_older("recall")
    path = elsewhere / "outcomes" / "recall.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(told | {"source": "0" * 64}), encoding="utf-8")
    assert store.known("recall") is None
    assert store.is_older("recall")
    assert store.outcome("recall") == found, "the ledger reads it, and says whose it is"


def test_the_modules_of_a_shipped_outcome_are_those_that_were_loaded(elsewhere: Path) -> None:
    store.ship("recall", kept("recall"))
    told = json.loads((elsewhere / "outcomes" / "recall.json").read_text(encoding="utf-8"))
    assert {"experiments.recall", "algebra.formula"} <= set(told["modules"].split())
    assert set(told["modules"].split()) <= {
        name.partition(".")[2] for name in sys.modules if name.startswith("regard.")
    }


def test_the_ledger_says_which_rows_rest_on_an_earlier_code(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=StringIO(), width=200)
    monkeypatch.setattr(store, "is_older", lambda name: name == "recall")
    claims.show(console, ["L2", "T2"])
    assert (
        "L2: from outcomes of an earlier code; regard claims --experiments measures them anew"
        in console.file.getvalue()
    )


def test_every_experiment_has_an_outcome_that_ships() -> None:
    assert sorted(path.stem for path in OUTCOMES.iterdir()) == sorted(EXPERIMENTS)
