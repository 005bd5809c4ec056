"""What comes in at the door of a layer or a model: refused here, in words, and taken as it is behind."""

from __future__ import annotations

from collections.abc import Container, Iterable
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn

from ..algebra.errors import CallError, KindError

OWN = ("lengths", "mask", "cache", "memory", "memory_lengths", "segments")  # arguments of some layers and models
INSTEAD = {  # what other libraries call an argument → what to do here
    "attention_mask": "pass lengths=attention_mask.sum(-1) where filling stands at the end, or mask= for pairs",
    "attn_mask": "pass mask=, True where a row reads a key",
    "key_padding_mask": "pass lengths=, how many rows each text has, or mask=",
    "src_key_padding_mask": "pass lengths=, how many rows each text has, or mask=",
    "is_causal": "write Attention(mask=causal), or use a GPT or a Decoder, which are causal",
    "token_type_ids": "pass segments=, to a BERT",
    "use_cache": "pass cache=Cache() to a GPT or a Decoder, the same one in every call of a text",
    "past_key_values": "pass cache=Cache() to a GPT or a Decoder, the same one in every call of a text",
    "position_ids": "rows stand at 0, 1, 2, … and after those of a cache; texts of unequal length pass lengths=",
    "cache": "only what reads no row behind it can keep one: a GPT, a Decoder, a SelfAttention; leave it out",
    "segments": "only a BERT tells them apart; leave it out",
    "memory": "only a Decoder(cross=Attention()) and a CrossAttention read one",
}


def check_tables(tables: Iterable[str], known: Container[str]) -> None:
    """Refuse tables that no formula reads."""
    for name in tables:
        if name not in known:
            raise CallError(f"{name}: no formula here reads such a table; got one; {_instead(name)}")


def _instead(name: str) -> str:
    near = get_close_matches(name, OWN, n=1)
    return INSTEAD.get(name) or (f"did you mean {near[0]}=?" if near and near[0] != name else "leave it out")


def check_rows(x: Tensor, dim: int, into: nn.Module, name: str = "x") -> None:
    """Refuse what is not (batch, rows, dim) in the dtype of the linear map that it goes into."""
    if not isinstance(x, Tensor):
        raise KindError(f"{name}: a tensor, (batch, rows, {dim}); got {type(x).__name__}")
    if x.ndim != 3 or x.shape[-1] != dim:
        hint = f"; add the axis of the batch: {name}[None]" if x.ndim == 2 and x.shape[-1] == dim else ""
        raise CallError(f"{name}: (batch, rows, {dim}); got shape {tuple(x.shape)}{hint}")
    if type(into) is nn.Linear:  # maps of another kind know best what they take
        check_dtype(x, into.weight, name)


def check_dtype(x: Tensor, weight: Tensor, name: str) -> None:
    """Refuse a dtype that is not that of the weights; autocast converts by itself."""
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise KindError(
            f"{name}: the dtype of the layer, {weight.dtype}; got {x.dtype}; "
            f"convert one of them: {name}.to({weight.dtype})" + (f", or layer.to({x.dtype})" * x.is_floating_point())
        )


def check_texts(x: Tensor, memory: Tensor) -> None:
    """Refuse a memory that is of other texts."""
    if memory.shape[0] not in (1, x.shape[0]) and x.shape[0] != 1:
        raise CallError(
            f"memory: one for each of the {x.shape[0]} texts of x, or one for all; got shape {tuple(memory.shape)}"
        )


def check_share(dropout: Any, name: str = "dropout") -> float:
    """A share that is dropped."""
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise CallError(f"{name}: a share from 0 to below 1; got {dropout!r}")
    return float(dropout)
