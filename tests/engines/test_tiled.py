"""`tiled` is the equation in blocks: every formula, every way to cut it, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings

import regard as rg
from agreement import CALL, ENV, TROUBLE, close, roughness
from regard import dot, zoo
from regard.engines.tiled import tiles
from regard.example import example
from strategies import Case, cases

CUTS = {"one block": tiles.LIMITS, "small blocks": tiles.Limits(rows=2, columns=3, cell=1, pairs=12)}
LEAVES = tuple("qkv")


@pytest.fixture(params=CUTS, autouse=True)
def _cut(request: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(tiles, "LIMITS", CUTS[request.param])


def tensors(names: Any, *, grad: bool = False) -> dict[str, Any]:
    made = {name: torch.tensor(CALL[name]) for name in names}
    return {name: x.requires_grad_(grad and x.is_floating_point()) for name, x in made.items()}


def streams(attention: rg.Attention) -> bool:
    weight = attention.weight
    return weight.among is None and (weight.over is None or weight.over == rg.j)


random = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@random
@given(cases())
def test_is_the_equation(case: Case) -> None:
    assume(streams(case.attention))
    y = case.attention(**tensors(LEAVES), **tensors(case.tables(CALL)), engine="tiled")
    close(y, case.weights(ENV) @ ENV["v"], roughness(case))


@pytest.mark.slow
@random
@given(cases())
def test_gradients_are_those_of_dense(case: Case) -> None:
    assume(streams(case.attention))
    given_, tables = tensors(LEAVES, grad=True), tensors(case.tables(CALL), grad=True)
    case.attention(**given_, **tables, engine="tiled").backward(torch.tensor(CALL["dy"]))
    call = [CALL[name] for name in (*LEAVES, "dy")]
    expected = case.attention.vjp(*call, **case.tables(CALL))
    found = case.attention.vjp(*map(torch.tensor, call), engine="tiled", **tensors(case.tables(CALL)))
    for name, gradient in [*zip("qkv", expected, strict=True), *expected.tables.items()]:
        leaf = given_ | tables
        close(leaf[name].grad, gradient, roughness(case) ** 2, 1e-9)
        close(found[name] if name in tables else getattr(found, name), gradient, roughness(case) ** 2, 1e-9)


@pytest.mark.parametrize("attention", TROUBLE, ids=repr)
def test_what_is_undefined_where_no_one_reads_spoils_nothing(attention: rg.Attention) -> None:
    call, tables = [CALL[name] for name in (*LEAVES, "dy")], {name: CALL[name] for name in attention.ranks}
    expected = attention.vjp(*call, engine="python", **tables)
    found = attention.vjp(*map(torch.tensor, call), engine="tiled", **tensors(tables))
    close(
        attention(**tensors(LEAVES), engine="tiled", **tensors(tables)), attention(*call[:3], **tables), accuracy=1e-9
    )
    for name, gradient in [*zip("qkv", expected, strict=True), *expected.tables.items()]:
        close(
            found[name] if name in tables else getattr(found, name), gradient, accuracy=1e-9
        )  # (eˢ − 1)² at s = 1e-6 keeps ten digits


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_zoo(name: str) -> None:
    attention = zoo.ENTRIES[name].formula
    call = example(attention, batch=2, heads=3, n=19, width=7)
    dy = np.random.default_rng(1).standard_normal(call.v.shape)
    tables = {name: torch.tensor(x) for name, x in call.tables.items()}
    q, k, v = (torch.tensor(x) for x in (call.q, call.k, call.v))
    close(attention(q, k, v, engine="tiled", **tables), attention(call.q, call.k, call.v, **call.tables))
    expected = attention.vjp(call.q, call.k, call.v, dy, **call.tables)
    found = attention.vjp(q, k, v, torch.tensor(dy), engine="tiled", **tables)
    for a, b in zip([*found, *found.tables.values()], [*expected, *expected.tables.values()], strict=True):
        close(a, b, accuracy=1e-9)  # (eˢ − 1)² at s = 1e-6 keeps ten digits


SPECIAL = [-np.inf, -1e30, -700.0, -30.0, -1.0, -1e-3, -0.0, 0.0, 1e-9, 0.5, 3.0, 40.0, 700.0, 1e30, np.inf, np.nan]
NAMES = ["abs", "relu", "floor", "exp", "log", "sqrt", "tanh", "sigmoid", "softplus", "erf", "gelu", "cos", "sin"]


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_functions_at_special_numbers(name: str) -> None:
    """One key and one value: y is the function of the key itself."""
    attention = rg.Attention(weight=lambda s: getattr(rg, name)(s), score=dot)
    one = torch.ones(len(SPECIAL), 1, 1, 1, dtype=torch.float64)
    k = torch.tensor(SPECIAL, dtype=torch.float64).view(-1, 1, 1, 1)
    found, expected = (attention(one, k, one, engine=engine) for engine in ("tiled", "dense"))
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0, equal_nan=True)
