"""What a function of the algebra must say about itself, in one place.

A subclass of `Elementary` states

    name            how people write it
    fdiff           its derivative, in the algebra's own functions
    scalar          its value on Python numbers (the `python` engine)
    array           its value on arrays of any library (the `dense` engine)
    block           its value as PyTorch functions over a block of pairs (the `tiled` engine), where `array` is slow
    image           the interval it maps intervals to: of plain numbers (the laws of masks), or of arrays of them
    source          how each code flavour writes it; {0}, {1} stand for the arguments
    helpers         a definition that flavour's source needs first (`triton_fast` falls back on `triton` in both)
    latex, mathml   how mathematics writes it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..nodes import Node

Interval = tuple[float, float]  # lowest and highest value, either may be infinite
At = Callable[..., Any]  # at(function, *numbers): its value there, where a number is a plain one or an array of them


class Elementary(Node):
    """A function of real numbers with everything that regard needs to know of it."""

    name: ClassVar[str]
    nargs: ClassVar[Any] = 1
    source: ClassVar[dict[str, str]]
    helpers: ClassVar[dict[str, str]] = {}
    latex: ClassVar[str]
    mathml: ClassVar[str | None] = None  # None: the name, then the arguments in brackets

    @classmethod
    def scalar(cls, *arguments: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def array(cls, xp: Any, *arguments: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def block(cls, torch: Any, *arguments: Any) -> Any:
        return torch.whole(cls, *arguments)

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def bounds(cls, *arguments: Any) -> Interval:
        low, high = cls.image(_scalar, *arguments)
        return low, high


def _scalar(function: type[Elementary], *numbers: Any) -> Any:
    return function.scalar(*numbers)


class Rising(Elementary):
    """A function that never falls: its bounds are its values at the ends."""

    @classmethod
    def image(cls, at: At, *arguments: Any) -> Any:
        lows, highs = zip(*arguments, strict=True)
        return at(cls, *lows), at(cls, *highs)


def calls(
    name: str, *, python: str | None = None, numpy: str | None = None, torch: str | None = None, **others: str
) -> dict[str, str]:
    """Source of a function that all libraries call by one name, but for those given."""
    return {
        "python": python or f"math.{name}({{0}})",
        "numpy": numpy or f"np.{name}({{0}})",
        "torch": torch or f"torch.{name}({{0}})",
        "triton": f"tl.{name}({{0}})",
        **others,
    }


def named(name: str) -> str:
    """LaTeX of a function written by its name."""
    return r"\operatorname{{" + name + r"}}\left({0}\right)"


def guarded(function: Any, *, overflow: float = math.inf) -> Any:
    """`function` by the rules of IEEE 754: NaN outside its domain, infinity where it overflows; no exception."""

    def value(x: float) -> float:
        try:
            return float(function(x))
        except OverflowError:
            return overflow
        except ValueError:
            return math.nan

    return value
