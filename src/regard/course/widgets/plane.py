"""A vector in the plane that looks around, and the mean of the values that it brings back.

    q = x Wq        k_j = x_j Wk        y = Σ_j w_j v_j

x is what the hand moves. The weights are those of one query against all keys; with weights that share one total, y
never leaves the hull of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import checks
from .base import Hand, place, plain
from .convex import hull

ROOM = 1.25  # beyond what lies farthest out


class Plane(Hand):
    """Drag a vector, see what it reads, and where the output lies.

    points:    x_j, (n, 2): what is looked at
    query:     where the vector begins; halfway to the first point unless said otherwise
    labels:    a text for each point
    attention: softmax(q·k / √d) unless said otherwise; tables: what its formula reads, by name
    values:    v_j, (n, 2); the points themselves unless said otherwise
    Wq, Wk:    2 × 2, so that the same vector is one thing as a query and another as a key

    at {query: [x, y]}; found {q: [2], scores: [n], weights: [n], y: [2]}
    """

    def __init__(
        self,
        points: Any,
        *,
        query: Any = None,
        labels: Any = None,
        attention: Any = None,
        values: Any = None,
        Wq: Any = None,
        Wk: Any = None,
        tables: Any = None,
    ) -> None:
        x = checks.vectors(points, "points", width=2)
        self._formula = checks.formula(attention)
        self._tables = checks.tables_for(tables, self._formula)
        self._values = x if values is None else checks.vectors(values, "values", width=2, rows=len(x))
        self._Wq = np.eye(2) if Wq is None else checks.square(Wq, "Wq")
        self._keys = x if Wk is None else x @ checks.square(Wk, "Wk")
        begin = [float(one) for one in 0.6 * x[0]] if query is None else checks.point(query, "query")
        self._reach = ROOM * _farthest(x, self._keys, self._values, np.asarray(begin))
        super().__init__(
            {
                "points": plain(x),
                "labels": checks.names(labels, "labels", len(x)),
                "keys": plain(self._keys),
                "values": plain(self._values),
                "hull": plain(hull(self._values)),
                "reach": self._reach,
                "projected": Wq is not None or Wk is not None,
                "apart": values is not None,
                "formula": self._formula.mathml(),
            },
            {"query": begin},
        )

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """The vector, within what is seen."""
        query = place(at.get("query"), self._reach)
        return None if query is None else {"query": query}

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """The query, its scores, its weights and the output."""
        q = np.asarray([at["query"]]) @ self._Wq
        steps = self._formula.trace(q, self._keys, self._values, **self._tables)
        found = {"scores": steps.scores, "weights": steps.weights, "y": steps.y}
        return {"q": plain(q[0]), **{name: plain(value[0]) for name, value in found.items()}}


def _farthest(*places: Any) -> float:
    """The largest coordinate there is, of either sign."""
    return max(float(np.max(np.abs(one))) for one in places) or 1.0
