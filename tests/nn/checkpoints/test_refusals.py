"""Checkpoints that do not fit: each with the name, the rule, what was given, what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from nn.checkpoints.tiny import BERT, GPT2, IDS, LLAMA, made, silent
from regard.algebra.errors import CallError, KindError
from regard.nn.checkpoints import Matched, Misfit, from_hugging_face

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of Llama in three layers."""
    return written(tmp_path / "llama", "LlamaForCausalLM", LLAMA)


def written(folder: Path, kind: str, sizes: dict[str, Any], **options: Any) -> Path:
    with silent():
        made(kind, sizes).save_pretrained(folder, **options)
    return folder


def told(folder: Path, **changes: Any) -> Path:
    """The folder with a changed config."""
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))
    return folder


def kept(folder: Path, keep: Callable[[str], bool], **more: torch.Tensor) -> Path:
    """The folder with some of the tensors, and others."""
    tensors = safetensors.torch.load_file(folder / WHOLE)
    kept = {name: tensor for name, tensor in tensors.items() if keep(name)}
    safetensors.torch.save_file(kept | more, folder / WHOLE)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(CallError) as caught:
        from_hugging_face(folder)
    return str(caught.value)


# -- what did not match ----------------------------------------------------------------------------------------


def test_another_vocabulary_is_told_in_both_numbers(folder: Path) -> None:
    text = refusal(told(folder, vocab_size=37))
    assert text.startswith(f"source: a checkpoint that matches '{folder / CONFIG}', tensor by tensor; got\nllama: ")
    assert (
        "embedding.weight ← model.embed_tokens.weight: 37 × 12 by the config, 31 × 12 there: vocab_size is 37, not 31"
    ) in text
    assert "head.weight ← lm_head.weight: 37 × 12 by the config" in text
    assert text.endswith("correct the config, or pass strict=False to take what matches")


def test_another_width_is_told_layer_by_layer(folder: Path) -> None:
    text = refusal(told(folder, intermediate_size=23))
    assert "of another shape (9):" in text
    assert (
        "    decoder.blocks.{0…2}.feed_forward.gate.weight ← model.layers.{0…2}.mlp.gate_proj.weight: "
        "23 × 12 by the config, 19 × 12 there\n"
    ) in text


def test_a_fused_tensor_of_another_shape_is_told_as_theirs(tmp_path: Path) -> None:
    text = refusal(told(written(tmp_path, "GPT2LMHeadModel", GPT2), n_embd=18, n_head=3))
    names = ", ".join(f"decoder.blocks.{{0…1}}.attention.{part}.weight" for part in ("query", "key", "value"))
    assert f"{names} ← transformer.h.{{0…1}}.attn.c_attn.weight: 18 × 54 by the config, 15 × 45 there" in text
    assert "n_embd is 18, not 15" in text


def test_more_layers_than_there_are(folder: Path) -> None:
    text = refusal(told(folder, num_hidden_layers=5))
    assert "the checkpoint does not have (18):" in text
    assert ("    decoder.blocks.{3…4}.attention.query.weight ← model.layers.{3…4}.self_attn.q_proj.weight\n") in text


def test_fewer_layers_than_there_are(folder: Path) -> None:
    text = refusal(told(folder, num_hidden_layers=1))
    assert "the model does not read (18):" in text
    assert "    model.layers.{1…2}.mlp.up_proj.weight\n" in text


def test_biases_that_the_config_denies(tmp_path: Path) -> None:
    folder = written(tmp_path, "LlamaForCausalLM", LLAMA | {"attention_bias": True})
    assert "    model.layers.{0…2}.self_attn.o_proj.bias\n" in refusal(told(folder, attention_bias=False))


def test_strangers_are_listed_and_long_lists_cut(folder: Path) -> None:
    more = {f"adapter_{n}.weight": torch.zeros(2) for n in range(20)}
    text = refusal(kept(folder, lambda name: True, **more))
    assert "the model does not read (20):\n    adapter_0.weight\n" in text
    assert "    … and 4 more\n" in text


def test_a_name_with_prefix_and_without_is_listed(folder: Path) -> None:
    text = refusal(kept(folder, lambda name: True, **{"norm.weight": torch.zeros(12)}))
    assert "the model does not read (1):\n" in text


