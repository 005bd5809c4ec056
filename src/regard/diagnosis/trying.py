"""The readings of a target that work: those that its signature allows, each tried with one call.

sizes     different in every axis first; one text, square ones and others only where those fail
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from .calling import Calls, Outcome
from .candidates import Said, Unreadable, candidates
from .complaints import complaint
from .description import Description
from .masks import GivenMask
from .problem import Sizes
from .reading import Reading
from .sandbox.process import Runner
from .signature import Parameter

__all__ = ["Said", "Trial", "Unreadable", "readings", "with_mask"]
BATCH = 24  # trials in one go
LENGTHS = (4, 3, 2, 6, 8, 10, 16, 7, 12, 32, 64, 128)  # with one position every attention is right
BATCHES = (3, 4, 8, 5, 16, 32)
SQUARE = 6
FATAL = {"NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError"}  # whatever the arrays are
HOPELESS = 4  # attempts with one and the same error: sizes do not matter to it

Failures = list[tuple[Reading, Outcome]]


@dataclass(frozen=True)
class Trial:
    """A reading that worked, what it gave, and what had to be changed until it did."""

    reading: Reading
    outcome: Outcome
    only: str = ""  # "square", "length 4", "batch 1": it works at no other size


def readings(runner: Runner, description: Description, said: Said) -> list[Trial]:
    """Every reading that works, in the order in which they should be believed."""
    failed: Failures = []
    allowed = candidates(description, said)
    for number, (only, one_query, change) in enumerate(_attempts()):
        tried = [replace(one, sizes=change(one)) for one in allowed if one.layout.one is one_query]
        tried = [one for one in tried if one.sizes.batch > 1 or not one.layout.axes.startswith("nb")]
        worked = _worked(runner, tried, failed)
        if worked:
            return [replace(trial, only=only) for trial in worked]
        if FATAL & {one.kind for _, one in failed} == {one.kind for _, one in failed}:
            break
        if number + 1 >= HOPELESS and len({(one.kind, one.error, one.where) for _, one in failed}) <= 1:
            break
    raise Unreadable(complaint(description, failed))


def _attempts() -> Iterator[tuple[str, bool, Callable[[Reading], Sizes]]]:
    """What is special about the sizes, whether queries come one at a time, and the change of a reading's own sizes."""
    yield "", False, lambda one: one.sizes
    yield "batch 1", False, lambda one: replace(one.sizes, batch=1)
    yield "", True, lambda one: one.sizes
    yield "square", False, _square
    for length in LENGTHS:
        yield f"length {length}", False, partial(_of_length, length)
    for batch in BATCHES:
        yield f"batch {batch}", False, partial(_of_batch, batch)


def _of_length(n: int, reading: Reading) -> Sizes:
    return replace(reading.sizes, queries=n, keys=n)


def _of_batch(batch: int, reading: Reading) -> Sizes:
    return replace(reading.sizes, batch=batch)


def _square(reading: Reading) -> Sizes:
    """As many positions as features."""
    of_module = bool(reading.present) and reading.instance is not None
    width = reading.sizes.width if of_module else SQUARE
    model = reading.sizes.model_width if of_module else reading.sizes.heads * width
    return replace(reading.sizes, queries=width, keys=width, width=width, value_width=width, model_width=model)


def _worked(runner: Runner, tried: list[Reading], failed: Failures) -> list[Trial]:
    """The readings that work, of the first library in which one does.

    Those without a batch only where no batch is taken: a function that takes one is to be right with it.
    """
    for language in dict.fromkeys(one.language for one in tried):
        own = [one for one in tried if one.language == language]
        flat = [len(one.layout.queries.axes) <= 2 for one in own]
        for wanted in (False, True):
            chosen = [one for one, is_flat in zip(own, flat, strict=True) if is_flat is wanted]
            if found := _that_work(runner, chosen, failed):
                return [trial for trial in found if not _is_special(trial.reading, found)]
    return []


def _is_special(reading: Reading, found: list[Trial]) -> bool:
    """Whether inputs are as wide as all heads together, while another width works, too: √D is then √d, and hidden."""
    sizes = reading.sizes
    if not reading.present or sizes.model_width != sizes.heads * sizes.width:
        return False
    others = [trial.reading for trial in found if trial.reading.sizes.model_width != sizes.model_width]
    return any(replace(other, sizes=sizes) == reading for other in others)


def _that_work(runner: Runner, tried: list[Reading], failed: Failures) -> list[Trial]:
    found = []
    for at in range(0, len(tried), BATCH):
        batch = tried[at : at + BATCH]
        problems = [one.problem() for one in batch]
        calls = tuple(one.call(problem) for one, problem in zip(batch, problems, strict=True))
        for one, problem, outcome in zip(batch, problems, runner.ask(Calls(calls)), strict=True):
            located = one.located(outcome, problem)
            if located is None:
                failed.append((one, outcome))
            else:
                found.append(Trial(located, outcome))
    return found


def with_mask(reading: Reading, parameter: Parameter, mask: GivenMask) -> Reading:
    """The reading with a mask handed over for that argument."""
    if parameter in reading.taken:
        return replace(reading, mask=mask)
    return replace(reading, taken=(*reading.taken, parameter), mask=mask)
