"""PyTorch's own signature on a formula, for code that is written against it."""

from __future__ import annotations

from typing import Any

from ._arrays import as_array, is_array, library
from .algebra.errors import CallError, KindError
from .algebra.masks import causal, given
from .algebra.symbols import b, d, dot, h, i, j, sqrt, table
from .algebra.weights import softmax
from .attention import Attention
from .engines.graph import FUNCTIONS, is_traced, node


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """PyTorch's function of that name, on a formula; also for NumPy and JAX.

    dropout_p: the share of weights to drop, always, as PyTorch's; its random state says which
    attn_mask: True where a pair is admitted, or numbers to add to the score; broadcasts to (…, L, S)
    is_causal: query i reads keys j ≤ i, counted from the first of each
    """
    if is_traced():
        options = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
        return node("scaled_dot_product_attention", query, key, value, **options, enable_gqa=enable_gqa)
    lists = not is_array(query)
    query, key, value = (as_array(x, name) for x, name in ((query, "query"), (key, "key"), (value, "value")))
    if attn_mask is not None and is_causal:
        raise CallError("attn_mask: stands alone or is_causal does; got both; join them into one mask")
    if query.ndim >= 4 and not enable_gqa and key.shape[-3] not in (1, query.shape[-3]):
        raise CallError(
            f"enable_gqa: heads differ, query {tuple(query.shape)} and key {tuple(key.shape)}; pass enable_gqa=True"
        )
    if scale is not None and not isinstance(scale, int | float):
        raise KindError(f"scale: a number; got {scale!r}; a learned one is table(...) in a formula")
    score = dot / sqrt(d) if scale is None else dot * float(scale)
    tables: dict[str, Any] = {}
    mask = causal if is_causal else None
    if attn_mask is not None:
        if not is_array(attn_mask):
            raise KindError(f"attn_mask: an array of truths or numbers; got {type(attn_mask).__name__}")
        xp = library(attn_mask)
        if xp.is_bool(attn_mask):
            mask, tables["attn_mask"] = given("attn_mask"), attn_mask
        else:
            score = score + table("attn_mask")[b, h, i, j]
            tables["attn_mask"] = _laid_out_bias(xp, attn_mask, query, key)
    y = Attention(score, softmax, mask)(query, key, value, start=0, dropout=dropout_p, **tables)
    return y.tolist() if lists else y


FUNCTIONS["scaled_dot_product_attention"] = scaled_dot_product_attention


def _laid_out_bias(xp: Any, bias: Any, query: Any, key: Any) -> Any:
    """A bias that broadcasts to (…, L, S), as (batch, heads, L, S)."""
    lead = tuple(query.shape[:-2])
    full = (*lead, query.shape[-2], key.shape[-2])
    try:
        whole = xp.broadcast_to(bias, full)
    except (ValueError, RuntimeError):
        raise CallError(f"attn_mask: broadcasts to (…, L, S) {full}; got shape {tuple(bias.shape)}") from None
    heads = lead[-1] if len(lead) >= 2 else 1
    return xp.reshape(whole, (-1, heads, *full[-2:]))
