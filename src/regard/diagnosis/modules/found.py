"""One tensor that somebody's object holds, with what its name says; needs no library.

heads.0.key.weight   (6, 24)   k   a matrix of a Linear: (out, in)
in_proj_bias         (72,)     qkv, a bias
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..words import is_aside, letters, may_be_last, words

FEED_FORWARD = set("mlp ffn ff feed ffw intermediate".split())
REFUSED = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError, NotImplementedError)


@dataclass(frozen=True)
class Found:
    """One tensor: where it lies, what its name says, and how its axes are known to lie."""

    path: str
    shape: tuple[int, ...]  # without axes of size 1 that a convolution or a broadcast needs
    letters: str  # "q", "kv", "qkv", "o" …, "" when the name says none
    bias: bool
    sure: bool  # False where the name only says "a matrix", as that of an output projection may
    axes: str  # "oi" for (out, in), "io" for (in, out), "" when nothing tells
    trained: bool

    @property
    def template(self) -> str:
        """The path with its numbers left open: the same for each module of a list."""
        return re.sub(r"(?<![^.])\d+(?![^.])", "*", self.path)


def as_named(found: Found, role: str) -> Found:
    """The same tensor, with a role that the user gives it."""
    return replace(found, letters=role, sure=True)


def said_by(path: str, owner: object) -> tuple[str, bool]:
    """The letters of the last part of a path that says any; then whether they are sure."""
    parts = [part for part in path.split(".") if not part.isdigit()]
    if "norm" in type(owner).__name__.lower() or any(FEED_FORWARD & set(words(part)) for part in parts):
        return "", False
    for distance, part in enumerate(reversed(parts)):
        if distance < 2 and is_aside(part):
            return "", False
        if found := letters(part):
            return found, True
    return ("o", False) if any(may_be_last(part) for part in parts[-2:]) else ("", False)


def sizes_of(shape: tuple[int, ...], bias: bool) -> tuple[int, ...]:
    """A shape without the axes of size 1 around it."""
    if bias:
        return tuple(size for size in shape if size > 1) or (1,)
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return shape
