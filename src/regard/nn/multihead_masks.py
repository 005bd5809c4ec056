"""The masks of PyTorch's multi-head attention, as parts of a formula.

    s_ij + added_bhij        mask_ij ∧ admitted_bhij

A mask of truths says True where a pair is NOT admitted; a mask of numbers is added to the score, and −∞ in it does not
admit the pair. `attn_mask` speaks of pairs, `key_padding_mask` of keys; both together count together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name

from ..algebra.errors import CallError, FormulaError, KindError
from ..algebra.masks import causal, given
from ..algebra.symbols import b, h, i, j, table
from ..attention import Attention

ARGUMENTS = "query key value key_padding_mask need_weights attn_mask average_attn_weights is_causal".split()
ADDED, ADMITTED = "attn_mask", "key_padding_mask"  # tables of ours: no formula may take the name of an argument


# -- formulas ----------------------------------------------------------------------------------------------------


class Formulas(NamedTuple):
    """One formula under each kind of mask. Written before a call, since a compiler cannot follow the algebra."""

    free: Attention
    causal: Attention
    admitted: Attention
    added: Attention


@lru_cache(maxsize=256)
def under_masks(attention: Attention) -> Formulas:
    """The formula alone, with j ≤ i, with a table of truths, and with a table of numbers."""
    taken = [name for name in ARGUMENTS if name in attention.ranks]
    if taken:
        raise FormulaError(
            f"attention: its tables are arguments of forward by name, where {', '.join(taken)} means something else; "
            f'got {attention!r}; choose another name, as in table("{taken[0]}_table")'
        )
    score, weight, mask = attention.score, attention.weight, attention.mask
    biased, admitted = score + table(ADDED)[b, h, i, j], given(ADMITTED) if mask is None else mask & given(ADMITTED)
    return Formulas(
        free=attention,
        causal=Attention(score, weight, causal if mask is None else mask & causal),
        admitted=Attention(score, weight, admitted),
        added=Attention(biased, weight, mask if weight.is_softmax else admitted),  # exp(−∞) = 0 admits no pair
    )


class Masked(NamedTuple):
    """The formula of one call, and the tables that its masks bring."""

    attention: Attention
    tables: dict[str, Tensor]


def masked(
    formulas: Formulas,
    pairs: Tensor | None,
    keys: Tensor | None,
    shape: tuple[int, int, int, int],
    appended: int,
    hint: bool,
) -> Masked:
    """The formula under a mask of pairs and a mask of keys, both of which broadcast to the shape of the weights.

    shape:    (batch, heads, queries, keys)
    appended: how many more keys come after those; they are admitted, and nothing is added to them
    hint:     whether j ≤ i stands for the masks
    """
    if hint:
        return Masked(formulas.causal, {})
    refused, added = _refused(pairs, keys), _added(pairs, keys)
    if added is None and refused is None:
        return Masked(formulas.free, {})
    if added is None:
        assert refused is not None
        return Masked(formulas.admitted, {ADMITTED: _wider(~refused, appended)})
    if ADMITTED not in formulas.added.ranks:
        added = added if refused is None else added.masked_fill(refused, -torch.inf)
        return Masked(formulas.added, {ADDED: _wider(added.expand(shape), appended)})
    refused = added == -torch.inf if refused is None else refused | (added == -torch.inf)
    finite = added.masked_fill(refused, 0.0).expand(shape)
    tables = {ADDED: _wider(finite, appended), ADMITTED: _wider(~refused, appended)}
    return Masked(formulas.added, tables)


def _wider(mask: Tensor, appended: int) -> Tensor:
    """With columns that admit a pair: True, or 0."""
    return F.pad(mask, (0, appended), value=float(mask.dtype == torch.bool)) if appended else mask


def _refused(pairs: Tensor | None, keys: Tensor | None) -> Tensor | None:
    """True where one of the masks of truths is."""
    truths = [mask for mask in (pairs, keys) if mask is not None and mask.dtype == torch.bool]
    return None if not truths else truths[0] if len(truths) == 1 else truths[0] | truths[1]


def _added(pairs: Tensor | None, keys: Tensor | None) -> Tensor | None:
    """The sum of the masks of numbers."""
    numbers = [mask for mask in (pairs, keys) if mask is not None and mask.dtype != torch.bool]
    return None if not numbers else numbers[0] if len(numbers) == 1 else numbers[0] + numbers[1]


# -- checks ------------------------------------------------------------------------------------------------------


def of_pairs(mask: Tensor | None, batch: int, heads: int, queries: int, keys: int) -> Tensor | None:
    """attn_mask as it broadcasts to (batch, heads, queries, keys)."""
    if mask is None:
        return None
    _check_kind("attn_mask", mask)
    shape, each = tuple(mask.shape), (queries, keys)
    if shape == each:
        return mask
    if shape == (batch * heads, *each):
        return mask.reshape(batch, heads, *each)
    raise CallError(
        f"attn_mask: (queries, keys) {each}, or (batch · heads, queries, keys) {(batch * heads, *each)}; "
        f"got shape {shape}; {_advice(shape, batch, heads, queries, keys)}"
    )


def _advice(shape: tuple[int, ...], batch: int, heads: int, queries: int, keys: int) -> str:
    if len(shape) == 4:
        return "join batch and heads with mask.expand(batch, heads, -1, -1).flatten(0, 1)"
    if shape == (batch, queries, keys):
        return f"repeat it for each head with mask.repeat_interleave({heads}, 0)"
    if shape == (batch, keys):
        return "what says which keys are padding goes in as key_padding_mask"
    if shape[-2:] == (keys, queries):
        return "transpose its last two axes"
    return "make one row for each query and one column for each key"


def of_keys(mask: Tensor | None, batched: bool, shape: tuple[int, int, int, int]) -> Tensor | None:
    """key_padding_mask as it broadcasts to (batch, heads, queries, keys)."""
    if mask is None:
        return None
    batch, keys = shape[0], shape[3]
    _check_kind("key_padding_mask", mask)
    expected = (batch, keys) if batched else (keys,)
    if tuple(mask.shape) != expected:
        named = "(batch, keys)" if batched else "(keys) for queries without a batch,"
        advice = "transpose it" if tuple(mask.shape) == expected[::-1] else "what says it of pairs goes in as attn_mask"
        raise CallError(f"key_padding_mask: {named} {expected}; got shape {tuple(mask.shape)}; {advice}")
    return mask.reshape(batch, 1, 1, keys)


def _check_kind(name: str, mask: Tensor) -> None:
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise KindError(
            f"{name}: truths, True where a pair is not admitted, or real numbers to add to the score; "
            f"got dtype {mask.dtype}; convert it, for example with .bool()"
        )


# -- nested tensors: sequences of unequal lengths ------------------------------------------------------------------


def beyond(nested: Tensor) -> Tensor:
    """(batch, longest): True after the end of each sequence."""
    lengths = torch.tensor([len(row) for row in nested.unbind()], device=nested.device)
    return torch.arange(int(lengths.max()), device=nested.device) >= lengths[:, None]


def check_nested(batch_first: bool, query: Tensor, key: Tensor, value: Tensor, masks: tuple[object, ...]) -> None:
    arrays = {"query": query, "key": key, "value": value}
    plain = [name for name, array in arrays.items() if not array.is_nested]
    if plain:
        raise KindError(f"nested: query, key and value all are, or none; got {', '.join(plain)} as plain; convert it")
    if not batch_first:
        raise CallError("batch_first: True for nested tensors, whose first axis is the batch; got False")
    if any(mask is not None for mask in masks):
        raise CallError(
            "nested: a nested tensor carries its own lengths and goes without a mask; got one; "
            "write it in the formula, as in Attention(mask=causal), or pad with to_padded_tensor"
        )
    lengths = [[len(row) for row in array.unbind()] for array in (key, value)]
    if lengths[0] != lengths[1] or len(query.unbind()) != len(lengths[0]):
        raise CallError(
            f"nested: one value for each key, and one batch for all; got {len(query.unbind())} sequences of queries, "
            f"keys of the lengths {lengths[0]} and values of {lengths[1]}"
        )
