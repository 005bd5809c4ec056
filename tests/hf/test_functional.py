"""Code of PyTorch that calls F.scaled_dot_product_attention, on a formula."""

from __future__ import annotations

import threading
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


LOUD = Attention(rg.dot * 3)


def test_what_regard_runs_itself_is_left_alone() -> None:
    """A formula and a layer of regard's inside of the block, in engines that call PyTorch's kernel and others."""
    torch.manual_seed(0)
    layer, x = rg.nn.SelfAttention(12, heads=3).double(), normal(2, 7, 12)
    formulas = (Attention(), Attention(mask=rg.causal), Attention(weight=rg.sigmoid))
    expected = [layer(x), *(formula(Q, K, V, start=0) for formula in formulas)]
    with hf.rerouted(LOUD) as route:
        got = [layer(x), *(formula(Q, K, V, start=0) for formula in formulas)]
        route.calls += 1
    assert route.calls == 1
    assert all(torch.equal(one, other) for one, other in zip(got, expected, strict=True))


def test_of_two_the_inner_one_holds() -> None:
    loud, plain = (F.scaled_dot_product_attention(Q, Q, Q, scale=scale) for scale in (3.0, None))
    for inside in (None, lambda own: own, Attention()):
        with hf.rerouted(LOUD) as outer:
            with hf.rerouted(inside) as inner:
                assert torch.allclose(F.scaled_dot_product_attention(Q, Q, Q), plain)
            assert (outer.calls, inner.calls) == (0, 1)
            assert torch.allclose(F.scaled_dot_product_attention(Q, Q, Q), loud)
        assert (outer.calls, inner.calls) == (1, 1)


def test_of_two_the_inner_one_holds_in_modules_of_pytorch() -> None:
    attention, x = nn.MultiheadAttention(12, 3, dtype=torch.float64), normal(5, 2, 12)
    expected = attention(x, x, x, need_weights=False)[0]
    with hf.rerouted(LOUD) as outer:
        with hf.rerouted() as inner:
            assert torch.allclose(attention(x, x, x, need_weights=False)[0], expected)
        assert (outer.calls, inner.calls) == (0, 1)
        assert not torch.allclose(attention(x, x, x, need_weights=False)[0], expected)


def test_it_holds_at_once_until_it_is_restored() -> None:
    loud, plain = (F.scaled_dot_product_attention(Q, Q, Q, scale=scale) for scale in (3.0, None))
    route = hf.rerouted(LOUD)
    got = F.scaled_dot_product_attention(Q, Q, Q)
    route.restore()
    route.restore()
    assert torch.allclose(got, loud)
    assert torch.allclose(F.scaled_dot_product_attention(Q, Q, Q), plain)
    assert str(route) == "rerouted, restored, 1 calls\n  softmax(3 * dot)"


def test_restored_in_any_order() -> None:
    loud = F.scaled_dot_product_attention(Q, Q, Q, scale=3.0)
    outer, inner = hf.rerouted(), hf.rerouted(LOUD)
    outer.calls += 1
    outer.restore()
    assert str(inner) == "rerouted, on regard, 0 calls"
    assert torch.allclose(F.scaled_dot_product_attention(Q, Q, Q), loud)
    inner.restore()
    assert torch.overrides._get_current_function_mode_stack() == []


def test_one_that_is_over() -> None:
    route = hf.rerouted()
    with pytest.raises(CallError, match="rerouted: one with block for each; this was entered before"), route, route:
        pass
    with pytest.raises(CallError, match=r"this was restored before, .* call regard.hf.rerouted again"), route:
        pass
    with pytest.raises(CallError, match="rerouted: nothing inside called"):
        hf.rerouted().restore()
    assert torch.overrides._get_current_function_mode_stack() == []


def test_restored_in_another_thread() -> None:
    route, found = hf.rerouted(), []

    def end() -> None:
        with pytest.raises(CallError, match="rerouted: restored in the thread that called it"):
            route.restore()
        found.append(True)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    F.scaled_dot_product_attention(Q, Q, Q)
    route.restore()
    assert (found, route.calls) == ([True], 1)


SHARED = [
    ((2, 6, 5, 4), (2, 1, 7, 4), (2, 1, 7, 3)),
    ((2, 6, 5, 4), (1, 6, 7, 4), (1, 6, 7, 3)),
    ((1, 1, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)),
    ((2, 6, 5, 4), (2, 1, 7, 4), (2, 6, 7, 3)),
    ((2, 6, 5, 4), (1, 1, 7, 4), (2, 1, 7, 3)),
    ((3, 5, 4), (1, 7, 4), (1, 7, 3)),
    ((2, 3, 5, 4), (3, 7, 4), (7, 3)),
    ((2, 1, 6, 5, 4), (1, 3, 6, 7, 4), (1, 3, 6, 7, 3)),
]


@pytest.mark.parametrize("shapes", SHARED, ids=str)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": MASKS["half"]}], ids=["", "causal", "mask"])
def test_axes_of_one_count_for_all(shapes: list[tuple[int, ...]], options: dict[str, Any]) -> None:
    q, k, v = (normal(*shape, seed=seed) for seed, shape in enumerate(shapes))
    expected = F.scaled_dot_product_attention(q, k, v, **options)
    with hf.rerouted():
        got = F.scaled_dot_product_attention(q, k, v, **options)
    assert got.shape == expected.shape
    assert torch.allclose(got, expected)


def test_a_model_whose_queries_share_one_head() -> None:
    """Falcon asks PyTorch's function itself, with one head of keys for all."""
    import transformers

    config = transformers.FalconConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, multi_query=True,
        new_decoder_architecture=False, attn_implementation="sdpa",
    )  # fmt: skip
    torch.manual_seed(0)
    model, words = transformers.FalconForCausalLM(config).double().eval(), torch.arange(3, 16)[None]
    with torch.no_grad():
        expected = model(words).logits
        with hf.rerouted() as route:
            assert torch.allclose(model(words).logits, expected)
    assert route.calls == 2


def test_groups_beside_a_batch_of_one() -> None:
    expected = F.scaled_dot_product_attention(Q, K[:1], V[:1], enable_gqa=True)
    with hf.rerouted():
        assert torch.allclose(F.scaled_dot_product_attention(Q, K[:1], V[:1], enable_gqa=True), expected)


@pytest.mark.filterwarnings("error")
def test_a_compiler_does_not_warn() -> None:
    expected = F.scaled_dot_product_attention(Q, Q, Q, is_causal=True, scale=3.0)
    torch.compiler.reset()
    with hf.rerouted(LOUD):
        run = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), backend="eager")
        assert torch.allclose(run(Q), expected)


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
        with pytest.raises(CallError, match=r"query, key, value: leading axes that are equal or 1; got .* \(4,"):
            F.scaled_dot_product_attention(Q, normal(4, 6, 7, 4), normal(4, 6, 7, 4))
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
