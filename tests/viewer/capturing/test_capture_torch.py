"""PyTorch's own attention: the kernel, nn.MultiheadAttention, fused layers, FlexAttention; and regard's modules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import regard.nn as rn
from regard import Attention, causal, parse
from regard.viewer.capturing import capture
from regard.viewer.capturing.masks import Masks
from regard.viewer.record import Captured

NEAR = 1e-5
BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 6, 7, 11, 5


class Call(nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def kept_of(model: nn.Module, *arguments: Any, **options: Any) -> tuple[list[Captured], Any]:
    """The calls of a run that changes nothing and misses nothing."""
    before = model(*arguments, **options)
    with capture(model) as seen:
        after = model(*arguments, **options)
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    assert seen.missing == []
    return seen.layers, after


def output(kept: Captured) -> torch.Tensor:
    return kept.parts.weights() @ kept.v.repeat_interleave(kept.q.shape[1] // kept.v.shape[1], 1)


# -- the kernel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": drawn(QUERIES, KEYS) > -0.5},
        {"attn_mask": drawn(BATCH, 1, 1, KEYS)},
        {"attn_mask": drawn(HEADS, QUERIES, KEYS).masked_fill(drawn(QUERIES, KEYS) > 1, -torch.inf)},
    ],
)
def test_the_kernel(options: dict[str, Any]) -> None:
    q, k, v = drawn(BATCH, HEADS, QUERIES, WIDTH), drawn(BATCH, HEADS, KEYS, WIDTH), drawn(BATCH, HEADS, KEYS, 3)
    (kept,), y = kept_of(Call(F.scaled_dot_product_attention), q, k, v, **options)
    torch.testing.assert_close(output(kept), y, rtol=0, atol=NEAR)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 3, 5)])
def test_any_number_of_axes(lead: tuple[int, ...]) -> None:
    q, k, v = (drawn(*lead, size, WIDTH) for size in (QUERIES, KEYS, KEYS))
    (kept,), y = kept_of(Call(F.scaled_dot_product_attention), q, k, v, attn_mask=drawn(*lead, QUERIES, KEYS))
    torch.testing.assert_close(output(kept), y.reshape(output(kept).shape), rtol=0, atol=NEAR)


def test_shared_heads_and_lower_dtypes() -> None:
    q, k, v = (drawn(BATCH, heads, KEYS, WIDTH).bfloat16() for heads in (HEADS, 2, 2))
    (kept,), _ = kept_of(Call(F.scaled_dot_product_attention), q, k, v, enable_gqa=True)
    assert kept.k.shape[1] == 2
    assert kept.q.dtype == torch.bfloat16
    assert kept.q.data_ptr() != q.data_ptr()


def test_texts_of_different_lengths_in_one_nested_tensor() -> None:
    def nested(size: int) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "prototype"
            return torch.nested.nested_tensor([drawn(HEADS, length, size) for length in (3, 5)])

    with capture(model := Call(F.scaled_dot_product_attention)) as seen:
        y = model(nested(WIDTH), nested(WIDTH), nested(WIDTH))
    for found, text, length in zip(output(seen.layers[0]), y.unbind(), (3, 5), strict=True):
        torch.testing.assert_close(found[:, :length], text, rtol=0, atol=NEAR)


# -- masks ------------------------------------------------------------------------------------------------------------


def _masks() -> dict[str, torch.Tensor]:
    i, j = torch.arange(QUERIES)[:, None], torch.arange(KEYS)
    read = torch.tensor([[True] * KEYS, [True] * 8 + [False] * 3])[:, None, None]
    past = j <= i + KEYS - QUERIES
    return {
        "causal": past, "first": j <= i, "window": past & (i + 4 - j < 3), "both sides": (i + 4 - j).abs() <= 2,
        "padded": read, "causal, padded": past & read, "window, padded": past & (i + 4 - j < 5) & read,
        "left": past & read.flip(-1), "any": drawn(BATCH, HEADS, QUERIES, KEYS) > 0, "one text": past[None, None],
        "heads alike": past.expand(BATCH, HEADS, QUERIES, KEYS), "all": torch.ones(QUERIES, KEYS, dtype=torch.bool),
    }  # fmt: skip


@pytest.mark.parametrize("name", _masks())
def test_a_mask_that_is_said_shorter_says_the_same(name: str) -> None:
    mask = _masks()[name]
    four = mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
    seen = Masks().read(four)
    formula = Attention(mask=seen.mask)
    q, k = drawn(BATCH, HEADS, QUERIES, WIDTH), drawn(BATCH, HEADS, KEYS, WIDTH)
    tables = {"attention_mask": seen.truths} if seen.truths is not None else {}
    steps = formula.parts(q, k, start=4 if seen.start is None else seen.start, **tables).steps()
    admitted = torch.ones(BATCH, HEADS, QUERIES, KEYS, dtype=torch.bool) if steps.admitted is None else steps.admitted
    assert torch.equal(admitted, mask.expand(BATCH, HEADS, QUERIES, KEYS))
    if name not in ("any", "left"):
        assert seen.truths is None or seen.truths.shape == (2, 1, 1, KEYS)


# -- modules of PyTorch ---------------------------------------------------------------------------------------------

PADDED = torch.arange(KEYS) >= torch.tensor([[KEYS], [8]])
LATER = torch.ones(KEYS, KEYS).triu(1).bool()


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"key_padding_mask": PADDED}, {"attn_mask": LATER}, {"key_padding_mask": PADDED, "attn_mask": LATER}],
)
def test_multihead_attention(options: dict[str, Any], weights: bool, grad: bool) -> None:
    torch.manual_seed(0)
    model, x = nn.MultiheadAttention(24, 4, batch_first=True).eval(), drawn(BATCH, KEYS, 24)
    with torch.set_grad_enabled(grad):
        own = model(x, x, x, need_weights=True, average_attn_weights=False, **options)[1].detach()
        (kept,), _ = kept_of(model, x, x, x, need_weights=weights, **options)
    torch.testing.assert_close(kept.parts.weights(), own, rtol=0, atol=NEAR)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("options", [{}, {"src_key_padding_mask": PADDED}, {"mask": LATER}])
def test_fused_layers_stay_fused(options: dict[str, Any], first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(24, 4, 13, batch_first=True, norm_first=first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        model, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not first).eval(), drawn(BATCH, KEYS, 24)
        with torch.no_grad():
            fused, _ = kept_of(model, x, **options)
    plain, _ = kept_of(model, x, **options)
    assert (
        [kept.name for kept in fused] == [kept.name for kept in plain] == ["layers.0.self_attn", "layers.1.self_attn"]
    )
    real = ~PADDED if "src_key_padding_mask" in options else torch.ones_like(PADDED)
    for one, other in zip(fused, plain, strict=True):
        apart = (one.parts.weights() - other.parts.weights()).abs().amax((1, 3))
        assert float(apart[real].max()) <= NEAR  # rows that are padding have other numbers in nested tensors


# -- FlexAttention --------------------------------------------------------------------------------------------------

slopes, bias, texts = torch.tensor([0.5, 0.25, 0.125, 0.75]), drawn(BATCH, 4, KEYS, KEYS), torch.arange(KEYS) // 4
FLEX: dict[str, tuple[Any, Any, str]] = {
    "plain": (None, None, "softmax(dot / sqrt(d))"),
    "causal": (None, lambda b, h, i, j: i >= j, "softmax(dot / sqrt(d), mask=j <= i)"),
    "alibi": (
        lambda s, b, h, i, j: s + slopes[h] * (j - i), lambda b, h, i, j: i >= j,
        'softmax(dot / sqrt(d) - table("slopes")[h] * (i - j), mask=j <= i)',
    ),
    "capped": (lambda s, b, h, i, j: 2 * torch.tanh(s / 2), None, "softmax(2 * tanh(dot / sqrt(d) / 2))"),
    "biased": (lambda s, b, h, i, j: s + bias[b][h][i, j], None, 'softmax(dot / sqrt(d) + table("bias")[b, h, i, j])'),
    "texts": (
        None, lambda b, h, i, j: texts[i] == texts[j],
        'softmax(dot / sqrt(d), mask=equal(table("texts")[i], table("texts")[j]))',
    ),
    "chosen": (lambda s, b, h, i, j: torch.where(i >= j, s, -torch.inf), None, "softmax(dot / sqrt(d), mask=j <= i)"),
    "odd mask": (None, lambda b, h, i, j: (i ^ j) % 3 != 1, 'softmax(dot / sqrt(d), mask=given("attention_mask"))'),
    "odd": (lambda s, b, h, i, j: torch.special.erfcx(s), None, 'each(s)(table("weights")[b, h, i, j])'),
}  # fmt: skip


@pytest.mark.parametrize("name", FLEX)
def test_flex_attention(name: str) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    score_mod, mask_mod, text = FLEX[name]
    blocks = None if mask_mod is None else create_block_mask(mask_mod, BATCH, 4, KEYS, KEYS, device="cpu")
    q, k, v = (drawn(BATCH, heads, KEYS, 16) for heads in (4, 2, 2))
    model = Call(flex_attention)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would be faster compiled
        options = {"score_mod": score_mod, "block_mask": blocks, "enable_gqa": True}
        with torch.compiler.set_stance("force_eager"):
            (kept,), y = kept_of(model, q, k, v, **options)
    torch.testing.assert_close(output(kept), y, rtol=0, atol=NEAR)
    assert kept.formula == parse(text)


# -- regard's own, and what is compiled -----------------------------------------------------------------------------


def test_modules_of_regard_are_noted_once() -> None:
    model = rn.GPT(97, dim=24, depth=2, heads=4).eval()
    with torch.no_grad():
        layers, _ = kept_of(model, torch.randint(97, (BATCH, KEYS), generator=torch.Generator().manual_seed(0)))
    assert len(layers) == 2
    assert all(kept.formula.mask == causal for kept in layers)


@pytest.mark.parametrize("engine", ["sdpa", "tiled", "dense"])
def test_what_an_engine_calls_is_no_call_of_its_own(engine: str) -> None:
    x = drawn(BATCH, HEADS, KEYS, WIDTH)
    layers, _ = kept_of(Call(lambda x: Attention(mask=causal)(x, x, x, engine=engine)), x)
    assert len(layers) == 1


def test_both_sides_of_a_translation() -> None:
    model = rn.EncoderDecoder((97, 89), dim=24, depth=1, heads=4).eval()
    with torch.no_grad():
        layers, _ = kept_of(model, torch.arange(KEYS)[None], torch.arange(QUERIES)[None])
    assert [kept.shape[2:] for kept in layers] == [(KEYS, KEYS), (QUERIES, QUERIES), (QUERIES, KEYS)]


def test_compiled_models_are_seen_as_written() -> None:
    model = nn.MultiheadAttention(24, 4, batch_first=True).eval()
    compiled, x = torch.compile(model, backend="eager"), drawn(BATCH, KEYS, 24)
    with torch.no_grad():
        before = compiled(x, x, x)[0]
        with capture(compiled) as seen:
            after = compiled(x, x, x)[0]
    torch.testing.assert_close(before, after, rtol=0, atol=NEAR)
    assert (seen.model_name, len(seen.layers)) == ("MultiheadAttention", 1)
