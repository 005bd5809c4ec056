"""What if: another formula on the same q and k, and how far its weights and output are from the layer's own.

change of a row       ½ Σ_j |w'_ij − w_ij|        0: the same weights; 1: other keys altogether
change of the output  ‖y' − y‖ / ‖y‖
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.errors import CallError, FormulaError, KindError, ParseError, RegardError
from ...algebra.expressions import Expression
from ...algebra.mistakes import MISTAKES, mistakes_of
from ...attention import Attention, parse
from ..arrays import numpy_of
from ..record import Captured
from ..work import Stop
from .reasons import finite
from .sliders import offered, with_changes
from .streaming import blocks, sample

if TYPE_CHECKING:
    from ..lenses import Lens

LONGEST = 2000  # characters of a formula
MOST_CHANGED = 5  # rows that are told


def what_if(
    lens: Lens, layer: int, head: int, batch: int, formula_text: str | None, stop: Stop,
    changes: Mapping[str, Any] | str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A formula, read and tried on a layer: its text and equation, what can be turned in it, and what it changes.

    formula_text: the layer's own unless said otherwise
    changes:      {"temperature": 2, "window": 8, "mistake": "no mask"}, or that as JSON, made in the formula then
    """
    captured = lens.layers[layer]
    own = captured.formula
    answer: dict[str, Any] = {
        "ok": False, "text": formula_text, "mathml": None, "error": None, "at": None, "own": repr(own),
        "mistakes": told_mistakes(own), "sliders": [], "change": None,
    }  # fmt: skip
    try:
        base = own if formula_text is None else read_formula(formula_text)
        asked = _checked(changes)
        formula = with_changes(base, asked)
        _check_tables(captured, formula)
        answer |= {"text": repr(formula), "mathml": formula.mathml()}
        answer["sliders"] = offered(base, captured.shape[3], asked)
        answer["change"] = _change(captured, formula, batch, head, stop)
    except ParseError as problem:
        answer |= {"error": problem.problem, "at": problem.column + _indent(formula_text)}
    except _MissingTableError as problem:
        at = re.search(rf"[\"']{problem.table}[\"']", formula_text or "")
        answer |= {"error": str(problem), "at": at.start() if at else None}
    except RegardError as problem:
        answer |= {"error": str(problem)}
    answer["ok"] = answer["error"] is None
    return answer


def changed(formula_text: str, changes: Mapping[str, Any]) -> str:
    """The text of a formula with a mistake made in it and its sliders turned."""
    return repr(with_changes(read_formula(formula_text), _checked(changes)))


def told_mistakes(formula: Attention) -> list[dict[str, str]]:
    """The classic mistakes that a formula can be written with."""
    wrong = mistakes_of(formula)
    return [
        {"name": one.name, "does": one.does, "leadsTo": one.leads_to, "formula": repr(wrong[one.name])}
        for one in MISTAKES
        if one.name in wrong
    ]


# -- reading ---------------------------------------------------------------------------------------------------


class _MissingTableError(CallError):
    """A formula reads a table that the layer does not have."""

    def __init__(self, table: str, known: list[str]) -> None:
        super().__init__(
            f'table("{table}"): a table of this layer, {", ".join(known) or "which has none"}; got {table}; '
            "write numbers in its place"
        )
        self.table = table


def read_formula(text: str) -> Attention:
    """A whole formula from its text; an expression alone is no formula yet."""
    if not isinstance(text, str) or len(text) > LONGEST:
        got = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise FormulaError(f"formula: a text of at most {LONGEST} characters; got {got}; write it shorter")
    value = parse(text)
    if not isinstance(value, Attention):
        advice = f"; write softmax({value!r})" if isinstance(value, Expression) else ""
        kind = type(value).__name__.lower()
        raise FormulaError(
            f"formula: a whole attention, as in softmax(dot / sqrt(d), mask=j <= i); got the {kind} {value!r}{advice}"
        )
    return value


def _indent(text: str | None) -> int:
    """How many spaces stand before the text, which the parser does not count."""
    return 0 if text is None else len(text) - len(text.lstrip())


def _checked(changes: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """The changes by name; a page sends them as JSON."""
    found: Any = changes
    if isinstance(changes, str):
        try:
            found = json.loads(changes[:LONGEST])
        except (ValueError, RecursionError):
            found = changes
    if found is not None and not isinstance(found, Mapping):
        raise KindError(f'changes: names and values, as in {{"temperature": 2}}; got {str(found)[:40]!r}')
    return found or {}


def _check_tables(captured: Captured, formula: Attention) -> None:
    for name in formula.ranks:
        if name not in captured.tables:
            raise _MissingTableError(name, sorted(captured.tables))


# -- what it changes -------------------------------------------------------------------------------------------


def _change(captured: Captured, formula: Attention, batch: int, head: int, stop: Stop) -> dict[str, Any]:
    """How far weights and output are from the layer's own: of all rows, or of an even sample of them."""
    _, _, queries, keys = captured.shape
    rows = sample(queries, keys)
    readings = [captured.parts, captured.under(formula)]
    found: list[np.ndarray[Any, Any]] = []
    apart, size = 0.0, 0.0
    for _, both in blocks(captured, readings, batch, range(head, head + 1), rows, stop):
        before, after = (numpy_of(steps.weights)[0, 0].astype(np.float64) for steps in both)
        found.append(0.5 * np.abs(after - before).sum(-1))
        if captured.v is not None:
            before, after = (numpy_of(steps.y).astype(np.float64) for steps in both)
            apart, size = apart + float(((after - before) ** 2).sum()), size + float((before**2).sum())
    moved = np.concatenate(found) if found else np.zeros(0)
    most = np.argsort(-np.nan_to_num(moved), kind="stable")[:MOST_CHANGED]
    return {
        "weights": finite(moved.mean()) if len(rows) else None,
        "output": finite(np.sqrt(apart / size)) if size > 0 else None,
        "rows": [{"row": int(rows[place]), "change": finite(moved[place])} for place in most],
        "exact": len(rows) == queries,
    }
