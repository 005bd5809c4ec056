"""Draws: temperature, top-k and top-p by their definitions, against transformers, and in the right shares."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from regard.algebra.errors import CallError, KindError
from regard.nn.generation import Sampling, greedy
from regard.nn.generation.sampling import HEAD, log_probabilities

SAMPLINGS = st.builds(
    Sampling,
    temperature=st.sampled_from([0, 0.1, 0.7, 1, 3.0]),
    top_k=st.sampled_from([None, 1, 2, 3, 7, 13, 1000]),
    top_p=st.sampled_from(
        [None, 1e-9, 0.11, 0.53, 0.91, 0.9991, 1.0]
    ),  # no p that equal shares add up to, but for rounding
)
LEVELS = st.lists(st.sampled_from([-math.inf, -3.0, -1.0, 0.0, 0.5, 2.0, 2.5]), min_size=1, max_size=13)


def plainly(sampling: Sampling, row: list[float]) -> Any:
    """The definition, one token at a time, in Python's numbers."""
    order = sorted(range(len(row)), key=lambda t: (-row[t], t))
    if sampling.temperature == 0:
        return [float(t == order[0]) for t in range(len(row))]
    if sampling.top_k is not None:
        order = order[: sampling.top_k]

    def shared(tokens: list[int]) -> dict[int, float]:
        parts = {t: math.exp((row[t] - max(row)) / sampling.temperature) for t in tokens}
        return {t: part / math.fsum(parts.values()) for t, part in parts.items()}

    P = shared(order)
    if sampling.top_p is not None and sampling.top_p < 1:
        order = [t for place, t in enumerate(order) if math.fsum(P[u] for u in order[:place]) < sampling.top_p]
        P = shared(order)
    return [P.get(t, 0.0) for t in range(len(row))]


@given(SAMPLINGS, LEVELS)
def test_probabilities_are_as_defined_also_among_equals(sampling: Sampling, row: list[float]) -> None:
    if max(row) == -math.inf:
        row[0] = 0.0
    found = sampling.probabilities(torch.tensor([row], dtype=torch.float64))[0]
    np.testing.assert_allclose(found, plainly(sampling, row), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.5000001, 2), (0.75, 2), (0.76, 3)])
def test_the_token_that_reaches_p_stays_and_none_behind_it(top_p: float, kept: int) -> None:
    P = Sampling(top_p=top_p).probabilities(torch.tensor([[0.25, 0.5, 0.25]], dtype=torch.float64).log())
    assert ((P > 0).tolist()) == [[kept > 1, True, kept > 2]]


def warped(sampling: Sampling, logits: torch.Tensor) -> torch.Tensor:
    steps = [TemperatureLogitsWarper(sampling.temperature)]
    steps += [] if sampling.top_k is None else [TopKLogitsWarper(sampling.top_k)]
    steps += [] if sampling.top_p is None else [TopPLogitsWarper(sampling.top_p)]
    for step in steps:
        logits = step(None, logits)
    return logits.softmax(-1)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [None, 1, 17, 5000])
@pytest.mark.parametrize("top_p", [None, 0.05, 0.6, 0.97, 1.0])
def test_agrees_with_transformers(temperature: float, top_k: int | None, top_p: float | None) -> None:
    logits = 3 * torch.randn(5, 2003, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    sampling = Sampling(temperature, top_k, top_p)
    torch.testing.assert_close(sampling.probabilities(logits), warped(sampling, logits), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 9.0])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.99])
def test_the_head_of_a_large_vocabulary_is_enough(scale: float, top_p: float) -> None:
    """Flat or steep, found among the first or only in a sort of all."""
    tokens = 3 * HEAD + 1
    logits = scale * torch.randn(3, tokens, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = Sampling(top_p=top_p).probabilities(logits)
    for row, P in zip(logits.tolist(), found, strict=True):
        np.testing.assert_allclose(P, plainly(Sampling(top_p=top_p), row), rtol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_every_dtype_is_computed_in_float64(dtype: torch.dtype) -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0, 2.0, 0.25]], dtype=dtype)
    sampling = Sampling(0.7, 4, 0.9)
    found = sampling.probabilities(logits)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found[0], plainly(sampling, logits[0].tolist()), rtol=1e-12)


# -- draws ---------------------------------------------------------------------------------------------------------


@given(SAMPLINGS, LEVELS, st.integers(0, 2**53 - 1))
def test_a_point_gives_the_token_that_it_falls_on(sampling: Sampling, row: list[float], place: int) -> None:
    if max(row) == -math.inf:
        row[-1] = 0.0
    logits, u = torch.tensor([row], dtype=torch.float64), place / 2**53
    P = sampling.probabilities(logits)[0].tolist()
    token = int(sampling.drawn(logits, torch.tensor([u], dtype=torch.float64)))
    assert P[token] > 0
    assert sum(P[:token]) <= u + 1e-15
    assert u < sum(P[: token + 1]) + 1e-15


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_first_and_the_last_point_fall_on_tokens(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.nn.generation.sampling._wide", lambda device: dtype)
    logits = torch.randn(2003, 101, generator=torch.Generator().manual_seed(1), dtype=dtype)
    logits[:, [0, 1, -1]] = -math.inf
    first, last = 0.0, 1 - torch.finfo(dtype).eps / 2
    assert Sampling().drawn(logits, torch.full((2003,), first, dtype=dtype)).tolist() == [2] * 2003
    assert Sampling().drawn(logits, torch.full((2003,), last, dtype=dtype)).tolist() == [99] * 2003


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.5, 7), Sampling(1.3, None, 0.8), Sampling(2, 5, 0.7)])
def test_tokens_come_in_their_shares(sampling: Sampling) -> None:
    """χ² of many draws, 4.5 standard deviations at most."""
    logits, count = torch.tensor([0.3, -1, 2, 0.1, 1.5, -2, 0, 0.9, -0.5, 1, 1.1]), 100_000
    ids = sampling(logits.expand(count, 11), torch.Generator().manual_seed(5))
    P = sampling.probabilities(logits)
    seen = torch.bincount(ids, minlength=11)
    assert not seen[P == 0].any()
    expected = count * P[P > 0]
    freedom = len(expected) - 1
    assert abs(float(((seen[P > 0] - expected) ** 2 / expected).sum()) - freedom) < 4.5 * math.sqrt(2 * freedom)


