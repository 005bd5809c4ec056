"""Axes: two sides of a frame, with round numbers along them and a name for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .svg import Drawing, Frame


@dataclass(frozen=True)
class Axis:
    """From low to high, with a name; `ticks` names the numbers to mark, round ones without."""

    name: str
    low: float
    high: float
    ticks: Mapping[float, str] | None = None

    def marked(self) -> Mapping[float, str]:
        """The numbers that are marked, and their words."""
        return round_ticks(self.low, self.high) if self.ticks is None else self.ticks


def round_ticks(low: float, high: float, steps: int = 4) -> dict[float, str]:
    """Round numbers between two, in about so many steps.

    >>> round_ticks(0, 2), round_ticks(-7, 8)
    ({0.0: '0', 0.5: '0.5', 1.0: '1', 1.5: '1.5', 2.0: '2'}, {-5.0: '−5', 0.0: '0', 5.0: '5'})
    """
    rough = (high - low) / steps or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((size * power for size in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return {(value := round(at * step, 12) + 0.0): signed(f"{value:g}") for at in range(first, last + 1)}


def signed(text: str) -> str:
    """A number with a true minus."""
    return text.replace("-", "−")


def axes(drawing: Drawing, frame: Frame, across: Axis, up: Axis) -> None:
    """Lines at the height of each number that is marked, the numbers, and both names."""
    left, right, bottom = frame.left, frame.left + frame.width, frame.top + frame.height
    for tick, word in up.marked().items():
        y = frame((across.low, tick))[1]
        drawing.line((left, y), (right, y), "hair", 1)
        drawing.text((left - 8, y), word, "faint", 11.5, "end")
    drawing.line((left, bottom), (right, bottom), "faint", 1)
    for tick, word in across.marked().items():
        x = frame((tick, up.low))[0]
        drawing.line((x, bottom), (x, bottom + 3), "faint", 1)
        drawing.text((x, bottom + 14), word, "faint", 11.5)
    drawing.text(((left + right) / 2, bottom + 33), across.name, "soft", 12.5)
    drawing.text((left - 44, frame.top - 16), up.name, "soft", 12.5, "start")
