"""Drawing: shapes collected into one SVG, in the colours of the page.

    drawing = Drawing(400, 300)
    drawing.arrow((0, 0), (1, 2)); drawing.text((1, 2), "q"); drawing.svg("what it shows")

A `Frame` turns numbers into places: x to the right, y upwards. Colours are names of the page's variables, so that one
picture serves paper and night.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

Point = Any  # two numbers: a tuple, a list, an array
NAMED = {"paper", "ink", "soft", "faint", "hair", "accent", "accent2", "slate", "wash"}


def colour(name: str) -> str:
    """A variable of the page by its name; other colours as they are."""
    return f"var(--{name})" if name in NAMED else name


def shade(share: float, name: str = "accent2") -> str:
    """A colour between paper (0) and full (1), evenly for the eye."""
    share = min(max(float(share), 0.0), 1.0)
    return f"color-mix(in oklab, {colour(name)} {100 * share:.1f}%, var(--paper))"


def upon(share: float) -> str:
    """The colour of a text upon such a shade: one that can be read by day and by night."""
    return "paper" if share > 0.75 else "ink" if share > 0.3 else "soft"


@dataclass(frozen=True)
class Frame:
    """A rectangle of the drawing that stands for a rectangle of numbers."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)

    def __call__(self, point: Point) -> tuple[float, float]:
        """Where a point stands on the drawing."""
        across = (point[0] - self.x[0]) / (self.x[1] - self.x[0])
        up = (point[1] - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def places(self, xs: Iterable[float], ys: Iterable[float]) -> list[tuple[float, float]]:
        """Where the points of two rows of numbers stand."""
        return [self(point) for point in zip(xs, ys, strict=True)]


class Drawing:
    """A picture of so many pixels; a page that is narrower scales it, and knows its width as --wide."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height, self.parts = width, height, list[str]()

    def add(self, name: str, inside: str = "", **given: Any) -> None:
        """Any element; stroke_width is stroke-width, class_ is class."""
        said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_number(value)}"' for key, value in given.items())
        self.parts.append(f"<{name}{said}>{inside}</{name}>" if inside else f"<{name}{said}/>")

    def line(
        self, start: Point, end: Point, stroke: str = "ink", width: float = 1.5, dash: str = "", opacity: float = 1
    ) -> None:
        """A straight line."""
        dashed = {"stroke_dasharray": dash} if dash else {}
        self.add("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=colour(stroke), stroke_width=width,
                 stroke_linecap="round", opacity=opacity, **dashed)  # fmt: skip

    def path(self, points: Iterable[Point], stroke: str = "ink", width: float = 1.5, fill: str = "none", dash: str = "",
             closed: bool = False, opacity: float = 1) -> None:  # fmt: skip
        """A line through many points."""
        text = "M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in points) + ("Z" if closed else "")
        dashed = {"stroke_dasharray": dash} if dash else {}
        self.add("path", d=text, fill=colour(fill), stroke=colour(stroke), stroke_width=width, stroke_linejoin="round",
                 stroke_linecap="round", opacity=opacity, **dashed)  # fmt: skip

    def arrow(
        self, start: Point, end: Point, stroke: str = "ink", width: float = 2, head: float = 8, opacity: float = 1
    ) -> None:
        """A line with a head at its end."""
        a, b = np.asarray(start, float), np.asarray(end, float)
        length = float(np.linalg.norm(b - a)) or 1.0
        along = (b - a) / length
        across = np.array([-along[1], along[0]])
        neck = b - along * min(head, length)
        self.line(a, neck, stroke, width, opacity=opacity)
        corners = [b, neck + across * head * 0.42, neck - across * head * 0.42]
        self.path(corners, "none", 0, stroke, closed=True, opacity=opacity)

    def circle(
        self,
        centre: Point,
        radius: float,
        fill: str = "ink",
        stroke: str = "none",
        width: float = 1.5,
        opacity: float = 1,
    ) -> None:
        """A disc, a ring, or both."""
        self.add(
            "circle",
            cx=centre[0],
            cy=centre[1],
            r=radius,
            fill=colour(fill),
            stroke=colour(stroke),
            stroke_width=width,
            opacity=opacity,
        )

    def rect(
        self,
        corner: Point,
        width: float,
        height: float,
        fill: str = "none",
        stroke: str = "none",
        line: float = 1,
        round_: float = 0,
    ) -> None:
        """A rectangle from its upper left corner."""
        self.add("rect", x=corner[0], y=corner[1], width=width, height=height, fill=colour(fill), stroke=colour(stroke),
                 stroke_width=line, rx=round_)  # fmt: skip

    def text(self, place: Point, says: str, fill: str = "ink", size: float = 13, anchor: str = "middle",
             italic: bool = False, serif: bool = False, bold: bool = False) -> None:  # fmt: skip
        """Words; the place is the middle of their height."""
        look = {"font_style": "italic"} if italic else {}
        look |= {"font_family": "var(--serif)"} if serif else {}
        look |= {"font_weight": "600"} if bold else {}
        self.add("text", escape(says), x=place[0], y=place[1], dy="0.35em", fill=colour(fill), font_size=size,
                 text_anchor=anchor, **look)  # fmt: skip

    def svg(self, says: str) -> str:
        """The picture; `says` is read aloud to those who cannot see it."""
        width, height, inside = _number(self.width), _number(self.height), "".join(self.parts)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" style="--wide:{width}px"'
        return f'<svg class="drawing" {size} role="img"><title>{escape(says)}</title>{inside}</svg>'


def _number(value: Any) -> str:
    if isinstance(value, str):
        return escape(value, quote=True)
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
