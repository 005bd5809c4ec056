"""Normalised pixels: mean 0 and deviation 1 in every channel; the constants are a value that survives JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.train.data.normal import Normal


@given(st.integers(0, 99))
def test_the_training_images_are_normal(seed: int) -> None:
    pixels = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (7, 3, 5, 11)) // [[[[3]], [[1]], [[2]]]])
    normal = Normal.of(pixels.to(torch.uint8))
    x = normal(pixels.to(torch.uint8))
    assert x.dtype == torch.float32
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3))
    oracle = pixels.double().div(255)
    np.testing.assert_allclose(normal.mean, oracle.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(normal.std, oracle.std((0, 2, 3), correction=0), rtol=1e-12)


def test_more_images_than_are_counted_at_once() -> None:
    pixels = torch.zeros(2053, 1, 1, 2, dtype=torch.uint8)
    pixels[:, 0, 0, 1] = 255
    assert Normal.of(pixels) == Normal((0.5,), (0.5,))


def test_a_channel_of_one_value_stays_finite() -> None:
    pixels = torch.full((3, 2, 5, 7), 51, dtype=torch.uint8)
    assert Normal.of(pixels).std == (1, 1)
    assert Normal.of(pixels)(pixels).abs().max() < 1e-6


def test_bytes_and_floats_are_read_alike() -> None:
    normal = Normal((0.25, 0.5), (0.5, 2))
    pixels = torch.arange(2 * 3 * 5, dtype=torch.uint8).reshape(1, 2, 3, 5)
    assert torch.equal(normal(pixels), normal(pixels.float() / 255))
    assert torch.equal(normal(pixels[0]), normal(pixels)[0])


def test_it_comes_back_from_json() -> None:
    normal = Normal((0.1, 1 / 3), (0.3, 0.7))
    assert Normal(**json.loads(json.dumps(asdict(normal)))) == normal
