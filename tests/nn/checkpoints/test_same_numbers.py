"""Checkpoints of Hugging Face in our modules: the oracle is transformers with eager attention, in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nn.checkpoints.tiny import BERT, GPT2, IDS, INSIDE, LENGTHS, LLAMA, V, exact, made, silent
from regard import Attention, causal, d, dot, nn, sigmoid, sqrt, window
from regard.algebra.errors import CallError, KindError
from regard.nn import GPT, Cache
from regard.nn.checkpoints import from_hugging_face, to_hugging_face
from regard.nn.storage import load, save

LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 11,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 11}

DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2, untied": ("GPT2LMHeadModel", GPT2 | {"tie_word_embeddings": False}),
    "gpt2, relu": ("GPT2LMHeadModel", GPT2 | {"activation_function": "relu", "n_inner": None}),
    "gpt2, layers": ("GPT2LMHeadModel", GPT2 | {"scale_attn_by_inverse_layer_idx": True}),
    "gpt2, unscaled": ("GPT2LMHeadModel", GPT2 | {"scale_attn_weights": False, "layer_norm_epsilon": 0.1}),
    "llama": ("LlamaForCausalLM", LLAMA),
    "llama, tied": ("LlamaForCausalLM", LLAMA | {"tie_word_embeddings": True, "rms_norm_eps": 0.1}),
    "llama, biases": ("LlamaForCausalLM", LLAMA | {"attention_bias": True}),
    "llama, biases within": ("LlamaForCausalLM", LLAMA | {"mlp_bias": True, "hidden_act": "gelu_new"}),
    "llama, linear": ("LlamaForCausalLM", LLAMA | {"rope_parameters": LINEAR}),
    "llama, llama3": ("LlamaForCausalLM", LLAMA | {"rope_parameters": LLAMA3}),
    "llama, yarn": ("LlamaForCausalLM", LLAMA | {"rope_parameters": YARN}),
    "mistral": ("MistralForCausalLM", LLAMA | {"sliding_window": None}),
    "mistral, window": ("MistralForCausalLM", LLAMA | {"sliding_window": 5}),
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "qwen2, window": (
        "Qwen2ForCausalLM",
        LLAMA | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
}
EXACT = {"rtol": 1e-12, "atol": 1e-12}  # float64 keeps 16 digits, and sums of some hundred terms lose three
SINGLE = {"rtol": 1e-4, "atol": 2e-6}  # float32 keeps 7: theirs has cosines, norms and weights in it in any model


def decoder(name: str) -> Any:
    return made(*DECODERS[name])


@torch.no_grad()
def logits(model: Any) -> Tensor:
    return model(IDS).logits


# -- decoders --------------------------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("name", DECODERS)
def test_decoders_give_the_same_logits(name: str) -> None:
    theirs = decoder(name)
    ours = from_hugging_face(theirs)
    assert isinstance(ours, GPT)
    assert ours.matched.whole
    if not name.startswith("gpt2"):
        torch.testing.assert_close(ours(IDS), logits(theirs), **SINGLE)
        theirs = exact(theirs)
    torch.testing.assert_close(ours(IDS), logits(theirs), **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral, window"])
def test_decoders_give_the_same_rows(name: str) -> None:
    theirs = decoder(name)
    theirs = theirs if name == "gpt2" else exact(theirs)
    ours = from_hugging_face(theirs)
    rows, told = ours.decoder.placed(ours.embedding(IDS))
    expected = theirs(IDS, output_hidden_states=True).hidden_states
    for block, before, after in zip(ours.decoder.blocks, expected, expected[1:-1], strict=False):
        torch.testing.assert_close(rows, before, **EXACT)
        rows = block(rows, told)
        torch.testing.assert_close(rows, after, **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt2", "llama, tied", "mistral, window", "qwen2, window"])
def test_greedy_texts_are_the_same(name: str) -> None:
    theirs = decoder(name)
    ours, new = from_hugging_face(theirs), 6
    with silent():
        everything = torch.ones_like(IDS)  # else they would take some tokens for filling
        expected = theirs.generate(
            IDS, attention_mask=everything, max_new_tokens=new, do_sample=False, eos_token_id=None, use_cache=True
        )
    cache, texts = Cache(), [IDS]
    for _ in range(new):
        texts.append(ours(texts[-1], cache=cache)[:, -1:].argmax(-1))
    assert torch.cat(texts, 1).tolist() == expected.tolist()


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_filling_at_the_end_changes_nothing(name: str) -> None:
    theirs = decoder(name)
    expected = theirs(IDS, attention_mask=INSIDE.long()).logits[INSIDE]
    found = from_hugging_face(theirs)(IDS, lengths=LENGTHS)[INSIDE]
    torch.testing.assert_close(found, expected, **(EXACT if name == "gpt2" else SINGLE))


def test_a_head_with_numbers_of_its_own_is_not_tied() -> None:
    theirs = decoder("gpt2, untied")
    theirs.config.tie_word_embeddings = True  # what the tensors say counts
    ours = from_hugging_face(theirs)
    assert ours.head.weight is not ours.embedding.weight
    torch.testing.assert_close(ours(IDS), logits(theirs), **EXACT)
    tied = from_hugging_face(decoder("gpt2"))
    assert tied.head.weight is tied.embedding.weight


# -- encoders --------------------------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"])
def test_encoders_give_the_same_rows(kind: str) -> None:
    theirs = made(kind, BERT)
    ours = from_hugging_face(theirs)
    assert isinstance(ours, nn.BERT)
    assert ours.matched.known, "a pooler or a head is told of"
    base = theirs if kind == "BertModel" else theirs.bert
    segments = IDS % 3
    told = {"attention_mask": INSIDE.long(), "token_type_ids": segments}
    expected = base(IDS, **told).last_hidden_state[INSIDE]
    torch.testing.assert_close(ours(IDS, segments, lengths=LENGTHS)[INSIDE], expected, **EXACT)


# -- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["5GB", "3KB"], ids=["one file", "several files"])
@pytest.mark.parametrize("name", ["gpt2", "llama, linear", "mistral, window", "qwen2, window"])
def test_folders_are_read(name: str, size: str, tmp_path: Path) -> None:
    theirs = decoder(name)
    with silent():
        theirs.save_pretrained(tmp_path, max_shard_size=size)
    assert (tmp_path / "model.safetensors").exists() == (size == "5GB")
    ours = from_hugging_face(tmp_path)
    same = from_hugging_face(theirs)
    assert str(ours.made_of) == str(same.made_of)
    assert torch.equal(ours(IDS), same(IDS))


def test_older_configs_say_layers_by_number(tmp_path: Path) -> None:
    theirs = decoder("qwen2, window")
    with silent():
        theirs.save_pretrained(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    del told["layer_types"]
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert from_hugging_face(tmp_path).made_of["attention"] == from_hugging_face(theirs).made_of["attention"]


def test_folders_of_encoders_are_read(tmp_path: Path) -> None:
    theirs = made("BertForMaskedLM", BERT)
    with silent():
        theirs.save_pretrained(tmp_path)
    assert torch.equal(from_hugging_face(str(tmp_path))(IDS), from_hugging_face(theirs)(IDS))


@pytest.mark.parametrize("name", ["gpt2, layers", "llama, yarn", "qwen2, window"])
def test_what_was_loaded_can_be_saved(name: str, tmp_path: Path) -> None:
    ours = from_hugging_face(decoder(name))
    save(ours, tmp_path / "m")
    assert torch.equal(load(tmp_path / "m")(IDS), ours(IDS))


# -- names -----------------------------------------------------------------------------------------------------

BASES = {"gpt2": "GPT2Model", "llama, tied": "LlamaModel"}


@pytest.mark.parametrize("name", BASES)
def test_a_prefix_may_be_there_or_not(name: str) -> None:
    theirs = decoder(name)
    base = made(BASES[name], DECODERS[name][1])
    base.load_state_dict(theirs.base_model.state_dict())
    assert torch.equal(from_hugging_face(base)(IDS), from_hugging_face(theirs)(IDS))


class Renamed:
    """A model whose tensors have other names."""

    def __init__(self, model: Any, tensors: dict[str, Tensor]) -> None:
        self.config, self.tensors = model.config, tensors

    def state_dict(self) -> dict[str, Tensor]:
        return self.tensors


def test_older_names_are_known() -> None:
    theirs = made("BertModel", BERT)
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {"embeddings.position_ids": torch.arange(23)}
    for name, tensor in theirs.state_dict().items():
        ending = ".".join(name.split(".")[-2:])
        tensors[f"bert.{name.replace(ending, older.get(ending, ending))}"] = tensor
    assert any("gamma" in name for name in tensors)
    ours = from_hugging_face(Renamed(theirs, tensors))
    assert "embeddings.position_ids" in ours.matched.known
    assert torch.equal(ours(IDS), from_hugging_face(theirs)(IDS))


def test_buffers_of_older_files_are_known() -> None:
    theirs = decoder("gpt2")
    masks = {f"transformer.h.{n}.attn.{name}": torch.ones(1) for n in range(2) for name in ("bias", "masked_bias")}
    ours = from_hugging_face(Renamed(theirs, theirs.state_dict() | masks))
    assert set(masks) <= set(ours.matched.known)


@pytest.mark.parametrize("name", DECODERS)
def test_names_go_both_ways(name: str) -> None:
    theirs = decoder(name)
    again = made(*DECODERS[name])
    for parameter in again.parameters():
        torch.nn.init.zeros_(parameter)
    again.load_state_dict(to_hugging_face(from_hugging_face(theirs)))
    assert torch.equal(logits(again), logits(theirs))


def test_names_of_encoders_go_both_ways() -> None:
    theirs = made("BertModel", BERT)
    back = to_hugging_face(from_hugging_face(theirs))
    assert {name: tensor.tolist() for name, tensor in back.items()} == {
        name: tensor.tolist() for name, tensor in theirs.state_dict().items() if "pooler" not in name
    }


def test_what_has_no_place_there_is_not_lost_in_silence() -> None:
    ours = from_hugging_face(decoder("qwen2"))
    ours.decoder.blocks[1].attention.out.bias.data[2] = 1.0
    with pytest.raises(CallError, match=r"model: decoder\.blocks\.1\.attention\.out\.bias has no place .* must be 0"):
        to_hugging_face(ours)
    with pytest.raises(CallError, match=r"family: one of gpt2, llama, mistral, qwen2, bert; got 't5'"):
        to_hugging_face(ours, "t5")
    with pytest.raises(KindError, match=r"model: a BERT for bert; got GPT"):
        to_hugging_face(ours, "bert")
    with pytest.raises(CallError, match=r"can hold; got decoder\.blocks\.0\.attention_norm\.bias, .* beside it"):
        to_hugging_face(GPT(V, 12, 1, 3))


# -- formulas and dtypes ---------------------------------------------------------------------------------------


@torch.no_grad()
def test_another_formula_takes_the_place_of_the_own() -> None:
    theirs = decoder("mistral, window")
    wider = from_hugging_face(theirs, attention=lambda own: Attention(own.score, own.weight, window(7)))
    theirs.config.sliding_window = 7
    torch.testing.assert_close(wider(IDS), logits(theirs), **SINGLE)
    plain = from_hugging_face(theirs, attention=Attention(weight=sigmoid))
    assert plain.decoder.blocks[2].attention.attention == Attention(weight=sigmoid, mask=causal)
    each = from_hugging_face(theirs, attention=[Attention(dot / n / sqrt(d)) for n in (1, 2, 3)])
    assert [block.attention.attention.score for block in each.decoder.blocks][2] == dot / 3 / sqrt(d)
    with pytest.raises(KindError, match=r"attention: a formula, a list of them, or a function .*; got 'sigmoid'"):
        from_hugging_face(theirs, attention="sigmoid")


def test_the_own_formula_is_asked_for_layer_by_layer() -> None:
    told: list[Attention] = []
    from_hugging_face(decoder("gpt2, layers"), attention=lambda own: told.append(own) or own)
    assert told == [Attention(dot / sqrt(d) / n, mask=causal) for n in (1, 2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes_stay_or_are_as_asked(dtype: torch.dtype) -> None:
    theirs = decoder("qwen2").to(dtype)
    assert {p.dtype for p in from_hugging_face(theirs).parameters()} == {dtype}
    assert {p.dtype for p in from_hugging_face(theirs, dtype=torch.float64).parameters()} == {torch.float64}
    theirs.model.norm.double()  # the widest holds all
    assert {p.dtype for p in from_hugging_face(theirs).parameters()} == {torch.float64}


def test_the_copy_is_a_copy() -> None:
    theirs = decoder("llama")
    ours = from_hugging_face(theirs)
    before = ours(IDS)
    for parameter in theirs.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(ours(IDS), before)
    assert not ours.training