@torch.no_grad()
def test_not_strict_takes_what_matches(folder: Path) -> None:
    whole = from_hugging_face(folder)
    kept(folder, lambda name: "layers.1" not in name, stranger=torch.zeros(3))
    model = from_hugging_face(folder, strict=False)
    matched = model.matched
    assert not matched.whole
    assert matched.unused == ("stranger",)
    assert {ours for ours, _ in matched.missing} == {name for name in model.state_dict() if "blocks.1." in name}
    assert matched.taken == len(dict(model.named_parameters())) - len(matched.missing)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.float64
        assert torch.equal(parameter, whole.state_dict()[name]) == ("blocks.1." not in name)
    assert torch.isfinite(model(IDS)).all()


def test_a_report_prints_as_a_list() -> None:
    report = Matched(
        "bert",
        7,
        missing=(("norm.weight", "embeddings.LayerNorm.weight"), ("extra", "")),
        misfits=(Misfit("a", "b", (3, 5), (3,), ("x", "y")), Misfit("c", "d", (), (1,))),
        known=("pooler.dense.bias",),
    )
    assert str(report).splitlines() == [
        "bert: 7 tensors taken",
        "the checkpoint does not have (2):",
        "    norm.weight ← embeddings.LayerNorm.weight",
        "    extra",
        "of another shape (2):",
        "    a ← b: 3 × 5 by the config, 3 there",
        "    c ← d: a number by the config, 1 there",
        "not needed here (1):",
        "    pooler.dense.bias",
    ]


# -- configs that are not computed -----------------------------------------------------------------------------

FIELDS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "GPT2LMHeadModel",
        GPT2,
        {"activation_function": "quick_gelu"},
        r"activation_function: one of gelu, .*; got 'quick",
    ),
    (
        "GPT2LMHeadModel",
        GPT2,
        {"add_cross_attention": True},
        r"add_cross_attention: False, the only one .*; got True in",
    ),
    ("GPT2LMHeadModel", GPT2, {"embd_pdrop": 0.3}, r"embd_pdrop: as resid_pdrop, 0\.1, .*; got 0\.3 in .* alike"),
    ("GPT2LMHeadModel", GPT2, {"n_head": 4}, r"heads: divides dim, 15; got 4"),
    ("GPT2LMHeadModel", GPT2, {"n_embd": None}, r"n_embd: the config says it; got none in"),
    ("GPT2LMHeadModel", GPT2, {"n_layer": "two"}, r"n_layer: an integer of at least 1; got 'two' in"),
    ("LlamaForCausalLM", LLAMA, {"rms_norm_eps": "small"}, r"rms_norm_eps: a number; got 'small' in"),
    ("LlamaForCausalLM", LLAMA, {"rope_parameters": {"rope_type": "odd"}}, r"rope_type: one of default, .*; got 'odd'"),
    ("LlamaForCausalLM", LLAMA, {"pretraining_tp": 2}, r"pretraining_tp: 1, the only one .*; got 2 in .*regard\.hf"),
    ("LlamaForCausalLM", LLAMA, {"num_key_value_heads": 4}, r"kv_heads: divides the 6 heads, .*; got 4"),
    (
        "LlamaForCausalLM",
        LLAMA,
        {"model_type": "rwkv"},
        r"model_type: one of gpt2, llama, .*, bert; got 'rwkv' in .*hf",
    ),
    ("Qwen2ForCausalLM", LLAMA, {"layer_types": ["odd"] * 3}, r"layer_types: full_attention; got 'odd' in"),
    (
        "BertModel",
        BERT,
        {"position_embedding_type": "relative_key"},
        r"position_embedding_type: 'absolute', .*'relative",
    ),
    ("BertModel", BERT, {"is_decoder": True}, r"is_decoder: False, the only one that is computed here; got True in"),
]


@pytest.mark.parametrize(("kind", "sizes", "change", "text"), FIELDS, ids=lambda x: str(x)[:40])
def test_fields_that_are_not_computed_are_named(
    kind: str, sizes: dict[str, Any], change: dict[str, Any], text: str, tmp_path: Path
) -> None:
    folder = told(written(tmp_path, kind, sizes), **change)
    with pytest.raises((CallError, KindError), match=text):
        from_hugging_face(folder)


