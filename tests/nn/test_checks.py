"""What layers and models refuse at their door, and how they say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regard import Attention, dot, log, n
from regard.algebra.errors import CallError, KindError
from regard.inputs.positions import Learned, Rotary
from regard.nn import (
    BERT,
    GPT,
    Block,
    Cache,
    CrossAttention,
    Decoder,
    Encoder,
    EncoderDecoder,
    MultiheadAttention,
    SelfAttention,
    Style,
    ViT,
)

DIM, HEADS, BATCH, ROWS, TOKENS = 12, 3, 2, 5, 7
X = torch.zeros(BATCH, ROWS, DIM)
IDS = torch.ones(BATCH, ROWS, dtype=torch.int64)
IMAGES = torch.zeros(BATCH, 3, 4, 4)


def bert() -> BERT:
    return BERT(TOKENS, DIM, 1, HEADS)


def gpt(**options: Any) -> GPT:
    return GPT(TOKENS, DIM, 1, HEADS, **options)


# -- arguments of a call that other libraries have -----------------------------------------------------------------

THEIRS = {
    "attention_mask": r"pass lengths=attention_mask\.sum\(-1\) where filling stands at the end, or mask= for pairs$",
    "attn_mask": "pass mask=, True where a row reads a key$",
    "key_padding_mask": "pass lengths=, how many rows each text has, or mask=$",
    "is_causal": r"write Attention\(mask=causal\), or use a GPT or a Decoder",
    "token_type_ids": "pass segments=, to a BERT$",
    "use_cache": r"pass cache=Cache\(\) to a GPT or a Decoder, the same one in every call of a text$",
    "past_key_values": r"pass cache=Cache\(\) to a GPT or a Decoder, the same one in every call of a text$",
    "position_ids": "rows stand at 0, 1, 2, …",
    "lenghts": "did you mean lengths=[?]$",
    "slope": "leave it out$",
}


@pytest.mark.parametrize("name", THEIRS)
def test_a_keyword_of_others_is_answered_with_ours(name: str) -> None:
    text = f"^{name}: no formula here reads such a table; got one; {THEIRS[name]}"
    for model, x in ((bert(), IDS), (gpt(), IDS), (Encoder(DIM, 1, HEADS), X), (SelfAttention(DIM, HEADS), X)):
        with pytest.raises(CallError, match=text):
            model(x, **{name: IDS})


def test_an_encoder_keeps_no_cache_and_a_gpt_has_no_segments() -> None:
    with pytest.raises(CallError, match=r"^cache: .*; only what reads no row behind it can keep one: a GPT, a Decoder"):
        bert()(IDS, cache=Cache())
    with pytest.raises(CallError, match=r"^segments: .*; only a BERT tells them apart; leave it out"):
        gpt()(IDS, segments=IDS)


@pytest.mark.parametrize("cache", [True, {}, "cache"])
def test_a_cache_is_a_cache(cache: Any) -> None:
    text = r"^cache: a Cache\(\), the same one in every call of a text; got .*; make it before the first: cache = Cache"
    for model, x in ((gpt(), IDS), (Decoder(DIM, 1, HEADS), X), (SelfAttention(DIM, HEADS), X)):
        with pytest.raises(KindError, match=text):
            model(x, cache=cache)


# -- dtypes --------------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[str, torch.Tensor, Any, Any]] = {
    "layer": ("x", X, lambda: SelfAttention(DIM, HEADS), lambda layer, x: layer(x)),
    "stack": ("x", X, lambda: Encoder(DIM, 1, HEADS), lambda layer, x: layer(x)),
    "memory": ("memory", X, lambda: CrossAttention(DIM, HEADS), lambda layer, x: layer(X, x)),
    "multihead": ("value", X, lambda: MultiheadAttention(DIM, HEADS), lambda layer, x: layer(X, X, x)[0]),
    "widths": ("query", X, lambda: MultiheadAttention(DIM, HEADS, kdim=DIM), lambda layer, x: layer(x, X, X)[0]),
    "images": ("images", IMAGES, lambda: ViT(4, 2, 5, DIM, 1, HEADS), lambda layer, x: layer(x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_another_dtype_than_the_layers(name: str) -> None:
    argument, x, make, call = CALLS[name]
    text = (
        rf"^{argument}: the dtype of the layer, torch.float32; got torch.float64; convert one of them: {argument}.to\("
    )
    with pytest.raises(KindError, match=text + r"torch.float32\), or layer.to\(torch.float64\)$"):
        call(make(), x.double())


def test_integers_are_no_rows() -> None:
    with pytest.raises(
        KindError, match=r"^x: the dtype .*; got torch.int64; convert one of them: x.to\(torch.float32\)$"
    ):
        SelfAttention(DIM, HEADS)(X.long())


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_autocast_takes_both(name: str, given: torch.dtype) -> None:
    _, x, make, call = CALLS[name]
    with torch.autocast("cpu", torch.bfloat16):
        assert bool(call(make(), x.to(given)).isfinite().all())


def test_a_map_of_another_kind_takes_what_it_likes() -> None:
    class Narrow(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.to(self.weight.dtype)).to(x.dtype)

    layer = SelfAttention(DIM, HEADS).double()
    for name in ("query", "key", "value", "out"):
        setattr(layer, name, Narrow(DIM, DIM))
    assert layer(X.double()).dtype == torch.float64


@pytest.mark.parametrize("given", ["x", np.zeros((BATCH, ROWS, DIM))])
def test_tensors_are_asked_for(given: Any) -> None:
    kind = type(given).__name__
    with pytest.raises(KindError, match=f"^key: a tensor; got {kind}; torch.as_tensor makes one of an array$"):
        MultiheadAttention(DIM, HEADS)(X, given, X)
    with pytest.raises(KindError, match=rf"^images: a tensor, \(batch, 3, 4, 4\); got {kind}; torch.as_tensor makes"):
        ViT(4, 2, 5, DIM, 1, HEADS)(given)


# -- constructors --------------------------------------------------------------------------------------------------

STYLES: list[tuple[dict[str, Any], str]] = [
    ({"norm": "rms"}, "norm: LayerNorm or RMSNorm itself, or your own; got 'rms'; import it: from regard.nn import"),
    ({"feed_forward": "swiglu"}, "feed_forward: FeedForward or GatedFeedForward itself, or your own; got 'swiglu'"),
    ({"residual": "pre"}, "residual: pre_norm or post_norm itself, or your own; got 'pre'"),
    ({"activation": "swish"}, "activation: one of gelu, .*; got 'swish'; pass 'silu'$"),
    ({"activation": nn.GELU()}, r"activation: one of gelu, .*; got GELU\("),
    ({"hidden": 0}, "hidden: an integer of at least 1; got 0"),
    ({"dropout": 2}, "dropout: a share from 0 to below 1; got 2"),
    ({"epsilon": -1.0}, "epsilon: a finite number of at least 0; got -1.0"),
]


@pytest.mark.parametrize(("fields", "text"), STYLES, ids=[str(fields) for fields, _ in STYLES])
def test_styles_that_mean_nothing(fields: dict[str, Any], text: str) -> None:
    with pytest.raises((KindError, CallError), match=f"^{text}"):
        Style(**fields)


def test_a_feed_forward_of_your_own_knows_its_activations() -> None:
    assert Style(feed_forward=lambda *_: nn.Identity(), activation="mish").activation == "mish"


@pytest.mark.parametrize("style", ["llama", Style, None])
def test_a_style_is_a_style(style: Any) -> None:
    makers: list[Any] = [gpt, lambda style: BERT(TOKENS, DIM, 1, HEADS, style=style)]
    makers += [lambda style: Encoder(DIM, 1, HEADS, style=style), lambda style: Block(DIM, HEADS, style=style)]
    makers += [lambda style: EncoderDecoder(TOKENS, DIM, 1, HEADS, style=style)]
    makers += [lambda style: ViT(4, 2, 5, DIM, 1, HEADS, style=style)]
    for make in makers:
        with pytest.raises(KindError, match=r"^style: a Style, such as LLAMA, BERT_STYLE or .*, from regard.nn; got "):
            make(style=style)


def test_arguments_that_a_model_does_not_know() -> None:
    with pytest.raises(KindError, match=r"^drop: no argument of GPT; got one; did you mean dropout=[?]$"):
        gpt(drop=0.1)
    with pytest.raises(KindError, match=r"^vocab_size: no argument of GPT; got one; did you mean tokens=[?]$"):
        GPT(vocab_size=TOKENS, dim=DIM, depth=1, heads=HEADS)
    with pytest.raises(KindError, match=r"^patch_size: no argument of ViT; got one; did you mean patch=[?]$"):
        ViT(4, patch_size=2, classes=5, dim=DIM, depth=1, heads=HEADS)
    with pytest.raises(
        KindError, match=r"^kind: no argument of Encoder; got one; it takes dim, depth, heads, .*tables$"
    ):
        Encoder(DIM, 1, HEADS, kind=3)
    with pytest.raises(KindError, match=r"^GPT: called as GPT\(tokens, dim, depth, heads, …\); .* argument: 'heads'$"):
        GPT(TOKENS, DIM, 1)


def test_positions_that_do_not_fit_are_refused_when_a_model_is_made() -> None:
    with pytest.raises(
        CallError, match=r"^position: for rows of width 12, in heads of 3; got Rotary: .* an even width"
    ):
        SelfAttention(DIM, 4, position=Rotary())
    with pytest.raises(
        CallError, match=r"^position: for rows of width 12, in heads of 4; got Learned: table: .* got 16"
    ):
        gpt(position=Learned.random(8, 16))


# -- generation -----------------------------------------------------------------------------------------------------


def test_an_end_that_the_model_cannot_write() -> None:
    model = GPT(7, 12, 1, 3)
    assert len(model.generate([1], new=1, end=6).ids) == 1
    with pytest.raises(CallError, match=r"^end: one of the model's tokens, 0 to 6; got 7; is it of its vocabulary?"):
        model.generate([1], end=(2, 7))


def test_a_formula_of_n_is_written_without_a_cache() -> None:
    model = GPT(7, 12, 1, 3, attention=Attention(dot - log(n)))
    with pytest.raises(CallError, match=r"cache: .* it reads n, .*; or leave the cache out: cache=False in generate$"):
        model.generate([1])
    assert len(model.generate([1], new=3, cache=False).ids) == 3


# -- files ---------------------------------------------------------------------------------------------------------


def test_names_of_files(tmp_path: Path) -> None:
    with pytest.raises(KindError, match=r"^path: the name of a file, such as 'model.safetensors'; got 5"):
        GPT.load(5)  # type: ignore[arg-type]
    with pytest.raises(
        CallError, match=r"^path: a safetensors file is written, no pickle; got .*a\.pt'; name it .*a.saf"
    ):
        gpt().save(tmp_path / "a.pt")
    assert not [*tmp_path.iterdir()]
