"""Where mutants are entered by the name of their bug."""

from __future__ import annotations

from collections.abc import Callable

from ..steps import Steps

Mutant = Callable[[Steps], Steps | None]

MUTANTS: dict[str, tuple[Mutant, ...]] = {}
SILENT: set[str] = set()  # the values of an ordinary call do not show these: a law must be tried


def makes(name: str, silent: bool = False) -> Callable[[Mutant], Mutant]:
    """Enter a function as one form of the bug of that name."""

    def enter(mutant: Mutant) -> Mutant:
        MUTANTS[name] = (*MUTANTS.get(name, ()), mutant)
        if silent:
            SILENT.add(name)
        return mutant

    return enter
