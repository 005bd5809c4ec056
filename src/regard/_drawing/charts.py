"""Charts: marks between two axes, bars, and the shades of a matrix.

    chart(Axis("angle", 0, 180), Axis("distance", 0, 2), Line(degrees, apart), Dots([180], [2], "accent", ["opposite"]))

A mark is a value that draws itself into a frame. A tone is the name of a colour of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from .axes import Axis, axes, signed
from .svg import Drawing, Frame, colour

Numbers = Any
"""Numbers in a row: a list, or an array."""
LEVELS = 5  # shades of a matrix, of each sign
WIDE = 380  # a chart beside a text


class Mark(Protocol):
    """What is drawn into a frame."""

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add it."""


@dataclass(frozen=True)
class Line:
    """A line through points."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add it."""
        drawing.path(frame.places(self.xs, self.ys), self.tone, 2)


@dataclass(frozen=True)
class Area:
    """The inside of a polygon."""

    xs: Numbers
    ys: Numbers

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add it."""
        drawing.path(frame.places(self.xs, self.ys), "none", 0, "hair", closed=True, opacity=0.65)


@dataclass(frozen=True)
class Dots:
    """Points; those with a name have it above them."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"
    names: Sequence[str] = ()
    size: float = 6

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add them, as one path."""
        places = frame.places(self.xs, self.ys)
        path = "".join(f"M{x:.1f} {y:.1f}h.01" for x, y in places)
        drawing.add("path", d=path, fill="none", stroke=colour(self.tone), stroke_width=self.size,
                    stroke_linecap="round")  # fmt: skip
        for (x, y), name in zip(places, self.names, strict=False):
            drawing.text((x, y - 12), name, self.tone, 11.5, bold=self.tone == "accent")


@dataclass(frozen=True)
class Columns:
    """Upright bars from 0, each `wide` of the axis across."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"
    wide: float = 0.8

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add them."""
        for x, y in zip(self.xs, self.ys, strict=True):
            (left, one), (right, other) = frame((x - self.wide / 2, 0)), frame((x + self.wide / 2, y))
            drawing.rect((left, min(one, other)), right - left, abs(one - other), self.tone)


@dataclass(frozen=True)
class Upright:
    """A broken line at one place, with a word above it."""

    at: float
    name: str

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        """Add it."""
        x, low = frame((self.at, frame.y[0]))
        drawing.line((x, frame.top), (x, low), "faint", 1, "3 4")
        drawing.text((x, frame.top - 12), self.name, "ink", 11.5)


def chart(across: Axis, up: Axis, *marks: Mark, width: float = WIDE, height: float = 236, title: str = "") -> str:
    """Marks between two axes."""
    drawing = Drawing(width, height)
    frame = Frame(46, 26, width - 60, height - 66, (across.low, across.high), (up.low, up.high))
    axes(drawing, frame, across, up)
    for mark in marks:
        mark.draw(drawing, frame)
    return drawing.svg(title or f"{up.name} against {across.name}")


def bars(values: Mapping[str, float], told: AbstractSet[str] = frozenset(), most: float | None = None) -> str:
    """A bar for each name, its number behind it; those that are told of have the accent."""
    most, step, room = most or max(values.values()), 26, 16 + 6.4 * max(map(len, values))
    drawing, longest = Drawing(WIDE, step * len(values) + 4), WIDE - room - 48  # behind it is room for its number
    said = {name: signed(f"{value:.3g}") for name, value in values.items()}
    for place, (name, value) in enumerate(values.items()):
        y, size = place * step + 13, max(1.0, longest * value / most)
        drawing.text((room - 8, y), name, "faint", 11.5, "end")
        drawing.rect((room, y - 8), size, 16, "accent" if name in told else "ink", round_=1.5)
        drawing.text((room + size + 7, y), said[name], "ink", 11.5, "start")
    return drawing.svg(", ".join(f"{name} {number}" for name, number in said.items()))


def shades(matrix: Numbers, says: str, cell: float = 7) -> str:
    """A matrix as shades: the accent where it is positive, ink where it is negative; one path for each shade."""
    largest = max(abs(float(value)) for row in matrix for value in row) or 1.0
    found: dict[tuple[str, int], list[str]] = {}
    for down, row in enumerate(matrix):
        for right, value in enumerate(row):
            level = min(LEVELS, round(LEVELS * abs(float(value)) / largest))
            square = f"M{right * cell:g} {down * cell:g}h{cell:g}v{cell:g}h-{cell:g}z"
            found.setdefault(("accent" if value > 0 else "ink", level), []).append(square)
    drawing = Drawing(cell * len(matrix[0]), cell * len(matrix))
    drawing.rect((0, 0), drawing.width, drawing.height, "none", "hair")
    for (tone, level), squares in sorted(found.items()):
        if level:
            drawing.add("path", d="".join(squares), fill=colour(tone), opacity=level / LEVELS)
    return drawing.svg(says)
