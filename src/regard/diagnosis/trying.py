"""The readings of a target that work: found by its signature, and by trying.

    sizes     different in every axis first; square ones, and others, only where those fail
    layouts   those with most axes first: a function that takes heads is to be right with heads
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algebra.errors import CallError, KindError
from .calling import Calls, Outcome
from .description import Description
from .layouts import INPUT_LAYOUTS, LAYOUTS, VECTOR_LAYOUTS, Layout
from .libraries import LIBRARIES
from .masks import GivenMask, masks_for
from .problem import MATRICES, Sizes
from .running.process import Runner
from .reading import Reading
from .signature import Parameter

ARRAYS = {"q", "k", "v", "x", "context", "mask", "padding", "lengths", "bias", *MATRICES, "wqkv", "wkv"}
HANDED = {"wo", "bq", "bk", "bv", "bo"}  # matrices that are handed over though they need not be
BATCH = 24  # trials in one go
LENGTHS = (4, 3, 2, 6, 8, 10, 16, 1, 7, 12, 32, 64, 128)
SQUARE = 6


@dataclass(frozen=True)
class Said:
    """What the user says of the target; None is found by trying."""

    roles: tuple[str, ...] | None = None
    language: str | None = None
    layout: str | None = None
    heads: int | None = None
    groups: int | None = None
    causal: bool | None = None
    mask: str | None = None

    def __post_init__(self) -> None:
        _known("library", self.language, LIBRARIES)
        _known("layout", self.layout, LAYOUTS)


def _known(option: str, value: str | None, values: Iterable[str]) -> None:
    if value is not None and value not in values:
        raise KindError(f"{option}: one of {', '.join(values)}; got {value!r}")


@dataclass(frozen=True)
class Trial:
    """A reading that worked, what it gave, and what had to be changed until it did."""

    reading: Reading
    outcome: Outcome
    only: str = ""  # "square", "length 4", "batch 1": it works at no other size


class Unreadable(CallError):
    """No way was found to call the target."""


def readings(runner: Runner, description: Description, said: Said) -> list[Trial]:
    """Every reading that works, in the order in which they should be believed."""
    failed: list[tuple[Reading, Outcome]] = []
    for only, change in _attempts(description):
        tried = [replace(one, sizes=change(one)) for one in candidates(description, said)]
        worked = _worked(runner, tried, failed)
        if worked:
            return [replace(trial, only=only) for trial in _deepest(worked)]
    raise Unreadable(_complaint(description, failed))


def _attempts(description: Description) -> Iterator[tuple[str, Any]]:
    """Sizes to try, each as a change of a reading's own, with the name of what is special about them."""
    yield "", lambda one: one.sizes
    yield "batch 1", lambda one: replace(one.sizes, batch=1)
    yield "square", lambda one: _square(one)
    for length in LENGTHS:
        yield f"length {length}", lambda one, n=length: replace(one.sizes, queries=n, keys=n)
    for batch in (3, 4, 8, 5, 16, 32):
        yield f"batch {batch}", lambda one, b=batch: replace(one.sizes, batch=b)


def _square(reading: Reading) -> Sizes:
    """As many positions as features."""
    width = reading.sizes.width if reading.instance is not None else SQUARE
    model = reading.sizes.model_width if reading.instance is not None else reading.sizes.heads * width
    return replace(
        reading.sizes, queries=width, keys=width, width=width, value_width=width, model_width=model
    )


def _worked(runner: Runner, tried: list[Reading], failed: list[tuple[Reading, Outcome]]) -> list[Trial]:
    """The readings that work, of the first library in which one does."""
    for language in dict.fromkeys(one.language for one in tried):
        if found := _of_language(runner, [one for one in tried if one.language == language], failed):
            return found
    return []


def _of_language(runner: Runner, tried: list[Reading], failed: list[tuple[Reading, Outcome]]) -> list[Trial]:
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


def _deepest(worked: list[Trial]) -> list[Trial]:
    """Those without a batch only where no batch is taken: a function that takes one is to be right with it."""
    return [trial for trial in worked if len(trial.reading.layout.axes) > 2] or worked


# -- candidates ----------------------------------------------------------------------------------------------------


def candidates(description: Description, said: Said) -> list[Reading]:
    """Every reading that the signature allows, best first."""
    parameters = _roles(description, said)
    taken = tuple(one for one in parameters if one.required or one.role in HANDED)
    languages = (said.language,) if said.language else description.languages
    made = []
    for language in languages:
        for layout, form in _layouts(description, taken, said, language):
            for reading in _sized(description, said, Reading(form, language, layout, taken, Sizes())):
                made += _masked(reading)
    return made


def _roles(description: Description, said: Said) -> tuple[Parameter, ...]:
    if said.roles is None:
        return description.parameters
    if len(said.roles) > len(description.parameters):
        names = ", ".join(one.name for one in description.parameters)
        raise KindError(f"as: at most as many roles as arguments, ({names}); got {', '.join(said.roles)}")
    first = [
        replace(one, role=role, required=True)
        for one, role in zip(description.parameters, said.roles, strict=False)
    ]
    return (*first, *description.parameters[len(first) :])


