"""The algebra of whole matrices, or of a part of them: a reading of every pair at once, with its vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...algebra.nodes import Pair
from ..call import Call
from ..reading import WHOLE, Part, Reading, indices
from ..select import keep, mix, mix_back
from .pairs import PAIRS


@dataclass(frozen=True, kw_only=True)
class Matrices(Reading):
    """A formula read as whole matrices."""

    q: Any
    k: Any
    v: Any | None
    part: tuple[Part, Part, Part, Part] = (WHOLE, WHOLE, WHOLE, WHOLE)  # of batches, heads, rows and columns

    @classmethod
    def of(
        cls, call: Call, *, batch: Part = WHOLE, heads: Part = WHOLE, rows: Part = WHOLE, columns: Part = WHOLE
    ) -> Matrices:
        """The matrices of a call, or of chosen batches, heads, rows and columns of it."""
        symbols, shape = indices(call, rows=rows, columns=columns, heads=heads, batch=batch)
        part = (batch, heads, rows, columns)
        q = _vectors(call, call.q, batch, heads, rows)
        k = _vectors(call, call.k, batch, heads, columns)
        v = None if call.v is None else _vectors(call, call.v, batch, heads, columns)
        return cls(call, symbols, shape, q=q, k=k, v=v, part=part)

    def given(self, name: str) -> Any:
        table = self.call.tables[name]
        for axis, part in enumerate(self.part):
            if part is not WHOLE and table.shape[axis] > 1:
                table = table[(WHOLE,) * axis + (part,)]
        return table

    def where(self, live: Any | None) -> Matrices:
        """The same reading with leaves that count only where `live` holds; vectors that no one reads are 0."""
        if live is None:
            return self
        xp, rows, columns = self.xp, self.xp.any(live, axis=3)[..., None], self.xp.any(live, axis=2)[..., None]
        q, k = keep(xp, rows, self.q), keep(xp, columns, self.k)
        v = None if self.v is None else keep(xp, columns, self.v)
        return Matrices(self.call, self.symbols, self.shape, live=live, q=q, k=k, v=v, part=self.part)

    def pair(self, pair: Pair) -> Any:
        return keep(self.xp, self.live, PAIRS[pair.word].forward(self, pair))

    def mix(self, g: Any, values: Any) -> Any:
        """Σ_j g_ij x_j over the pairs that count."""
        return mix(self.xp, g, values, self.live)

    def mix_back(self, g: Any, values: Any) -> Any:
        """Σ_i g_ij x_i over the pairs that count."""
        return mix_back(self.xp, g, values, self.live)


def _vectors(call: Call, array: Any, batch: Part, heads: Part, places: Part) -> Any:
    """Chosen vectors (b, h, places, width) in the working dtype: query head h reads key head h // group."""
    xp = call.xp
    group = call.heads // max(int(array.shape[1]), 1)
    if isinstance(heads, slice) and heads.start is not None and heads.stop == heads.start + 1:
        heads = slice(heads.start // group, heads.start // group + 1)  # one head is a view
    elif group > 1 or not isinstance(heads, slice):
        heads = (xp.arange(call.heads, device=xp.device(array)) // group)[heads]
    chosen = array[batch][:, heads][:, :, places]
    return xp.astype(chosen, call.working_dtype, copy=False)
