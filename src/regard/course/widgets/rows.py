"""One query against all keys, number by number.

q_i ∘ k_j  →  s_ij  →  w_ij  →  y_i = Σ_j w_ij v_j
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algebra.errors import CallError
from ...algebra.symbols import dot, sqdist
from . import checks
from .base import Hand, index, plain

WIDEST = 16  # numbers of a vector that still can be read


class Rows(Hand):
    """Choose a query; see its products with every key, its scores, its weights, and the row that comes out.

    q, k, v:   (n, d), (m, d), (m, e); v is k unless said otherwise
    labels:    a text for each key; queries: a text for each query, that of the keys where there are as many
    attention: softmax(q·k / √d) unless said otherwise; tables: what its formula reads, by name
    row:       the query that is chosen at first

    at {row: i}; found {products: [m][d], scores: [m], weights: [m], admitted: [m], y: [e]}; given holds the same for
    every row, so that choosing waits for nobody.
    """

    def __init__(
        self,
        q: Any,
        k: Any,
        v: Any = None,
        labels: Any = None,
        attention: Any = None,
        *,
        queries: Any = None,
        tables: Any = None,
        row: int = 0,
    ) -> None:
        q, k = checks.vectors(q, "q"), checks.vectors(k, "k")
        if q.shape[1] != k.shape[1]:
            raise CallError(f"q, k: vectors of one width; got {q.shape[1]} and {k.shape[1]}")
        v = k if v is None else checks.vectors(v, "v", rows=len(k))
        for name, array in {"q": q, "k": k, "v": v}.items():
            if array.shape[1] > WIDEST:
                raise CallError(f"{name}: up to {WIDEST} columns, so that they can be read; got {array.shape}")
        formula = checks.formula(attention)
        keys = checks.names(labels, "labels", len(k))
        asked = keys if queries is None and len(q) == len(k) else checks.names(queries, "queries", len(q))
        self._all = _steps(formula, checks.tables_for(tables, formula), q, k, v)
        begin = {"row": index(row, len(q)) or 0}
        given = {"q": plain(q), "k": plain(k), "v": plain(v), "labels": keys, "queries": asked}
        super().__init__({**given, **self._all, "each": _each(formula), "formula": formula.mathml()}, begin)

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """The row, within those that there are."""
        row = index(at.get("row"), len(self._all["y"]))
        return None if row is None else {"row": row}

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """Every step of this row."""
        return {name: rows[at["row"]] for name, rows in self._all.items()}


def _each(formula: Any) -> str:
    """What a column of two vectors adds to their score: "product", "difference", or "" where it is neither."""
    if formula.score.node.has(dot.node):
        return "product"
    return "difference" if formula.score.node.has(sqdist.node) else ""


def _steps(formula: Any, tables: dict[str, Any], q: Any, k: Any, v: Any) -> dict[str, Any]:
    """Each step for all rows: the products [n][m][d], or squared differences, and what the formula makes of them."""
    found = formula.trace(q, k, v, **tables)
    pairs = q[:, None, :], k[None, :, :]
    products = (pairs[0] - pairs[1]) ** 2 if _each(formula) == "difference" else pairs[0] * pairs[1]
    mask = np.ones((len(q), len(k)), dtype=bool) if formula.mask is None else np.asarray(found.mask)
    steps = {"products": products, "scores": found.scores, "weights": found.weights, "y": found.y}
    return {**{name: plain(value) for name, value in steps.items()}, "admitted": plain(mask)}
