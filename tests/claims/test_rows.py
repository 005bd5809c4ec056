"""Every row of the ledger passes, and fails when what it claims is made untrue."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import distance_transform_cdt
from scipy.spatial import ConvexHull

from regard import Attention, claims, geometry
from regard.claims.measure import normal
from regard.claims.registry import measured
from regard.claims.rows import elements, positions
from regard.diagnosis import laws
from regard.diagnosis.search import Search
from regard.engines import call
from regard.engines.dense import forward as dense
from regard.engines.dense import pairs as dense_pairs
from regard.engines.python import pairs as python_pairs
from regard.geometry import bilinear, family, moments, products, spectrum
from regard.inputs.grid import Grid
from regard.inputs.positions import Learned

LEDGER = {claim.id: claim for claim in claims.ledger()}
FORMULA = "G2 G5 K1 K2 N1 N6 M1 V3 P1 T1 I1 I2 C1".split()
GEOMETRY = "G0 G1 G3 G4 G6 G7 G8 G9 G10 G11 G12 G13 K3 K5 K6 P3 P4 P7".split()
CHECK = "N4 N5 M3".split()


@pytest.mark.parametrize("name", [*FORMULA, *GEOMETRY, *CHECK])  # those of training: test_experiment_rows.py
def test_passes(name: str) -> None:
    result = measured(LEDGER[name])
    if result.skipped is not None:
        pytest.skip(result.skipped)
    assert result.passed, claims.full(result)


def test_rows_of_the_formula_of_geometry_and_of_check_are_there() -> None:
    assert {*FORMULA, *GEOMETRY, *CHECK} <= set(LEDGER)


@pytest.mark.parametrize("name", LEDGER)
def test_row_is_worded(name: str) -> None:
    claim = LEDGER[name]
    assert claim.sentence.endswith(".")
    assert claim.formula, "the function that measures opens with the formula"


def test_wrong_as_stated_shows_the_counterexample_and_the_correction() -> None:
    wrong = [measured(claim) for claim in LEDGER.values() if claim.verdict is claims.Verdict.WRONG]
    assert any(result.passed for result in wrong)
    assert not [result.claim.id for result in wrong if result.skipped is None and len(result.measurements) < 2]


def test_numbers_are_the_same_on_every_run() -> None:
    ids = "G5 K2 N1 G2 V3 P1 T1 I2 G3 G4 G6 G12 K3 K6 P3 P7".split()
    first, again = (claims.run(ids) for _ in range(2))
    assert [result.measurements for result in first] == [result.measurements for result in again]


# -- each row can fail -----------------------------------------------------------------------------------------

attend, quotient, mix, started = dense._attend, dense.quotient, dense.mix, call._start
forward, python_dot = dense_pairs.Dot.forward, python_pairs.inner


def too_large(xp: Any, psi: Any, total: Any) -> Any:
    """Weights that sum to 1.01."""
    return 1.01 * quotient(xp, psi, total)


def unmasked(raw: Any, totals: Any = None) -> Any:
    """Every pair, whatever the mask says."""
    formula = raw.call.formula
    return attend(replace(raw, call=replace(raw.call, formula=Attention(formula.score, formula.weight))), totals)


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


search, cut_vectors, unit, axes_of = geometry.search, Grid.vectors, products.unit, spectrum.axes


def forgets_an_entry(x: Any) -> Any:
    return x[:, :-1] @ x[:, :-1].T


def one_patch_late(grid: Any, image: Any) -> Any:
    """Every patch in the place of the one after it."""
    return np.roll(cut_vectors(grid, image), 1, axis=0)


def unwhitened(metric: Any, x: Any) -> Any:
    return x


def by_product(queries: Any, corpus: Any, k: int, **options: Any) -> Any:
    """The largest dot products, whatever is asked for."""
    return search(queries, corpus, k, **{**options, "metric": "dot"})


def greatest_at_right_angles(x: Any, y: Any) -> Any:
    return np.sin(geometry.angle(x, y))


def longer(x: Any, metric: Any = None) -> Any:
    return 1.1 * unit(x, metric)


def not_centred(xp: Any, x: Any) -> Any:
    return x


def coordinate_axes(matrix: Any) -> Any:
    """The coordinates themselves for axes, and their variances."""
    return geometry.Axes(np.diag(matrix), np.eye(len(matrix)))


def never_negative(matrix: Any) -> Any:
    found = axes_of(matrix)
    return replace(found, values=np.abs(found.values))


def entry_by_entry(xp: Any, matrix: Any, f: Any, slope: Any) -> Any:
    """The root of every entry in place of that of the matrix."""
    return np.sqrt(np.abs(matrix))


def not_stretched(xp: Any, covariance: Any) -> Any:
    """Turned into the axes, and left at their variances."""
    return axes_of(covariance).vectors.T


def answers_for_asking(form: Any, x: Any, y: Any = None) -> Any:
    """Mᵀ in the place of M."""
    return x @ form.matrix.T @ x.T


def nowhere(position: Any, x: Any, at: Any = 0) -> Any:
    """The vectors without their positions."""
    return x


def no_law(exam: Any) -> Any:
    """Nothing is tried that values do not show."""
    return iter(())


def anything_goes(search: Any, steps: Any) -> bool:
    """The first hypothesis is believed."""
    return True


SABOTAGE: list[tuple[Any, str, Callable[..., Any], str]] = [
    (dense, "quotient", too_large, "G2 N1 N6 I1"),
    (dense, "_attend", unmasked, "N6 M1 I1 P1"),
    (dense_pairs.Dot, "forward", counts_itself, "G5 K1 K2 K3 K5 N1 P1"),
    (dense, "mix", adds_a_feature, "V3 T1 I1"),
    (call, "_start", always_last, "C1"),
    (python_pairs, "inner", scaled, "I1 I2"),
    (Grid, "vectors", one_patch_late, "G1"),
    (geometry.Mahalanobis, "whiten", unwhitened, "G0 G3 G11"),
    (geometry, "gram", forgets_an_entry, "G4"),
    (moments, "centred", not_centred, "G6"),
    (products, "unit", longer, "G6 P7"),
    (geometry, "search", by_product, "G7"),
    (geometry, "distance", greatest_at_right_angles, "G12"),
    (geometry, "axes", coordinate_axes, "G8"),
    (spectrum, "axes", coordinate_axes, "G9"),
    (spectrum, "spectral", entry_by_entry, "G13"),
    (family, "_pca", not_stretched, "G10 G11"),
    (geometry.BilinearForm, "scores", answers_for_asking, "K3"),
    (bilinear, "axes", never_negative, "K6"),
    (Learned, "add", nowhere, "P3 P4"),
    (laws, "tried", no_law, "M3"),
    (Search, "explains", anything_goes, "N4 N5"),
]


CASES = [(*part, row) for *part, rows in SABOTAGE for row in rows.split()]


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "row"), CASES, ids=[f"{wrong.__name__}-{row}" for _, _, wrong, row in CASES]
)
def test_fails_when_the_library_is_wrong(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Callable[..., Any], row: str
) -> None:
    is_static = isinstance(inspect.getattr_static(owner, name, None), staticmethod)
    monkeypatch.setattr(owner, name, staticmethod(wrong) if is_static else wrong)
    assert measured(LEDGER[row]).status == "failed"


def test_every_row_was_made_to_fail() -> None:
    assert {row for *_, rows in SABOTAGE for row in rows.split()} == {*FORMULA, *GEOMETRY, *CHECK}


def test_engines_that_took_part_are_named() -> None:
    detail = measured(LEDGER["M1"]).measurements[0].detail
    assert {"tiled on torch", "dense on numpy", "python on numpy", "python on lists"} <= set(detail.split(", "))


def test_streaming_holds_far_less() -> None:
    from regard.attention import Attention
    from regard.claims.rows.programs import peak_bytes

    q = np.ones((1009, 5))
    attention = Attention()
    assert peak_bytes(lambda q: attention(q[:7], q, q), q) < peak_bytes(lambda q: attention(q, q, q), q) / 20


# -- what the rows stand on ------------------------------------------------------------------------------------


def test_segments_do_not_overlap() -> None:
    boxes = [box for part in elements.SEGMENTS.values() for box in part]
    assert not [
        (one, other)
        for one, other in combinations(boxes, 2)
        if max(one[0], other[0]) < min(one[2], other[2]) and max(one[1], other[1]) < min(one[3], other[3])
    ]


def test_every_segment_is_learned_and_tested() -> None:
    truth = elements._elements(np.zeros((427, 640)), elements._drawn())[2]
    assert np.bincount(truth, minlength=2 * len(elements.SEGMENTS)).min() > 50


def test_what_is_tested_lies_a_patch_away_from_what_is_learned() -> None:
    truth = elements._truth(elements._drawn())
    learned, tested = ((truth >= 0) & (truth % 2 == colour) for colour in (0, 1))
    assert learned.any()
    assert distance_transform_cdt(~learned, "chessboard")[tested].min() > elements.SIZE


def test_a_word_can_win_exactly_at_a_corner_of_its_phrase() -> None:
    x = normal(2, 11, 2)
    can_win = [word for word in range(11) if positions._margin(positions.Phrase(x, 0, word)) > 1e-9]
    assert can_win == sorted(ConvexHull(x).vertices)
