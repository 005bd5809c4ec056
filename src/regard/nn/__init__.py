"""Modules and models of PyTorch whose attention is a formula.

attention      q = W_q x, k = W_k x, v = W_v x, y = W_o attention(q, k, v);  multihead: PyTorch's own signature
norms          LayerNorm, RMSNorm;  feed_forward: what happens to each row by itself
blocks         x + attention(norm(x)), then x + feed_forward(norm(x));  style: what blocks are made of
stacks         Encoder, Decoder: block after block
gpt bert vit encoder_decoder      whole models, from tokens or images
cache          keys and values of the rows so far;  generation: text after text
checkpoints    the files of other libraries, name by name;  storage: our own
summary        parameters and operations;  checks, calls: what is refused at the door
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "attention": "CrossAttention SelfAttention",
        "multihead": "MultiheadAttention",
        "placement": "Placement Rows",
        "norms": "LayerNorm RMSNorm",
        "feed_forward": "FeedForward GatedFeedForward",
        "blocks": "Block post_norm pre_norm",
        "style": "LLAMA Style",
        "stacks": "Decoder Encoder",
        "gpt": "GPT",
        "bert": "BERT BERT_STYLE",
        "vit": "ViT",
        "encoder_decoder": "EncoderDecoder",
        "cache": "Cache",
        "generation": "Generation Sampling generate greedy stream",
        "storage": "load save",
        "checkpoints": "Matched Misfit from_hugging_face to_hugging_face",
        "summary": "Summary",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="torch")


def __dir__() -> list[str]:
    return list(__all__)
