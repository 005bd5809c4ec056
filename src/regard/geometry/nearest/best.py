"""The k best of each query so far: larger first, and what is equal in the order of the corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..._arrays import Library

NOWHERE = 2**62  # the index of an empty place: behind every real one


@dataclass
class Best:
    """Values and indices, (queries, k); an empty place is −∞, nowhere."""

    xp: Library
    values: Any
    indices: Any

    @classmethod
    def nothing(cls, xp: Library, queries: int, k: int, device: Any) -> Best:
        """All places empty."""
        values = xp.full((queries, k), -math.inf, dtype=xp.float64, device=device)
        return cls(xp, values, xp.full((queries, k), NOWHERE, dtype=xp.int64, device=device))

    @property
    def threshold(self) -> Any:
        """What a newcomer must exceed, for each query."""
        return self.values[:, -1]

    def add(self, rows: Any, indices: Any, values: Any) -> None:
        """Newcomers: values[t] at indices[t] for the query rows[t]. Each query keeps its k best."""
        xp, k = self.xp, self.values.shape[1]
        met = xp.unique_values(rows)  # the queries that meet a newcomer
        places = xp.arange(met.shape[0], dtype=xp.int64, device=xp.device(self.values))
        rows = xp.concat([xp.repeat(places, k), xp.searchsorted(met, rows)])
        values = xp.concat([xp.reshape(self.values[met], (-1,)), values])
        indices = xp.concat([xp.reshape(self.indices[met], (-1,)), indices])
        order = xp.argsort(indices)
        for key in (-values, rows):  # stable sorts, the last one weighs most
            order = order[xp.argsort(key[order], stable=True)]
        rows = rows[order]
        first = xp.searchsorted(rows, places)
        within = xp.arange(rows.shape[0], dtype=xp.int64, device=xp.device(rows)) - first[rows]
        kept = order[within < k]
        self.values[met], self.indices[met] = (xp.reshape(part[kept], (-1, k)) for part in (values, indices))

    def found(self) -> tuple[Any, Any]:
        """Values and indices; −1 where a place is empty."""
        xp = self.xp
        return self.values, xp.where(self.indices == NOWHERE, xp.full_like(self.indices, -1), self.indices)
