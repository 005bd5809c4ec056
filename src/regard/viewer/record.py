"""What a lens keeps: calls of attention, what stands along their axes, and what could not be captured.

w_ij = ψ(s_ij) / Z_i        q, k and the formula say s_ij; one total for each row says Z_i
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..attention import Attention
from ..parts import Parts


@dataclass(frozen=True)
class Axis:
    """What stands along an axis of queries or keys: tokens of a text, patches of an image, or bare positions.

    labels:  one text for each place, as it is shown; a token's own space before it is kept (" cat")
    special: the places that stand for no text and no patch: [CLS], <s>, padding
    grid:    (rows, columns) of patches, which are the places that are not special, in order; None for text
    """

    name: str
    labels: tuple[str, ...]
    special: frozenset[int] = frozenset()
    grid: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Captured:
    """One call of attention in a model: arrays (batch, heads, positions, width) of one library.

    name:    of the module that called, "encoder.layer.0.attention.self"; a second call of it is "… (2)"
    query, key: the names of the axes along which queries and keys stand, one for each batch item in `Lens.axes`
    scale:   what queries were multiplied by before they were kept, for display alone
    """

    name: str
    formula: Attention
    q: Any
    k: Any
    v: Any | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    start: Any = 0
    query: str = "query"
    key: str = "key"
    heads: tuple[int, ...] | None = None  # which of the model's heads these are, where some were chosen
    known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # totals that were found

    @cached_property
    def parts(self) -> Parts:
        """The call, to be looked at in parts."""
        return self.under(self.formula)

    def under(self, formula: Attention) -> Parts:
        """The same arrays under a formula; tables that it does not read stay out."""
        read = {name: table for name, table in self.tables.items() if name in formula.ranks}
        return formula.parts(self.q, self.k, self.v, start=self.start, **read)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batches, heads, queries, keys."""
        return self.parts.shape


class Seen:
    """A model that was watched: what `capture` gives. Its `layers` were kept, `missing` were not."""

    model: Any
    folder: Any

    @property
    def layers(self) -> list[Captured]:
        """The calls that were kept, in order."""
        raise NotImplementedError

    @property
    def missing(self) -> list[Missing]:
        """Modules and calls that were not kept, and why."""
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        """What to know of the calls that were kept."""
        raise NotImplementedError


@dataclass(frozen=True)
class Missing:
    """A module or call that is not in the lens, and why."""

    name: str
    why: str
