"""Models of transformers: every weight as their own eager attention gives it, and outputs to the last bit."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import transformers

from hf import tiny
from regard import causal, parse
from regard.viewer.capturing import capture
from regard.viewer.record import Captured

NEAR = 1e-5
SMALL = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 53, "num_hidden_layers": 2, "num_attention_heads": 6}
PICTURE = {"image_size": 16, "patch_size": 2, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 3], "window_size": 4}
MORE: dict[str, tuple[str, str, dict[str, Any]]] = {  # none of them asks the interface, or not for all
    "distilbert": ("DistilBertModel", "DistilBertConfig",
                   {"vocab_size": 97, "dim": 48, "hidden_dim": 53, "n_layers": 2, "n_heads": 6}),
    "bloom": ("BloomModel", "BloomConfig", {"vocab_size": 97, "hidden_size": 48, "n_layer": 2, "n_head": 6}),
    "falcon": ("FalconModel", "FalconConfig", {**SMALL, "alibi": True}),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL),
    "xlnet": ("XLNetModel", "XLNetConfig", {"vocab_size": 97, "d_model": 48, "n_layer": 2, "n_head": 6, "d_inner": 53}),
    "modernbert": ("ModernBertModel", "ModernBertConfig", {**SMALL, "local_attention": 6, "pad_token_id": 0}),
    "swin": ("SwinModel", "SwinConfig", PICTURE),
    "swinv2": ("Swinv2Model", "Swinv2Config", PICTURE),
}  # fmt: skip

WAYS = [(name, "eager") for name in (*tiny.CONFIGS, *MORE)]
WAYS += [(name, "sdpa") for name in ("llama", "gemma3", "gpt2", "bert", "t5", "whisper", "vit")]


def made(name: str, how: str = "eager") -> Any:
    if name in tiny.CONFIGS:
        model = tiny.model(name)
        model.set_attn_implementation(how)
        return model
    chosen, config, sizes = MORE[name]
    torch.manual_seed(0)
    model = getattr(transformers, chosen)(getattr(transformers, config)(**sizes, attn_implementation="eager"))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, 1 / math.sqrt(weight.shape[-1]))
    return model.eval()


def given(name: str) -> dict[str, Any]:
    if name.startswith("swin"):
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(2))}
    return tiny.inputs(name)


def own_weights(output: Any) -> list[torch.Tensor]:
    kinds = [getattr(output, f"{side}attentions", None) for side in ("", "encoder_", "decoder_", "cross_")]
    return [weights for kind in kinds for weights in kind or () if weights is not None]


def far(kept: Captured, own: list[torch.Tensor]) -> float:
    """How far weights are from the nearest of the model's own: layers come in another order there."""
    weights = kept.parts.weights()
    return min(float((weights - one).abs().max()) for one in own if one.shape == weights.shape)


@pytest.mark.parametrize(("name", "how"), WAYS)
def test_weights_are_those_of_eager_attention(name: str, how: str) -> None:
    model, inputs = made(name), given(name)
    with torch.no_grad():
        own = own_weights(model(**inputs, output_attentions=True))
        model.set_attn_implementation(how)
        before = tiny.first(model(**inputs))
        with capture(model) as seen:
            after = tiny.first(model(**inputs))
    assert torch.equal(before, after)
    assert seen.missing == []
    assert len(seen.layers) == len(own) > 0
    assert max(far(kept, own) for kept in seen.layers) <= NEAR
    names = dict(model.named_modules())
    assert all(kept.name.removesuffix(" (2)") in names for kept in seen.layers)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["llama", "mistral", "bert", "gpt_oss", "t5"])
def test_padding(name: str, side: str) -> None:
    model, inputs = made(name), {**given(name), "attention_mask": tiny.padded(side)}
    with torch.no_grad():
        own = own_weights(model(**inputs, output_attentions=True))
        with capture(model) as seen:
            model(**inputs)
    assert max(far(kept, own) for kept in seen.layers) <= NEAR


