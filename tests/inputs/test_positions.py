"""One interface for all positions: where rows stand, what is neutral, what a sum does, and what is refused."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
from textwrap import dedent
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard import causal, d, dot, h, i, j, sqrt
from regard.algebra.errors import CallError
from regard.inputs.positions import (
    ALiBi,
    Buckets,
    DynamicNTK,
    Learned,
    Linear,
    NoPosition,
    Position,
    Relative,
    Rotary,
    Sinusoidal,
    Sum,
    YaRN,
)

KINDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
BATCH, HEADS, ROWS, WIDTH = 2, 3, 5, 14
RNG = np.random.default_rng(0)
X, Q = RNG.standard_normal((BATCH, ROWS, WIDTH)), RNG.standard_normal((BATCH, HEADS, ROWS, WIDTH))
TABLE = RNG.standard_normal((23, WIDTH))
ADDED = {
    "sinusoidal": Sinusoidal(),
    "halves": Sinusoidal(100.0, pairs="halves"),
    "learned": Learned(TABLE),
}
TURNED = {
    "halves": Rotary(),
    "interleaved": Rotary(pairs="interleaved"),
    "partial": Rotary(width=6),
    "scaled": Rotary(scaling=YaRN(4, 16)),
    "dynamic": Rotary(scaling=DynamicNTK(2, 1000)),
}
OPERATIONS: dict[str, tuple[Any, Any]] = {
    **{f"add {name}": (position.add, X) for name, position in ADDED.items()},
    **{f"turn {name}": (position.turn, Q) for name, position in TURNED.items()},
}
every_operation = pytest.mark.parametrize("name", OPERATIONS)
every_kind = pytest.mark.parametrize("kind", KINDS)


# -- where rows stand ----------------------------------------------------------------------------------------------


@every_operation
@given(starts=st.lists(st.integers(0, 23 - ROWS), min_size=BATCH, max_size=BATCH))
def test_three_ways_to_say_where_rows_stand(name: str, starts: list[int]) -> None:
    place, x = OPERATIONS[name]
    expected = np.stack([place(x[b : b + 1], at=start)[0] for b, start in enumerate(starts)])
    every_row = np.asarray(starts)[:, None] + np.arange(ROWS)
    for at in (starts, np.asarray(starts), every_row, every_row.tolist()):
        np.testing.assert_array_equal(place(x, at=at), expected)


@every_operation
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.uint64])
def test_narrow_integers_are_places_too(name: str, dtype: Any) -> None:
    place, x = OPERATIONS[name]
    starts = np.array([3, 17])
    for at in (starts, starts[:, None] + np.arange(ROWS)):
        np.testing.assert_array_equal(place(x, at=at.astype(dtype)), place(x, at=at))


@every_operation
def test_one_row_of_places_serves_the_batch(name: str) -> None:
    place, x = OPERATIONS[name]
    scattered = np.array([3, 0, 22, 7, 7])
    for array in (x, x[0], x[0, 0] if x.ndim == 4 else x[:1]):
        parts = [place(array[..., r : r + 1, :], at=int(p)) for r, p in enumerate(scattered)]
        np.testing.assert_array_equal(place(array, at=scattered[None, :]), np.concatenate(parts, axis=-2))


@every_operation
@every_kind
def test_a_step_is_what_the_whole_is_bit_for_bit(name: str, kind: str) -> None:
    convert = KINDS[kind]
    place, x = OPERATIONS[name]
    if "learned" in name:
        place = Learned(convert(TABLE.astype(np.float32))).add
    x = convert(x.astype(np.float32))
    whole = np.asarray(place(x, at=4))
    for row in range(ROWS):
        for at in (4 + row, convert(np.full(BATCH, 4 + row)), convert(np.full((BATCH, 1), 4 + row))):
            np.testing.assert_array_equal(place(x[..., row : row + 1, :], at=at), whole[..., row : row + 1, :])


@every_operation
def test_batch_axes_are_counted_in_order(name: str) -> None:
    place, x = OPERATIONS[name]
    starts = np.array([3, 0, 7, 1, 11, 2])
    many = np.stack([x, 2 * x, 3 * x], axis=1)  # (2, 3, …)
    flat = many.reshape(6, *x.shape[1:])
    np.testing.assert_array_equal(place(many, at=starts), place(flat, at=starts).reshape(many.shape))


@every_operation
@every_kind
def test_libraries_agree_and_stay(name: str, kind: str) -> None:
    place, x = OPERATIONS[name]
    convert, expected = KINDS[kind], place(x, at=9)
    if "learned" in name:
        place = Learned(convert(TABLE)).add
    found = place(convert(x), at=9)
    assert type(found) is type(convert(x))
    assert found.dtype == convert(x).dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=64 * np.finfo(float).eps)


@every_operation
def test_lists_give_lists(name: str) -> None:
    place, x = OPERATIONS[name]
    np.testing.assert_array_equal(place(x.tolist(), at=2), place(x, at=2))
    assert isinstance(place(x.tolist(), at=2), list)


@every_operation
@pytest.mark.parametrize("shape", [(0, WIDTH), (BATCH, 0, WIDTH), (0, ROWS, WIDTH)])
def test_no_rows_at_all(name: str, shape: tuple[int, ...]) -> None:
    for at in (3, np.zeros((1, shape[-2]), int), np.zeros(math.prod(shape[:-2]), int)):
        assert OPERATIONS[name][0](np.zeros(shape), at=at).shape == shape


def test_places_can_be_traced() -> None:
    starts = np.array([3, 1])
    for place, x in (OPERATIONS[name] for name in OPERATIONS if "dynamic" not in name and "learned" not in name):
        compiled = jax.jit(lambda x, at, place=place: place(x, at=at))
        for at in (starts, np.asarray(6), starts[:, None] + np.arange(ROWS)):
            np.testing.assert_allclose(
                compiled(jnp.asarray(x), jnp.asarray(at)), place(x, at=at if at.ndim else int(at)), rtol=0, atol=1e-14
            )


@every_operation
def test_one_graph_under_torch_compile(name: str) -> None:
    place, x = OPERATIONS[name]
    x = torch.tensor(x)
    if "learned" in name:
        place = Learned(torch.tensor(TABLE)).add
    torch.compiler.reset()  # or it counts the graphs of the other positions as this one's
    compiled = torch.compile(place, fullgraph=True, backend="aot_eager")
    places = [4, torch.tensor([3, 1])]
    for at in places if "dynamic" not in name else places[:1]:
        torch.testing.assert_close(compiled(x, at), place(x, at), rtol=0, atol=0)


# -- the neutral element, and sums -----------------------------------------------------------------------------------

NEUTRAL = {"none": NoPosition(), "base": Position()}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_is_neutral_changes_nothing(name: str) -> None:
    position = NEUTRAL[name]
    assert position.add(X, at=[1, 2]) is X
    assert position.turn(Q) is position.turns(Q)(Q) is Q
    assert position.turn_pair(Q, X) == (Q, X)
    assert position.score(dot) is dot
    assert position.tables() == position.parameters == {}
    attention = rg.Attention(mask=causal)
    assert position.join(attention) is attention


@pytest.mark.parametrize("position", [Sinusoidal(), Learned(TABLE), ALiBi(), Relative(np.zeros((3, 5)))], ids=repr)
def test_what_is_not_turned_stays(position: Position) -> None:
    assert position.turn(Q, at=3) is Q
    assert position.turns(Q)(Q) is Q


@pytest.mark.parametrize("position", [Sinusoidal(), Learned(TABLE), Rotary()], ids=repr)
def test_what_is_not_scored_stays(position: Position) -> None:
    assert position.join(rg.Attention()) == rg.Attention()
    assert position.tables() == {}


def test_none_is_neutral_in_sums() -> None:
    assert NoPosition() + Rotary() == Rotary() == Rotary() + NoPosition()
    assert NoPosition() + NoPosition() == NoPosition()


def test_a_sum_does_what_its_parts_do() -> None:
    learned, relative = Learned(TABLE), Relative(RNG.standard_normal((HEADS, 7)))
    both = learned + Rotary() + ALiBi() + relative
    assert isinstance(both, Sum)
    assert both.parts == (learned, Rotary(), ALiBi(), relative)
    assert repr(both) == f"{learned!r} + {Rotary()!r} + {ALiBi()!r} + {relative!r}"
    np.testing.assert_array_equal(both.add(X, at=[2, 5]), learned.add(X, at=[2, 5]))
    np.testing.assert_array_equal(both.turn(Q, at=2), Rotary().turn(Q, at=2))
    np.testing.assert_array_equal(both.turns(Q, at=2)(Q), Rotary().turn(Q, at=2))
    for found, expected in zip(both.turn_pair(Q[..., :2, :], Q), Rotary().turn_pair(Q[..., :2, :], Q), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert both.score(dot) == relative.score(ALiBi().score(dot))
    assert both.tables() == {"relative": relative.table}
    assert both.parameters == {"position": learned.table, "relative": relative.table}


def test_values_are_equal_hash_alike_and_print_what_makes_them() -> None:
    assert Rotary(width=4, scaling=Linear(2)) == Rotary(width=4, scaling=Linear(2.0)) != Rotary(width=4)
    assert len({Rotary(), Rotary(scaling=None), Sinusoidal(), Sinusoidal(), ALiBi(), ALiBi(8)}) == 4
    assert repr(Rotary(scaling=None)) == "Rotary(base=10000.0, width=None, pairs='halves', scaling=Scaling())"
    assert repr(Learned(TABLE)) == "Learned(table (23, 14))"
    assert repr(Relative(np.zeros((3, 5)))) == "Relative(table (3, 5), Offsets(reach=2, sides=2), name='relative')"


def test_values_travel() -> None:
    for value in (Rotary(scaling=YaRN(4, 64)), Sinusoidal(), ALiBi(12), NoPosition(), Rotary() + ALiBi()):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    table = torch.nn.Parameter(torch.zeros(5, 4))
    module = torch.nn.Module()
    module.table, module.position = table, Learned(table)
    twin = copy.deepcopy(module)
    assert twin.position.table is twin.table is not table


FRESH = """
    import sys
    for name in BLOCKED: sys.modules[name] = None
    import numpy as np
    from regard.inputs.positions import Learned, Rotary, Sinusoidal
    x = np.ones((1, 4), np.float32)
    for place in (Sinusoidal().add, Rotary().turn, Learned(MAKE(np.ones((3, 4), np.float32))).add):
        assert place(MAKE(x), at=2).shape == (1, 4)
    print(*np.asarray(Rotary().turn(MAKE(x), at=1_000_000))[0])
