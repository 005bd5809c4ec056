"""Checkpoints of GPT-2: positions learned, norms before, one matrix for queries, keys and values."""

from __future__ import annotations

from typing import Any

from ...algebra.errors import CallError
from ...algebra.masks import causal
from ...algebra.symbols import d, dot, sqrt
from ...attention import Attention
from ..gpt import GPT
from ..style import Style
from .config import Config
from .families import Family, formulas, unlearned
from .names import Names, Row, transposed

NAMES = Names(
    (
        Row("embedding.weight", "transformer.wte.weight", axes="vocab_size n_embd"),
        Row("decoder.placement.tables.position", "transformer.wpe.weight", axes="n_positions n_embd"),
        Row("decoder.blocks.{n}.attention_norm.{w}", "transformer.h.{n}.ln_1.{w}"),
        Row(
            "decoder.blocks.{n}.attention.(query|key|value).{w}",
            "transformer.h.{n}.attn.c_attn.{w}",
            transposed,
        ),
        Row("decoder.blocks.{n}.attention.out.{w}", "transformer.h.{n}.attn.c_proj.{w}", transposed),
        Row("decoder.blocks.{n}.feed_forward_norm.{w}", "transformer.h.{n}.ln_2.{w}"),
        Row("decoder.blocks.{n}.feed_forward.into.{w}", "transformer.h.{n}.mlp.c_fc.{w}", transposed),
        Row("decoder.blocks.{n}.feed_forward.out.{w}", "transformer.h.{n}.mlp.c_proj.{w}", transposed),
        Row("decoder.norm.{w}", "transformer.ln_f.{w}"),
        Row("head.weight", "lm_head.weight", axes="vocab_size n_embd"),
    ),
    prefix="transformer.",
    known=(
        "h.*.attn.bias",
        "h.*.attn.masked_bias",
        "lm_head.weight",
        "score.weight",
        "classifier.*",
        "multiple_choice_head.*",
    ),
)


def arguments(config: Config) -> dict[str, Any]:
    """What GPT is made with."""
    config.check(add_cross_attention=False, is_encoder_decoder=False)
    dim, depth = config.size("n_embd"), config.size("n_layer")
    residual, embedded = config.number("resid_pdrop", 0.1), config.number("embd_pdrop", 0.1)
    if residual != embedded:
        raise CallError(
            f"embd_pdrop: as resid_pdrop, {residual}, since one share is dropped behind embedding and blocks; "
            f"got {embedded} in {config.place}; set both alike: they matter in training alone"
        )
    return {
        "tokens": config.size("vocab_size"),
        "dim": dim,
        "depth": depth,
        "heads": config.size("n_head"),
        "attention": formulas(_formula(config, layer) for layer in range(depth)),
        "position": unlearned(config.size("n_positions"), dim),
        "style": Style(
            activation=config.activation("activation_function", "gelu_new"),
            hidden=config.size("n_inner", 4 * dim),
            epsilon=config.number("layer_norm_epsilon", 1e-5),
            dropout=residual,
        ),
        "dropout": config.number("attn_pdrop", 0.1),
        "tied": config.get("tie_word_embeddings", True),
    }


def _formula(config: Config, layer: int) -> Attention:
    score = dot / sqrt(d) if config.get("scale_attn_weights", True) else dot + 0
    if config.get("scale_attn_by_inverse_layer_idx", False):
        score = score / (layer + 1)
    return Attention(score, mask=causal)


GPT2 = Family("gpt2", GPT, NAMES, arguments)
