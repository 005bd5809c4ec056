"""Masks that a caller joins to that of a formula: how long each text is, which pairs are admitted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .._arrays import is_array
from ..algebra.errors import CallError, FormulaError, KindError
from ..algebra.masks import causal, given, padding
from ..algebra.symbols import b, i, table
from ..attention import Attention

LENGTHS = "text_lengths"
MASK = "text_mask"


@lru_cache(maxsize=1024)
def variants(attention: Attention, *, memory: bool = False) -> dict[str, Attention]:
    """The formula with the caller's masks joined, by the names of those that are given.

    In a causal formula no row reads what stands behind it: filling needs no mask. Where rows share a weight, filling
    asks for none of it.

    memory: whether the keys are of a memory, of which lengths then tell, and not of the rows themselves
    """
    shared = attention.weight.over is not None and attention.weight.over.node.name in ("i", "b")
    filling = padding(LENGTHS) & (i < table(LENGTHS)[b]) if shared and not memory else padding(LENGTHS)
    lengths = attention if attention.laws.causal else _joined(attention, filling)
    return {
        "": attention,
        "lengths": lengths,
        "mask": _joined(attention, given(MASK)),
        "lengths mask": _joined(lengths, given(MASK)),
    }


def _joined(attention: Attention, mask: Any) -> Attention:
    own = attention.mask
    return Attention(attention.score, attention.weight, mask if own is None else own & mask)


def made_causal(attention: Attention) -> Attention:
    """The formula of a decoder: causal if it has no mask; one that reads what comes after is refused."""
    if attention.mask is None:
        attention = Attention(attention.score, attention.weight, causal)
    if not attention.laws.causal:
        over = attention.weight.over
        shared = over is not None and over.node.name in ("i", "b")
        why = f"whose weights are shared over {over!r}" if shared else "which may read what comes after"
        advice = "share them over j" if shared else "write mask=causal & …"
        raise FormulaError(f"attention: a decoder reads what came before, j <= i; got {attention!r}, {why}; {advice}")
    return attention


def uncachable(attention: Attention) -> str | None:
    """Why the keys and values of a formula cannot be kept from step to step; None where they can."""
    if not attention.laws.causal:
        return "a row may read what comes after it, and would change when that comes; join j <= i to its mask"
    if attention.uses("n"):
        return "it reads n, which grows with every step; write i + 1 where the keys up to the query are meant"
    return None


# -- the caller's arrays ---------------------------------------------------------------------------------------


def read_masks(
    lengths: Any, mask: Any, x: Tensor, queries: int, keys: int, argument: str = "lengths", of: str = "x"
) -> tuple[str, dict[str, Tensor]]:
    """The names of the masks that are given, as `variants` names them, and their tables. Lengths count rows of x."""
    tables = {}
    if lengths is not None:
        tables[LENGTHS] = read_lengths(lengths, x, argument, of)
    if mask is not None:
        tables[MASK] = _admitted(mask, x.shape[0], queries, keys)
    return " ".join(name for name, given in (("lengths", lengths), ("mask", mask)) if given is not None), tables


def read_lengths(lengths: Any, x: Tensor, argument: str = "lengths", of: str = "x") -> Tensor:
    """Lengths as one integer for each text, from 0 to the number of rows."""
    batch, rows = x.shape[0], x.shape[1]
    counts = _tensor(lengths, argument)
    if counts.is_floating_point() or counts.is_complex() or counts.dtype == torch.bool:
        raise KindError(f"{argument}: integers, how many rows each text has; got dtype {counts.dtype}")
    if tuple(counts.shape) != (batch,):
        raise CallError(f"{argument}: one for each of {batch} texts; got shape {tuple(counts.shape)}")
    if batch and counts.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = int(counts.min()), int(counts.max())
        if low < 0 or high > rows:
            raise CallError(f"{argument}: from 0 to the {rows} rows of {of}; got {low if low < 0 else high}")
    return counts.to(x.device, torch.int64)


def _tensor(lengths: Any, argument: str) -> Tensor:
    try:
        return torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError):  # a text, None among integers, rows of unequal length
        raise KindError(f"{argument}: integers, how many rows each text has; got {lengths!r}") from None


def _admitted(mask: Any, batch: int, queries: int, keys: int) -> Tensor:
    """A mask of pairs that fits, or an error that says which it might be."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        what = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else type(mask).__name__
        raise KindError(f"mask: truths, True where a row reads a key, as a tensor; got {what}; {_instead(mask)}")
    shape = tuple(mask.shape)
    if len(shape) not in (2, 4):
        hint = "; put in the axis of heads: mask[:, None]" if len(shape) == 3 else ""
        raise CallError(f"mask: (rows, keys) or (batch, heads, rows, keys); got shape {shape}{hint}")
    if shape[-2] not in (1, queries) or shape[-1] not in (1, keys) or (len(shape) == 4 and shape[0] not in (1, batch)):
        hint = "; for filling at the end of texts pass lengths=" if shape == (batch, keys) else ""
        raise CallError(f"mask: for {queries} rows and {keys} keys of {batch} texts; got shape {shape}{hint}")
    return mask


def _instead(mask: Any) -> str:
    """What to do with a mask of another kind."""
    if not isinstance(mask, Tensor):
        is_data = isinstance(mask, list | tuple) or is_array(mask)
        return (
            "pass torch.as_tensor(mask)" if is_data else "a formula's own mask belongs into it: Attention(mask=causal)"
        )
    if mask.is_floating_point():
        return "numbers that are added belong into the score, as table(...)"
    return "pass mask.bool() where 1 is read and 0 is not"
