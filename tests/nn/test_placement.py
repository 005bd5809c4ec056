"""A position as a module: what it does is what the value does, and what it learns is its own."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.func import functional_call

from layers import BATCH, CLOSE, DIM, EXACT, HEADS, POSITIONS, ROWS, WIDTH, normal
from regard.algebra.errors import CallError, KindError
from regard.inputs.positions import ALiBi, Learned, NoPosition, Offsets, Relative, Rotary, Sinusoidal
from regard.nn import Cache, Placement

X, Q = normal(BATCH, ROWS, DIM), normal(BATCH, HEADS, ROWS, WIDTH)
every_position = pytest.mark.parametrize("name", POSITIONS)


def placed(name: str) -> Placement:
    return Placement(POSITIONS[name], HEADS).double()


@every_position
def test_the_module_does_what_the_value_does(name: str) -> None:
    placement, position = placed(name), POSITIONS[name]
    position = position.with_parameters({key: value.detach() for key, value in placement.tables.items()})
    for start in (0, 4):
        torch.testing.assert_close(placement(X, start), position.add(X, start), **EXACT)
    rows = placement.rows(X, WIDTH)
    torch.testing.assert_close(rows.turn(Q), position.turn(Q), **EXACT)
    assert set(rows.tables) == set(position.tables())
    for key, table in position.tables().items():
        torch.testing.assert_close(rows.tables[key].detach(), table, **EXACT)


@every_position
def test_the_tables_are_learned(name: str) -> None:
    placement = placed(name)
    assert {f"tables.{key}" for key in POSITIONS[name].parameters} == {key for key, _ in placement.named_parameters()}
    rows = placement.rows(X, WIDTH)
    if not len(placement.tables):
        return
    total = placement(X).sum() + sum(table.sum() for table in rows.tables.values())
    total.backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in placement.parameters())


def test_other_parameters_are_really_used() -> None:
    placement = placed("sum")
    other = {name: normal(*value.shape, seed=5) for name, value in placement.named_parameters()}
    torch.testing.assert_close(functional_call(placement, other, (X,)), X + other["tables.position"][:ROWS], **CLOSE)
    placement.load_state_dict(other)
    torch.testing.assert_close(placement(X), X + other["tables.position"][:ROWS], **CLOSE)
    assert placement.position.parameters["position"] is placement.tables["position"]


def test_two_modules_share_no_table() -> None:
    position = Learned(torch.zeros(7, 3))
    one, other = Placement(position), Placement(position)
    with torch.no_grad():
        one.tables["position"].fill_(1.0)
    assert other.tables["position"].abs().sum() == position.table.abs().sum() == 0
    assert copy.deepcopy(one).tables["position"] is not one.tables["position"]


def test_the_rows_before_say_where_the_rows_stand() -> None:
    placement, cache = placed("rotary"), Cache()
    cache.advance(3)
    rows = placement.rows(X, WIDTH, cache=cache)
    assert rows.start == 3
    torch.testing.assert_close(rows.turn(Q), Rotary().turn(Q, 3), **EXACT)
    rows.done(ROWS)
    assert cache.lengths == 3 + ROWS
    rows = placement.rows(X, WIDTH, cache=cache, lengths=[1, 2, 5])
    rows.done(ROWS)
    assert cache.lengths == [15, 16, 19]
    torch.testing.assert_close(
        placement.rows(X, WIDTH, cache=cache).turn(Q), Rotary().turn(Q, torch.tensor([15, 16, 19])), **EXACT
    )


def test_refusals() -> None:
    with pytest.raises(KindError, match=r"position: a value such as Rotary\(\) or Learned.random\(512, 64\); got None"):
        Placement(None)  # type: ignore[arg-type]
    with pytest.raises(CallError, match=r"position: made for the layer's 6 heads; got Relative.*, for 4"):
        Placement(Relative.random(4, Offsets(3)), 6)
    for position in (NoPosition(), Rotary(), Sinusoidal(), ALiBi(), ALiBi(6), Relative.random(6, Offsets(3))):
        Placement(position, 6)
    Placement(Relative.random(4, Offsets(3)))


def test_it_prints_the_position() -> None:
    assert repr(Placement(ALiBi(4))).startswith("Placement(\n  ALiBi(heads=4, distance=i - j)")
