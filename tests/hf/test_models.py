"""Models of transformers give the numbers of their own eager attention: padded or not, with and without a cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hf import tiny
from regard import hf

DTYPES = {torch.float32: 1e-5, torch.bfloat16: 0.1}  # of the largest number: rounding, after two layers


def agree(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype = torch.float32) -> bool:
    return bool((got - expected).abs().max() <= DTYPES[dtype] * expected.abs().max())


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_own_attention(name: str) -> None:
    model, inputs = tiny.model(name), tiny.inputs(name)
    with torch.no_grad():
        eager = tiny.first(model(**inputs))
        with hf.use(model) as user:
            ours = tiny.first(model(**inputs))
    assert agree(ours, eager)
    assert user.calls >= len(user.formulas) > 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [*tiny.DECODERS, *tiny.ENCODERS, *tiny.TWO_SIDED])
def test_padding(name: str, side: str) -> None:
    model, mask = tiny.model(name), tiny.padded(side)
    inputs = {**tiny.inputs(name), "attention_mask": mask}
    with torch.no_grad():
        eager = tiny.first(model(**inputs))
        with hf.use(model):
            ours = tiny.first(model(**inputs))
    reads = mask.bool() if ours.shape[1] == mask.shape[1] else ...
    assert agree(ours[reads], eager[reads])


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        *((name, "dynamic") for name in tiny.DECODERS),
        *((name, "static") for name in ("llama", "gemma3", "gpt_oss", "opt")),
    ],
)
def test_generation_continues_as_before(name: str, cache: str) -> None:
    model, mask = tiny.model(name), tiny.padded("left", 7)
    asked: dict[str, Any] = {
        "max_new_tokens": 4, "do_sample": False, "pad_token_id": 0,
        "cache_implementation": cache if cache == "static" else None,
        "eos_token_id": None, "return_dict_in_generate": True, "output_logits": True, "disable_compile": True,
    }  # fmt: skip
    eager = model.generate(tiny.tokens(length=7), attention_mask=mask, **asked)
    with hf.use(model):
        ours = model.generate(tiny.tokens(length=7), attention_mask=mask, **asked)
    assert ours.sequences.equal(eager.sequences)
    assert agree(torch.stack(ours.logits), torch.stack(eager.logits))


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_beams(name: str) -> None:
    chosen = {"t5": "T5ForConditionalGeneration"}
    if name in chosen:
        tiny.CONFIGS[f"{name} beams"] = (chosen[name], *tiny.CONFIGS[name][1:])
    model = tiny.model(f"{name} beams" if name in chosen else name)
    asked = {"max_new_tokens": 3, "num_beams": 3, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    eager = model.generate(tiny.tokens(), **asked)
    with hf.use(model):
        assert model.generate(tiny.tokens(), **asked).equal(eager)


def test_a_step_of_decoding_is_the_last_row_of_the_whole() -> None:
    model, words = tiny.model("mistral"), tiny.tokens()
    with torch.no_grad(), hf.use(model):
        whole = model(words).logits
        begun = model(words[:, :9], use_cache=True)
        rest = [model(words[:, at : at + 1], past_key_values=begun.past_key_values).logits for at in range(9, 13)]
    assert agree(torch.cat(rest, 1), whole[:, 9:])


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss", "bert"])
def test_half_precision_is_as_near_as_eager(name: str) -> None:
    """Against float32: at most twice the error of eager attention in the same dtype."""
    inputs = tiny.inputs(name)
    with torch.no_grad():
        exact = tiny.first(tiny.model(name)(**inputs))
        model = tiny.model(name, torch.bfloat16)
        eager = tiny.first(model(**inputs)).float()
        with hf.use(model):
            ours = tiny.first(model(**inputs)).float()
    assert (ours - exact).norm() <= 2 * (eager - exact).norm()


@pytest.mark.parametrize(
    ("name", "checkpointing"), [("llama", False), ("llama", True), ("gpt_oss", False), ("t5", True), ("bert", False)]
)
def test_gradients(name: str, checkpointing: bool) -> None:
    def gradients(model: Any) -> torch.Tensor:
        model.zero_grad()
        tiny.first(model(**inputs, use_cache=False) if name != "bert" else model(**inputs)).square().mean().backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])

    inputs, model = tiny.inputs(name), tiny.model(name)
    for part in model.modules():  # checkpoints are kept in training only, and dropout would not repeat
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        for label in ("attention_dropout", "dropout"):
            if isinstance(getattr(part, label, None), float):
                setattr(part, label, 0.0)
    model.train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    eager = gradients(model)
    with hf.use(model):
        ours = gradients(model)
    assert (ours - eager).abs().max() <= 1e-4 * eager.abs().max()


def test_dropout_is_obeyed_in_training_alone() -> None:
    model = tiny.model("llama")
    for part in model.modules():
        if hasattr(part, "attention_dropout"):
            part.attention_dropout = 0.5
    with torch.no_grad(), hf.use(model):
        still = model(tiny.tokens()).logits
        assert model(tiny.tokens()).logits.equal(still)
        model.train()
        torch.manual_seed(0)
        dropped = model(tiny.tokens()).logits
        torch.manual_seed(0)
        assert model(tiny.tokens()).logits.equal(dropped)
    assert not agree(dropped, still)


@pytest.mark.parametrize("name", ["llama", "bert", "bart", "gpt_oss", "vit"])
def test_weights_when_they_are_asked_for(name: str) -> None:
    model, inputs = tiny.model(name), tiny.inputs(name)
    with torch.no_grad():
        eager = model(**inputs, output_attentions=True)
        with hf.use(model):
            ours = model(**inputs, output_attentions=True)
    kinds = [kind for kind in ("attentions", "decoder_attentions", "cross_attentions") if eager.get(kind)]
    assert kinds
    for kind in kinds:
        assert len(ours[kind]) == len(eager[kind]) > 0
        assert all(agree(mine, theirs) for mine, theirs in zip(ours[kind], eager[kind], strict=True))


def test_masks_of_the_caller() -> None:
    """Truths or numbers for every pair, and two texts in one row."""
    model, words = tiny.model("llama"), tiny.tokens()
    two = torch.zeros(1, 1, 13, 13, dtype=torch.bool)
    two[..., :5, :5] = two[..., 5:, 5:] = True
    two &= torch.ones(13, 13, dtype=torch.bool).tril()
    least = torch.finfo(torch.float32).min
    numbers = torch.where(two, torch.randn(1, 1, 13, 13, generator=torch.Generator().manual_seed(3)), least)
    for mask in (torch.where(two, 0.0, least), numbers):
        with torch.no_grad():
            eager = model(words, attention_mask=mask).logits
            with hf.use(model) as user:
                assert agree(model(words, attention_mask=mask).logits, eager)
    assert 'table("added")[i, j]' in repr(next(iter(user.formulas.values())))


def test_positions_that_begin_again() -> None:
    model, words = tiny.model("llama"), tiny.tokens()
    places = torch.cat([torch.arange(5), torch.arange(8)])[None]
    with torch.no_grad():
        eager = model(words, position_ids=places, use_cache=False).logits
        with hf.use(model):
            assert agree(model(words, position_ids=places, use_cache=False).logits, eager)
