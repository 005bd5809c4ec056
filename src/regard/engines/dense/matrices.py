"""The algebra of whole matrices: a reading of every pair at once, with its vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._arrays import Library
from ...algebra.nodes import Pair
from ..call import Call
from ..reading import Reading, indices
from ..select import keep, mix, mix_back
from .pairs import PAIRS


@dataclass(frozen=True, kw_only=True)
class Matrices(Reading):
    """A formula read as whole matrices."""

    q: Any
    k: Any
    v: Any | None

    @classmethod
    def of(cls, call: Call) -> Matrices:
        xp = call.xp
        dtype, group = call.working_dtype, call.group
        q, k = xp.astype(call.q, dtype, copy=False), _repeated(xp, call.k, group, dtype)
        v = None if call.v is None else _repeated(xp, call.v, group, dtype)
        return cls(call, *indices(call), q=q, k=k, v=v)

    def where(self, live: Any | None) -> Matrices:
        """The same reading with leaves that count only where `live` holds; vectors that no one reads are 0."""
        if live is None:
            return self
        xp, rows, columns = self.xp, self.xp.any(live, axis=3)[..., None], self.xp.any(live, axis=2)[..., None]
        q, k = keep(xp, rows, self.q), keep(xp, columns, self.k)
        v = None if self.v is None else keep(xp, columns, self.v)
        return Matrices(self.call, self.symbols, self.shape, live=live, q=q, k=k, v=v)

    def pair(self, pair: Pair) -> Any:
        return keep(self.xp, self.live, PAIRS[pair.word].forward(self, pair))

    def mix(self, g: Any, values: Any) -> Any:
        """Σ_j g_ij x_j over the pairs that count."""
        return mix(self.xp, g, values, self.live)

    def mix_back(self, g: Any, values: Any) -> Any:
        """Σ_i g_ij x_i over the pairs that count."""
        return mix_back(self.xp, g, values, self.live)


def _repeated(xp: Library, array: Any, group: int, dtype: Any) -> Any:
    """Keys or values with one head for each query head: head h reads head h // group."""
    array = xp.astype(array, dtype, copy=False)
    return array if group == 1 else xp.repeat(array, group, axis=1)
