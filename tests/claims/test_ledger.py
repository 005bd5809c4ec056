"""The ledger's mechanism: what may stand in it, and what becomes of a claim that holds, fails or raises."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from regard import claims
from regard.claims import Ledger, LedgerError, Measured, Measurements, Verdict, registry


def holds() -> Measurements:
    """1 + 1 = 2.

    And more that no one asked for.
    """
    yield Measured(2.0, "the sum", at_least=2, at_most=2, detail="by counting")
    yield Measured(0.25, "the rest", at_most=1)


def fails() -> Measurements:
    yield Measured(0.25, "the first", at_most=1)
    yield Measured(3.0, "the second", at_most=1)


def raises() -> Measurements:
    yield Measured(0.25, "the first", at_most=1)
    raise ZeroDivisionError("by 0")


def yields_nothing() -> Measurements:
    yield from ()


def book(**functions: object) -> Ledger:
    """A ledger of its own, with each function under its id."""
    made = Ledger()
    for name, function in functions.items():
        made.claim(name, "AE", f"Sentence of {name}.", Verdict.HOLDS)(function)
    return made


# -- what may stand in it --------------------------------------------------------------------------------------


def test_a_decorated_function_is_a_claim() -> None:
    ledger = Ledger()
    assert ledger.claim("X1", "BD", "All is well.", Verdict.CONDITION, needs=["torch"])(holds) is holds
    (claim,) = ledger.select()
    assert (claim.id, claim.sources, claim.sentence, str(claim.verdict)) == (
        "X1",
        "BD",
        "All is well.",
        "holds with a condition",
    )
    assert claim.needs == ("torch",)
    assert claim.formula == "1 + 1 = 2."


def test_an_id_stands_once() -> None:
    ledger = book(X1=holds)
    with pytest.raises(LedgerError, match="id: one claim for each; got X1 again, for fails; choose another"):
        ledger.claim("X1", "A", "Another.", Verdict.WRONG)(fails)
    assert ledger.claims["X1"].measure is holds


def test_a_module_may_be_loaded_again() -> None:
    ledger = book(X1=holds)
    ledger.claim("X1", "A", "The same, reworded.", Verdict.HOLDS)(holds)
    assert ledger.claims["X1"].sentence == "The same, reworded."


@pytest.mark.parametrize("sources", ["", "F", "AF"])
def test_a_source_is_one_of_the_texts(sources: str) -> None:
    with pytest.raises(LedgerError, match=f"sources: letters among A, B, C, D, E, as in 'AB'; got '{sources}' for X1"):
        Ledger().claim("X1", sources, "From nowhere.", Verdict.HOLDS)


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(LedgerError, match="ids: among X1, X2; got X3, X4"):
        book(X1=holds, X2=fails).run(["X1", "X3", "X4"])


def test_ids_choose_and_order() -> None:
    ledger = book(X1=holds, X2=fails, X3=holds)
    assert [result.claim.id for result in ledger.run(["X3", "X1"])] == ["X3", "X1"]
    assert [result.claim.id for result in ledger.run()] == ["X1", "X2", "X3"]
    assert ledger.run([]) == []


def test_the_order_is_that_of_the_modules_whichever_was_loaded_first(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = claims.ledger()
    modules = [f"regard.claims.{name}" for name in reversed(registry.MODULES)]
    last_first = [claim for module in modules for claim in wanted if claim.measure.__module__ == module]
    monkeypatch.setattr(registry.LEDGER, "claims", {claim.id: claim for claim in last_first})
    registry.LEDGER.claim("X1", "A", "From elsewhere.", Verdict.HOLDS)(holds)
    assert [claim.id for claim in claims.ledger()] == [*(claim.id for claim in wanted), "X1"]


# -- what is measured ------------------------------------------------------------------------------------------


def test_a_measurement_has_a_bound() -> None:
    with pytest.raises(LedgerError, match="measured: at_most=, at_least= or both; got neither for 'a number'"):
        Measured(1.0, "a number")


@pytest.mark.parametrize(
    ("value", "bounds", "kept", "expected"),
    [
        (1.0, {"at_most": 1}, True, "at most 1"),
        (1.5, {"at_most": 1}, False, "at most 1"),
        (1.0, {"at_least": 1}, True, "at least 1"),
        (0.5, {"at_least": 1}, False, "at least 1"),
        (0.5, {"at_least": 0.25, "at_most": 0.75}, True, "0.25 to 0.75"),
        (0.8, {"at_least": 0.25, "at_most": 0.75}, False, "0.25 to 0.75"),
        (0.0, {"at_least": 0, "at_most": 0}, True, "exactly 0"),
        (np.float32(2.0), {"at_most": 3}, True, "at most 3"),
        (float("nan"), {"at_most": 1e9}, False, "at most 1e+09"),
        (float("nan"), {"at_least": -1e9}, False, "at least -1e+09"),
    ],
)
def test_bounds(value: float, bounds: dict[str, float], kept: bool, expected: str) -> None:
    found = Measured(value, "a number", **bounds)
    assert found.kept is kept
    assert found.expected == expected
    assert type(found.value) is float


# -- what becomes of it ----------------------------------------------------------------------------------------


def test_a_claim_that_holds() -> None:
    (result,) = book(X1=holds).run()
    assert (result.passed, result.status, result.error, result.skipped) == (True, "passed", None, None)
    assert (result.measured, result.expected) == (2.0, "exactly 2")
    assert result.seconds > 0
    assert result.detail == "the sum: 2, expected exactly 2 (by counting)\nthe rest: 0.25, expected at most 1"


def test_a_claim_that_fails_shows_the_number_that_broke() -> None:
    (result,) = book(X1=fails).run()
    assert (result.passed, result.status) == (False, "failed")
    assert (result.measured, result.expected) == (3.0, "at most 1")


def test_a_claim_that_raises_is_an_error_and_the_rest_still_run() -> None:
    broken, sound = book(X1=raises, X2=holds).run()
    assert (broken.passed, broken.status, broken.error) == (False, "error", "ZeroDivisionError: by 0")
    assert len(broken.measurements) == 1
    assert sound.passed


def test_a_claim_that_measures_nothing_is_an_error() -> None:
    (result,) = book(X1=yields_nothing).run()
    assert (result.status, result.measured, result.expected) == ("error", None, "")
    assert result.error == "X1: yields at least one measurement; got none"


@pytest.mark.parametrize(
    ("package", "extra"),
    [("torch", "torch"), ("transformers", "hf"), ("sklearn", "geometry"), ("scipy", "geometry"), ("PIL", "inputs")],
)
def test_a_claim_without_its_package_is_skipped(monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ledger = Ledger()
    ledger.claim("X1", "A", "Needs a package.", Verdict.HOLDS, needs=[package])(holds)
    (result,) = ledger.run()
    assert (result.passed, result.status, result.error) == (False, "skipped", None)
    assert result.skipped == f'this needs {package}, which is not installed: pip install "regard[{extra}]"'


# -- how it prints ---------------------------------------------------------------------------------------------


def test_rows_have_a_cell_for_each_column() -> None:
    results = book(X1=holds, X2=fails, X3=raises, X4=yields_nothing).run()
    rows = [claims.row(result) for result in results]
    assert {len(row) for row in rows} == {len(claims.COLUMNS)}
    assert rows[0][:6] == ("X1", "A E", "holds", "2", "exactly 2", "passed")
    assert [row[5] for row in rows] == ["passed", "failed", "error", "error"]
    assert rows[3][3:5] == ("", "")


def test_the_table_folds_sentences_and_tells_what_failed() -> None:
    ledger = book(X1=holds, X2=fails)
    ledger.claim("X3", "C", "A sentence that is long enough to be folded " * 3, Verdict.WRONG)(raises)
    text = claims.table(ledger.run(), width=100)
    table, _, below = text.partition("\n\n")
    assert all(len(line) <= 100 for line in table.splitlines())
    assert len(table.splitlines()) > 4
    assert table.splitlines()[0].split() == list(claims.COLUMNS)
    assert below.splitlines()[0].startswith("1 passed, 1 failed, 1 error in ")
    assert "X2 failed\n  the first: 0.25, expected at most 1\n  the second: 3, expected at most 1" in below
    assert "X3 error\n  the first: 0.25, expected at most 1\n  ZeroDivisionError: by 0" in below
    assert below.endswith("\nC: “Sick of keys, queries and other cliched metaphors?”\nE: “Self Attention”")


def test_a_claim_in_full() -> None:
    (result,) = book(X1=holds).run()
    lines = claims.full(result).splitlines()
    assert lines[0] == "X1  Sentence of X1."
    assert lines[1].startswith("  A: “Self-Attention From First Principles” (Madhav Prashanth Ramachandran, 2026)")
    assert lines[3:5] == ["  1 + 1 = 2.", "  holds; passed in less than 0.01 s"]


def test_nothing_run_prints_too() -> None:
    assert claims.summary([]) == "no claims in 0.0 s"


def console() -> Console:
    return Console(file=StringIO(), width=160, color_system=None)


def shown(screen: Console) -> str:
    assert isinstance(screen.file, StringIO)
    return screen.file.getvalue()


def test_a_terminal_shows_the_whole_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_filled", lambda: book(X1=holds, X2=holds))
    screen = console()
    assert claims.show(screen)
    text = shown(screen)
    assert all(word in text for word in ("X1  holds", "Sentence of X1.", "Sentence of X2.", "2 passed in "))


def test_a_terminal_tells_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_filled", lambda: book(X1=holds, X2=fails, X3=raises))
    screen = console()
    assert not claims.show(screen)
    assert all(line in shown(screen) for line in ("X2 failed", "the first: 0.25, expected at most 1", "the second: 3"))
    assert "1 passed, 1 failed, 1 error in " in shown(screen)


def test_a_terminal_shows_chosen_claims_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_filled", lambda: book(X1=holds, X2=fails))
    screen = console()
    assert claims.show(screen, ["X1"])
    assert "the sum: 2, expected exactly 2 (by counting)" in shown(screen)
    assert "X2" not in shown(screen)
    with pytest.raises(LedgerError, match="ids: among X1, X2; got X9"):
        claims.show(console(), ["X9"])


def test_a_terminal_lists_without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_filled", lambda: book(X1=raises))
    screen = console()
    assert claims.show(screen, listing=True)
    assert "Sentence of X1." in shown(screen)
    assert "error" not in shown(screen)


def test_skipped_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ledger = Ledger()
    ledger.claim("X1", "A", "Needs a package.", Verdict.HOLDS, needs=["torch"])(holds)
    monkeypatch.setattr(registry, "_filled", lambda: ledger)
    screen = console()
    assert claims.show(screen)
    assert 'this needs torch, which is not installed: pip install "regard[torch]"' in shown(screen)


# -- without packages ------------------------------------------------------------------------------------------


def test_the_ledger_runs_without_extras() -> None:
    code = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "jax", "scipy", "sklearn", "PIL"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from regard import claims

results = claims.run(["K1", "M1", "I1", "G4", "G8", "G11", "P3"])
print(*(f"{result.claim.id} {result.status}" for result in results), sep=", ")
print(results[1].measurements[0].detail)
"""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", code], capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "K1 passed, M1 passed, I1 skipped, G4 passed, G8 skipped, G11 skipped, P3 passed",
        "dense on lists, python on lists, dense on numpy, python on numpy",
    ]
