"""Positions in the score: each against loops, the zoo, and the models that they come from."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

import regard as rg
from regard import H, causal, d, dot, h, i, j, softmax, sqrt, zoo
from regard.inputs.positions import ALiBi, Buckets, Offsets, Position, Relative

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, WIDTH = 2, 6, 3, 5, 7, 4
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


Q, K, V = normal(BATCH, HEADS, QUERIES, WIDTH), normal(BATCH, KEY_HEADS, KEYS, WIDTH), normal(BATCH, KEY_HEADS, KEYS, 3)


def looped(bias: Any, *, masked: bool) -> Any:
    """softmax(q·k / √d + bias(h, i − j)) v, pair by pair."""
    y = np.zeros((BATCH, HEADS, QUERIES, 3))
    for b in range(BATCH):
        for head in range(HEADS):
            key_head = head // (HEADS // KEY_HEADS)
            for row in range(QUERIES):
                place = KEYS - QUERIES + row
                read = range(place + 1 if masked else KEYS)
                scores = [Q[b, head, row] @ K[b, key_head, key] / 2 + bias(head, place - key) for key in read]
                weights = np.exp(scores - np.max(scores))
                y[b, head, row] = weights @ V[b, key_head, list(read)] / weights.sum()
    return y


def slope_of_six(head: int) -> float:
    """The slopes of 4 heads, then every second of 8."""
    return [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3][head]


TWO_SIDES, ONE_SIDE, WIDE, BUCKETS = normal(HEADS, 7), normal(HEADS, 4), normal(HEADS, 21), normal(HEADS, 8)
NEAR = [0, 1, 2, 3, 3, 3, 3]  # Buckets(8, 4): 2 of 4 buckets are exact; 4 · (4/2)^(1/2) / 2 = 2.8
SCORED: dict[str, tuple[Position, Any]] = {
    "alibi": (ALiBi(), lambda head, o: -(2 ** (-8 * (head + 1) / HEADS)) * o),
    "alibi of six": (ALiBi(HEADS), lambda head, o: -slope_of_six(head) * o),
    "alibi of distance": (ALiBi(distance=abs(i - j)), lambda head, o: -(2 ** (-8 * (head + 1) / HEADS)) * abs(o)),
    "offsets": (Relative(TWO_SIDES), lambda head, o: TWO_SIDES[head, max(-3, min(3, o)) + 3]),
    "past": (Relative(ONE_SIDE, Offsets(3, sides=1)), lambda head, o: ONE_SIDE[head, max(0, min(3, o))]),
    "beyond": (Relative(WIDE, name="wide"), lambda head, o: WIDE[head, o + 10]),
    "buckets": (
        Relative(BUCKETS, Buckets(8, 4)),
        lambda head, o: BUCKETS[head, NEAR[abs(o)] + (4 if o < 0 else 0)],
    ),
    "sum": (
        ALiBi() + Relative(TWO_SIDES),
        lambda head, o: TWO_SIDES[head, max(-3, min(3, o)) + 3] - 2 ** (-8 * (head + 1) / HEADS) * o,
    ),
}
every_position = pytest.mark.parametrize("name", SCORED)


@every_position
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("engine", ["dense", "python"])
def test_loops_give_the_same(name: str, masked: bool, engine: str) -> None:
    position, bias = SCORED[name]
    attention = position.join(rg.Attention(mask=causal if masked else None))
    found = attention(Q, K, V, engine=engine, **position.tables())
    np.testing.assert_allclose(found, looped(bias, masked=masked), rtol=0, atol=1e-13)


@every_position
@pytest.mark.parametrize("engine", ["tiled", "sdpa"])
def test_streaming_engines_take_them(name: str, engine: str) -> None:
    position, _ = SCORED[name]
    tables = {key: torch.tensor(table) for key, table in position.tables().items()}
    q, k, v = map(torch.tensor, (Q, K, V if engine == "tiled" else normal(*K.shape)))
    attention = position.join(rg.Attention(mask=causal))
    found = attention(q, k, v, engine=engine, **tables)
    torch.testing.assert_close(found, attention(q, k, v, engine="dense", **tables), rtol=0, atol=1e-13)


@every_position
def test_a_step_of_decoding_is_the_last_row(name: str) -> None:
    position, _ = SCORED[name]
    attention, tables = position.join(rg.Attention(mask=causal)), position.tables()
    whole = attention(Q, K, V, **tables)
    np.testing.assert_allclose(attention(Q[..., -1:, :], K, V, **tables), whole[..., -1:, :], rtol=0, atol=1e-14)


def test_jax_takes_them() -> None:
    for position in (ALiBi(), Relative(jnp.asarray(BUCKETS), Buckets(8, 4))):
        attention, q, k, v = position.join(rg.Attention(mask=causal)), *map(jnp.asarray, (Q, K, V))
        plain = {name: np.asarray(table) for name, table in position.tables().items()}
        expected = attention(Q, K, V, **plain)
        np.testing.assert_allclose(attention(q, k, v, **position.tables()), expected, rtol=0, atol=1e-13)


def test_joining_keeps_weight_and_mask() -> None:
    attention = rg.Attention(dot / 3, rg.share(rg.relu), causal)
    joined = ALiBi().join(attention)
    assert type(joined) is rg.Attention
    assert (joined.weight, joined.mask) == (attention.weight, attention.mask)
    assert joined.score == dot / 3 - 2 ** (-8 * (h + 1) / H) * (i - j)


# -- ALiBi -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [None, 1, 2, 8, 64])
def test_alibi_is_that_of_the_zoo(heads: int | None) -> None:
    assert ALiBi(heads).join(rg.Attention(mask=causal)) == zoo.alibi()


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 6, 7, 8, 11, 12, 16, 20, 25, 40, 71])
def test_slopes_are_those_of_bloom(heads: int) -> None:
    """At distance 1 the score of a pair without a product is −slope."""
    slopes = build_alibi_tensor(torch.ones(1, 2, dtype=torch.int64), heads, torch.float32)[:, 0, 1]
    q, k = np.zeros((1, heads, 1, 2)), np.zeros((1, heads, 2, 2))
    found = -ALiBi(heads).join(rg.Attention()).scores(q, k)[0, :, 0, 0]
    np.testing.assert_allclose(found, slopes, rtol=4 * heads * 2.0**-23)  # they multiply one slope h times in float32


# -- buckets -----------------------------------------------------------------------------------------------------------

SIZES = [(32, 128), (16, 64), (64, 256), (32, 20), (8, 5), (12, 30), (48, 1000), (10, 7), (4, 3)]


@pytest.mark.parametrize(
    "bins", [*(Buckets(*size, sides) for size in SIZES for sides in (1, 2)), Buckets(2, 2, 1)], ids=str
)
def test_buckets_are_those_of_t5(bins: Buckets) -> None:
    offsets = torch.arange(-3 * bins.reach, 3 * bins.reach + 1)
    theirs = T5Attention._relative_position_bucket(
        -offsets, bidirectional=bins.sides == 2, num_buckets=bins.count, max_distance=bins.reach
    )
    found = np.asarray(bins.entries())[np.clip(offsets.numpy(), bins.least, bins.reach) - bins.least]
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.parametrize("decoder", [False, True])
def test_t5_adds_the_same_bias(decoder: bool) -> None:
    config = T5Config(d_model=24, d_kv=4, num_heads=HEADS, is_decoder=decoder)
    layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    table = layer.relative_attention_bias.weight
    with torch.no_grad():
        table.normal_(generator=torch.Generator().manual_seed(0))
    position = Relative(table.T, Buckets(sides=1 if decoder else 2))
    zeros = torch.zeros(1, HEADS, 300, 4)
    found = position.join(rg.Attention(score=dot)).scores(zeros, zeros, **position.tables())
    torch.testing.assert_close(found, layer.compute_bias(300, 300), rtol=0, atol=0)


def test_the_zoo_writes_the_same_buckets_as_a_formula() -> None:
    table, zeros = normal(HEADS, 32), np.zeros((1, HEADS, 300, 2))
    position = Relative(table, Buckets())
    found = position.join(rg.Attention(score=dot)).scores(zeros, zeros, **position.tables())
    np.testing.assert_array_equal(found, zoo.t5_bias().scores(zeros, zeros, bias=table))


# -- learned tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["offsets", "past", "buckets"])
@pytest.mark.parametrize("engine", ["dense", "tiled"])
def test_a_gradient_flows_to_the_table(name: str, engine: str) -> None:
    given = SCORED[name][0]
    assert isinstance(given, Relative)
    table = torch.tensor(given.table, requires_grad=True)
    q, k, v = map(torch.tensor, (Q, K, V))

    def attend(table: Any) -> Any:
        position = Relative(table, given.bins)
        return position.join(rg.Attention(mask=causal))(q, k, v, engine=engine, **position.tables())

    assert torch.autograd.gradcheck(attend, table, fast_mode=True)


def test_a_parameter_stays_the_parameter() -> None:
    parameter = torch.nn.Parameter(torch.zeros(3, 7))
    position = Relative(parameter, name="near")
    assert position.parameters["near"] is parameter
    assert position.tables()["near"] is parameter


def test_random_tables_fit_their_bins() -> None:
    for bins in (Offsets(5), Offsets(5, sides=1), Buckets()):
        position = Relative.random(HEADS, bins, seed=3)
        assert position.table.shape == (HEADS, bins.count)
        assert position.bins == bins
        np.testing.assert_array_equal(position.table, Relative.random(HEADS, bins, seed=3).table)
        like = torch.zeros(1, dtype=torch.float32)
        assert Relative.random(HEADS, bins, seed=3, like=like).table.dtype == torch.float32


def test_a_table_without_reach_is_one_number_for_each_head() -> None:
    position = Relative([[2.0], [3.0]])
    zeros = np.zeros((1, 2, 3, 4))
    scores = position.join(rg.Attention(dot / sqrt(d), softmax)).scores(zeros, zeros, **position.tables())
    np.testing.assert_array_equal(scores[0], np.broadcast_to(np.array([2.0, 3.0])[:, None, None], (2, 3, 3)))
    assert math.isclose(float(scores.max()), 3.0)
