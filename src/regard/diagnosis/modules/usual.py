"""What the arguments of constructors and the fields of configurations are usually called, and a value for each.

    24 columns in the model, 4 heads of 6, 2 heads of keys; an output of its own width has 18 columns, or 20 with heads

so that a width is no count of heads and no head's width, and a wrong axis does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..words import words

CONFIGS = tuple("config cfg args conf params hparams opt model_args configuration configs settings".split())
HEADS = tuple(
    "num_heads n_heads n_head heads num_attention_heads nhead nheads n_q_heads num_q_heads num_query_heads "
    "num_attn_heads attention_heads attn_heads head_num heads_num head_count n_local_heads numheads h H nb_heads "
    "encoder_attention_heads decoder_attention_heads num_head head".split()
)
KEY_HEADS = tuple(
    "n_kv_heads num_kv_heads num_key_value_heads n_kv_head kv_heads n_local_kv_heads num_kv_head nkv_heads "
    "num_kv_groups n_kv_groups n_query_groups num_query_groups n_groups kv_head".split()
)
LENGTHS = tuple(
    "block_size context_length max_len max_seq_len seq_len context_size ctx_len n_ctx max_length max_seq_length "
    "max_position_embeddings n_positions sequence_length seq_length max_context_length T max_position context_len "
    "maxlen max_sequence_length window_length length context_window".split()
)
HEAD_WIDTHS = tuple(
    "head_dim d_k head_size dim_head d_head d_key dim_per_head size_per_head attention_head_size key_dim dk "
    "qk_dim d_q d_qk dim_k dim_key head_width d_kv dim_heads head_dims".split()
)
VALUE_WIDTHS = frozenset("d_v d_value value_dim dv dim_v v_dim v_head_dim dim_value".split())
WIDTHS = frozenset(
    "d_model embed_dim dim n_embd hidden_size emb_dim embed_size n_embed embedding_dim emb_size model_dim hidden_dim "
    "num_hiddens d embed E C channels d_embed dmodel features n_state width emb k query_size key_size value_size qdim "
    "kdim vdim size n_units hid_dim units dim_model hidden hidden_features embed_dims model_size embedding_size "
    "n_hidden query_dim context_dim num_channels token_dim dims kv_dim q_dim feature_dim latent_dim "
    "embed_dimension d_hidden all_head_size D n_channels n_features num_features num_units d_embedding embedding_dims "
    "embedding_dimension emb_dims emb_d n_dim ndim n_dims num_dims n_model nhid nhidden n_hid ninp num_hidden hid_size "
    "hidden_units hidden_channels inner_dim model_dimension n_state d_emb dembed d_mod dmodel_size vector_size "
    "input_depth d_token d_feature embed_width attn_dim attention_dim att_dim proj_dim projection_dim nf nx".split()
)
INPUT_WIDTHS = frozenset(
    "d_in in_dim input_dim dim_in d_input in_features input_size in_channels in_d in_size inp_dim d_x".split()
)
OUTPUT_WIDTHS = frozenset(
    "d_out out_dim output_dim dim_out d_output out_features output_size out_channels out_d out_size".split()
)
BESIDE_QUERIES = {"key_dim", "value_dim", "context_dim", "memory_dim"}
RATIOS = {"eps": 1e-5, "epsilon": 1e-5, "theta": 10000.0, "base": 10000.0}  # by a word of the name
NAMED: dict[str, Any] = {
    "layer_idx": 0,
    "layer_id": 0,
    "n_layer": 1,
    "n_layers": 1,
    "num_layers": 1,
    "num_hidden_layers": 1,
    "vocab_size": 53,
    "batch_first": True,
    "batch_size": 2,
    "device": None,
    "p": 0.1,
    "pretraining_tp": 1,
    "is_decoder": False,
    "is_cross_attention": False,
    "position_embedding_type": "absolute",
    "_attn_implementation": "eager",
}


@dataclass(frozen=True)
class Widths:
    """The sizes of an instance."""

    model: int = 24
    heads: int = 4
    key_heads: int = 2
    head: int = 6
    out: int = 20  # of an output that has a width of its own
    longest: int = 64


TRIED = (Widths(), Widths(out=24), Widths(32, 4, 2, 8, 32, 64))  # one after the other, until a constructor takes it


def alone(widths: Widths) -> Widths:
    """Those of a class without heads, whose output may have any width."""
    return Widths(widths.model, widths.heads, widths.key_heads, widths.head, 18, widths.longest)


def value(name: str, widths: Widths, beside: frozenset[str]) -> Any:
    """What an argument of this name is given; raises KeyError for a name that nobody knows."""
    known = dict(_known(name, widths, beside))
    if known:
        return next(iter(known.values()))
    raise KeyError(name)


def is_size(name: str) -> bool:
    """Whether a name is that of a width or a count of heads: a default is replaced, to stay small and to fit."""
    return name in {*HEADS, *KEY_HEADS, *HEAD_WIDTHS, *VALUE_WIDTHS, *WIDTHS, *INPUT_WIDTHS, *OUTPUT_WIDTHS}


def _known(name: str, widths: Widths, beside: frozenset[str]) -> Iterator[tuple[str, Any]]:
    said = set(words(name))
    if name in NAMED:
        yield "named", NAMED[name]
    if name in HEADS:
        yield "heads", widths.heads
    if name in KEY_HEADS:
        yield "key heads", widths.key_heads
    if name in LENGTHS:
        yield "longest", widths.longest
    if name in BESIDE_QUERIES and "query_dim" in beside:  # widths of two inputs, not of heads
        yield "input", widths.model
    if name in HEAD_WIDTHS or name in VALUE_WIDTHS:
        yield "head", widths.head
    if name in OUTPUT_WIDTHS or (name in WIDTHS and INPUT_WIDTHS & beside):
        yield "out", widths.out
    if name in WIDTHS or name in INPUT_WIDTHS:
        yield "model", widths.model
    if any(word.startswith(("drop", "pdrop")) for word in said):
        yield "dropout", 0.1
    if said & {"bias", "biases"}:
        yield "bias", True
    yield from ((word, ratio) for word, ratio in RATIOS.items() if word in said)
    if said & {"causal", "masked", "mask", "flash", "use", "is"}:
        yield "flag", False