"""


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_a_fresh_process(kind: str) -> None:
    """NumPy alone needs no other library; JAX is as exact without its 64 bits, and says nothing about them."""
    make, blocked = (
        ("", ["torch", "jax", "transformers"]) if kind == "numpy" else ("__import__('jax').numpy.asarray", [])
    )
    code = dedent(FRESH).replace("MAKE", make).replace("BLOCKED", repr(blocked))
    environment = {**os.environ, "JAX_ENABLE_X64": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    expected = Rotary().turn(np.ones((1, 4)), at=1_000_000)[0]
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], expected, rtol=0, atol=16 * 2.0**-23)


def test_the_whole_score_prints() -> None:
    position = ALiBi() + Relative(np.zeros((3, 5)))
    joined = position.join(rg.Attention(mask=causal))
    assert (
        joined.score
        == dot / sqrt(d)
        - 2 ** (-8 * (h + 1) / rg.H) * (i - j)
        + rg.table("relative")[h, rg.maximum(-2, rg.minimum(2, i - j)) + 2]
    )
    assert rg.parse(repr(joined)) == joined


# -- what a model asks of a position -----------------------------------------------------------------------------------

RELATIVE = Relative(RNG.standard_normal((HEADS, 8)), Buckets(8, 6))
DYNAMIC = Rotary(scaling=DynamicNTK(2, 4))
ASKED: list[tuple[Position, tuple[int | None, int | None, bool]]] = [
    (NoPosition(), (None, None, False)),
    (Sinusoidal(), (None, None, False)),
    (Rotary(), (None, None, False)),
    (Rotary(scaling=YaRN(4, 16)), (None, None, False)),
    (DYNAMIC, (None, None, True)),
    (Learned(TABLE), (None, 23, False)),
    (ALiBi(), (None, None, False)),
    (ALiBi(5), (5, None, False)),
    (RELATIVE, (HEADS, None, False)),
    (Learned(TABLE) + RELATIVE + ALiBi(HEADS), (HEADS, 23, False)),
    (Learned(TABLE) + DYNAMIC, (None, 23, True)),
    (ALiBi() + Rotary(), (None, None, False)),
]


@pytest.mark.parametrize(("position", "expected"), ASKED, ids=[repr(position)[:60] for position, _ in ASKED])
def test_for_which_heads_and_texts_a_position_is_made(position: Position, expected: Any) -> None:
    assert (position.heads, position.longest, position.dynamic) == expected


def test_the_shortest_table_says_how_long_a_text_may_be() -> None:
    class Other(Learned):
        @property
        def parameters(self) -> dict[str, Any]:
            return {"other": self.table}

    assert (Learned(TABLE) + Other(TABLE[:7])).longest == 7


def test_parts_of_a_sum_are_made_for_the_same_heads() -> None:
    with pytest.raises(CallError, match="heads: all parts are made for as many; got 3 and 6"):
        ALiBi(6) + RELATIVE
    assert (ALiBi(HEADS) + RELATIVE).heads == HEADS


@every_kind
def test_other_arrays_in_place_of_parameters(kind: str) -> None:
    convert, x, table, bias = KINDS[kind], KINDS[kind](X), KINDS[kind](TABLE + 1), KINDS[kind](np.ones((HEADS, 8)))
    made = (Learned(TABLE) + Rotary() + RELATIVE).with_parameters({"position": table, "relative": bias, "more": x})
    plain = Learned(table) + Rotary() + Relative(bias, Buckets(8, 6))
    np.testing.assert_array_equal(made.add(x, 3), plain.add(x, 3))
    np.testing.assert_array_equal(made.tables()["relative"], plain.tables()["relative"])
    assert made.parameters["position"] is table
    assert made.parameters["relative"] is bias
    assert made.score(dot) == plain.score(dot)
    same = Learned(convert(TABLE)).with_parameters({})
    np.testing.assert_array_equal(same.add(x), Learned(convert(TABLE)).add(x))


@pytest.mark.parametrize("position", [NoPosition(), Sinusoidal(), Rotary(), ALiBi(4)], ids=repr)
def test_without_parameters_nothing_is_replaced(position: Position) -> None:
    assert position.with_parameters({"position": TABLE, "relative": TABLE}) == position


def test_the_value_itself_stays_and_shapes_do() -> None:
    position = Learned(TABLE)
    position.with_parameters({"position": TABLE + 1})
    np.testing.assert_array_equal(position.table, TABLE)
    with pytest.raises(CallError, match=r"table: has the shape that it had, \(23, 14\); got shape \(7, 14\)"):
        position.with_parameters({"position": TABLE[:7]})
    with pytest.raises(CallError, match=r"table: has the shape that it had, \(3, 8\); got shape \(3, 7\)"):
        RELATIVE.with_parameters({"relative": np.ones((3, 7))})


def test_gradients_flow_to_the_arrays_that_were_put_in() -> None:
    table, bias = (torch.tensor(array, requires_grad=True) for array in (TABLE, RELATIVE.table))
    made = (Learned(TABLE) + RELATIVE).with_parameters({"position": table, "relative": bias})
    (made.add(torch.tensor(X)).sum() + made.tables()["relative"].sum()).backward()
    assert table.grad is not None
    assert table.grad[:ROWS].eq(BATCH).all()
    assert bias.grad is not None
    assert bias.grad.sum() == HEADS * len(Buckets(8, 6).entries())


@pytest.mark.parametrize("length", [2, 4, 9])
def test_a_settled_position_no_longer_asks_for_the_length(length: int) -> None:
    q = RNG.standard_normal((BATCH, HEADS, length, WIDTH))
    for position in (DYNAMIC, Learned(TABLE) + DYNAMIC):
        settled = position.settled(length)
        assert not settled.dynamic
        whole = position.turn(q)
        np.testing.assert_array_equal(settled.turn(q), whole)
        for row in range(length):
            np.testing.assert_array_equal(settled.turn(q[..., row : row + 1, :], row), whole[..., row : row + 1, :])


@pytest.mark.parametrize("position", [NoPosition(), Sinusoidal(), Rotary(), ALiBi(), Rotary() + ALiBi()], ids=repr)
def test_what_asks_for_no_length_is_settled(position: Position) -> None:
    assert position.settled(7) == position
