"""Which formula a call runs: the one it asks for, or another that was put in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._arrays import is_array
from ..algebra.errors import CallError, KindError
from ..attention import Attention
from .asked import NAMES, Asked, in_place_of_own, own_formula

Choice = Attention | Callable[[Attention], Attention] | None
"""A formula, or a function from the model's own formula to another."""


@dataclass(frozen=True)
class Replacement:
    """A formula in place of a model's own, and the tables that it reads beside the model's."""

    attention: Choice
    tables: Mapping[str, Any]
    made: dict[Asked, Attention] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.attention is None or isinstance(self.attention, Attention) or callable(self.attention)):
            raise KindError(
                "attention: an Attention, or a function from the model's own to another; "
                f"got {type(self.attention).__name__}; for example Attention(mask=window(64))"
            )
        taken = sorted(set(self.tables) & set(NAMES))
        if taken:
            raise CallError(f"tables: {', '.join(taken)} are names of the model's own; got them; choose other names")
        if self.attention is None and self.tables:
            names = ", ".join(sorted(self.tables))
            raise CallError(f"tables: belong to a formula; got {names} and no attention=; pass both or neither")
        if isinstance(self.attention, Attention):
            self._check_tables(self.attention)

    def _check_tables(self, attention: Attention) -> None:
        unread = sorted(set(self.tables) - set(attention.ranks))
        missing = sorted(set(attention.ranks) - set(self.tables) - set(NAMES))
        for what, names in (("does not read", unread), ("also reads", missing)):
            if names:
                raise CallError(f"tables: those that the formula reads; {attention!r} {what} {', '.join(names)}")

    def formula(self, asked: Asked) -> Attention:
        """The formula for a call."""
        found = self.made.get(asked)
        if found is None:
            found = self.made[asked] = self._formula(asked)
        return found

    def _formula(self, asked: Asked) -> Attention:
        if self.attention is None:
            return own_formula(asked)
        if isinstance(self.attention, Attention):
            return in_place_of_own(asked, self.attention)
        made = self.attention(own_formula(asked))
        if not isinstance(made, Attention):
            raise KindError(
                f"attention: the function returns an Attention; got {type(made).__name__}; for example "
                "lambda own: Attention(own.score, sigmoid, own.mask)"
            )
        return made

    def asks_for_places(self, asked: Asked) -> bool:
        """Whether the formula reads the position of a query on its own account, not only in tables of the call."""
        if isinstance(self.attention, Attention):
            return self.attention.uses("i")
        formula = self.formula(asked)
        return formula.uses("i") and formula != own_formula(asked)

    def brought(self, formula: Attention, tables: Mapping[str, Any], device: Any) -> dict[str, Any]:
        """The tables that a formula reads, of the model and of the caller."""
        chosen = {name: tables[name] for name in formula.ranks if name in tables}
        return {
            **chosen,
            **{name: _moved(value, device) for name, value in self.tables.items() if name in formula.ranks},
        }


def _moved(value: Any, device: Any) -> Any:
    """A table where the queries are: layers of one model may lie on several devices."""
    return value.to(device) if is_array(value) and hasattr(value, "to") else value
