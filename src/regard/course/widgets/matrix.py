"""The weights of each head over a sentence: w_ij, i down, j across."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...algebra.errors import CallError, KindError
from . import checks
from .base import Hand, index, plain


class Matrix(Hand):
    """The matrix over a sentence: point at a word and see what it reads; choose another head and see it change.

    tokens:    the words: a text that is split at its spaces, or a list
    heads:     {name: weights (n, n)}, or {name: (q, k)} with q, k of (n, d), weighed by `attention`
    attention: softmax(q·k / √d) unless said otherwise; tables: what its formula reads, by name
    head, query: what is chosen at first

    at {head: name, query: i}; found {weights: [n], most: j, total: Σ_j w_ij}; given holds all heads' weights, so that
    pointing waits for nobody.
    """

    def __init__(
        self,
        tokens: Any,
        heads: Mapping[str, Any],
        attention: Any = None,
        *,
        tables: Any = None,
        head: str | None = None,
        query: int = 0,
    ) -> None:
        words = tokens.split() if isinstance(tokens, str) else tokens
        if not isinstance(words, list | tuple) or not words or len(words) > checks.MOST:
            raise CallError(f"tokens: 1 to {checks.MOST} words, so that they can be read; got {tokens!r}")
        words = checks.names(list(words), "tokens", len(words))
        formula = checks.formula(attention)
        given = checks.tables_for(tables, formula) if _weighed(heads) else {}
        self._weights = {name: _weights(name, head, len(words), formula, given) for name, head in heads.items()}
        if head is not None and head not in self._weights:
            raise CallError(f"head: one of {', '.join(self._weights)}; got {head!r}")
        begin = {"head": head or next(iter(self._weights)), "query": index(query, len(words)) or 0}
        shown = {name: plain(weights) for name, weights in self._weights.items()}
        super().__init__({"tokens": words, "heads": list(shown), "weights": shown}, begin)

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """A head that there is, and a word of the sentence."""
        head, query = at.get("head"), index(at.get("query"), len(self.given["tokens"]))
        known = isinstance(head, str) and head in self._weights
        return None if query is None or not known else {"head": head, "query": query}

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """The row of the query, in this head."""
        row = self._weights[at["head"]][at["query"]]
        return {"weights": plain(row), "most": int(np.argmax(row)), "total": float(np.sum(row))}


def _weighed(heads: Any) -> bool:
    """Whether a head comes as q and k."""
    if not isinstance(heads, Mapping) or not heads or not all(isinstance(name, str) for name in heads):
        raise KindError(f"heads: a dict of weights, or of (q, k), by the name of the head; got {heads!r}")
    return any(isinstance(head, tuple) for head in heads.values())


def _weights(name: str, head: Any, count: int, formula: Any, tables: dict[str, Any]) -> Any:
    what = f"heads[{name!r}]"
    if isinstance(head, tuple):
        if len(head) != 2:
            raise CallError(f"{what}: q and k, two matrices; got {len(head)}")
        q, k = (
            _rows(checks.vectors(one, f"{what}, {letter}"), what, count) for one, letter in zip(head, "qk", strict=True)
        )
        return np.asarray(formula.weights(q, k, **tables))
    weights = _rows(checks.vectors(head, what), what, count)
    if weights.shape[1] != count:
        raise CallError(f"{what}: {count} × {count} weights, a row and a column for each token; got {weights.shape}")
    return weights


def _rows(array: Any, what: str, count: int) -> Any:
    if len(array) != count:
        raise CallError(f"{what}: {count} rows, one for each token; got {array.shape}")
    return array
