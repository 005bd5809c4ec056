"""What a question may be asked with: each option a kind of value with its range, from JSON or from a link's text.

    whole(0, 255)     an integer           "17" or 17
    number(0, 1)      a real number        "0.5" or 0.5
    text(2000)        at most so long
    one_of("a", "b")  one of these words
    wholes(3)         at most so many      "0,4,7" or [0, 4, 7]
    span()            [first, last)        "3,17" or [3, 17]

The ranges that depend on a lens (how many layers, which head) are looked at where the question is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError

LARGEST = 2**31 - 1
NEEDED = object()


@dataclass(frozen=True)
class Option:
    """A kind of value: how it is read, and what stands for it where nothing is given."""

    read: Callable[[str, Any], Any]
    default: Any = NEEDED

    def or_else(self, default: Any) -> Option:
        """The same kind, with a value where nothing is given."""
        return Option(self.read, default)


def refuse(name: str, rule: str, got: Any, do: str = "") -> CallError:
    """An error in the house's words; what was given is shown in part."""
    shown = repr(got) if len(repr(got)) <= 60 else f"{repr(got)[:60]}…"
    return CallError(f"{name}: {rule}; got {shown}{f'; {do}' if do else ''}")


def inside(name: str, value: int, size: int, what: str) -> int:
    """An index, if there is such a place."""
    if not 0 <= value < size:
        raise refuse(name, f"one of {size} {what}, from 0" if size else f"there are no {what}", value)
    return value


def whole(low: int = 0, high: int = LARGEST) -> Option:
    """An integer from low to high."""

    def read(name: str, value: Any) -> int:
        if isinstance(value, str) and len(value) <= 12:
            digits = value.removeprefix("-")
            value = int(value) if digits.isascii() and digits.isdigit() else value
        if type(value) is not int or not low <= value <= high:
            raise refuse(name, f"an integer from {low} to {high}", value)
        return value

    return Option(read)


def number(low: float, high: float) -> Option:
    """A real number from low to high."""

    def read(name: str, value: Any) -> float:
        try:
            found = float(value) if type(value) in (int, float) or len(value) <= 32 else math.nan
        except (TypeError, ValueError):
            found = math.nan
        if not low <= found <= high or isinstance(value, bool):
            raise refuse(name, f"a number from {low} to {high}", value)
        return found

    return Option(read)


def text(longest: int) -> Option:
    """A text of at most so many characters."""

    def read(name: str, value: Any) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            raise refuse(name, f"a text of 1 to {longest} characters", value)
        return value

    return Option(read)


def one_of(*words: str) -> Option:
    """One of these words."""

    def read(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise refuse(name, f"one of {', '.join(words)}", value)
        return value

    return Option(read)


def wholes(most: int) -> Option:
    """At most so many integers from 0."""
    one = whole()

    def read(name: str, value: Any) -> tuple[int, ...]:
        if isinstance(value, str) and len(value) <= 13 * most:
            value = value.split(",")
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= most:
            raise refuse(name, f"1 to {most} integers, as in 0,4,7", value)
        return tuple(one.read(name, item) for item in value)

    return Option(read)


def span() -> Option:
    """Places from a first one up to, and without, a last one."""
    pair = wholes(2)

    def read(name: str, value: Any) -> tuple[int, int]:
        found = pair.read(name, value)
        if len(found) != 2 or found[0] >= found[1]:
            raise refuse(name, "first and last, with last left out, as in 3,17", value)
        return found[0], found[1]

    return Option(read)


def checked(asked: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    """Every option of a question, read; an unknown one is refused."""
    for name in asked:
        if name not in options:
            known = f"of {', '.join(options)}" if options else "this question takes none"
            raise refuse("option", known, name, "leave it out")
    found = {}
    for name, option in options.items():
        if asked.get(name) is None or asked[name] == "":
            if option.default is NEEDED:
                raise CallError(f"{name}: this question needs it; got none; say {name}=")
            found[name] = option.default
        else:
            found[name] = option.read(name, asked[name])
    return found