def _layouts(
    description: Description, taken: tuple[Parameter, ...], said: Said, language: str
) -> Iterator[tuple[Layout, str]]:
    roles = {one.role for one in taken}
    forms = []
    if {"q", "k", "v"} <= roles and not roles & {"wq", "wk", "wv"} and not description.projections:
        forms.append(("vectors", VECTOR_LAYOUTS))
    if "x" in roles or {"q", "k", "v"} <= roles:
        forms.append(("inputs", INPUT_LAYOUTS))
    if not forms:
        raise Unreadable(_misread(description))
    plain = "heads" in roles and len(forms) == 2
    for form, layouts in forms[:1] if not plain else forms:
        for layout in layouts:
            if said.layout in (None, layout.axes):
                yield layout, form


def _sized(description: Description, said: Said, reading: Reading) -> Iterator[Reading]:
    """The reading with its sizes; for modules one for each way to read the projections and count the heads."""
    batch = 2 if reading.layout.has("b") else 1
    if description.module is not None and reading.form == "inputs":
        yield from _of_module(description, said, replace(reading, sizes=Sizes(batch=batch)))
        return
    if reading.form == "vectors":
        heads = (said.heads or 3) if reading.layout.has("h") else 1
        yield replace(reading, sizes=Sizes(batch=batch, heads=heads, groups=heads))
        return
    yield from _of_function(said, reading, batch)


def _of_function(said: Said, reading: Reading, batch: int) -> Iterator[Reading]:
    counted = "heads" in reading.roles
    heads = said.heads or (3 if counted else 1)
    groups = said.groups or heads
    fused = {f"w{letter}" for role in reading.roles & {"wqkv", "wkv"} for letter in role[1:]}
    present = frozenset((reading.roles & set(MATRICES)) | fused)
    free = not counted and "wq" in present
    sizes = Sizes(batch=batch, heads=heads, groups=groups, model_width=11 if free else heads * 6)
    if "wo" in present:
        sizes = replace(sizes, out_width=sizes.model_width)
    made = replace(reading, sizes=sizes, present=present)
    yield made
    if present:
        yield replace(made, transposed=True)
    if free:
        yield replace(made, sizes=replace(sizes, model_width=heads * 6, out_width=heads * 6 if "wo" in present else None))


def _of_module(description: Description, said: Said, reading: Reading) -> Iterator[Reading]:
    for projections in description.projections or (None,):
        longest = description.module.longest or reading.sizes.queries
        sizes = replace(reading.sizes, queries=min(reading.sizes.queries, longest), keys=min(reading.sizes.keys, longest))
        for heads in _head_counts(description, projections, said):
            for neutral in (True, False) if projections is not None and projections.others else (False,):
                yield description.instance.reading(
                    replace(reading, sizes=sizes), projections, heads, said.groups, neutral
                )


def _head_counts(description: Description, projections: Any, said: Said) -> tuple[int, ...]:
    facts = description.module
    known = said.heads or facts.heads or (projections.heads if projections is not None else None)
    if known:
        return (known,)
    width = projections.width if projections is not None else 1
    return tuple(heads for heads in (1, 2, 3, 4, 6, 8, 12, 16) if width % heads == 0)


def _masked(reading: Reading) -> list[Reading]:
    """A mask that must be given: None first, then one that admits everything."""
    roles = [role for role in ("mask", "padding", "lengths", "bias") if role in reading.roles]
    if not roles:
        return [reading]
    return [reading, *(replace(reading, mask=mask) for mask in masks_for(roles[0], reading.layout))]


# -- when nothing works --------------------------------------------------------------------------------------------


def _complaint(description: Description, failed: list[tuple[Reading, Outcome]]) -> str:
    shown = ", ".join(one.name for one in description.parameters)
    reasons: dict[str, str] = {}
    for reading, outcome in failed:
        what = f"{outcome.kind}: {outcome.error.splitlines()[0]}" if outcome.error else _returned(outcome)
        reasons.setdefault(what, f"{LIBRARIES[reading.language].title}, ({reading.layout.words})")
    lines = "\n".join(f"    {where}: {what}" for what, where in list(reasons.items())[:5])
    return (
        f"{description.name}({shown}): no way to call it was found. Tried:\n{lines}\n"
        "Say how it is called: --as \"q,k,v,mask\" or \"x,wq,wk,wv\", --layout bnd, --heads 4, --library torch"
    )


def _returned(outcome: Outcome) -> str:
    shapes = ", ".join(str(np.shape(array)) for _, array in outcome.arrays)
    return f"returned {outcome.returned}" + (f" with shapes {shapes}" if shapes else "")


def _misread(description: Description) -> str:
    shown = ", ".join(f"{one.name} ({one.role})" for one in description.parameters)
    return (
        f"{description.name}: an attention takes q, k, v, or x with its matrices; its arguments were read as "
        f"{shown or 'none'}; say what they are: --as \"q,k,v,mask\" or \"x,wq,wk,wv\""
    )


def with_mask(reading: Reading, parameter: Parameter, mask: GivenMask) -> Reading:
    """The reading with a mask handed over for that argument."""
    if parameter in reading.taken:
        return replace(reading, mask=mask)
    return replace(reading, taken=(*reading.taken, parameter), mask=mask)
