"""Where mutants are entered by the name of their bug."""

from __future__ import annotations

from collections.abc import Callable

from ..steps import Steps

Mutant = Callable[[Steps], Steps | None]

MUTANTS: dict[str, tuple[Mutant, ...]] = {}
VISIBLE: dict[str, tuple[Mutant, ...]] = {}  # those that the values of an ordinary call show, without trying a law


def makes(name: str, silent: bool = False) -> Callable[[Mutant], Mutant]:
    """Enter a function as one form of the bug of that name."""

    def enter(mutant: Mutant) -> Mutant:
        MUTANTS[name] = (*MUTANTS.get(name, ()), mutant)
        if not silent:
            VISIBLE[name] = (*VISIBLE.get(name, ()), mutant)
        return mutant

    return enter
