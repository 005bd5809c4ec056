"""One call of the target, where it lives: arrays in, arrays out, and what was noticed on the way.

This module runs in the child process with the target: it needs NumPy, and of the other libraries what the target uses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .libraries import LIBRARIES, Language
from .raised import line_of, text_of

Path = tuple[Any, ...]  # where in what was returned: () for the value itself, (0,) or ("out",) inside it


@dataclass(frozen=True)
class Argument:
    """One argument: an array, or a plain value that is handed over as it is."""

    name: str
    value: Any
    by: str = "either"  # "position", "name" or "either"
    plain: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a call came to: its arrays by their place in what was returned, or an error."""

    arrays: tuple[tuple[Path, np.ndarray], ...] = ()
    error: str = ""
    kind: str = ""
    where: str = ""  # the line of the target that raised it
    changed: tuple[str, ...] = ()  # arguments that are not what they were
    gradients: Mapping[str, np.ndarray | None] = field(default_factory=dict)
    runs: tuple[np.ndarray, ...] = ()  # the output of every repetition
    returned: str = ""

    def at(self, path: Path) -> np.ndarray | None:
        """The array at that place."""
        return next((array for place, array in self.arrays if place == path), None)


@dataclass(frozen=True)
class Call:
    """One call with these arguments. `times` repeats it; `dy` asks for the gradients of Σ y·dy."""

    arguments: tuple[Argument, ...]
    language: str
    dtype: str
    instance: Any = None  # modules.Instance: how to make and fill a module; None for functions
    matrices: Mapping[str, np.ndarray] = field(default_factory=dict)
    output: Path = ()
    times: int = 1
    dy: np.ndarray | None = None
    wrt: tuple[str, ...] = ()
    training: bool = False
    about: str = "a call"

    def run(self, target: Any) -> Outcome:
        """Call the target; an error of its own becomes part of the outcome."""
        language = LIBRARIES[self.language]
        try:
            function = target if self.instance is None else self.instance.of(target, self.matrices, self.training)
            return self._differentiated(function, language) if self.dy is not None else self._called(function, language)
        except (MemoryError, SystemExit):
            raise
        except BaseException as problem:  # whatever the target raises is its answer
            if isinstance(problem, KeyboardInterrupt) and "REGARD_SANDBOX" not in os.environ:
                raise  # somebody is at the keyboard
            if "can't allocate" in str(problem) or "out of memory" in str(problem):
                raise MemoryError(str(problem)) from None
            return _failed(problem)

    def _called(self, function: Any, language: Language) -> Outcome:
        runs = []
        for _ in range(max(self.times, 1)):
            values, names = self._values(language)
            with language.quiet():
                # a compiled function answers as it did the first time: repetitions are to be calls
                result = _apply(function, self.arguments, values, language if self.times == 1 else _AS_IT_IS)
            arrays = tuple(_arrays(result, language))
            changed = tuple(name for name, value, given in names if not language.same(value, given))
            kept = next((array for path, array in arrays if path == self.output), np.empty(0))
            runs.append(Outcome(arrays, changed=changed, runs=(kept,), returned=_shown(result)))
        every = tuple(array for run in runs for array in run.runs) if self.times > 1 else ()
        return replace(runs[-1], runs=every)

    def _values(self, language: Language) -> tuple[list[Any], list[tuple[str, Any, Any]]]:
        """The values to hand over, and those to look at afterwards with what they were."""
        values = [self._one(a, language) for a in self.arguments]
        looked = [
            (a.name, value, a.value)
            for a, value in zip(self.arguments, values, strict=True)
            if not a.plain and not isinstance(a.value, tuple) and np.asarray(a.value).dtype.kind == "f"
        ]
        return values, [(name, value, language.array(given, self.dtype)) for name, value, given in looked]

    def _differentiated(self, function: Any, language: Language) -> Outcome:
        def output(*chosen: Any) -> Any:
            replaced = iter(chosen)
            values = [next(replaced) if a.name in self.wrt else self._one(a, language) for a in self.arguments]
            return _at(_apply(function, self.arguments, values), self.output)

        chosen = [self._one(a, language) for a in self.arguments if a.name in self.wrt]
        found = language.gradients(output, chosen, language.array(self.dy, self.dtype))
        names = [a.name for a in self.arguments if a.name in self.wrt]
        return Outcome(gradients=dict(zip(names, found, strict=True)))

    def _one(self, argument: Argument, language: Language) -> Any:
        if isinstance(argument.value, tuple) and not argument.plain:
            return tuple(language.array(part, self.dtype) for part in argument.value)
        return argument.value if argument.plain else language.array(argument.value, self.dtype)


