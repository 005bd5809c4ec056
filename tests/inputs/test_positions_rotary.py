"""Rotary positions: lengths stay, offsets alone count, places far away are exact, and Hugging Face's models agree."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GPTJConfig, LlamaConfig
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama

import regard as rg
from regard import causal
from regard._arrays import library
from regard.inputs.positions import NTK, DynamicNTK, Linear, Llama3, LongRoPE, NoPosition, Rotary, Sinusoidal
from regard.inputs.positions.angles import cos_sin, geometric

RNG = np.random.default_rng(0)
EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}
CONVERT = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
ROTARIES = {
    "halves": Rotary(),
    "interleaved": Rotary(base=500.0, pairs="interleaved"),
    "partial": Rotary(width=6),
    "linear": Rotary(scaling=Linear(4)),
    "ntk": Rotary(scaling=NTK(3)),
    "llama3": Rotary(base=5e5, pairs="interleaved", scaling=Llama3(8, original=32)),
}
every_rotary = pytest.mark.parametrize("name", ROTARIES)
positions = st.integers(-(10**4), 10**4)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


# -- laws ----------------------------------------------------------------------------------------------------------


@every_rotary
@given(at=positions)
def test_lengths_stay(name: str, at: int) -> None:
    x = normal(7, 14)
    turned = ROTARIES[name].turn(x, at=at)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-14)


@every_rotary
@given(p=positions, o=positions, shift=positions)
def test_the_product_depends_on_the_offset_alone(name: str, p: int, o: int, shift: int) -> None:
    turn = ROTARIES[name].turn
    q, k = normal(1, 14), normal(1, 14)
    here = turn(q, at=p) @ turn(k, at=p + o).T
    there = turn(q, at=p + shift) @ turn(k, at=p + o + shift).T
    size = np.linalg.norm(q) * np.linalg.norm(k) * (1 + max(abs(p), abs(p + o)) + abs(shift))  # ω has 53 bits
    np.testing.assert_allclose(here, there, rtol=0, atol=8 * EPS[np.float64] * size)


@every_rotary
@given(at=st.integers(-100, 100), more=st.integers(-100, 100))
def test_two_turns_are_one(name: str, at: int, more: int) -> None:
    rotary, x = ROTARIES[name], normal(1, 14)
    np.testing.assert_allclose(rotary.turn(rotary.turn(x, at), more), rotary.turn(x, at + more), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rotary.turn(rotary.turn(x, at), -at), x, rtol=0, atol=1e-12)


def test_position_zero_leaves_all_as_it_is() -> None:
    x = normal(1, 14)
    np.testing.assert_array_equal(Rotary().turn(x), x)


@pytest.mark.parametrize("pairs", ["halves", "interleaved"])
def test_each_pair_is_a_complex_number(pairs: str) -> None:
    x = normal(5, 6)
    firsts, seconds = ([0, 1, 2], [3, 4, 5]) if pairs == "halves" else ([0, 2, 4], [1, 3, 5])
    numbers = x[:, firsts] + 1j * x[:, seconds]
    numbers = numbers * np.exp(1j * np.outer(np.arange(7, 12), 10000.0 ** (-np.arange(0, 6, 2) / 6)))
    found = Rotary(pairs=pairs).turn(x, at=7)
    np.testing.assert_allclose(found[:, firsts], numbers.real, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found[:, seconds], numbers.imag, rtol=0, atol=1e-14)


def test_the_features_beyond_the_width_are_not_turned() -> None:
    x = normal(5, 13)
    found = Rotary(width=6).turn(x, at=3)
    np.testing.assert_array_equal(found[:, 6:], x[:, 6:])
    np.testing.assert_array_equal(found[:, :6], Rotary().turn(x[:, :6], at=3))


@every_rotary
def test_a_permutation_leads_to_the_other_pairs(name: str) -> None:
    rotary, x = ROTARIES[name], normal(3, 5, 14)
    order = rotary.permutation(14)
    assert sorted(order) == list(range(14))
    np.testing.assert_array_equal(rotary.other.turn(x[..., order], at=9), rotary.turn(x, at=9)[..., order])
    np.testing.assert_array_equal(order[rotary.other.permutation(14)], np.arange(14))
    assert rotary.other.other == rotary


# -- queries and keys ------------------------------------------------------------------------------------------------

Q, K = normal(2, 6, 3, 14), normal(2, 2, 5, 14)  # three queries, the last rows of five keys; fewer key heads


@pytest.mark.parametrize("start", [None, 1, [0, 2]])
def test_a_pair_stands_where_the_attention_says(start: Any) -> None:
    rotary = Rotary()
    q, k = rotary.turn_pair(Q, K, start)
    np.testing.assert_array_equal(q, rotary.turn(Q, at=2 if start is None else start))
    np.testing.assert_array_equal(k, rotary.turn(K))
    lists = rotary.turn_pair(Q.tolist(), K.tolist(), start)
    np.testing.assert_array_equal(lists[0], q)
    np.testing.assert_array_equal(lists[1], k)


def test_steps_with_a_cache_and_padding_are_the_whole() -> None:
    """Keys are turned once and kept; an entry of the batch that begins later stands that much earlier."""
    rotary, attention, pads = Rotary(), rg.Attention(mask=causal & (rg.j >= rg.table("pads")[rg.b])), np.array([0, 2])
    q, k, v = normal(2, 6, 7, 14), normal(2, 2, 7, 14), normal(2, 2, 7, 3)
    whole = attention(rotary.turn(q, at=-pads), rotary.turn(k, at=-pads), v, pads=pads)
    cache = rotary.turn(k[..., :4, :], at=-pads)
    for row in range(4, 7):
        turns = rotary.turns(q[..., row : row + 1, :], at=row - pads)
        cache = np.concatenate([cache, turns(k[..., row : row + 1, :])], axis=-2)
        step = attention(turns(q[..., row : row + 1, :]), cache, v[..., : row + 1, :], pads=pads)
        np.testing.assert_allclose(step, whole[..., row : row + 1, :], rtol=0, atol=1e-13)
    alone = rg.Attention(mask=causal)(*rotary.turn_pair(q[1:, :, 2:], k[1:, :, 2:]), v[1:, :, 2:])
    np.testing.assert_allclose(whole[1:, :, 2:], alone, rtol=0, atol=1e-12)


def test_turns_serve_any_number_of_heads() -> None:
    turns = Rotary().turns(Q, at=[3, 8])
    np.testing.assert_array_equal(turns(Q), Rotary().turn(Q, at=[3, 8]))
    np.testing.assert_array_equal(turns(Q[:, :2]), Rotary().turn(Q[:, :2], at=[3, 8]))


def test_a_dynamic_length_is_that_of_queries_and_keys() -> None:
    dynamic = Rotary(scaling=DynamicNTK(2, 4))
    for start, length in ((None, 5), (6, 9), ([1, 5], 8), (0, 5)):
        found, expected = dynamic.turn_pair(Q, K, start), dynamic.settled(length).turn_pair(Q, K, start)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(dynamic.turn(K, at=3), dynamic.settled(8).turn(K, at=3))
    np.testing.assert_array_equal(dynamic.turn(K, at=[3, 1]), dynamic.settled(8).turn(K, at=[3, 1]))
    np.testing.assert_array_equal(dynamic.turn(K[..., :4, :]), Rotary().turn(K[..., :4, :]))
    assert dynamic.settled(8).settled(99) == dynamic.settled(8)


# -- accuracy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONVERT)
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("p", [0, 1, -1, 17, 4095, 131_071, 1_000_000, -1_000_000, 2**30 + 7])
def test_angles_far_away_are_exact(kind: str, dtype: Any, p: int) -> None:
    """Four roundings of an angle up to π, one of the result, and what 53 bits of ω leave open."""
    xp, places = library(CONVERT[kind](np.zeros(1))), CONVERT[kind](np.array([p]))
    cos, sin = cos_sin(xp, places, geometric(1e4, 10), getattr(xp, dtype.__name__))
    assert cos.dtype == sin.dtype == getattr(xp, dtype.__name__)
    with mpmath.workdps(50):
        angles = [p * mpmath.mpf(10) ** (mpmath.mpf(-8 * m) / 10) for m in range(5)]
        expected = [[float(f(angle)) for angle in angles] for f in (mpmath.cos, mpmath.sin)]
    bound = 8 * EPS[dtype] + 2 * abs(p) * EPS[np.float64]
    np.testing.assert_allclose([np.asarray(cos)[0], np.asarray(sin)[0]], expected, rtol=0, atol=bound)


def test_places_of_32_bits_are_as_exact() -> None:
    """What JAX has without 64 bits, and a traced place."""
    xp = library(jnp.zeros(1))
    found = jax.jit(lambda p: cos_sin(xp, p, geometric(1e4, 10), jnp.float32))(jnp.asarray([1_000_000], jnp.int32))
    angles = 1_000_000 * np.asarray(geometric(1e4, 10))
    np.testing.assert_allclose(np.asarray(found)[:, 0], [np.cos(angles), np.sin(angles)], rtol=0, atol=8 * 2.0**-23)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_are_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 5, 14, generator=torch.Generator().manual_seed(0)).to(dtype)
    for place in (Rotary(width=6).turn, Sinusoidal().add):
        found = place(x, at=1000)
        assert found.dtype == dtype
        torch.testing.assert_close(found, place(x.float(), at=1000).to(dtype), rtol=0, atol=0)


def test_gradients_turn_back() -> None:
    x, dy = torch.tensor(normal(2, 3, 5, 14), requires_grad=True), torch.tensor(normal(2, 3, 5, 14))
    for rotary in ROTARIES.values():
        (dx,) = torch.autograd.grad(rotary.turn(x, at=5), x, dy)
        back = torch.cat([rotary.turn(dy[..., r : r + 1, :], at=-5 - r) for r in range(5)], dim=-2)
        torch.testing.assert_close(dx, back, rtol=0, atol=1e-14)
        assert torch.autograd.gradcheck(lambda x, rotary=rotary: rotary.turn(x, at=[3, 8]), x)


# -- models of Hugging Face ------------------------------------------------------------------------------------------


def bound(rows: int, rotary: Rotary, d: int) -> float:
    """They compute ω and angles in float32: the error of an angle grows with the place."""
    return (8 + 4 * rows * max(rotary.frequencies(d)) * math.log(rotary.base)) * 2.0**-23


@pytest.mark.parametrize("parameters", [{"rope_type": "default"}, {"rope_type": "linear", "factor": 3.0}], ids=str)
def test_llama_turns_alike(parameters: dict[str, Any]) -> None:
    config = LlamaConfig(hidden_size=48, num_attention_heads=3, rope_parameters={**parameters, "rope_theta": 5e5})
    rotary = Rotary.from_config(config.to_dict())
    q, k = torch.randn(2, 3, 7, 16), torch.randn(2, 3, 7, 16)
    places = torch.tensor([[4], [11]]) + torch.arange(7)
    cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(q, places)
    for array, theirs in zip((q, k), modeling_llama.apply_rotary_pos_emb(q, k, cos, sin), strict=True):
        torch.testing.assert_close(rotary.turn(array, at=places), theirs, rtol=0, atol=4 * bound(18, rotary, 16))
        torch.testing.assert_close(rotary.turn(array, at=[4, 11]), theirs, rtol=0, atol=4 * bound(18, rotary, 16))


def test_gpt_j_turns_alike() -> None:
    config = GPTJConfig(n_embd=42, n_head=3, rotary_dim=8, n_positions=32)
    rotary = Rotary.from_config(config.to_dict(), pairs="interleaved")
    assert rotary == Rotary(width=8, pairs="interleaved")
    x, table = torch.randn(1, 7, 3, 14), modeling_gptj.create_sinusoidal_positions(32, 8)
    sin, cos = table[None, 5:12].split(4, dim=-1)
    theirs = modeling_gptj.apply_rotary_pos_emb(x[..., :8], sin, cos).transpose(1, 2)
    found = rotary.turn(x.transpose(1, 2), at=5)
    torch.testing.assert_close(found[..., :8], theirs, rtol=0, atol=4 * bound(12, rotary, 14))


def test_longrope_changes_beyond_the_original_length() -> None:
    long = Rotary(scaling=LongRoPE((1.0,) * 7, tuple(np.linspace(1, 9, 7)), 4.0, 16))
    x = normal(3, 14)
    gain = math.sqrt(1 + math.log(4) / math.log(16))
    np.testing.assert_allclose(long.turn(x, at=13), gain * Rotary().turn(x, at=13), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(long.turn(x, at=14), axis=-1), gain * np.linalg.norm(x, axis=-1))
    assert not np.allclose(long.turn(x, at=14), gain * Rotary().turn(x, at=14))


def test_linear_squeezes_positions() -> None:
    x, places = normal(2, 5, 14), np.array([[0, 3, 1, 7, 12], [5, 5, 2, 0, 1]])
    squeezed = Rotary(scaling=Linear(4)).turn(x, at=4 * places)
    np.testing.assert_allclose(squeezed, Rotary().turn(x, at=places), rtol=0, atol=1e-14)


def test_attention_with_rotary_positions_does_not_see_a_shift() -> None:
    attention, v = rg.Attention(mask=causal), normal(2, 2, 5, 3)
    rotary = Rotary()
    here = attention(*rotary.turn_pair(Q, K), v)
    there = attention(rotary.turn(Q, at=1002), rotary.turn(K, at=1000), v)
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-11)
    assert not np.allclose(here, attention(*NoPosition().turn_pair(Q, K), v))
