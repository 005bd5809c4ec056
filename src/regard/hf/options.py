"""What a module hands over beside its arrays: understood, without effect, or refused by name."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from ..algebra.errors import CallError
from .call import Call
from .sources import source

UNDERSTOOD = frozenset("scaling dropout is_causal softcap s_aux position_bias".split())
WITHOUT_EFFECT = frozenset(  # on the numbers: the mask says what a window is
    "sliding_window max_length_q max_length_k output_attentions output_hidden_states position_ids cache_position "
    "use_cache return_dict deterministic past_key_value past_key_values layer_idx training".split()
)
PACKED = "texts packed into one row, which only FlashAttention reads; pad them instead"
HEADS = "a factor of each head's weights, which is no part of a formula; leave it out"
PAGED = "a paged cache, whose keys are not one array; take another cache"
CHOSEN = "keys chosen by number in place of a mask, which the model makes for its own implementations alone"
REFUSED = {
    "cu_seq_lens_q": PACKED, "cu_seq_lens_k": PACKED, "cu_seqlens": PACKED, "head_mask": HEADS,
    "layer_head_mask": HEADS, "cache": PAGED, "block_table": PAGED, "indices": CHOSEN, "block_indices": CHOSEN,
}  # fmt: skip


def check_options(name: str, call: Call) -> None:
    """Refuse what would change the numbers and is no part of a formula."""
    for option, value in call.options.items():
        if value is None or option in UNDERSTOOD or option in WITHOUT_EFFECT:
            continue
        why = REFUSED.get(option)
        if why is None and option in source(call.module).handed_over:
            why = "which the model's own attention may read and no formula of regard's does"
        if why is not None:
            raise CallError(f"{option}: {name} ({type(call.module).__name__}) hands it over: {why}")


def wants_weights(call: Call) -> bool:
    """Whether somebody asks for the weights: the call, the config, or what transformers records."""
    config = getattr(call.module, "config", None)
    return bool(call.options.get("output_attentions") or getattr(config, "output_attentions", False) or _recorded())


def _recorded() -> bool:
    collector = _collector()
    return collector is not None and any("attentions" in key for key in collector.get() or ())


@lru_cache(maxsize=1)
def _collector() -> Any | None:
    """Where transformers notes what a forward was asked for: there is no public way to ask."""
    try:
        return import_module("transformers.utils.output_capturing")._active_collector
    except (ImportError, AttributeError):  # older ones hand output_attentions over
        return None