@dataclass(frozen=True)
class Decode:
    """The same call in pieces along the positions, with what was kept of the earlier ones handed on."""

    call: Call
    axis: int
    sliced: frozenset[str]  # the arguments that are cut
    ends: tuple[int, ...]
    cache: str = ""  # the argument that takes what was kept, where there is one
    start: str = ""  # the argument that says where a piece begins
    about: str = "the call in pieces, with a cache"

    def run(self, target: Any) -> list[Outcome]:
        """The outcome of every piece; an error ends them."""
        language = LIBRARIES[self.call.language]
        found: list[Outcome] = []
        try:
            made = self.call.instance
            function = target if made is None else made.of(target, self.call.matrices, training=False)
            kept = None
            for first, last in zip((0, *self.ends), self.ends, strict=False):
                result = self._piece(function, language, first, last, kept)
                kept = result[-1] if isinstance(result, tuple | list) else None
                found.append(Outcome(tuple(_arrays(result, language))))
        except Exception as problem:  # noqa: BLE001 - whatever the target raises is its answer
            found.append(_failed(problem))
        return found

    def _piece(self, function: Any, language: Language, first: int, last: int, kept: Any) -> Any:
        arguments, values = [], []
        for a in self.call.arguments:
            if a.name == self.cache:
                value = kept
            elif a.name == self.start:
                value = first
            elif a.name in self.sliced:
                value = language.array(np.take(a.value, range(first, last), axis=self.axis), self.call.dtype)
            else:
                value = self.call._one(a, language)
            arguments.append(a)
            values.append(value)
        with language.quiet():
            return _apply(function, arguments, values)


@dataclass(frozen=True)
class Calls:
    """Several calls in one go."""

    calls: tuple[Call, ...]

    @property
    def about(self) -> str:
        return self.calls[0].about if self.calls else "no call"

    def run(self, target: Any) -> list[Outcome]:
        """All outcomes, in order."""
        return [call.run(target) for call in self.calls]


def _failed(problem: BaseException) -> Outcome:
    return Outcome(
        error=text_of(problem) or type(problem).__name__, kind=type(problem).__name__, where=line_of(problem)
    )


_AS_IT_IS = Language()


def _apply(function: Any, arguments: Sequence[Argument], values: Sequence[Any], language: Language = _AS_IT_IS) -> Any:
    by_place = [value for a, value in zip(arguments, values, strict=True) if a.by != "name"]
    by_name = {a.name: value for a, value in zip(arguments, values, strict=True) if a.by == "name"}
    return language.apply(function, by_place, by_name)


def _at(result: Any, path: Path) -> Any:
    for step in path:
        result = result[step]
    return result


def _arrays(result: Any, language: Language, path: Path = ()) -> Any:
    """Every array inside what was returned, with its place; nested lists of numbers count as one array."""
    array = language.read(result)
    if array is not None:
        yield path, array
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from _arrays(value, language, (*path, key))
    elif isinstance(result, tuple | list) and len(path) < 3:
        for place, value in enumerate(result):
            yield from _arrays(value, language, (*path, place))


def _shown(result: Any) -> str:
    if isinstance(result, tuple | list):
        return f"{type(result).__name__} of {len(result)}"
    return type(result).__name__
