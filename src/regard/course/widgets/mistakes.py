"""The classic mistakes, on and off: what was meant, what comes out, and the difference.

wrong = mistakes_of(attention)[name]        wrong.weights(q, k) − attention.weights(q, k)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algebra.errors import CallError
from ...algebra.mistakes import MISTAKES, mistakes_of
from . import checks
from .base import Hand, index, plain

SAME = 1e-12  # weights that differ by less do so by rounding


class Mistakes(Hand):
    """A switch for every classic mistake that a formula can be written with.

    attention: the right one; softmax(q·k / √d) under a causal mask shows the most
    q, k:      (n, d), or (heads, n, d) where a mistake may mix the heads
    tokens:    a text for each row
    tables:    what the formula reads, by name
    head:      which head is shown;  mistake: the one that is on at first, "" for none

    at {mistake: name, or ""}; found {weights, difference: [n][m], sums: [n], largest: of the difference}
    given.wrong holds the same for each, so that a switch waits for nobody.
    """

    def __init__(
        self,
        attention: Any,
        q: Any,
        k: Any,
        tokens: Any = None,
        *,
        tables: Any = None,
        head: int = 0,
        mistake: str = "",
    ) -> None:
        formula = checks.formula(attention)
        q, k = _heads(q, "q"), _heads(k, "k")
        if len(q) != len(k) or q.shape[2] != k.shape[2]:
            raise CallError(f"q, k: as many heads and one width; got {q.shape} and {k.shape}")
        shown, given = index(head, len(q)) or 0, checks.tables_for(tables, formula)
        right = _weights(formula, q, k, given)[shown]
        self._wrong = {
            name: _compared(right, _weights(wrong, q, k, given)[shown], wrong)
            for name, wrong in mistakes_of(formula).items()
        }
        if mistake and mistake not in self._wrong:
            raise CallError(f"mistake: one that the formula can make, {', '.join(self._wrong)}; got {mistake!r}")
        self._right = _compared(right, right, formula)
        said = {one.name: {"does": one.does, "leads_to": one.leads_to} for one in MISTAKES}
        names = checks.names(tokens, "tokens", k.shape[1])
        queries = names[len(names) - q.shape[1] :] if q.shape[1] <= len(names) else checks.names(None, "", q.shape[1])
        wrong = [{"name": name, **said[name], **found} for name, found in self._wrong.items()]
        super().__init__(
            {"tokens": names, "queries": queries, "right": self._right, "wrong": wrong}, {"mistake": mistake}
        )

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """A mistake that this formula can make, or none."""
        name = at.get("mistake")
        return {"mistake": name} if isinstance(name, str) and (not name or name in self._wrong) else None

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """The weights as they come out, beside those that were meant."""
        found = self._wrong[at["mistake"]] if at["mistake"] else self._right
        return {name: found[name] for name in ("weights", "difference", "sums", "largest")}


def _heads(value: Any, name: str) -> Any:
    """(heads, rows, width)."""
    array = checks.numbers(value, name)
    if array.ndim not in (2, 3) or not array.size or array.shape[-2] > checks.MOST:
        raise CallError(f"{name}: (rows, width) or (heads, rows, width), up to {checks.MOST} rows; got {array.shape}")
    return array if array.ndim == 3 else array[None]


def _weights(formula: Any, q: Any, k: Any, tables: dict[str, Any]) -> Any:
    """(heads, n, m): the heads as axis −3, in a batch of one."""
    used = {name: tables[name] for name in formula.ranks}
    return np.asarray(formula.weights(q[None], k[None], **used))[0]


def _compared(right: Any, wrong: Any, formula: Any) -> dict[str, Any]:
    difference = wrong - right
    largest = float(np.max(np.abs(difference)))
    return {
        "weights": plain(wrong),
        "difference": plain(difference),
        "sums": plain(wrong.sum(-1)),
        "largest": largest if largest > SAME else 0.0,
        "formula": formula.mathml(),
    }
