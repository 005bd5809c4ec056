"""Scores that were followed step by step, as a formula on q and k; or the weights themselves."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch

from ...algebra.errors import CallError, RegardError
from ...algebra.expressions import Expression
from ...algebra.symbols import abs_, b, d, dot, h, i, j, relu, sigmoid, sqrt, table, tanh
from ...algebra.weights import softmax
from ...attention import Attention
from .facts import Scores, Shape, Step, Weights
from .masks import TABLE, Seen, split

if TYPE_CHECKING:
    from .mode import Mode

FUNCTIONS: dict[str, Any] = {"tanh": tanh, "sigmoid": sigmoid, "relu": relu, "abs": abs_}
CHANGES: dict[str, Any] = {"times": operator.mul, "over": operator.truediv, "plus": operator.add}
AXES = (b, h, i, j)
ROWS = 8  # of the weights that a formula is compared on
CLOSE = {torch.float64: 1e-5, torch.float32: 1e-5}


def keep(mode: Mode, fact: Weights, weights: torch.Tensor, values: torch.Tensor) -> None:
    """Note a call: by its formula where that gives these weights, otherwise by the weights."""
    with torch.no_grad():
        whole = weights if fact.clean is None else fact.clean
        lead = _lead(mode, weights, values)
        four, v = whole.detach().reshape(*lead, *whole.shape[-2:]), _spread(values.detach(), weights.shape[:-2], lead)
        try:
            if fact.scores is None:
                raise CallError("the steps from q and k to its weights were not all seen")
            _keep_formula(mode, fact.scores, lead, four, v)
        except (RegardError, RuntimeError) as problem:
            mode.recorder.keep_weights(four, v, str(problem))


def _keep_formula(mode: Mode, scores: Scores, lead: Shape, weights: torch.Tensor, v: torch.Tensor) -> None:
    q, k = (_spread(x.detach(), scores.lead, lead) for x in (scores.q, scores.k))
    said = _Said(mode, scores, lead, int(q.shape[-2]), int(k.shape[-2]))
    formula = said.formula(int(q.shape[-1]))
    kind = reduce(torch.promote_types, (q.dtype, k.dtype, v.dtype))
    q, k, v = (x.to(kind) for x in (q, k, v))
    tables = {name: value for name, value in said.tables.items() if name in formula.ranks}
    _check(formula, q, k, weights, tables, said.start)
    mode.recorder.keep(formula, q, k, v, tables, said.start)


def _check(
    formula: Attention, q: torch.Tensor, k: torch.Tensor, weights: torch.Tensor, tables: Any, start: int
) -> None:
    """A few rows of the formula beside the module's own."""
    rows = sorted({round(place) for place in torch.linspace(0, weights.shape[2] - 1, ROWS).tolist()})
    if not weights.numel():
        return
    ours = formula.parts(q, k, start=start, **tables).weights(rows=rows)
    theirs = weights[:, :, rows].to(ours.dtype)
    apart = (ours - theirs).abs().nan_to_num(0.0) if bool(theirs.isnan().any()) else (ours - theirs).abs()
    if not float(apart.max()) <= CLOSE.get(q.dtype, 2e-2):
        raise CallError(f"the formula that was followed, {formula!r}, gives other weights")


