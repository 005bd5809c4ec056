"""Small models of transformers with weights at random, and inputs for them."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers

TEXT = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 53, "num_hidden_layers": 2, "num_attention_heads": 6}
GROUPED = {**TEXT, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BART = {
    "vocab_size": 97, "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 53,
    "decoder_ffn_dim": 53, "encoder_attention_heads": 6, "decoder_attention_heads": 4, "max_position_embeddings": 61,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
T5 = {
    "vocab_size": 97, "d_model": 48, "d_kv": 8, "d_ff": 53, "num_layers": 2, "num_heads": 6, "pad_token_id": 0,
    "eos_token_id": 2, "decoder_start_token_id": 0, "dropout_rate": 0.0,
}  # fmt: skip
IMAGE = {**TEXT, "image_size": 28, "patch_size": 4}
del IMAGE["vocab_size"]
HALF = ["sliding_attention", "full_attention"]

CONFIGS: dict[str, tuple[str, str, dict[str, Any]]] = {  # by name: the model's class, its config's, and sizes
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 5}),
    "gemma2": (
        "Gemma2ForCausalLM", "Gemma2Config",
        {**GROUPED, "sliding_window": 5, "attn_logit_softcapping": 1.5, "query_pre_attn_scalar": 11},
    ),
    "gemma3": (
        "Gemma3ForCausalLM", "Gemma3TextConfig",
        {**GROUPED, "sliding_window": 5, "layer_types": HALF, "query_pre_attn_scalar": 11},
    ),
    "gpt_oss": (
        "GptOssForCausalLM", "GptOssConfig",
        {**GROUPED, "sliding_window": 5, "layer_types": HALF, "num_local_experts": 3, "num_experts_per_tok": 2,
         "intermediate_size": 56},
    ),
    "llama4": (
        "Llama4ForCausalLM", "Llama4TextConfig",
        {**GROUPED, "intermediate_size_mlp": 56, "intermediate_size": 56, "attention_chunk_size": 5,
         "num_local_experts": 3, "no_rope_layers": [1, 0], "moe_layers": [1]},
    ),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED),
    "gpt2": (
        "GPT2LMHeadModel", "GPT2Config",
        {"vocab_size": 97, "n_embd": 48, "n_layer": 2, "n_head": 6, "scale_attn_by_inverse_layer_idx": True,
         "bos_token_id": 1, "eos_token_id": 2},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**TEXT, "bos_token_id": 1, "eos_token_id": 2}),
    "opt": (
        "OPTForCausalLM", "OPTConfig",
        {**TEXT, "ffn_dim": 53, "word_embed_proj_dim": 48, "max_position_embeddings": 61, "bos_token_id": 1,
         "eos_token_id": 2},
    ),
    "bert": ("BertModel", "BertConfig", TEXT),
    "albert": ("AlbertModel", "AlbertConfig", {**TEXT, "embedding_size": 11}),
    "roberta": ("RobertaModel", "RobertaConfig", {**TEXT, "pad_token_id": 0}),
    "bart": ("BartModel", "BartConfig", BART),
    "t5": ("T5Model", "T5Config", T5),
    "whisper": (
        "WhisperModel", "WhisperConfig",
        {**BART, "max_source_positions": 13, "max_target_positions": 61, "num_mel_bins": 7},
    ),
    "vit": ("ViTModel", "ViTConfig", IMAGE),
    "dinov2": ("Dinov2Model", "Dinov2Config", IMAGE),
}  # fmt: skip
DECODERS = ("llama", "mistral", "gemma2", "gemma3", "gpt_oss", "llama4", "qwen3", "gpt2", "gpt_neox", "opt")
ENCODERS = ("bert", "albert", "roberta")
TWO_SIDED = ("bart", "t5")


def model(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """A model in evaluation, on its own eager attention, with weights that make its scores differ."""
    chosen, config, sizes = CONFIGS[name]
    torch.manual_seed(0)
    made = getattr(transformers, chosen)(getattr(transformers, config)(**sizes, attn_implementation="eager"))
    with torch.no_grad():
        for label, weight in made.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0, 1 / math.sqrt(weight.shape[-1]))
            elif "sink" in label:
                weight.normal_()
    return made.eval().to(dtype)


def tokens(batch: int = 2, length: int = 13) -> torch.Tensor:
    """Numbers of words, never those of padding."""
    return torch.randint(3, 97, (batch, length), generator=torch.Generator().manual_seed(1))


def padded(side: str, length: int = 13) -> torch.Tensor:
    """An attention_mask for two texts, the first of them shorter by four."""
    mask = torch.ones(2, length, dtype=torch.long)
    mask[0, slice(0, 4) if side == "left" else slice(length - 4, length)] = 0
    return mask


def inputs(name: str) -> dict[str, torch.Tensor]:
    """What a model's forward takes."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=torch.Generator().manual_seed(2))

    if name in ("vit", "dinov2"):
        return {"pixel_values": draw(2, 3, 28, 28)}
    if name == "whisper":
        return {"input_features": draw(2, 7, 26), "decoder_input_ids": tokens(length=5)}
    return {"input_ids": tokens(), **({"decoder_input_ids": tokens(length=7)} if name in TWO_SIDED else {})}


def first(output: Any) -> torch.Tensor:
    """Logits, or the last hidden state."""
    return getattr(output, "logits", None) if getattr(output, "logits", None) is not None else output.last_hidden_state
