"""Each function: its value in every reading, its derivative, its bounds, its conventions at the kinks."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard._arrays import library
from regard.algebra.canonical import canonical
from regard.algebra.fold import fold
from regard.algebra.functions import FUNCTIONS, Elementary
from regard.algebra.intervals import Intervals
from regard.algebra.nodes import SCORE

X = SCORE
POINTS = [-40.0, -3.3, -1.0, -0.7, -0.1, 0.2, 0.5, 1.0, 2.6, 31.0]
UNARY = [name for name, function in FUNCTIONS.items() if name not in ("where", "minimum", "maximum")]
KINKS = {"abs": 0.0, "relu": 0.0, "sqrt": 0.0, "floor": 0.0}
KINDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}


def domain(name: str) -> list[float]:
    return [x for x in POINTS if x > 0] if name in ("log", "sqrt") else POINTS


def at(node: Any, x: float) -> float:
    """The value of a node at s = x, by intervals that are points."""
    low, high = fold(node, Intervals({X: (x, x)}))
    assert low == high
    return float(low)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_give_the_scalar_value(name: str, kind: str) -> None:
    function = FUNCTIONS[name]
    points = np.array(domain(name))
    array = KINDS[kind](points)
    found = function.array(library(array), array)
    np.testing.assert_allclose(np.asarray(found), [function.scalar(x) for x in points], rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", UNARY)
def test_derivative_is_the_slope(name: str) -> None:
    function = FUNCTIONS[name]
    slope = canonical(function(X).diff(X))
    for x in domain(name):
        h = 1e-4 * max(1.0, abs(x)) if name != "log" and name != "sqrt" else 1e-4 * x
        low2, low, high, high2 = (function.scalar(x + k * h) for k in (-2, -1, 1, 2))
        if name == "floor":
            assert at(slope, x) == 0
            continue
        difference = (8 * (high - low) - (high2 - low2)) / (12 * h)
        assert at(slope, x) == pytest.approx(difference, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", KINKS)
def test_derivative_at_the_kink_is_zero(name: str) -> None:
    assert at(canonical(FUNCTIONS[name](X).diff(X)), KINKS[name]) == 0


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_automatic_derivative_at_the_kink_is_zero(name: str, kind: str) -> None:
    function = FUNCTIONS[name]
    if kind == "torch":
        x = torch.tensor(KINKS[name], dtype=torch.float64, requires_grad=True)
        function.array(library(x), x).backward()
        assert x.grad == 0
    else:
        xp = library(jnp.zeros(1))
        assert jax.grad(lambda x: function.array(xp, x))(KINKS[name]) == 0


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_an_extreme_has_one_derivative_where_both_are_equal(name: str) -> None:
    a, b = sympy.symbols("a b", real=True)
    made = FUNCTIONS[name](a, b)
    first, second = (fold(canonical(made.diff(x)), Intervals({a: (1, 1), b: (1, 1)})) for x in (a, b))
    assert {first, second} == {(0, 0), (1, 1)}
    x, y = (torch.tensor(1.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
    FUNCTIONS[name].array(library(x), x, y).backward()
    assert (x.grad, y.grad) == (1, 0)


@pytest.mark.parametrize("name", UNARY)
@given(low=st.floats(-50, 50), width=st.floats(0, 30), part=st.floats(0, 1))
def test_bounds_hold(name: str, low: float, width: float, part: float) -> None:
    function = FUNCTIONS[name]
    x = min(low + part * width, low + width)
    least, most = function.bounds((low, low + width))
    value = function.scalar(x)
    assert math.isnan(value) or least - 1e-12 <= value <= most + 1e-12


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, 1e308, -1e308, 0.0])
def test_extremes_follow_ieee(name: str, x: float) -> None:
    """No exception, and the same class of number from scalars and arrays."""
    function = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        array = float(function.array(library(np.zeros(1)), np.array([x]))[0])
    scalar = float(function.scalar(x))
    assert scalar == array or (math.isnan(scalar) and math.isnan(array)) or scalar == pytest.approx(array)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_everything(name: str) -> None:
    function: type[Elementary] = FUNCTIONS[name]
    assert set(function.source) - {"triton_fast"} == {"python", "numpy", "torch", "triton"}
    assert function.__doc__
    assert function.latex.format("x", "y", "z")
    if name == "where":
        made = function(sympy.Symbol("c") > 0, X, X + 1)
    else:
        made = function(*sympy.symbols("x y", real=True)[: function.nargs.args[0]])
    assert made.is_real


def test_exact_values() -> None:
    value = FUNCTIONS
    assert value["sqrt"](sympy.Integer(64)) == 8
    assert value["sqrt"](sympy.Integer(2)) ** 2 == value["sqrt"](sympy.Integer(2)) ** 2 != 2
    assert value["exp"](sympy.Integer(0)) == 1
    assert value["tanh"](-X) == -value["tanh"](X)
    assert value["abs"](-X) == value["abs"](X)
    assert value["cos"](-X) == value["cos"](X)
    assert value["floor"](sympy.Rational(-3, 2)) == -2
