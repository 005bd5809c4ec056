"""One call of transformers' attention interface: what it asks for, and where its queries stand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from ..algebra.errors import CallError
from ..algebra.masks import causal
from .asked import MASK, Asked, read_table, scale_of, split


@dataclass(frozen=True)
class Place:
    """Where queries and keys begin in the text; read only when a formula needs it, since it may lie on a device."""

    query: Any  # an integer, or a tensor whose first number it is
    key: Any

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Place:
        """The place of a mask that transformers makes from these; a static cache counts on in its own tensor."""
        query = options["q_offset"] if "q_offset" in options else options["cache_position"]
        return cls(_as_now(query), _as_now(options.get("kv_offset", 0)))

    @property
    def first(self) -> int:
        """The first query, counted on the axis of keys."""
        query = self.query.flatten()[0] if isinstance(self.query, torch.Tensor) else self.query
        return int(query) - int(self.key)


def _as_now(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


@dataclass
class Call:
    """The arguments of one call. `query` (B, H, N, D), `key` (B, G, n, D), `value` (B, G, n, E)."""

    module: torch.nn.Module
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    attention_mask: Any
    options: dict[str, Any]
    left_out: Collection[tuple[int, int]]  # lengths for which transformers left out a causal mask
    tables: dict[str, Any] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return int(self.query.shape[2])

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return int(self.key.shape[2])

    @cached_property
    def is_causal(self) -> bool:
        """Whether a call without a mask means j ≤ i: where such a mask was left out, and the module says so."""
        if self.attention_mask is not None or self.queries == 1 or not self._says_causal:
            return False
        if (self.queries, self.keys) in self.left_out:
            return True
        if any(queries == self.queries for queries, _ in self.left_out):
            raise CallError(
                f"attention_mask: {type(self.module).__name__} has {self.keys} keys for {self.queries} queries, and a "
                "causal mask was left out for other lengths, so that the mask is not known; pass a mask of four axes"
            )
        return False

    @property
    def _says_causal(self) -> bool:
        said = self.options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if said is None else said)

    @property
    def dropout(self) -> float:
        """The share of weights to drop: none outside of training."""
        return float(self.options.get("dropout") or 0.0) if self.module.training else 0.0

    def asked(self, first: int | None = 0) -> Asked:
        """What the call asks for, with its arrays in `tables`; queries stand from `first` on."""
        take, tables = self.options.get, self.tables
        truths, added = self.mask_parts()
        mask = causal if self.is_causal else None
        if truths is not None:
            mask, tables["attention_mask"] = MASK, truths
        if first:
            tables["first"] = first
        sink, bias = take("s_aux"), take("position_bias")
        if sink is not None:
            tables["sink"] = sink.reshape(-1)
        return Asked(
            scale=scale_of(take("scaling"), self.query.shape[-1], tables),
            softcap=take("softcap"),
            mask=mask,
            sink=sink is not None,
            position_bias=None if bias is None else self._axes("position_bias", bias),
            added=None if added is None else self._axes("added", added),
            shifted=bool(first),
        )

    def first_query(self) -> int | None:
        """Where the first query stands on the axis of keys; None where the call does not tell."""
        place = getattr(self.attention_mask, "_regard_place", None)
        if place is not None:
            return int(place.first)
        if self.is_causal or self.queries == self.keys:
            return 0
        left_out = self.attention_mask is None and self._says_causal and (self.queries, self.keys) in self.left_out
        return self.keys - 1 if left_out else None  # a step of decoding, whose keys are all there are

    @property
    def is_whole_text(self) -> bool:
        """Whether the keys are those of the queries' own text, and no others: no cache, no padding."""
        return self.attention_mask is None and self.queries == self.keys

    def mask_parts(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The mask as truths, and as numbers to add; as wide as the keys."""
        mask = self.attention_mask
        if mask is None:
            return None, None
        if not isinstance(mask, torch.Tensor):
            raise CallError(
                f"attention_mask: a tensor of truths or numbers, or None; got {type(mask).__name__}, which belongs to "
                "another attention; let the model make its mask under regard.hf.use"
            )
        truths, added = split(mask)
        return self._as_wide_as_keys(truths), self._as_wide_as_keys(added)

    def _as_wide_as_keys(self, part: torch.Tensor | None) -> torch.Tensor | None:
        return part if part is None or part.shape[-1] <= self.keys else part[..., : self.keys]

    def _axes(self, name: str, numbers: torch.Tensor) -> str:
        return read_table(name, numbers, self.query, self.keys, self.tables)
