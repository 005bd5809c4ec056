"""What a widget finds is what the library finds, wherever the hand is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from regard.algebra.mistakes import mistakes_of

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets import Ellipse, Matrix, Mistakes, Plane, Rows
from regard.course.widgets.convex import hull
from regard.geometry import Mahalanobis, search

RNG = np.random.default_rng(11)
POINTS, VALUES = 1.4 * RNG.standard_normal((7, 2)), RNG.standard_normal((7, 2))
WQ, WK = RNG.standard_normal((2, 2, 2))
FORMULAS = {
    "softmax": rg.Attention(),
    "distance": rg.Attention(score=-rg.sqdist / 2),
    "squares": rg.Attention(weight=rg.share(lambda s: rg.relu(s) ** 2)),
}
PLANES = {name: Plane(POINTS, attention=formula) for name, formula in FORMULAS.items()}
PROJECTED = Plane(POINTS, values=VALUES, Wq=WQ, Wk=WK)
places = st.tuples(*[st.floats(-9, 9, allow_subnormal=False)] * 2).map(list)
few = settings(max_examples=25, deadline=None)


def outside(y: Any, corners: Any) -> float:
    """How far y lies beyond an edge of a convex shape, whose corners turn left."""
    edges = np.roll(corners, -1, axis=0) - corners
    away = y - corners
    areas = edges[:, 0] * away[:, 1] - edges[:, 1] * away[:, 0]
    return float(np.max(-areas / np.hypot(*edges.T)))


@few
@given(name=st.sampled_from(sorted(FORMULAS)), place=places)
def test_a_vector_reads_as_the_formula_says(name: str, place: list[float]) -> None:
    plane, formula = PLANES[name], FORMULAS[name]
    plane.at = {"query": place}
    (q,) = (np.asarray([plane.at["query"]]),)
    np.testing.assert_allclose(q[0], np.clip(place, -plane.given["reach"], plane.given["reach"]))
    np.testing.assert_array_equal(plane.found["weights"], formula.weights(q, POINTS)[0])
    np.testing.assert_array_equal(plane.found["scores"], formula.scores(q, POINTS)[0])
    np.testing.assert_allclose(plane.found["y"], formula(q, POINTS, POINTS)[0], atol=1e-12)


@few
@given(place=places)
def test_the_output_never_leaves_the_hull_of_the_values(place: list[float]) -> None:
    PROJECTED.at = {"query": place}
    q = np.asarray([PROJECTED.at["query"]]) @ WQ
    np.testing.assert_allclose(PROJECTED.found["weights"], rg.Attention().weights(q, POINTS @ WK)[0], atol=1e-15)
    assert outside(np.asarray(PROJECTED.found["y"]), np.asarray(PROJECTED.given["hull"])) < 1e-9


@few
@given(points=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30))
def test_a_hull_holds_its_points_and_has_its_corners_among_them(points: list[tuple[int, int]]) -> None:
    corners = hull(np.asarray(points, dtype=float))
    assert {tuple(map(int, one)) for one in corners} <= set(points)
    if len(corners) > 2:
        assert max(outside(np.asarray(one, dtype=float), corners) for one in points) < 1e-9


@few
@given(row=st.integers(-3, 20), formula=st.sampled_from([rg.Attention(mask=rg.causal), *FORMULAS.values()]))
def test_a_row_shows_every_step(row: int, formula: rg.Attention) -> None:
    q, k, v = RNG.standard_normal((5, 3)), RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))
    rows = Rows(q, k, v, attention=formula)
    rows.at = {"row": row}
    at, steps = min(max(row, 0), 4), formula.trace(q, k, v)
    assert rows.at == {"row": at}
    for name in ("scores", "weights", "y"):
        np.testing.assert_array_equal(rows.found[name], steps[name][at])
    if formula.score == rg.dot / rg.sqrt(rg.d):
        np.testing.assert_allclose(np.sum(rows.found["products"], -1) / np.sqrt(3), rows.found["scores"])
    if formula.mask is not None:
        assert rows.found["admitted"] == [j <= at + 2 for j in range(7)]  # queries are the last rows of the keys


@few
@given(head=st.sampled_from(["a", "b"]), query=st.integers(0, 4))
def test_a_matrix_shows_the_row_of_its_head(head: str, query: int) -> None:
    q, k = RNG.standard_normal((2, 5, 3))
    causal, own = rg.Attention(mask=rg.causal), np.eye(5)
    matrix = Matrix("one two three four five", {"a": (q, k), "b": own}, causal)
    matrix.at = {"head": head, "query": query}
    row = {"a": causal.weights(q, k), "b": own}[head][query]
    np.testing.assert_array_equal(matrix.found["weights"], row)
    assert matrix.found["most"] == int(np.argmax(row))
    assert matrix.found["total"] == pytest.approx(1)


CLOUD = Ellipse(POINTS)
lengths = st.floats(0.001, 99)


@few
@given(place=places, angle=st.floats(-7, 7), spread=st.tuples(lengths, lengths))
def test_neighbours_are_those_of_both_measures(place: list[float], angle: float, spread: tuple[float, float]) -> None:
    CLOUD.at = {"query": place, "angle": angle, "spread": list(spread)}
    query, found = np.asarray(CLOUD.at["query"]), CLOUD.found
    sigma = np.asarray(found["covariance"])
    np.testing.assert_allclose(np.sqrt(np.linalg.eigvalsh(sigma)), sorted(CLOUD.at["spread"]), rtol=1e-7)
    away = POINTS - query
    np.testing.assert_allclose(
        np.square(found["mahalanobis"]["distances"]), np.sum(away @ np.linalg.inv(sigma) * away, -1), rtol=1e-6
    )
    np.testing.assert_allclose(found["mahalanobis"]["distances"], np.hypot(*np.asarray(found["whitened"]).T), rtol=1e-7)
    for name, metric in (("euclidean", "euclidean"), ("mahalanobis", Mahalanobis(sigma))):
        best = search(query, POINTS, 1, metric=metric)
        assert found[name]["distances"][found[name]["nearest"]] == pytest.approx(float(best.values[0]), rel=1e-9)


@pytest.mark.parametrize(
    "formula", [rg.Attention(), rg.Attention(mask=rg.causal), rg.Attention(weight=rg.sigmoid)], ids=repr
)
def test_a_mistake_that_is_on_is_that_of_the_algebra(formula: rg.Attention) -> None:
    q, k = RNG.standard_normal((2, 3, 5, 7))
    widget = Mistakes(formula, q, k, head=1)
    wrong = mistakes_of(formula)
    assert [one["name"] for one in widget.given["wrong"]] == list(wrong)
    right = formula.weights(q[None], k[None])[0, 1]
    for name, one in wrong.items():
        widget.at = {"mistake": name}
        weights = one.weights(q[None], k[None])[0, 1]
        np.testing.assert_array_equal(widget.found["weights"], weights)
        np.testing.assert_array_equal(widget.found["difference"], weights - right)
        np.testing.assert_allclose(widget.found["sums"], weights.sum(-1))
    widget.at = {"mistake": ""}
    np.testing.assert_array_equal(widget.found["weights"], right)
    assert widget.found["largest"] == 0


def test_tables_reach_the_formula() -> None:
    formula, bias = rg.Attention(score=rg.dot + rg.table("bias")[rg.j]), RNG.standard_normal(7)
    plane = Plane(POINTS, attention=formula, tables={"bias": bias})
    plane.at = {"query": [0.5, -0.25]}
    np.testing.assert_array_equal(
        plane.found["weights"], formula.weights(np.asarray([[0.5, -0.25]]), POINTS, bias=bias)[0]
    )
    assert Mistakes(formula, POINTS, POINTS, tables={"bias": bias}).given["wrong"]
