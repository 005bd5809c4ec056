"""The roles of arguments, from names that people give them, for every kind of callable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regard.algebra.errors import KindError
from regard.diagnosis.signature import Parameter, parameters
from regard.diagnosis.words import letters

SIGNATURES = {
    "q, k, v": "q k v",
    "Q, K, V, mask=None": "q k v mask",
    "query, key, value, mask": "q k v mask",
    "values, keys, query, mask": "v k q mask",
    "a, b, c": "q k v",
    "a, b, c, d": "q k v mask",
    "q, k, stuff": "q k v",
    "query_states, key_states, value_states": "q k v",
    "seqs": "x",
    "h": "x",
    "X, WQ, WK, WV": "x wq wk wv",
    "x, Wq, Wk, Wv, Wo=None, n_heads=2": "x wq wk wv wo heads",
    "x, w_q, w_k, w_v, b_q, b_k, b_v, h": "x wq wk wv bq bk bv heads",
    "x, A, B, C": "x wq wk wv",
    "x, A, B, C, D": "x wq wk wv wo",
    "x, q_weight, k_weight, v_weight, out_weight": "x wq wk wv wo",
    "x, W_qkv, W_o": "x wqkv wo",
    "x, params": "x params",
    "x, context=None": "x context",
    "x, y": "x context",
    "query, context": "x context",
    "x_q, x_kv": "x context",
    "q, k, v, mask=False": "q k v causal",
    "q, k, v, causal_mask=None": "q k v mask",
    "q, k, v, is_causal=True": "q k v causal",
    "q, k, v, d_k": "q k v width",
    "q, k, v, dropout=None, key=None": "q k v dropout seed",
    "queries, keys, values, valid_lens=None": "q k v lengths",
    "x, start_pos, freqs_cis, mask": "x start positions mask",
    "hidden_states, attention_mask=None, layer_past=None, use_cache=False": "x mask cache use_cache",
    "x, key_padding_mask=None, need_weights=True, training=False": "x padding return_weights training",
    "x, mask, wobble": "x mask other",
    "x, wobble=3": "x other",
    "q, k, v, scale=1.0, *args, **kwargs": "q k v scale",
}


def roles(target: Callable[..., Any]) -> str:
    return " ".join(one.role for one in parameters(target))


@pytest.mark.parametrize(("signature", "expected"), SIGNATURES.items(), ids=SIGNATURES)
def test_roles_of_names(signature: str, expected: str) -> None:
    assert roles(eval(f"lambda {signature}: None")) == expected


def test_what_may_be_left_out_and_how_it_is_given() -> None:
    def attend(q: Any, /, k: Any = 2, *, v: Any = [1]) -> Any: ...  # noqa: B006

    assert parameters(attend) == (
        Parameter("q", "q", True, None, "position"),
        Parameter("k", "k", False, 2, "either"),
        Parameter("v", "v", False, "[1]", "name"),
    )


def scripted(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    return q + k + v * scale


class Module(nn.Module):
    def forward(self, values: Any, keys: Any, query: Any, mask: Any = None) -> Any:
        return values


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_kinds_of_callables() -> None:
    assert roles(F.scaled_dot_product_attention) == "q k v mask dropout causal scale other"
    assert roles(nn.MultiheadAttention(8, 2)) == "q k v padding return_weights mask other causal"
    assert roles(partial(scripted, scale=3.0)) == "q k v scale"
    assert roles(jax.jit(lambda q, k, v: q)) == "q k v"
    assert roles(Module()) == roles(Module().forward) == "v k q mask"
    compiled = torch.jit.script(scripted)
    assert parameters(compiled)[3] == Parameter("scale", "scale", False, 2.0, "either")
    assert roles(compiled) == "q k v scale"


def test_a_callable_without_names() -> None:
    with pytest.raises(KindError, match=r"target: a callable whose arguments have names; got .*; wrap it: def attend"):
        parameters(type("Opaque", (), {"__call__": print, "__signature__": 3})())


@pytest.mark.parametrize("name", ["k_norm", "cache_k", "rel_pos_k", "mask", "bias", "mlp", "linears", "v_gate", "qq"])
def test_names_that_say_no_projection(name: str) -> None:
    assert letters(name) == ""
