"""Every step of a call, with its shape and its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .algebra.formula import Formula


ROLES = {"q": "queries", "k": "keys", "v": "values"}


@dataclass(frozen=True)
class Step:
    """One step: its name, what it is, and its value."""

    name: str
    meaning: str
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)


@dataclass(frozen=True)
class Trace:
    """The steps from q, k, v to y. `trace["weights"]`, `trace.weights` and iteration give them."""

    formula: Formula
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, formula: Formula, steps: Any, scores: Any, totals: Any) -> Trace:
        """The steps of one forward pass."""
        call, weight = steps.call, formula.weight
        square = (call.queries, call.keys)
        made = [Step(name, f"{what} as given", call.given[name]) for name, what in ROLES.items()]
        made += [Step(name, "table as given", table) for name, table in call.tables.items()]
        made.append(Step("scores", f"s = {formula.score!r}", _as_array(scores)))
        if formula.mask is not None:
            made.append(Step("mask", f"admitted: {formula.mask!r}", call.xp.reshape(steps.mask, (*call.lead, *square))))
        if weight.over is not None:
            name = "log Z" if weight.is_exponential else "Z"
            made.append(Step("totals", f"{name} over {weight.over!r} of ψ(s) = {weight.psi!r}", _as_array(totals)))
        meaning = "w = ψ(s) / Z" if weight.over is not None else f"w = ψ(s) = {weight.psi!r}"
        meaning += "" if call.dropout is None else f", dropped with p = {call.dropout.p:g}"
        made.append(Step("weights", meaning, call.xp.reshape(steps.weights, (*call.lead, *square))))
        made.append(
            Step("y", "y = Σ_j w v", call.xp.reshape(steps.y, (*call.lead, call.queries, int(call.v.shape[3]))))
        )
        return cls(formula, tuple(made))

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, name: str) -> Any:
        for step in reversed(self.steps):  # a table may be called like a step of ours
            if step.name == name:
                return step.value
        raise KeyError(f"{name}: the steps are {', '.join(step.name for step in self.steps)}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "steps":
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as problem:
            raise AttributeError(problem.args[0]) from None

    def __str__(self) -> str:
        names = max(len(step.name) for step in self.steps)
        shapes = [str(step.shape).replace("'", "") for step in self.steps]
        widest = max(map(len, shapes))
        lines = [repr(self.formula)]
        for place, (step, shape) in enumerate(zip(self.steps, shapes, strict=True)):
            joint = "└─" if place == len(self.steps) - 1 else "├─"
            lines.append(f"{joint} {step.name:<{names}}  {shape:<{widest}}  {step.meaning}")
        return "\n".join(lines)

    __repr__ = __str__


def _as_array(value: Any) -> Any:
    from ._arrays import as_array

    return as_array(value, "step")