def test_a_generator_makes_draws_repeatable() -> None:
    logits = torch.zeros(7, 1009)
    draws = [Sampling()(logits, torch.Generator().manual_seed(seed)).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    torch.manual_seed(1)
    first, second = Sampling()(logits), Sampling()(logits)
    torch.manual_seed(1)
    assert torch.equal(Sampling()(logits), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("options", [{"top_k": 1009}, {"top_k": 10**9}, {"top_p": 1}, {"top_p": 1.0, "top_k": 1009}])
def test_what_cuts_nothing_changes_nothing(options: Any) -> None:
    logits = torch.randn(31, 1009, generator=torch.Generator().manual_seed(1))
    found, expected = (s(logits, torch.Generator().manual_seed(1)) for s in (Sampling(**options), Sampling()))
    assert torch.equal(found, expected)


def test_rows_are_any_axes() -> None:
    logits = torch.randn(2, 3, 5)
    assert Sampling(top_k=2, top_p=0.9)(logits).shape == greedy(logits).shape == (2, 3)
    assert Sampling()(logits[0, 0]).shape == ()


# -- greedy --------------------------------------------------------------------------------------------------------


@given(LEVELS)
def test_greedy_takes_the_first_of_the_largest(row: list[float]) -> None:
    if max(row) == -math.inf:
        row[-1] = 0.0
    logits = torch.tensor([row])
    assert greedy(logits).tolist() == [row.index(max(row))] == Sampling(top_k=1)(logits).tolist()
    assert Sampling(0, 3, 0.5)(logits).tolist() == [row.index(max(row))]


def test_greedy_draws_nothing() -> None:
    before = torch.get_rng_state()
    greedy(torch.zeros(3, 5))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("temperature", [1e-300, 5e-324, 1e-30])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_near_zero_it_is_greedy(temperature: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a device that has no float64, where such a temperature is 0."""
    monkeypatch.setattr("regard.nn.generation.sampling._wide", lambda device: dtype)
    P = Sampling(temperature).probabilities(torch.tensor([[10.0, 30.0, -math.inf, 30.0, 29.9]]))
    assert P.dtype == dtype
    assert P.tolist() == [[0, 0.5, 0, 0.5, 0]]


def test_log_probabilities_are_the_models() -> None:
    logits = torch.randn(3, 7, dtype=torch.float64)
    ids = torch.tensor([6, 0, 3])
    torch.testing.assert_close(log_probabilities(logits, ids), logits.log_softmax(-1)[range(3), ids])


# -- values and refusals -------------------------------------------------------------------------------------------


def test_a_sampling_is_a_value() -> None:
    assert Sampling(temperature=0) == greedy
    assert {Sampling(0.5, 3, 0.9): 1}[Sampling(0.5, 3, 0.9)] == 1
    with pytest.raises(FrozenInstanceError):
        greedy.temperature = 1  # type: ignore[misc]


@pytest.mark.parametrize("temperature", [-0.1, math.nan, math.inf, "1", None, True])
def test_refuses_a_temperature(temperature: Any) -> None:
    with pytest.raises(CallError, match=r"temperature: a finite number of 0 or more; got .*; pass 0 for the likeliest"):
        Sampling(temperature)


@pytest.mark.parametrize("top_k", [0, -1, 2.0, True, "3"])
def test_refuses_a_top_k(top_k: Any) -> None:
    with pytest.raises(CallError, match=r"top_k: how many tokens may be drawn, at least 1; got .*; pass None for all"):
        Sampling(top_k=top_k)


@pytest.mark.parametrize("top_p", [0, -0.1, 1.1, math.nan, True, "0.5"])
def test_refuses_a_top_p(top_p: Any) -> None:
    with pytest.raises(CallError, match=r"top_p: a share above 0 and at most 1; got .*; pass None for all tokens"):
        Sampling(top_p=top_p)


@pytest.mark.parametrize(
    ("wrong", "shown"), [(math.nan, "NaN"), (math.inf, r"\+inf"), (-math.inf, "−inf for every token")]
)
def test_refuses_logits_that_are_no_distribution(wrong: float, shown: str) -> None:
    logits = torch.zeros(5, 7)
    logits[3] = -math.inf
    logits[3, 2] = wrong
    for draw in (greedy, Sampling(), Sampling(top_k=2).probabilities):
        with pytest.raises(
            CallError, match=rf"logits: finite, or −inf for some tokens, .*; got {shown} in row 3; look"
        ):
            draw(logits)


@pytest.mark.parametrize("logits", [torch.zeros(3, 0), torch.zeros(3, 5, dtype=torch.int64), [[1.0]], torch.zeros(())])
def test_refuses_what_are_no_logits(logits: Any) -> None:
    with pytest.raises(KindError, match=r"logits: a tensor of real numbers, \(…, V\), one for each token; got "):
        greedy(logits)
