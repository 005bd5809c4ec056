"""Checkpoints of BERT: positions learned, norms behind, every token reads the whole text."""

from __future__ import annotations

from typing import Any

from ...attention import Attention
from ..bert import BERT as BERT_MODEL
from ..style import Style, post_norm
from .config import Config
from .families import Family, unlearned
from .names import Names, Row

NAMES = Names(
    (
        Row("embedding.weight", "embeddings.word_embeddings.weight", axes="vocab_size hidden_size"),
        Row("segments.weight", "embeddings.token_type_embeddings.weight", axes="type_vocab_size hidden_size"),
        Row(
            "encoder.placement.tables.position",
            "embeddings.position_embeddings.weight",
            axes="max_position_embeddings hidden_size",
        ),
        Row("norm.{w}", "embeddings.LayerNorm.{w}"),
        Row("encoder.blocks.{n}.attention.query.{w}", "encoder.layer.{n}.attention.self.query.{w}"),
        Row("encoder.blocks.{n}.attention.key.{w}", "encoder.layer.{n}.attention.self.key.{w}"),
        Row("encoder.blocks.{n}.attention.value.{w}", "encoder.layer.{n}.attention.self.value.{w}"),
        Row("encoder.blocks.{n}.attention.out.{w}", "encoder.layer.{n}.attention.output.dense.{w}"),
        Row("encoder.blocks.{n}.attention_norm.{w}", "encoder.layer.{n}.attention.output.LayerNorm.{w}"),
        Row("encoder.blocks.{n}.feed_forward.into.{w}", "encoder.layer.{n}.intermediate.dense.{w}"),
        Row("encoder.blocks.{n}.feed_forward.out.{w}", "encoder.layer.{n}.output.dense.{w}"),
        Row("encoder.blocks.{n}.feed_forward_norm.{w}", "encoder.layer.{n}.output.LayerNorm.{w}"),
    ),
    prefix="bert.",
    older=((".gamma", ".weight"), (".beta", ".bias")),
    known=("embeddings.position_ids", "embeddings.token_type_ids", "pooler.*", "cls.*", "classifier.*", "qa_outputs.*"),
)


def arguments(config: Config) -> dict[str, Any]:
    """What BERT is made with."""
    config.check(position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    dim = config.size("hidden_size")
    return {
        "tokens": config.size("vocab_size"),
        "dim": dim,
        "depth": config.size("num_hidden_layers"),
        "heads": config.size("num_attention_heads"),
        "attention": Attention(),
        "position": unlearned(config.size("max_position_embeddings"), dim),
        "style": Style(
            activation=config.activation("hidden_act", "gelu"),
            hidden=config.size("intermediate_size"),
            residual=post_norm,
            epsilon=config.number("layer_norm_eps", 1e-12),
            dropout=config.number("hidden_dropout_prob", 0.1),
        ),
        "segments": config.size("type_vocab_size", 2),
        "dropout": config.number("attention_probs_dropout_prob", 0.1),
    }


BERT = Family("bert", BERT_MODEL, NAMES, arguments)
