"""How a function takes its matrices, as values: the letters of their axes.

io oi      (in, out) as in x W, or (out, in) as in a Linear
hid ihd    an axis of heads: w[h, i, d], w[i, h, d];  of the output projection hdo, w[h, d, o]
pio        several in one: w[p, i, o] for p = q, k, v;  without p they stand side by side in the columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .problem import Array

FUSED = {"wqkv": "qkv", "wkv": "kv"}


@dataclass(frozen=True)
class Written:
    """The axes of W_Q, W_K, W_V, then those of W_O."""

    inside: str = "io"
    outside: str = "io"
    stacked: bool = False  # several in one have an axis of their own

    @property
    def words(self) -> str:
        """For people: `(in, out)`."""
        said = {"i": "in", "o": "out", "h": "heads", "d": "width"}
        return f"({', '.join(said[axis] for axis in self.inside)})"

    def of(self, role: str, arrays: Mapping[str, Array], heads: int, groups: int) -> Array:
        """One matrix or bias of a problem as the target takes it."""
        if role in FUSED:
            parts = [self._matrix(arrays[f"w{letter}"], self.inside, groups) for letter in FUSED[role]]
            return np.stack(parts) if self.stacked else np.concatenate(parts, axis=self.inside.index("o"))
        count = heads if role in ("wq", "bq", "wo") else groups
        if role[0] == "b":
            return self._bias(role, arrays[role], count)
        return self._matrix(arrays[role], self.outside if role == "wo" else self.inside, count)

    def _matrix(self, matrix: Array, axes: str, heads: int) -> Array:
        rows, columns = matrix.shape
        if "h" not in axes:
            return np.ascontiguousarray(matrix if axes == "io" else matrix.T)
        out = "i" not in axes
        cut = matrix.reshape(heads, -1, columns) if out else matrix.reshape(rows, heads, -1)
        letters = "hdo" if out else "ihd"
        return np.ascontiguousarray(cut.transpose([letters.index(axis) for axis in axes]))

    def _bias(self, role: str, bias: Array, heads: int) -> Array:
        return bias.reshape(heads, -1) if role != "bo" and "h" in self.inside else bias


IN_OUT = Written()
PLAIN = (IN_OUT, Written("oi", "oi"))
IN_HEADS = (
    Written("hid", "hdo"),
    Written("ihd", "hdo"),
    Written("hid", "io"),
    Written("hdi", "ohd"),
    Written("hdi", "oi"),
)


def written(roles: Sequence[str] | frozenset[str], heads_said: bool) -> tuple[Written, ...]:
    """The ways to hand matrices of these roles over, the usual ones first."""
    if set(FUSED) & set(roles):
        return (*PLAIN, Written(stacked=True), Written("oi", "oi", stacked=True))
    return PLAIN if heads_said or "wq" not in roles else (*PLAIN, *IN_HEADS)
