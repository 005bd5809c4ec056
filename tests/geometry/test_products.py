"""Inner products: their laws in both precisions, at every scale, for any metric, in every library."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

import regard as rg
from clouds import EVERY_KIND, WIDTH, Kind, leaf, metric, normal, numbers
from regard.geometry import Mahalanobis, angle, cosine, cosines, distance, distances, gram, inner, norm, unit, whitening
from regard.geometry import products as module

SINGULAR = {"inner": inner, "distance": distance, "cosine": cosine, "angle": angle}
PLURAL = {"gram": (gram, inner), "cosines": (cosines, cosine), "distances": (distances, distance)}
EVERY_COMPARISON = [*SINGULAR.values(), gram, cosines, distances]
PRECISIONS = ["float32", "float64"]

# -- worlds ------------------------------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Any, Any, Any, Any, float]:
    """x, y, z, a metric of any size or none, and how much a product of unit size may be off by rounding."""
    dtype, width = draw(st.sampled_from(PRECISIONS)), draw(st.sampled_from([1, 2, 3, 5, 7, 11]))
    seed, scale = draw(st.integers(0, 999)), draw(st.sampled_from([None, 1e-6, 1.0, 1e6]))
    given_metric = None if scale is None else (scale * metric(width, seed)).astype(dtype)
    vectors = normal(3, width, seed=seed + 1).astype(dtype)
    return *vectors, given_metric, 4 * (width + 1) * float(np.finfo(dtype).eps)


def size(x: Any, y: Any, given_metric: Any) -> float:
    """Σ |x_a G_ab y_b|: what the rounding of ⟨x, y⟩ is a share of."""
    return float(inner(abs(x), abs(y), None if given_metric is None else abs(given_metric)))


def wild(dtype: str) -> st.SearchStrategy[Any]:
    """Finite numbers of every size: zero, subnormal, huge."""
    info = np.finfo(dtype)
    edges = [0.0, 1.0, -1.0, float(info.max), -float(info.tiny), float(info.smallest_subnormal), math.sqrt(info.tiny)]
    return st.sampled_from(edges) | st.floats(allow_nan=False, allow_infinity=False, width=info.bits)


@st.composite
def wild_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    dtype, width = draw(st.sampled_from(PRECISIONS)), draw(st.integers(1, 5))
    x, y = (draw(arrays(dtype, width, elements=wild(dtype))) for _ in range(2))
    return x, y


# -- laws --------------------------------------------------------------------------------------------------------


@given(worlds())
def test_cauchy_schwarz(world: Any) -> None:
    x, y, _, G, rounding = world
    assert abs(inner(x, y, G)) <= norm(x, G) * norm(y, G) + rounding * size(x, y, G)


@given(worlds(), st.floats(-8, 8), st.sampled_from([0.0, 1e-3, 0.5, 30.0]))
def test_equality_is_for_parallel_vectors_alone(world: Any, along: float, across: float) -> None:
    x, y, _, G, rounding = world
    assume(len(x) > 1 and x.dtype == float and abs(along) > 1e-3)
    p = y - inner(x, y, G) / inner(x, x, G) * x  # ⟨x, p⟩ = 0
    x, p = unit(x, G), unit(p, G)
    share = abs(inner(x, along * x + across * p, G)) / norm(along * x + across * p, G)
    assert share == pytest.approx(abs(along) / math.hypot(along, across), abs=1e3 * rounding)
    assert (share < 1 - 1e-9) == (across / abs(along) > 1e-4)


@given(worlds())
def test_parallelogram_and_polarisation(world: Any) -> None:
    x, y, _, G, rounding = world
    plus, minus = norm(x + y, G) ** 2, norm(x - y, G) ** 2
    tolerance = 8 * rounding * size(abs(x) + abs(y), abs(x) + abs(y), G)
    assert plus + minus == pytest.approx(2 * norm(x, G) ** 2 + 2 * norm(y, G) ** 2, abs=tolerance)
    assert (plus - minus) / 4 == pytest.approx(inner(x, y, G), abs=tolerance)


@given(worlds(), st.floats(-9, 9))
def test_linear_and_symmetric(world: Any, factor: float) -> None:
    x, y, z, G, rounding = world
    factor = x.dtype.type(factor)
    whole = inner(factor * x + z, y, G)
    tolerance = rounding * size(abs(factor * x) + abs(z), y, G)
    assert whole == pytest.approx(factor * inner(x, y, G) + inner(z, y, G), abs=tolerance)
    assert inner(x, y, G) == pytest.approx(inner(y, x, G), abs=rounding * size(x, y, G))


@given(worlds())
def test_distance_is_a_distance(world: Any) -> None:
    x, y, z, G, rounding = world
    direct, around = distance(x, z, G), distance(x, y, G) + distance(y, z, G)
    assert direct <= around * (1 + 8 * rounding) + rounding * math.sqrt(size(x - z, x - z, G))
    assert distance(x, y, G) == distance(y, x, G) == norm(x - y, G)
    assert distance(x, x, G) == 0 < direct


@given(worlds())
def test_angles_and_cosines(world: Any) -> None:
    x, y, _, G, rounding = world
    cos = cosine(x, y, G)
    tolerance = 4 * rounding * size(x, y, G)
    assert cos * norm(x, G) * norm(y, G) == pytest.approx(inner(x, y, G), abs=tolerance)
    assert math.cos(angle(x, y, G)) == pytest.approx(cos, abs=2 * tolerance / float(norm(x, G) * norm(y, G)))
    assert angle(x, -y, G) == pytest.approx(math.pi - angle(x, y, G), abs=rounding)


@given(worlds(), st.sampled_from(["pca", "zca", "cholesky", "pca-cor", "zca-cor"]))
def test_a_metric_is_euclidean_after_any_whitening(world: Any, rotation: str) -> None:
    x, y, _, G, _ = world
    assume(G is not None and x.dtype == float)
    A = whitening(np.linalg.inv(G), rotation)  # AᵀA = G
    assert distance(x, y, G) == pytest.approx(distance(A @ x, A @ y), rel=1e-9)
    assert distance(x, y, Mahalanobis(np.linalg.inv(G))) == pytest.approx(distance(x, y, G), rel=1e-9)
    assert cosine(x, y, G) == pytest.approx(cosine(A @ x, A @ y), abs=1e-9)
    assert angle(x, y, G) == pytest.approx(angle(A @ x, A @ y), abs=1e-9)


# -- every size --------------------------------------------------------------------------------------------------


@given(wild_pairs())
@pytest.mark.parametrize("convert", [np.asarray, torch.asarray])
def test_the_cosine_is_between_minus_one_and_one(convert: Any, pair: Any) -> None:
    x, y = pair
    found = numbers(cosine(convert(x), convert(y)))
    assert -1 <= found <= 1
    assert found.dtype == x.dtype
    assert (abs(numbers(cosines(convert(np.stack(pair))))) <= 1).all()
    if not x.any() or not y.any():
        assert found == 0
    elif found.dtype == float:
        assert found == pytest.approx(float(mpmath.cos(exact_angle(x, y))), abs=1e-14)


@given(worlds(), st.integers(-120, 120), st.integers(-120, 120))
def test_the_cosine_knows_no_scale(world: Any, first: int, second: int) -> None:
    x, y, _, G, rounding = world
    assert cosine(np.ldexp(x, first), np.ldexp(y, second), G) == cosine(x, y, G)
    assert cosine(3 * x, -7 * y, G) == pytest.approx(-cosine(x, y, G), abs=(1 if G is None else 100) * rounding)
    assert angle(np.ldexp(x, first), np.ldexp(y, second), G) == angle(x, y, G)


@pytest.mark.parametrize(("dtype", "power"), [("float32", 62), ("float32", -70), ("float64", 510), ("float64", -535)])
def test_lengths_and_distances_whose_squares_would_over_or_underflow(dtype: str, power: int) -> None:
    x, y, G = (array.astype(dtype) for array in (normal(7, WIDTH), normal(7, WIDTH, seed=5), metric()))
    for given_metric in (None, G):
        np.testing.assert_array_equal(norm(np.ldexp(x, power), given_metric), np.ldexp(norm(x, given_metric), power))
        moved = distance(np.ldexp(x, power), np.ldexp(y, power), given_metric)
        np.testing.assert_array_equal(moved, np.ldexp(distance(x, y, given_metric), power))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_subnormal_vectors_have_directions(dtype: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    x = np.array([[3, 4], [3, 0]], dtype) * least
    np.testing.assert_allclose(unit(x), [[0.6, 0.8], [1, 0]], rtol=np.finfo(dtype).eps)
    assert norm(x[0]) == 5 * least


def exact_angle(x: Any, y: Any, given_metric: Any = None) -> Any:
    """θ of the numbers as they are, in 80 digits; a right angle with the zero vector."""
    G = np.eye(len(x)) if given_metric is None else given_metric
    with mpmath.workdps(80):
        x, y, G = (mpmath.matrix(np.asarray(a, float).tolist()) for a in (x, y, G))
        xx, xy, yy = ((a.T * G * b)[0] for a, b in ((x, x), (x, y), (y, y)))
        return mpmath.atan2(mpmath.sqrt(abs(xx * yy - xy**2)), xy) if xx * yy else mpmath.pi / 2


@given(wild_pairs())
def test_the_angle_is_exact_to_rounding(pair: Any) -> None:
    x, y = pair
    assert abs(float(exact_angle(x, y) - angle(x, y))) <= 8 * np.finfo(x.dtype).eps


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("power", range(0, 18, 2))
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("given_metric", [None, metric()], ids=["plain", "metric"])
def test_the_angle_near_zero_and_pi(dtype: str, power: int, sign: int, given_metric: Any) -> None:
    x, eps = normal(WIDTH).astype(dtype), np.finfo(dtype).eps
    y = (sign * x * 3 + 10.0**-power * normal(WIDTH, seed=9)).astype(dtype)
    G = None if given_metric is None else given_metric.astype(dtype)
    assert abs(float(exact_angle(x, y, G) - angle(x, y, G))) <= (8 if G is None else 40) * eps


def test_right_angles_with_the_zero_vector() -> None:
    zero = np.zeros(3)
    np.testing.assert_array_equal(angle(zero, [[1.0, 2.0, 3.0], zero]), [math.pi / 2] * 2)
    np.testing.assert_array_equal(cosine([[1.0, 2.0, 3.0], zero], zero), [0, 0])
    np.testing.assert_array_equal(unit(zero), zero)


# -- metrics that leave some vectors without a length ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_metric_may_be_semidefinite_at_any_scale(dtype: str, scale: float) -> None:
    root = normal(7, 2) * math.sqrt(scale)
    G, x = (root @ root.T).astype(dtype), normal(7)
    null = (normal(53, 7) - normal(53, 7) @ root @ np.linalg.pinv(root)).astype(dtype)  # rows with rootᵀ x = 0
    assert (norm(null, G) <= math.sqrt(1e2 * 7 * np.finfo(dtype).eps * abs(G).max()) * abs(null).max(1)).all()
    assert norm(x.astype(dtype), G) == pytest.approx(np.linalg.norm(x @ root), rel=1e-4)
    with pytest.raises(rg.CallError, match="metric: makes no squared length negative"):
        norm(x.astype(dtype), G - scale * np.eye(7, dtype=dtype) * 30)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_length_is_negative_by_rounding_or_not_at_all(dtype: str) -> None:
    x, eps = np.array([1, -1], dtype), np.finfo(dtype).eps
    assert norm(x, np.array([[1, 1], [1, 1 - 20 * eps]], dtype)) == 0
    with pytest.raises(rg.CallError, match="metric: makes no squared length negative"):
        norm(x, np.array([[1, 1], [1, 1 - 2000 * eps]], dtype))


# -- shapes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("shapes", [((5,), (5,)), ((7, 5), (5,)), ((2, 1, 3, 5), (7, 1, 5)), ((0, 5), (5,))])
@pytest.mark.parametrize("given_metric", [None, metric()], ids=["plain", "metric"])
def test_broadcasting(name: str, shapes: Any, given_metric: Any) -> None:
    compare, (x, y) = SINGULAR[name], (normal(*shape, seed=len(shape)) for shape in shapes)
    found = compare(x, y, given_metric)
    one_by_one = np.vectorize(lambda x, y: compare(x, y, given_metric), signature="(d),(d)->()", otypes=[float])
    np.testing.assert_allclose(found, one_by_one(x, y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", PLURAL)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("given_metric", [None, metric(), Mahalanobis(metric())], ids=["plain", "metric", "object"])
def test_plural_is_singular_for_every_pair(name: str, batch: Any, given_metric: Any) -> None:
    plural, singular = PLURAL[name]
    x, y = normal(*batch, 7, WIDTH), normal(*batch[1:], 11, WIDTH, seed=4)
    expected = singular(x[..., :, None, :], y[..., None, :, :], given_metric)
    np.testing.assert_allclose(plural(x, y, given_metric), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(plural(x, metric=given_metric), plural(x, x, given_metric), rtol=1e-12)


@pytest.mark.parametrize("entries", [1, 2 * 13 * WIDTH, 10**9])
def test_distances_hold_few_differences_at_once(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, seen = normal(7, WIDTH), normal(13, WIDTH, seed=4), []
    expected = cdist(x, y)

    def spy(x: Any, y: Any, metric: Any = None) -> Any:
        seen.append(math.prod(np.broadcast_shapes(x.shape, y.shape)))
        return distance(x, y, metric)

    monkeypatch.setattr(module, "ENTRIES", entries)
    monkeypatch.setattr(module, "distance", spy)
    np.testing.assert_allclose(distances(x, y), expected, rtol=1e-14)
    assert max(seen) <= max(entries, 13 * WIDTH)
    assert sum(seen) == 7 * 13 * WIDTH


@pytest.mark.parametrize(("rows", "others"), [(0, 3), (3, 0), (0, 0)])
def test_no_rows_are_no_pairs(rows: int, others: int) -> None:
    for plural, _ in PLURAL.values():
        assert plural(np.zeros((rows, 2)), np.ones((others, 2))).shape == (rows, others)


# -- oracles and libraries ---------------------------------------------------------------------------------------


def test_scipy_measures_the_same() -> None:
    x, y, G = normal(7, WIDTH), normal(11, WIDTH, seed=4), metric()
    np.testing.assert_allclose(distances(x, y), cdist(x, y), rtol=1e-14)
    np.testing.assert_allclose(distances(x, y, G), cdist(x, y, "mahalanobis", VI=G), rtol=1e-13)
    np.testing.assert_allclose(1 - cosines(x, y), cdist(x, y, "cosine"), rtol=1e-13)
    np.testing.assert_allclose(gram(x, y, G), x @ G @ y.T, rtol=1e-13)
    np.testing.assert_allclose(norm(x), np.linalg.norm(x, axis=-1), rtol=1e-15)


def test_distances_are_exact_far_from_the_origin() -> None:
    grid = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]])
    np.testing.assert_array_equal(distances(grid + 2.0**40), distances(grid))


@EVERY_KIND
@pytest.mark.parametrize("given_metric", [None, metric()], ids=["plain", "metric"])
def test_every_library_agrees(kind: Kind, given_metric: Any) -> None:
    x, y, G = normal(7, WIDTH), normal(7, WIDTH, seed=4), given_metric
    own = None if G is None else kind(G)
    for compare in EVERY_COMPARISON:
        found = compare(kind(x), kind(y), own)
        assert kind.made(found), compare
        expected = compare(kind.rounded(x), kind.rounded(y), None if G is None else kind.rounded(G))
        np.testing.assert_allclose(numbers(found), expected, atol=200 * kind.eps, err_msg=str(compare))
    assert kind.made(norm(kind(x), own))
    assert kind.made(unit(kind(x), own))


def test_lists_integers_and_truths() -> None:
    expected = distance(np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    assert expected == 5
    numpy, torches, jaxes = ((make([1, 2]), make([4, 6])) for make in (np.array, torch.tensor, jnp.array))
    for x, y in (([1, 2], (4, 6)), numpy, (numpy[0], numpy[1].astype("int8")), torches, jaxes):
        assert distance(x, y) == expected
        assert str(distance(x, y).dtype).endswith("float64")
    assert inner(np.array([True, False]), np.array([True, True])) == 1


HALVES = {
    "torch float16": (torch.asarray, torch.float16),
    "torch bfloat16": (torch.asarray, torch.bfloat16),
    "numpy float16": (np.asarray, np.float16),
    "numpy bfloat16": (np.asarray, ml_dtypes.bfloat16),
    "jax bfloat16": (jnp.asarray, jnp.bfloat16),
}


@pytest.mark.parametrize(("make", "dtype"), HALVES.values(), ids=HALVES)
def test_half_precision_is_computed_in_float32(make: Any, dtype: Any) -> None:
    x, y = (make(normal(7, WIDTH, seed=seed).astype("float32")) for seed in (0, 4))
    half = [a.to(dtype) if isinstance(a, torch.Tensor) else a.astype(dtype) for a in (x, y)]
    wide = [a.float() if isinstance(a, torch.Tensor) else a.astype("float32") for a in half]
    for compare in EVERY_COMPARISON:
        found = compare(*half)
        assert str(found.dtype).endswith("float32")
        np.testing.assert_array_equal(numbers(found), numbers(compare(*wide)))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_precisions_mix(library: str) -> None:
    x, G = (Kind(library, "float32")(a) for a in (normal(7, WIDTH), metric()))
    wide = Kind(library, "float64")
    for arguments in ((wide(normal(7, WIDTH)), x, G), (x, x, wide(metric())), (x, wide(normal(7, WIDTH)), None)):
        for compare in EVERY_COMPARISON:
            assert wide.made(compare(*arguments))


# -- what is not finite ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, torch.asarray])
def test_nan_spoils_its_own_pairs_alone(convert: Any) -> None:
    x, y = normal(7, WIDTH), normal(7, WIDTH, seed=4)
    spoilt = x.copy()
    spoilt[3, 1] = np.nan
    clean = np.arange(7) != 3
    for compare in EVERY_COMPARISON:
        found, expected = (numbers(compare(convert(a), convert(y))) for a in (spoilt, x))
        assert np.isnan(found[3]).all()
        np.testing.assert_array_equal(found[clean], expected[clean])


def test_an_infinite_vector_has_an_infinite_length_and_no_direction() -> None:
    x = torch.tensor([[math.inf, 1.0], [3.0, 4.0]])
    assert norm(x).tolist() == [math.inf, 5.0]
    assert cosine(x, x)[0].isnan()
    assert cosine(x, x)[1] == 1


# -- gradients ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compare", EVERY_COMPARISON)
def test_gradients(compare: Any) -> None:
    x, y, root = leaf(normal(3, 5)), leaf(normal(3, 5, seed=4)), leaf(normal(5, 5, seed=6))
    assert torch.autograd.gradcheck(compare, (x, y))
    assert torch.autograd.gradcheck(lambda x, y, root: compare(x, y, root @ root.mT), (x, y, root))
    by_jax = jax.grad(lambda x, y: compare(x, y).sum(), argnums=(0, 1))(jnp.asarray(normal(3, 5)), normal(3, 5, seed=4))
    compare(x, y).sum().backward()
    np.testing.assert_allclose(by_jax[0], x.grad, rtol=1e-9)
    np.testing.assert_allclose(by_jax[1], y.grad, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_gradients_keep_their_size(scale: float) -> None:
    x = leaf(scale * normal(5))
    norm(x).backward()
    np.testing.assert_allclose(x.grad, unit(normal(5)), rtol=1e-13)


SPECIAL = [[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]], [[0.0, 0.0], [1.0, 2.0], [-2.0, -4.0]]  # zero, equal, opposite


@pytest.mark.parametrize("compare", EVERY_COMPARISON)
@pytest.mark.parametrize("given_metric", [None, metric(2)], ids=["plain", "metric"])
def test_gradients_of_zero_equal_and_opposite_vectors_are_finite(compare: Any, given_metric: Any) -> None:
    x, y = map(leaf, SPECIAL)
    G = None if given_metric is None else torch.tensor(given_metric)
    assert all(slope.isfinite().all() for slope in torch.autograd.grad(compare(x, y, G).sum(), (x, y)))


@pytest.mark.parametrize("compare", SINGULAR.values())
def test_gradients_of_such_vectors_are_finite_in_jax(compare: Any) -> None:
    slopes = jax.grad(lambda x, y: compare(x, y).sum(), argnums=(0, 1))(*map(jnp.asarray, SPECIAL))
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_jax_compiles_them() -> None:
    x, y, G = (jnp.asarray(a) for a in (normal(7, WIDTH), normal(7, WIDTH, seed=4), metric()))
    for compare in EVERY_COMPARISON:
        np.testing.assert_allclose(jax.jit(compare)(x, y, G), compare(x, y, G), rtol=1e-12)


# -- refused -----------------------------------------------------------------------------------------------------

ONE, EYE = np.ones(3), np.eye(3)
LEANING = EYE + np.eye(3, k=1)
SPOILT = EYE.copy()
SPOILT[2, 1] = np.nan
T = torch.ones(3)

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "widths": (lambda: inner(ONE, np.ones(4)), rg.CallError, r"x, y: vectors of one width .*got \(3,\) and \(4,\)"),
    "no broadcast of widths": (lambda: distance(ONE, [1.0]), rg.CallError, r"x, y: .*got \(3,\) and \(1,\)"),
    "a number": (lambda: inner(np.float64(1), ONE), rg.CallError, r"x, y: vectors .*got \(\) and \(3,\)"),
    "norm of a number": (lambda: norm(np.float64(1)), rg.CallError, r"x: vectors .*at least one number; got \(\)"),
    "no entries": (
        lambda: norm([]),
        rg.CallError,
        r"x: vectors along the last axis, of at least one number; got \(0,\)",
    ),
    "empty cosine": (lambda: cosine(np.ones((3, 0)), np.ones(0)), rg.CallError, r"x: vectors .*got \(3, 0\)"),
    "plural of a vector": (lambda: gram(ONE), rg.CallError, r"x, y: one vector in each row; got \(3,\) and \(3,\)"),
    "plural of one": (
        lambda: distances([ONE.tolist()], ONE),
        rg.CallError,
        r"one vector in each row; got \(1, 3\) and",
    ),
    "text": (lambda: inner("abc", ONE), rg.KindError, "x: an array or nested lists of numbers; got str"),
    "texts": (lambda: inner(["a", "b", "c"], ONE), rg.KindError, "x: nested lists of numbers, .*got"),
    "an array of texts": (
        lambda: inner(ONE, np.array(["a"] * 3)),
        rg.KindError,
        "y: real numbers; got dtype <U1; conv",
    ),
    "objects": (lambda: norm(np.array([1, None])), rg.KindError, "x: real numbers; got dtype object; convert it"),
    "ragged": (lambda: norm([[1.0], [1.0, 2.0]]), rg.KindError, "x: nested lists of numbers, all rows of one length"),
    "complex": (lambda: norm(ONE * 1j), rg.KindError, "x: real numbers; got dtype complex128; convert it"),
    "complex tensors": (lambda: angle(T, T * 1j), rg.KindError, "y: real numbers; got dtype torch.complex64; convert"),
    "None": (lambda: inner(ONE, None), rg.KindError, "y: an array or nested lists of numbers; got NoneType"),
    "libraries": (lambda: cosine(ONE, T), rg.KindError, "y: comes from the library of x, numpy; got torch; convert it"),
    "library of the metric": (
        lambda: norm(T, EYE),
        rg.KindError,
        "metric: comes from the library of x, torch; got numpy",
    ),
    "devices": (lambda: inner(T, T.to("meta")), rg.CallError, "y: lies where x lies, on cpu; got meta; move it"),
    "metric of other width": (lambda: norm(ONE, np.eye(4)), rg.CallError, r"metric: 3 × 3 for .*got \(4, 4\)"),
    "metric not square": (lambda: norm(ONE, EYE[:2]), rg.CallError, r"metric: a square matrix; got \(2, 3\)"),
    "metric of no rows": (lambda: norm(ONE, np.eye(0)), rg.CallError, r"metric: a square matrix; got \(0, 0\)"),
    "metric of one axis": (lambda: norm(ONE, ONE), rg.CallError, r"metric: a square matrix; got \(3,\)"),
    "asymmetric": (lambda: norm(ONE, LEANING), rg.CallError, "metric: a symmetric matrix; .*by 1; BilinearForm holds"),
    "indefinite": (lambda: norm(ONE, -EYE), rg.CallError, "metric: makes .* ⟨x, x⟩ = -3 for .*; BilinearForm holds"),
    "metric with NaN": (
        lambda: norm(ONE, SPOILT),
        rg.CallError,
        "metric: finite numbers; got NaN or infinity in row 2",
    ),
    "metric of text": (
        lambda: norm(ONE, "cosine"),
        rg.KindError,
        "metric: an array or nested lists of numbers; got str",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_a_refusal_does_not_warn_of_gradients() -> None:
    torch.set_warn_always(True)
    try:
        for bad in (-torch.eye(3), torch.tensor(LEANING)):
            with pytest.raises(rg.CallError, match="metric: "):
                norm(leaf(ONE), bad.double().requires_grad_())
    finally:
        torch.set_warn_always(False)
