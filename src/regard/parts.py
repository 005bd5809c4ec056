"""Parts of a formula's matrices: chosen batches, heads, rows and columns, without the whole.

    w_ij = ψ(s_ij) / Z_i        for the pairs that are asked for; Z_i is handed in, or found from the whole row

Whoever keeps q, k and one total for each row can look at any part of an N × n matrix at the cost of that part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .algebra.errors import CallError, KindError
from .algebra.expressions import Expression, Mask
from .algebra.formula import Formula
from .engines.call import AXIS, Call
from .engines.dense import Steps, attend_part, scores, value
from .engines.reading import WHOLE

NAMES = ("batch", "heads", "rows", "columns")


class Parts:
    """What `Attention.parts` gives: the formula on fixed arrays, of which each method looks at a part.

    A part is named by batch=, heads=, rows= and columns=: an integer, a slice, or a sequence of integers each; all of
    an axis unless said otherwise. Rows count queries as they are handed in, from 0. What comes back always has the
    axes (batch, heads, rows, columns), in the library of q.
    """

    def __init__(self, call: Call) -> None:
        self.call = call

    @property
    def formula(self) -> Formula:
        """The formula that is looked at."""
        return self.call.formula

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the whole: batches, heads, queries, keys."""
        return self.call.batch, self.call.heads, self.call.queries, self.call.keys

    @property
    def shared(self) -> str | None:
        """The axis along which weights share a total: "columns" for a softmax over keys; None where none is."""
        over = self.formula.weight.over
        return None if over is None else NAMES[AXIS[over.node.name]]

    def scores(self, **part: Any) -> Any:
        """s_ij of the part, whether or not the mask admits a pair."""
        return scores(self.call, **self._read(part))

    def weights(self, totals: Any = None, **part: Any) -> Any:
        """w_ij of the part; exactly 0 where the mask does not admit a pair.

        totals: what `totals` gave for these rows; without, they are found first, from all that they share
        """
        return self.steps(totals, **part).weights

    def totals(self, **part: Any) -> Any:
        """log Z of the rows of a part (Z where ψ is no exponential), without the axis that is shared."""
        if self.shared is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {self.formula.weight!r}")
        chosen = self._read(part)
        if chosen[self.shared] is not WHOLE:
            raise CallError(
                f"totals: sum over all {self.shared}; got {self.shared}={part[self.shared]!r}; leave it out"
            )
        return attend_part(self.call, **chosen).log_total

    def steps(self, totals: Any = None, **part: Any) -> Steps:
        """Every step of the part: score, admitted, psi, total, weights, y."""
        chosen = self._read(part)
        if totals is None and self.shared is not None and chosen[self.shared] is not WHOLE:
            totals = self.totals(**{name: value for name, value in part.items() if name != self.shared})
        elif totals is not None and self.shared is not None:
            self._check_totals(totals, chosen)
        return attend_part(self.call, totals, **chosen)

    def _check_totals(self, totals: Any, chosen: dict[str, Any]) -> None:
        sizes = dict(zip(NAMES, self.shape, strict=True))
        counts = {
            name: len(range(*part.indices(sizes[name]))) if isinstance(part, slice) else int(part.shape[0])
            for name, part in chosen.items()
        }
        expected = tuple(count for name, count in counts.items() if name != self.shared)
        if tuple(totals.shape) != expected:
            raise CallError(f"totals: those of the part, with shape {expected}; got {tuple(totals.shape)}")

    def by_itself(self, **part: Any) -> Steps:
        """Every step of the part as if nothing stood beside it: its totals sum over the part alone."""
        return attend_part(self.call, **self._read(part))

    def value(self, expression: Expression | Mask, **part: Any) -> Any:
        """What an expression or a mask is for the pairs of a part, with size 1 along axes that it does not see."""
        return value(self.call, expression.node, **self._read(part))

    def _read(self, part: dict[str, Any]) -> dict[str, Any]:
        for name in part:
            if name not in NAMES:
                raise CallError(f"part: named by {', '.join(NAMES)}; got {name}=")
        sizes = zip(NAMES, self.shape, strict=True)
        return {name: self._axis(name, part.get(name, WHOLE), size) for name, size in sizes}

    def _axis(self, name: str, part: Any, size: int) -> Any:
        """A slice of step 1, or an array of integers, inside of its axis."""
        if isinstance(part, slice):
            first, last, step = part.indices(size)
            if step == 1:
                return WHOLE if (first, last) == (0, size) else slice(first, max(first, last))
            part = range(first, last, step)
        elif type(part) is int:
            if 0 <= part < size:
                return WHOLE if size == 1 else slice(part, part + 1)
            part = [part]
        xp = self.call.xp
        places = np.asarray(part)
        places = places.astype(np.int64) if places.size == 0 else places
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise KindError(f"{name}: an integer, a slice, or a sequence of integers; got {part!r}")
        if places.size and not (places.min() >= 0 and places.max() < size):
            raise CallError(f"{name}: from 0 to {size - 1}; got {places.min()} to {places.max()}")
        return xp.asarray(places.astype(np.int64), device=xp.device(self.call.q))
