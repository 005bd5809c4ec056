"""Every value of a tape finds a buffer: as few as values live at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from . import calls
from .tape import Step, Tape, Value


@dataclass(frozen=True)
class Compiled:
    """A tape whose values have found their buffers."""

    steps: tuple[tuple[Step, ...], ...]  # by section
    places: dict[int, int]  # value: register
    registers: int
    brought: dict[Any, int]
    constants: dict[float, int]
    buffers: tuple[int, ...]  # the registers that are buffers

    def place(self, value: Value) -> int:
        return self.places[value.place]


def compiled(tape: Tape) -> Compiled:
    """Give every value a buffer, over one that nothing reads any more where there is one."""
    places = _Places(tape)
    made = [places.placed(number, step) for number, step in enumerate(tape.steps)]
    cuts = [0, *tape.sections, len(made)]
    sections = tuple(tuple(step for step in made[a:b] if step.kernel is not calls.nothing) for a, b in pairwise(cuts))
    found = places.found
    return Compiled(
        sections, found, places.count, {symbol: found[value] for symbol, value in tape.brought.items()},
        {number: found[value] for number, value in tape.constants.items()},
        tuple(sorted({place for value, place in found.items() if value not in places.fixed})),
    )  # fmt: skip


class _Places:
    """The register of every value so far, and the buffers that are free."""

    def __init__(self, tape: Tape) -> None:
        self.fixed = {*tape.brought.values(), *tape.constants.values()} - tape.filled
        self.found = {value: number for number, value in enumerate(sorted(self.fixed))}
        self.count = len(self.found)
        self.free: list[int] = []
        self.last: dict[int, int] = {}  # value: the last step that reads it
        for number, step in enumerate(tape.steps):
            self.last.update(dict.fromkeys(step.arguments, number))
        self.last.update(dict.fromkeys(tape.kept, len(tape.steps)))
        for value in sorted(tape.filled):
            self.found[value] = self._fresh()

    def placed(self, number: int, step: Step) -> Step:
        """The step with registers for its values. It may write over what it is the last to read."""
        arguments = tuple(self.found[argument] for argument in step.arguments)
        done = {value for value in step.arguments if self.last[value] == number and value not in self.fixed}
        self.free += sorted((self.found[value] for value in done), reverse=True)
        if step.kernel is not calls.nothing:
            self.found[step.out] = self._fresh()
            if step.out not in self.last:
                self.free.append(self.found[step.out])
        return Step(step.kernel, self.found[step.out], arguments, step.options)

    def _fresh(self) -> int:
        if self.free:
            return self.free.pop()
        self.count += 1
        return self.count - 1
