"""Every row of the ledger passes, and fails when what it claims is made untrue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regard import Attention, claims
from regard.claims.registry import measured
from regard.engines import call
from regard.engines.dense import forward as dense
from regard.engines.dense import pairs as dense_pairs
from regard.engines.python import pairs as python_pairs

LEDGER = {claim.id: claim for claim in claims.ledger()}
FORMULA = "G2 G5 K1 K2 N1 N6 M1 V3 P1 T1 I1 I2 C1".split()


@pytest.mark.parametrize("name", LEDGER)
def test_passes(name: str) -> None:
    result = measured(LEDGER[name])
    if result.skipped is not None:
        pytest.skip(result.skipped)
    assert result.passed, claims.full(result)


def test_rows_of_the_formula_are_there() -> None:
    assert set(FORMULA) <= set(LEDGER)


@pytest.mark.parametrize("name", LEDGER)
def test_row_is_worded(name: str) -> None:
    claim = LEDGER[name]
    assert claim.sentence.endswith(".")
    assert claim.formula, "the function that measures opens with the formula"


def test_wrong_as_stated_shows_the_counterexample_and_the_correction() -> None:
    wrong = [claim for claim in LEDGER.values() if claim.verdict is claims.Verdict.WRONG and not claim.needs]
    assert wrong
    assert not [claim.id for claim in wrong if len(measured(claim).measurements) < 2]


def test_numbers_are_the_same_on_every_run() -> None:
    first, again = (claims.run(["G5", "K2", "N1", "G2", "V3", "P1", "T1", "I2"]) for _ in range(2))
    assert [result.measurements for result in first] == [result.measurements for result in again]


# -- each row can fail -----------------------------------------------------------------------------------------

attend, quotient, mix, started = dense._attend, dense.quotient, dense.mix, call._start
forward, python_dot = dense_pairs.Dot.forward, python_pairs.inner


def too_large(xp: Any, psi: Any, total: Any) -> Any:
    """Weights that sum to 1.01."""
    return 1.01 * quotient(xp, psi, total)


def unmasked(call: Any) -> Any:
    """Every pair, whatever the mask says."""
    return attend(replace(call, formula=Attention(call.formula.score, call.formula.weight)))


def counts_itself(reading: Any, pair: Any) -> Any:
    """A score with some of the key's position in it."""
    scores = forward(reading, pair)
    return scores + 0.01 * reading.xp.arange(scores.shape[-1], dtype=scores.dtype)


def adds_a_feature(*arguments: Any) -> Any:
    """An output with something that is no value's: the square of it."""
    mixed = mix(*arguments)
    return mixed + 0.01 * mixed**2


def always_last(formula: Any, xp: Any, start: Any, *sizes: Any) -> Any:
    """Queries that stand at the end whatever `start` says."""
    return started(formula, xp, None, *sizes)


def scaled(x: Any, y: Any) -> float:
    return 1.1 * python_dot(x, y)


SABOTAGE: list[tuple[Any, str, Callable[..., Any], str]] = [
    (dense, "quotient", too_large, "G2 N1 N6 I1"),
    (dense, "_attend", unmasked, "N6 M1 I1 P1"),
    (dense_pairs.Dot, "forward", counts_itself, "G5 K1 K2 N1 P1"),
    (dense, "mix", adds_a_feature, "V3 T1 I1"),
    (call, "_start", always_last, "C1"),
    (python_pairs, "inner", scaled, "I1 I2"),
]


CASES = [(*part, row) for *part, rows in SABOTAGE for row in rows.split()]


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "row"), CASES, ids=[f"{wrong.__name__}-{row}" for _, _, wrong, row in CASES]
)
def test_fails_when_the_engine_is_wrong(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Callable[..., Any], row: str
) -> None:
    monkeypatch.setattr(owner, name, staticmethod(wrong) if isinstance(owner, type) else wrong)
    assert measured(LEDGER[row]).status == "failed"


def test_every_row_of_the_formula_was_made_to_fail() -> None:
    assert {row for *_, rows in SABOTAGE for row in rows.split()} == set(FORMULA)


def test_engines_that_took_part_are_named() -> None:
    detail = measured(LEDGER["M1"]).measurements[0].detail
    assert {"tiled on torch", "dense on numpy", "python on numpy", "python on lists"} <= set(detail.split(", "))


def test_streaming_holds_far_less() -> None:
    from regard.attention import Attention
    from regard.claims.rows.programs import peak_bytes

    q = np.ones((1009, 5))
    attention = Attention()
    assert peak_bytes(lambda q: attention(q[:7], q, q), q) < peak_bytes(lambda q: attention(q, q, q), q) / 20
