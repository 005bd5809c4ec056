"""Which formula a call runs: the one it asks for, or another that was put in its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import torch

from .._arrays import is_array
from ..algebra.errors import CallError, KindError
from ..algebra.expressions import Expression, Mask
from ..algebra.formula import Formula
from ..algebra.symbols import Function
from ..algebra.weights import Weight
from ..attention import Attention
from .asked import NAMES, Asked, in_place_of_own, own_formula

Choice = Attention | Callable[[Attention], Attention] | None
"""A formula, or a function from the model's own formula to another."""

NO_FUNCTIONS = (type, torch.nn.Module, Formula, Weight, Function, Expression, Mask)  # called on other things, some


@dataclass(frozen=True)
class Replacement:
    """A formula in place of a model's own, and the tables that it reads beside the model's."""

    attention: Choice
    tables: Mapping[str, Any]
    keywords: tuple[str, ...] = ("attention",)  # beside the tables, where they are given
    made: dict[Asked, Attention] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.attention is None or isinstance(self.attention, Attention)):
            _check_function(self.attention)
        taken = sorted(set(self.tables) & set(NAMES))
        if taken:
            raise CallError(f"tables: {', '.join(taken)} are names of the model's own; got them; choose other names")
        if self.attention is None and self.tables:
            names = ", ".join(sorted(self.tables))
            raise CallError(
                f"tables: belong to a formula; got {names} and no attention=; pass both or neither"
                f"{_meant(self.tables, self.keywords)}"
            )
        if isinstance(self.attention, Attention):
            self._check_tables(self.attention)
        elif hint := _meant(self.tables, self.keywords, near=0.85):  # which tables a function reads is not known yet
            raise CallError(f"tables: {', '.join(sorted(self.tables))} are given to the formula{hint}")

    def _check_tables(self, attention: Attention) -> None:
        unread = sorted(set(self.tables) - set(attention.ranks))
        missing = sorted(set(attention.ranks) - set(self.tables) - set(NAMES))
        for what, names, hint in (
            ("does not read", unread, _meant(unread, (*self.keywords, *missing))),
            ("also reads", missing, ""),
        ):
            if names:
                raise CallError(f"tables: those that the formula reads; {attention!r} {what} {', '.join(names)}{hint}")

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
        own = own_formula(asked)
        try:
            made = self.attention(own)
        except Exception as error:
            error.add_note(f"attention: a function from the model's own formula to another; it was given {own!r}")
            raise
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


def _check_function(given: Any) -> None:
    """Refuse what is no function of one formula, also where Python could call it."""
    if callable(given) and not isinstance(given, NO_FUNCTIONS):
        if _takes_one(given):
            return
        what = f"{getattr(given, '__name__', type(given).__name__)}{inspect.signature(given)}"
    else:
        what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    example = f"Attention(weight={given!r})" if isinstance(given, Weight | Function) else "Attention(mask=window(64))"
    raise KindError(
        f"attention: an Attention, or a function from the model's own to another; got {what}; for example {example}"
    )


def _takes_one(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # some of those in C do not tell
        return True
    return True


def _meant(names: Iterable[str], known: Iterable[str], near: float = 0.6) -> str:
    """What somebody may have misspelt, as the end of a text."""
    choices = list(known)
    found = [match for name in names for match in get_close_matches(name, choices, 1, near)]
    return f"; did you mean {', '.join(f'{name}=' for name in dict.fromkeys(found))}?" if found else ""


def _moved(value: Any, device: Any) -> Any:
    """A table where the queries are: layers of one model may lie on several devices."""
    return value.to(device) if is_array(value) and hasattr(value, "to") else value