def test_a_layer_with_a_window_of_no_width_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, "Qwen2ForCausalLM", LLAMA)
    with pytest.raises(CallError, match="layer_types: full_attention; got 'sliding_attention'"):
        from_hugging_face(told(folder, layer_types=["sliding_attention"] * 3))


def test_quantised_tensors_are_refused(folder: Path) -> None:
    tensors = safetensors.torch.load_file(folder / WHOLE)
    safetensors.torch.save_file({name: t.to(torch.int8) for name, t in tensors.items()}, folder / WHOLE)
    with pytest.raises(KindError, match=r"real numbers of 16 bits or more; got .* in torch\.int8, which is quantised"):
        from_hugging_face(folder)


# -- folders that hold no checkpoint ---------------------------------------------------------------------------


def test_names_of_the_hub_are_no_folders() -> None:
    with pytest.raises(
        CallError, match=r"got 'who/what', which is none; nothing is downloaded: .*hf download who/what"
    ):
        from_hugging_face("who/what")


def test_a_file_is_no_folder(folder: Path) -> None:
    with pytest.raises(CallError, match=r"got '.*model\.safetensors', a file; name its folder"):
        from_hugging_face(folder / WHOLE)


def test_other_things_are_refused() -> None:
    for other in (nn.Linear(2, 3), 5, {"config": {}}):
        with pytest.raises(KindError, match=r"source: a folder .* or a model of transformers; got (Linear|int|dict)"):
            from_hugging_face(other)


def test_a_folder_without_config(folder: Path) -> None:
    (folder / CONFIG).unlink()
    with pytest.raises(CallError, match=r"a folder with config\.json; got .*, which has .*model\.safetensors"):
        from_hugging_face(folder)


def test_a_folder_without_tensors(folder: Path) -> None:
    (folder / WHOLE).unlink()
    with pytest.raises(CallError, match=r"a folder with model\.safetensors; got .*, which has config\.json"):
        from_hugging_face(folder)


@pytest.mark.parametrize("text", ["{", "\x80", "[1]"])
def test_a_broken_config(text: str, folder: Path) -> None:
    (folder / CONFIG).write_text(text, encoding="latin-1")
    with pytest.raises(KindError, match=r"source: config\.json (is JSON|holds an object); got"):
        from_hugging_face(folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytorch_model.bin", r"got pytorch_model\.bin in .*; pickles .* never loaded; where you trust it, let transf"),
        ("model.gguf", r"got model\.gguf in .*; let transformers read it and pass its model: .*, gguf_file=…\)\)$"),
    ],
)
def test_pickles_and_others_alone(name: str, text: str, folder: Path) -> None:
    (folder / WHOLE).rename(folder / name)
    with pytest.raises(KindError, match=text):
        from_hugging_face(folder)
    (folder / CONFIG).unlink()
    with pytest.raises(KindError, match=text):
        from_hugging_face(folder)


def test_a_truncated_file(folder: Path) -> None:
    content = (folder / WHOLE).read_bytes()
    (folder / WHOLE).write_bytes(content[: len(content) // 2])
    with pytest.raises(KindError, match=r"source: a safetensors file; got .*, which is cut short: .*; copy it again"):
        from_hugging_face(folder)


def sharded(folder: Path, change: Callable[[dict[str, str]], Any]) -> Path:
    written(folder, "LlamaForCausalLM", LLAMA, max_shard_size="3KB")
    index = json.loads((folder / INDEX).read_text())
    (folder / INDEX).write_text(json.dumps({"weight_map": change(index["weight_map"])}))
    return folder


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda files: 5, KindError, r"index\.json with a weight_map from names to files; got another"),
        (lambda files: files | {"w": "../w"}, CallError, r"names files of its own folder; got '\.\./w'"),
        (lambda files: files | {"w": "w"}, CallError, r"source: a safetensors file; got '.*/w', which is not there"),
        (
            lambda files: files | {"w": files["lm_head.weight"]},
            CallError,
            r"every tensor where model\.safetensors\.index\.json says; got none of 'w' in 'model-0",
        ),
    ],
)
def test_a_broken_index(change: Callable[[Any], Any], error: type[Exception], text: str, tmp_path: Path) -> None:
    folder = sharded(tmp_path, change)
    with pytest.raises(error, match=text):
        from_hugging_face(folder)
