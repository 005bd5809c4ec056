"""Code of PyTorch that calls F.scaled_dot_product_attention, on a formula."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import regard as rg
from regard import Attention, hf, window
from regard.algebra.errors import CallError


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


Q, K, V = normal(2, 6, 5, 4), normal(2, 3, 7, 4, seed=1), normal(2, 3, 7, 4, seed=2)
MASKS = {
    "none": None,
    "truths": normal(2, 1, 5, 7, seed=3) > -1,
    "keys": normal(1, 7, seed=3) > -1,
    "numbers": normal(2, 6, 5, 7, seed=4),
    "numbers of keys": normal(1, 7, seed=4),
    "half": torch.where(normal(5, 7, seed=3) > -1, normal(5, 7, seed=4), -torch.inf),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", [None, 0.3])
def test_same_numbers(mask: str, scale: float | None) -> None:
    options: dict[str, Any] = {"attn_mask": MASKS[mask], "scale": scale, "enable_gqa": True}
    expected = F.scaled_dot_product_attention(Q, K, V, **options)
    with hf.rerouted() as route:
        got = F.scaled_dot_product_attention(Q, K, V, **options)
    assert torch.allclose(got, expected)
    assert (route.calls, len(route.formulas)) == (1, 1)


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": normal(5, 7, seed=4)}], ids=str)
def test_any_number_of_axes(axes: int, options: dict[str, Any]) -> None:
    lead = (2, 3, 2)[: axes - 2]
    q, k, v = normal(*lead, 5, 4), normal(*lead, 7, 4, seed=1), normal(*lead, 7, 4, seed=2)
    expected = F.scaled_dot_product_attention(q, k, v, **options)
    with hf.rerouted():
        assert torch.allclose(F.scaled_dot_product_attention(q, k, v, **options), expected)


def test_causality_counts_from_the_first() -> None:
    expected = F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)
    with hf.rerouted():
        assert torch.allclose(F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True), expected)
    banded = torch.ones(5, 7, dtype=torch.bool).tril().triu(-1)
    expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=banded, enable_gqa=True)
    with hf.rerouted(Attention(mask=window(2))):
        assert torch.allclose(F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True), expected)


def test_masks_of_both_and_numbers_of_the_call() -> None:
    truths, numbers = MASKS["truths"], MASKS["numbers"]
    assert truths is not None
    assert numbers is not None
    with hf.rerouted(Attention(rg.dot, mask=rg.j < 5)):
        masked = F.scaled_dot_product_attention(Q, K, V, attn_mask=truths, enable_gqa=True)
        added = F.scaled_dot_product_attention(Q, K, V, attn_mask=numbers, enable_gqa=True)
    first = torch.arange(7) < 5
    options: dict[str, Any] = {"enable_gqa": True, "scale": 1.0}
    assert torch.allclose(masked, F.scaled_dot_product_attention(Q, K, V, attn_mask=truths & first, **options))
    barred = numbers.masked_fill(~first, -torch.inf)
    assert torch.allclose(added, F.scaled_dot_product_attention(Q, K, V, attn_mask=barred, **options))


def test_a_function_of_the_own_formula() -> None:
    with hf.rerouted(lambda own: Attention(own.score, rg.sigmoid, own.mask)) as route:
        got = F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
    assert torch.allclose(got, Attention(weight=rg.sigmoid)(Q, K, V))
    assert route.formulas == [Attention(weight=rg.sigmoid)]


def test_dropout_is_obeyed() -> None:
    with hf.rerouted():
        torch.manual_seed(0)
        dropped = F.scaled_dot_product_attention(Q, K, V, dropout_p=0.5, enable_gqa=True)
    torch.manual_seed(0)
    assert torch.equal(dropped, Attention()(Q, K, V, start=0, dropout=0.5))


def test_gradients_flow() -> None:
    q = Q.clone().requires_grad_()
    with hf.rerouted():
        F.scaled_dot_product_attention(q, K, V, enable_gqa=True).square().sum().backward()
    got, q.grad = q.grad, None
    F.scaled_dot_product_attention(q, K, V, enable_gqa=True).square().sum().backward()
    assert got is not None
    assert torch.allclose(got, q.grad)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # of PyTorch alone, without us
@pytest.mark.parametrize("heads", [3, 4])
@pytest.mark.parametrize("grad", [False, True])
def test_modules_of_pytorch_have_no_way_around(heads: int, grad: bool) -> None:
    """Neither the fast path of evaluation nor nested tensors."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, heads, 17, batch_first=True, dtype=torch.float64)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=heads == 4).eval()
    x, padding = normal(2, 7, 12), torch.arange(7).expand(2, 7) >= torch.tensor([[5], [7]])
    with torch.set_grad_enabled(grad):
        expected = encoder(x, src_key_padding_mask=padding)
        with hf.rerouted() as route:
            got = encoder(x, src_key_padding_mask=padding)
    assert route.calls == 2
    assert torch.allclose(got[~padding], expected[~padding])


def test_decoder_of_pytorch() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(12, 3, 17, batch_first=True, dtype=torch.float64).eval()
    x, memory = normal(2, 5, 12), normal(2, 7, 12, seed=1)
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    expected = layer(x, memory, tgt_mask=causal, tgt_is_causal=True)
    with hf.rerouted() as route:
        assert torch.allclose(layer(x, memory, tgt_mask=causal, tgt_is_causal=True), expected)
    assert route.calls == 2


def test_calls_inside_are_our_own() -> None:
    """The engine that is PyTorch's kernel does not lead back here."""
    with hf.rerouted() as route:
        F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
    assert route.calls == 1


def test_it_ends() -> None:
    with hf.rerouted(Attention(rg.dot * 3)) as route:
        F.scaled_dot_product_attention(Q, Q, Q)
    F.scaled_dot_product_attention(Q, Q, Q)
    assert route.calls == 1


def test_nothing_called() -> None:
    with (
        pytest.raises(CallError, match=r"rerouted: nothing inside called F.scaled_dot_product_attention"),
        hf.rerouted(),
    ):
        Q.sum()
    with pytest.raises(ZeroDivisionError), hf.rerouted():
        1 / 0  # noqa: B018


def test_weights_of_pytorch_cannot_be_had() -> None:
    attention, x = nn.MultiheadAttention(12, 3, dtype=torch.float64), normal(5, 2, 12)
    with pytest.raises(CallError, match=r"need_weights: .* pass need_weights=False"), hf.rerouted():
        attention(x, x, x)
    expected = attention(x, x, x, need_weights=False)[0]
    with hf.rerouted():
        assert torch.allclose(attention(x, x, x, need_weights=False)[0], expected)


def test_refusals() -> None:
    with hf.rerouted() as route:
        with pytest.raises(CallError, match="enable_gqa: heads differ"):
            F.scaled_dot_product_attention(Q, K, V)
        with pytest.raises(CallError, match="attn_mask: stands alone or is_causal does"):
            F.scaled_dot_product_attention(Q, K, V, attn_mask=MASKS["truths"], is_causal=True, enable_gqa=True)
        with pytest.raises(CallError, match=r"added: broadcasts to .* got shape \(5, 6\)"):
            F.scaled_dot_product_attention(Q, K, V, attn_mask=normal(5, 6), enable_gqa=True)
        route.calls = 1
    with (
        pytest.raises(CallError, match="start: 5 queries and 7 keys without is_causal"),
        hf.rerouted(Attention(mask=window(2))),
    ):
        F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