def _lead(mode: Mode, weights: torch.Tensor, values: torch.Tensor) -> Shape:
    """Batch and heads: of weights (batch · heads, …) as the module says how many heads it has."""
    lead = tuple(weights.shape[:-2])
    if len(lead) >= 2:
        return (math.prod(lead[:-1]), lead[-1])
    whole = lead[0] if lead else 1
    heads = mode.heads or mode.places.heads(int(values.shape[-1]))
    return (whole // heads, heads) if whole % heads == 0 else (whole, 1)


def _spread(array: torch.Tensor, before: Any, lead: Shape) -> torch.Tensor:
    """An array (…, positions, width) with the leading axes of the weights, as (batch, heads, positions, width)."""
    return array.expand(*before, *array.shape[-2:]).reshape(*lead, *array.shape[-2:])


@dataclass
class _Said:
    """The steps of scores as an expression, its tables, and the truths of its mask."""

    mode: Mode
    scores: Scores
    lead: Shape
    queries: int
    keys: int
    tables: dict[str, Any] = field(default_factory=dict)
    start: int = 0

    def formula(self, width: int) -> Attention:
        """The formula of all steps."""
        factor, steps = _factor(self.scores.steps)
        parts = [self._part(step) for step in steps]
        seen = self._mask([truths for truths, _ in parts if truths is not None])
        self.start = max(self.keys - self.queries, 0) if seen.start is None else seen.start
        if seen.truths is not None:
            self.tables[TABLE] = seen.truths
        score = _scaled(factor, width)
        for step, (_, operand) in zip(steps, parts, strict=True):
            score = self._after(score, step, operand)
        return Attention(score, softmax, seen.mask)

    def _part(self, step: Step) -> tuple[torch.Tensor | None, Any]:
        """The truths of a step, and its numbers."""
        if not isinstance(step.operand, torch.Tensor):
            return None, step.operand
        four = self._four(step.operand.detach(), step.lead)
        if step.name.startswith("admit"):
            if step.name == "admit finite" and bool((~four.any(-1)).any()):
                raise CallError("rows that its mask leaves empty read every key alike")
            return four, None
        return split(four) if step.name == "plus" else (None, four)

    def _mask(self, truths: list[torch.Tensor]) -> Seen:
        if not truths:
            return Seen()
        return self.mode.masks.read(truths[0] if len(truths) == 1 else reduce(torch.logical_and, truths))

    def _after(self, score: Expression, step: Step, operand: Any) -> Expression:
        if step.name in FUNCTIONS:
            made: Expression = FUNCTIONS[step.name](score)
            return made
        if operand is None:
            return score
        value = self._read(step.name, operand) if isinstance(operand, torch.Tensor) else operand
        changed: Expression = CHANGES[step.name](score, value)
        return changed

    def _read(self, name: str, numbers: torch.Tensor) -> Expression:
        """A table, read by the axes along which it varies."""
        word = {"times": "factor", "plus": "added"}[name]
        count = sum(1 for known in self.tables if known.startswith(word))
        word = word if not count else f"{word}{count + 1}"
        self.tables[word] = numbers.reshape([size for size in numbers.shape if size > 1])
        axes = [axis for axis, size in zip(AXES, numbers.shape, strict=True) if size > 1]
        if i in axes and self.start:
            self.tables["first"] = self.start
            axes = [i - table("first") if axis is i else axis for axis in axes]
        return table(word)[tuple(axes)] if axes else table(word)

    def _four(self, tensor: torch.Tensor, lead: Shape) -> torch.Tensor:
        """A tensor that broadcasts to (*lead, queries, keys), with four axes; size 1 where it does not vary."""
        tensor = tensor.reshape((1,) * (len(lead) + 2 - tensor.ndim) + tuple(tensor.shape))
        inner = tensor.shape[-2:]
        if lead == self.lead:
            return tensor
        if all(size == 1 for size in tensor.shape[:-2]):
            return tensor.reshape(1, 1, *inner)
        four = tensor.expand(*lead, *inner).reshape(*self.lead, *inner)
        return four[:, :1] if four.shape[1] > 1 and bool((four == four[:, :1]).all()) else four


def _factor(steps: tuple[Step, ...]) -> tuple[float, tuple[Step, ...]]:
    """The number that q·k is multiplied with, where it is one, and what comes after."""
    plain = [step.name in ("times", "over") and not isinstance(step.operand, torch.Tensor) for step in steps]
    count = plain.index(False) if False in plain else len(steps)
    factors = (step.operand if step.name == "times" else 1 / step.operand for step in steps[:count])
    return math.prod(factors), steps[count:]


def _scaled(factor: float, width: int) -> Expression:
    if abs(factor * math.sqrt(width) - 1) < 1e-6 and width > 1:
        return dot / sqrt(d)
    if factor and (1 / factor).is_integer():
        return dot / int(1 / factor)
    return dot * factor
