"""Norms and feed-forwards against their formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import special

from layers import DIM, loud, normal
from regard.algebra.errors import CallError, KindError
from regard.nn import FeedForward, GatedFeedForward, LayerNorm, RMSNorm
from regard.nn.feed_forward import ACTIVATIONS

HIDDEN = 7
X = normal(2, 5, DIM)
PLAIN = {
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * special.expit(x),
    "relu": lambda x: np.maximum(x, 0),
    "relu_squared": lambda x: np.maximum(x, 0) ** 2,
}
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def arrays(module: torch.nn.Module) -> dict[str, Any]:
    return {name.replace(".", "_"): value.detach().numpy() for name, value in module.named_parameters()}


def test_layer_norm() -> None:
    for bias in (True, False):
        norm = loud(LayerNorm(DIM, 0.1, bias))
        p, x = arrays(norm), X.numpy()
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1)
        np.testing.assert_allclose(norm(X).detach(), p["weight"] * scaled + p.get("bias", 0), **CLOSE)
        assert ("bias" in p) == bias


def test_rms_norm() -> None:
    norm, x = loud(RMSNorm(DIM, 0.1)), X.numpy()
    expected = arrays(norm)["weight"] * x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(norm(X).detach(), expected, **CLOSE)
    assert list(arrays(norm)) == ["weight"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward(activation: str, bias: bool) -> None:
    layer = loud(FeedForward(DIM, HIDDEN, activation, bias))
    p = arrays(layer)
    inside = PLAIN[activation](X.numpy() @ p["into_weight"].T + p.get("into_bias", 0))
    np.testing.assert_allclose(layer(X).detach(), inside @ p["out_weight"].T + p.get("out_bias", 0), **CLOSE)
    assert ("into_bias" in p) == ("out_bias" in p) == bias


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_gated_feed_forward(activation: str, bias: bool) -> None:
    layer = loud(GatedFeedForward(DIM, HIDDEN, activation, bias))
    p, x = arrays(layer), X.numpy()
    gate = PLAIN[activation](x @ p["gate_weight"].T + p.get("gate_bias", 0))
    inside = gate * (x @ p["into_weight"].T + p.get("into_bias", 0))
    np.testing.assert_allclose(layer(X).detach(), inside @ p["out_weight"].T + p.get("out_bias", 0), **CLOSE)


@pytest.mark.parametrize("dim", [1, 3, 13, 48, 100, 4096])
def test_the_width_between(dim: int) -> None:
    with torch.device("meta"):
        plain, gated = FeedForward(dim, bias=False), GatedFeedForward(dim)
    assert plain.into.out_features == 4 * dim
    hidden = gated.into.out_features
    assert hidden % 8 == 0
    assert 0 <= hidden - 8 * dim / 3 < 8


def test_dropout_in_training_alone() -> None:
    for layer in (FeedForward(DIM, HIDDEN, dropout=0.5), GatedFeedForward(DIM, HIDDEN, dropout=0.5)):
        loud(layer)
        torch.testing.assert_close(layer(X), layer(X), rtol=0, atol=0)
        assert (layer.train()(X) == 0).any()


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_refusals(kind: Any) -> None:
    with pytest.raises(CallError, match="activation: one of gelu, gelu_tanh, silu, relu, relu_squared; got 'swish'"):
        kind(DIM, activation="swish")
    with pytest.raises(CallError, match="dim: an integer of at least 1; got -3"):
        kind(-3)
    with pytest.raises(CallError, match="hidden: an integer of at least 1; got 0"):
        kind(DIM, 0)
    with pytest.raises(KindError, match=r"hidden: an integer; got 2.5"):
        kind(DIM, 2.5)
