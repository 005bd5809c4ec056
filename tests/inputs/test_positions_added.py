"""Positions that are added: the paper's formula, Hugging Face's tables, slices of a table, and its gradient."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.gpt2.modeling_gpt2 import GPT2Config, GPT2Model
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from regard.inputs.positions import Learned, Sinusoidal

RNG = np.random.default_rng(0)


def formula(position: int, width: int, base: float) -> list[float]:
    """The paper's two lines, feature by feature."""
    return [
        (math.cos if feature % 2 else math.sin)(position / base ** (2 * (feature // 2) / width))
        for feature in range(width)
    ]


@given(width=st.integers(1, 13), base=st.sampled_from([10.0, 1e4]), at=st.integers(-1000, 1000))
def test_sinusoidal_is_the_formula(width: int, base: float, at: int) -> None:
    found = Sinusoidal(base).add(np.zeros((5, width)), at=at)
    expected = [formula(at + row, width, base) for row in range(5)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("width", range(1, 9))
def test_halves_are_the_same_waves_in_another_order(width: int) -> None:
    side_by_side, halves = (Sinusoidal(pairs=p).add(np.zeros((7, width)), at=3) for p in ("interleaved", "halves"))
    order = [*range(0, width, 2), *range(1, width, 2)]
    np.testing.assert_array_equal(halves, side_by_side[:, order])


@pytest.mark.parametrize("width", [6, 7])
def test_halves_are_those_of_marian(width: int) -> None:
    theirs = MarianSinusoidalPositionalEmbedding(23, width).create_weight()
    found = Sinusoidal(pairs="halves").add(torch.zeros(23, width))
    torch.testing.assert_close(found, theirs, rtol=0, atol=8 * 2.0**-23)


def test_an_offset_is_a_linear_map_of_the_waves() -> None:
    """The paper's reason for them: p(i + o) is one matrix times p(i), for every i."""
    p, shifted = (Sinusoidal().add(np.zeros((41, 6)), at=at) for at in (0, 9))
    matrix, *_ = np.linalg.lstsq(p, shifted, rcond=None)
    np.testing.assert_allclose(p @ matrix, shifted, rtol=0, atol=1e-11)


def test_far_positions_are_exact_in_float32() -> None:
    far = Sinusoidal().add(torch.zeros(3, 6), at=1_000_000).double()
    expected = Sinusoidal().add(torch.zeros(3, 6, dtype=torch.float64), at=1_000_000)
    torch.testing.assert_close(far, expected, rtol=0, atol=8 * 2.0**-23)


# -- learned tables ----------------------------------------------------------------------------------------------

TABLE = RNG.standard_normal((23, 6))


@given(at=st.integers(0, 18))
def test_an_offset_is_a_slice_of_the_table(at: int) -> None:
    x = RNG.standard_normal((2, 5, 6))
    np.testing.assert_array_equal(Learned(TABLE).add(x, at=at), x + TABLE[at : at + 5])
    np.testing.assert_array_equal(Learned(TABLE).add(x, at=[at, 3]), x + np.stack([TABLE[at : at + 5], TABLE[3:8]]))


def test_the_whole_table_fits_and_not_one_row_more() -> None:
    x = np.zeros((23, 6))
    np.testing.assert_array_equal(Learned(TABLE).add(x), TABLE)
    np.testing.assert_array_equal(Learned(TABLE).add(x[None], at=np.arange(23)[None, :])[0], TABLE)
    assert Learned(TABLE).longest == 23


def test_a_gradient_flows_to_the_table() -> None:
    table, x = torch.tensor(TABLE, requires_grad=True), torch.tensor(RNG.standard_normal((2, 5, 6)))
    for at in (3, [3, 11], torch.tensor([[1, 1, 2, 7, 0], [22, 1, 4, 4, 4]])):
        assert torch.autograd.gradcheck(lambda table, x, at=at: Learned(table).add(x, at=at), (table, x))
    parameter = torch.nn.Parameter(table.detach())
    assert Learned(parameter).parameters["position"] is parameter


def test_x_keeps_its_dtype_beside_a_wider_table() -> None:
    x = torch.zeros(5, 6, dtype=torch.bfloat16)
    found = Learned(torch.tensor(TABLE)).add(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, torch.tensor(TABLE[:5]).float().bfloat16(), rtol=0, atol=0)


def test_gpt2_adds_the_same() -> None:
    model = GPT2Model(GPT2Config(n_embd=6, n_head=2, n_layer=1, n_positions=23, vocab_size=11)).eval()
    captured: list[Any] = []
    model.drop.register_forward_pre_hook(lambda _, inputs: captured.append(inputs[0]))
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        model(ids)
    torch.testing.assert_close(Learned(model.wpe.weight).add(model.wte(ids)), captured[0], rtol=0, atol=0)


def test_random_tables_are_the_same_in_every_library() -> None:
    plain = Learned.random(7, 3, seed=5)
    assert plain.table.shape == (7, 3)
    assert plain.table.dtype == np.float64
    assert np.array_equal(plain.table, Learned.random(7, 3, seed=5).table)
    assert not np.array_equal(plain.table, Learned.random(7, 3, seed=6).table)
    for like in (torch.zeros(1), jnp.zeros(1, jnp.float32)):
        other = Learned.random(7, 3, seed=5, like=like).table
        assert type(other) is type(like)
        assert other.dtype == like.dtype
        np.testing.assert_array_equal(np.asarray(other), plain.table.astype(np.float32))
    spread = Learned.random(101, 103, spread=0.5).table.std()
    assert spread == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(2 * 101 * 103))
