"""Small figures for the ledger's page, written as SVG and HTML from numbers alone.

    chart(Axis("angle", 0, 180), Axis("distance", 0, 2), Line(degrees, apart), Dots([180], [2], "accent", ["opposite"]))

A mark is a value that draws itself into a frame; `bars`, `heat` and `grid` are figures of their own, and `side_by_side`
joins some. A tone is "ink", "accent" or "faint": the page's style says which colour that is, on light and on dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

Numbers = Any
"""Numbers in a row: a list, or an array."""
LEVELS = 5  # shades of a heat map, of each sign


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

    def share(self, value: float) -> float:
        """Where a number lies, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def round_ticks(low: float, high: float) -> dict[float, str]:
    """About four round numbers between two.

    >>> round_ticks(0, 2), round_ticks(-7, 8)
    ({0.0: '0', 0.5: '0.5', 1.0: '1', 1.5: '1.5', 2.0: '2'}, {-5.0: '−5', 0.0: '0', 5.0: '5'})
    """
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((size * power for size in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return {(value := round(at * step, 12) + 0.0): short(value) for at in range(first, last + 1)}


def short(value: float) -> str:
    """A number in few signs, with a true minus."""
    return f"{value:.3g}".replace("-", "−")


@dataclass(frozen=True)
class Frame:
    """Where two axes lie in a drawing; sizes in pixels."""

    across: Axis
    up: Axis
    width: float = 380
    height: float = 236
    left, right, top, bottom = 46, 14, 26, 40

    def x(self, value: float) -> float:
        """Where a number of the axis across lies."""
        return self.left + self.across.share(value) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Where a number of the axis up lies: 0 is above."""
        return self.height - self.bottom - self.up.share(value) * (self.height - self.top - self.bottom)

    def path(self, xs: Numbers, ys: Numbers) -> str:
        """A line through points."""
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))


class Mark(Protocol):
    """What is drawn into a frame."""

    def draw(self, frame: Frame) -> str:
        """As SVG."""


@dataclass(frozen=True)
class Line:
    """A line through points."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"

    def draw(self, frame: Frame) -> str:
        """As SVG."""
        return f'<path class="line {self.tone}" d="{frame.path(self.xs, self.ys)}"/>'


@dataclass(frozen=True)
class Area:
    """The inside of a polygon."""

    xs: Numbers
    ys: Numbers
    tone: str = "faint"

    def draw(self, frame: Frame) -> str:
        """As SVG."""
        return f'<path class="area {self.tone}" d="{frame.path(self.xs, self.ys)}Z"/>'


@dataclass(frozen=True)
class Dots:
    """Points; those with a name have it above them."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"
    names: Sequence[str] = ()
    size: float = 6

    def draw(self, frame: Frame) -> str:
        """As SVG."""
        places = [(frame.x(x), frame.y(y)) for x, y in zip(self.xs, self.ys, strict=True)]
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        words = (_text(x, y - 8, name, f"name {self.tone}") for (x, y), name in zip(places, self.names, strict=False))
        return f'<path class="dots {self.tone}" stroke-width="{self.size:g}" d="{path}"/>{"".join(words)}'


@dataclass(frozen=True)
class Columns:
    """Upright bars from 0, each `wide` of the axis across."""

    xs: Numbers
    ys: Numbers
    tone: str = "ink"
    wide: float = 0.8

    def draw(self, frame: Frame) -> str:
        """As SVG."""
        half, floor = self.wide / 2, frame.y(0)
        path = "".join(
            f"M{frame.x(x - half):.1f} {floor:.1f}V{frame.y(y):.1f}H{frame.x(x + half):.1f}V{floor:.1f}Z"
            for x, y in zip(self.xs, self.ys, strict=True)
        )
        return f'<path class="columns {self.tone}" d="{path}"/>'


@dataclass(frozen=True)
class Upright:
    """A broken line at one place, with a word above it."""

    at: float
    name: str

    def draw(self, frame: Frame) -> str:
        """As SVG."""
        x = frame.x(self.at)
        line = f'<path class="rule" d="M{x:.1f} {frame.top}V{frame.height - frame.bottom}"/>'
        return line + _text(x, frame.top - 8, self.name, "name")


def chart(across: Axis, up: Axis, *marks: Mark, width: float = 380, height: float = 236, title: str = "") -> str:
    """Marks between two axes."""
    frame = Frame(across, up, width, height)
    low, left = frame.height - frame.bottom, frame.left
    lines = "".join(f"M{left} {frame.y(at):.1f}H{width - frame.right}" for at in up.marked())
    parts = [f'<path class="net" d="{lines}"/><path class="axis" d="M{left} {low}H{width - frame.right}"/>']
    parts += [_text(left - 7, frame.y(at) + 4, word, "tick end") for at, word in up.marked().items()]
    parts += [_text(frame.x(at), low + 16, word, "tick") for at, word in across.marked().items()]
    parts += [_text((left + width - frame.right) / 2, height - 5, across.name, "title")]
    parts += [_text(2, 11, up.name, "title start"), *(mark.draw(frame) for mark in marks)]
    return _svg(width, height, "".join(parts), title or f"{up.name} against {across.name}")


def bars(values: Mapping[str, float], told: set[str] | frozenset[str] = frozenset(), most: float | None = None) -> str:
    """A bar for each name, its number behind it; those that are told of have the accent."""
    most, height, room = most or max(values.values()), 26, 16 + 6.4 * max(map(len, values))
    long = 380 - room - 48  # behind the longest bar there is room for its number
    parts = []
    for place, (name, value) in enumerate(values.items()):
        y, size = place * height, max(1.0, long * value / most)
        tone = "accent" if name in told else "ink"
        parts.append(_text(room - 8, y + 17, name, "tick end"))
        parts.append(
            f'<rect class="columns {tone}" x="{room:.1f}" y="{y + 5}" width="{size:.1f}" height="16" rx="1.5"/>'
        )
        parts.append(_text(room + size + 7, y + 17, short(value), "name start"))
    return _svg(380, height * len(values) + 4, "".join(parts), ", ".join(f"{k} {short(v)}" for k, v in values.items()))


def heat(matrix: Numbers, title: str, cell: float = 7, most: float | None = None) -> str:
    """A matrix as shades: the accent where it is positive, ink where it is negative."""
    largest = most or max(abs(float(value)) for row in matrix for value in row) or 1.0
    shades: dict[tuple[str, int], list[str]] = {}
    for down, row in enumerate(matrix):
        for right, value in enumerate(row):
            level = min(LEVELS, round(LEVELS * abs(float(value)) / largest))
            tone = "accent" if value > 0 else "ink"
            shades.setdefault((tone, level), []).append(
                f"M{right * cell:g} {down * cell:g}h{cell:g}v{cell:g}h-{cell:g}z"
            )
    paths = (
        f'<path class="columns {tone}" opacity="{level / LEVELS:g}" d="{"".join(cells)}"/>'
        for (tone, level), cells in sorted(shades.items())
        if level
    )
    width, height = cell * len(matrix[0]), cell * len(matrix)
    frame = f'<rect class="frame" width="{width:g}" height="{height:g}"/>'
    return f'<div class="map"><p>{escape(title)}</p>{_svg(width, height, frame + "".join(paths), title)}</div>'


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A small table; the first cell of a row is its name."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    return f'<table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def side_by_side(*parts: str) -> str:
    """Figures in a row, as far as there is room."""
    return f'<div class="beside">{"".join(parts)}</div>'


def _svg(width: float, height: float, inside: str, told: str) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg class="chart" {size} role="img" aria-label="{escape(told)}">{inside}</svg>'


def _text(x: float, y: float, words: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'
