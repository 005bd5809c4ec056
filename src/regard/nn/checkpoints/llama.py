"""Checkpoints of Llama and its like: positions turned, RMS norms before, a gated feed-forward, fewer keys than queries.

mistral   reads the last `sliding_window` positions
qwen2     has biases at queries, keys and values, and none behind: there ours is 0
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...algebra.errors import CallError
from ...algebra.masks import causal, window
from ...attention import Attention
from ...inputs.positions.rotary import Rotary
from ..feed_forward import GatedFeedForward
from ..gpt import GPT
from ..norms import RMSNorm
from ..style import Style
from .config import Config
from .families import Family, formulas
from .names import Names, Row

OUT = Row("decoder.blocks.{n}.attention.out.{w}", "model.layers.{n}.self_attn.o_proj.{w}")

NAMES = Names(
    (
        Row("embedding.weight", "model.embed_tokens.weight", axes="vocab_size hidden_size"),
        Row("decoder.blocks.{n}.attention_norm.weight", "model.layers.{n}.input_layernorm.weight"),
        Row("decoder.blocks.{n}.attention.query.{w}", "model.layers.{n}.self_attn.q_proj.{w}"),
        Row("decoder.blocks.{n}.attention.key.{w}", "model.layers.{n}.self_attn.k_proj.{w}"),
        Row("decoder.blocks.{n}.attention.value.{w}", "model.layers.{n}.self_attn.v_proj.{w}"),
        OUT,
        Row("decoder.blocks.{n}.feed_forward_norm.weight", "model.layers.{n}.post_attention_layernorm.weight"),
        Row("decoder.blocks.{n}.feed_forward.gate.{w}", "model.layers.{n}.mlp.gate_proj.{w}"),
        Row("decoder.blocks.{n}.feed_forward.into.{w}", "model.layers.{n}.mlp.up_proj.{w}"),
        Row("decoder.blocks.{n}.feed_forward.out.{w}", "model.layers.{n}.mlp.down_proj.{w}"),
        Row("decoder.norm.weight", "model.norm.weight"),
        Row("head.weight", "lm_head.weight", axes="vocab_size hidden_size"),
    ),
    prefix="model.",
    known=("*rotary_emb.inv_freq", "lm_head.weight", "score.weight", "classifier.*", "qa_outputs.*"),
)

NO_BIAS_BEHIND = (
    Row("decoder.blocks.{n}.attention.out.weight", "model.layers.{n}.self_attn.o_proj.weight"),
    Row("decoder.blocks.{n}.attention.out.bias", None),
)
QWEN2_NAMES = replace(NAMES, rows=tuple(r for row in NAMES.rows for r in (NO_BIAS_BEHIND if row is OUT else (row,))))


def llama(config: Config) -> dict[str, Any]:
    """What GPT is made with."""
    bias = bool(config.get("attention_bias", False))
    return _arguments(config, bias=bias, feed_forward_bias=bool(config.get("mlp_bias", False)))


def mistral(config: Config) -> dict[str, Any]:
    """The same with a window; one that is not told is 4096 wide, and null stands for none."""
    config.check(layer_types=None)
    width = config.told.get("sliding_window", 4096)
    mask = causal if width is None else window(config.size("sliding_window", 4096))
    return {**_arguments(config, kv_heads=8), "attention": Attention(mask=mask)}


def qwen2(config: Config) -> dict[str, Any]:
    """The same with biases, and a window in some layers."""
    kinds = {"full_attention": Attention(mask=causal)}
    if config.get("use_sliding_window", False) and config.told.get("sliding_window", 4096) is not None:
        kinds["sliding_attention"] = Attention(mask=window(config.size("sliding_window", 4096)))
    layers = config.get("layer_types") or _layer_types(config, list(kinds))
    unknown = [kind for kind in layers if kind not in kinds]
    if unknown:
        raise CallError(f"layer_types: {' or '.join(kinds)}; got {unknown[0]!r} in {config.place}")
    return {**_arguments(config, bias=True, kv_heads=32), "attention": formulas(kinds[kind] for kind in layers)}


def _layer_types(config: Config, kinds: list[str]) -> list[str]:
    """The first `max_window_layers` read everything, the others through the window if there is one."""
    full = config.get("max_window_layers", 28)
    return [kinds[0] if n < full else kinds[-1] for n in range(config.size("num_hidden_layers"))]


def _arguments(
    config: Config, *, bias: bool = False, feed_forward_bias: bool = False, kv_heads: int | None = None
) -> dict[str, Any]:
    config.check(pretraining_tp=1)
    dim, heads = config.size("hidden_size"), config.size("num_attention_heads")
    return {
        "tokens": config.size("vocab_size"),
        "dim": dim,
        "depth": config.size("num_hidden_layers"),
        "heads": heads,
        "kv_heads": config.size("num_key_value_heads", kv_heads or heads),
        "attention": Attention(mask=causal),
        "position": Rotary.from_config(config.told),
        "style": Style(
            RMSNorm,
            GatedFeedForward,
            config.activation("hidden_act", "silu"),
            config.size("intermediate_size"),
            bias=feed_forward_bias,
            epsilon=config.number("rms_norm_eps", 1e-6),
        ),
        "width": config.size("head_dim", dim // heads),
        "bias": bias,
        "dropout": config.number("attention_dropout", 0.0),
        "tied": config.get("tie_word_embeddings", False),
    }


LLAMA = Family("llama", GPT, NAMES, llama)
MISTRAL = Family("mistral", GPT, NAMES, mistral)
QWEN2 = Family("qwen2", GPT, QWEN2_NAMES, qwen2)