@pytest.mark.parametrize("how", ["eager", "sdpa"])
def test_a_step_of_decoding_stands_behind_the_keys_that_are_there(how: str) -> None:
    model, words = made("llama", how), tiny.tokens()
    with torch.no_grad():
        known = model(words[:, :9], use_cache=True).past_key_values
        with capture(model) as one:
            model(words[:, 9:10], past_key_values=known)
        with capture(model) as chunk:
            model(words[:, 10:], past_key_values=known)
    assert [(kept.start, kept.shape) for kept in one.layers] == [(9, (2, 6, 1, 10))] * 2
    assert [(kept.start, kept.shape[2:], kept.formula.mask) for kept in chunk.layers] == [(10, (3, 13), causal)] * 2


def test_a_cache_of_fixed_length_and_calls_of_one_module_are_counted() -> None:
    model, words = made("gpt2", "sdpa"), tiny.tokens()
    with torch.no_grad(), capture(model, layers=lambda name: "h.1." in name) as seen:
        model.generate(words, max_new_tokens=3, do_sample=False, pad_token_id=0, cache_implementation="static")
    assert [kept.name for kept in seen.layers] == [f"transformer.h.1.attn{count}" for count in ("", " (2)", " (3)")]
    assert [kept.start for kept in seen.layers] == [0, 13, 14]


def test_shared_heads_stay_shared() -> None:
    model = made("llama", "sdpa")
    with torch.no_grad(), capture(model) as seen:
        model(tiny.tokens(), attention_mask=tiny.padded("right"))
    assert {kept.k.shape[1] for kept in seen.layers} == {kept.v.shape[1] for kept in seen.layers} == {2}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mistral", "softmax(dot / sqrt(d), mask=(j <= i) & (i - j <= 4))"),
        ("gpt_oss", 'share(exp(s), sink=exp(table("sink")[h]))(dot / sqrt(d), mask=j <= i)'),
        ("modernbert", "softmax(dot / sqrt(d), mask=(i - j <= 3) & (j - i <= 3))"),
        ("bloom", 'softmax(dot / sqrt(d) + table("added")[b, h, j], mask=j <= i)'),
    ],
)
def test_formulas_are_short(name: str, text: str) -> None:
    model = made(name)
    with torch.no_grad(), capture(model) as seen:
        model(**given(name))
    assert seen.layers[-1].formula == parse(text)


def test_layers_share_their_tables() -> None:
    model = made("t5")
    with torch.no_grad(), capture(model) as seen:
        model(**given("t5"))
    first, second = seen.layers[:2]
    assert first.tables["position_bias"] is second.tables["position_bias"]


def test_a_model_inside_of_a_module_of_ones_own() -> None:
    class Mine(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.text, self.head = made("bert"), torch.nn.MultiheadAttention(48, 3, batch_first=True)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            x = self.text(words).last_hidden_state
            return self.head(x[:, :1], x, x)[0]

    model = Mine().eval()
    with torch.no_grad(), capture(model) as seen:
        model(tiny.tokens())
    assert [kept.name for kept in seen.layers] == [
        "text.encoder.layer.0.attention.self", "text.encoder.layer.1.attention.self", "head",
    ]  # fmt: skip
    assert seen.layers[-1].shape == (2, 3, 1, 13)


def test_a_model_without_attention_says_so() -> None:
    config = transformers.MambaConfig(vocab_size=97, hidden_size=8, num_hidden_layers=1, state_size=3)
    model = transformers.MambaModel(config).eval()
    with torch.no_grad(), capture(model) as seen:
        model(tiny.tokens())
    assert seen.layers == []
    assert [one.name for one in seen.missing] == ["MambaModel"]


def test_attention_that_is_not_understood_is_listed_by_name() -> None:
    config = transformers.LongformerConfig(**SMALL, attention_window=4, pad_token_id=0)
    model = transformers.LongformerModel(config).eval()
    with torch.no_grad(), capture(model) as seen:
        model(tiny.tokens(length=8))
    assert [one.name for one in seen.missing] == [f"encoder.layer.{at}.attention.self" for at in (0, 1)]
    assert "LongformerSelfAttention ran" in seen.missing[0].why
