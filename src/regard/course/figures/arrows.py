"""Two vectors as arrows: their angle, the side between their ends, and what each measure makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import geometry
from ..._drawing.svg import Drawing, Frame

LANDMARKS = {0: "the same way", 90: "nothing in common", 180: "opposite ways"}


def landmarks_of(*, says: str) -> str:
    """Unit vectors at 0°, 90° and 180°, and the right triangle: a² + b² = c²."""
    drawing = Drawing(700, 236)
    x = np.array([1.0, 0.0])
    for at, (degrees, name) in enumerate(LANDMARKS.items()):
        frame = Frame(at * 162, 20, 150, 110, (-1.1, 1.1), (-0.45, 1.16))
        y = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        lift = -0.09 if degrees == 0 else 0.0
        back = np.array([0.5 if degrees == 0 else 0.0, 0.0])  # what lies to one side is moved to the middle
        if degrees:
            drawing.line(frame(x), frame(y), "faint", 1.5, "3 4")
        drawing.arrow(frame(np.array([0, lift]) - back), frame(x - back + np.array([0, lift])), "slate", 2.6)
        drawing.arrow(frame(-back), frame(y - back), "accent", 2.6)
        drawing.circle(frame(-back), 2.6, "ink")
        middle = at * 162 + 75
        drawing.text((middle, 152), f"{degrees}°", "ink", 15, bold=True)
        drawing.text((middle, 172), name, "soft", 15)
        turned = f"cosine {float(geometry.cosine(x, y)):+.0f}".replace("+0", "0").replace("-", "−")
        drawing.text((middle, 196), turned, "soft", 15)
        drawing.text((middle, 217), f"distance {float(geometry.distance(x, y)):.2f}", "soft", 15)
    _triangle(drawing, 500)
    return drawing.svg(says)


def _triangle(drawing: Drawing, left: float) -> None:
    """A right triangle with the squares over its sides."""
    unit, a, b = 18.0, 4.0, 3.0
    corner = np.array([left + 62, 136.0])
    wide, high = np.array([a * unit, 0.0]), np.array([0.0, b * unit])
    right, up = corner + wide, corner - high
    normal = np.array([b, -a]) * unit
    drawing.path([corner, right, right + wide[::-1], corner + wide[::-1]], "hair", 1, "wash", closed=True)
    drawing.path([corner, up, up - high[::-1], corner - high[::-1]], "hair", 1, "wash", closed=True)
    drawing.path([right, up, up + normal, right + normal], "hair", 1, "wash", closed=True)
    drawing.path([corner + np.array(one) for one in ((9, 0), (9, -9), (0, -9))], "faint", 1)
    drawing.line(right, up, "ink", 2)
    drawing.arrow(corner, right, "slate", 2.6)
    drawing.arrow(corner, up, "accent", 2.6)
    for place, text in (
        (corner + (wide + wide[::-1]) / 2, f"{a * a:.0f}"),
        (corner - (high + high[::-1]) / 2, f"{b * b:.0f}"),
        ((right + up + normal) / 2, f"{a * a + b * b:.0f}"),
    ):
        drawing.text(place, text, "soft", 15)


def pair_of(x: Any, y: Any, *, says: str) -> str:
    """Two vectors in the plane, and over all angles the distance, the dot product and the cosine."""
    drawing, frame = Drawing(700, 310), Frame(0, 6, 298, 298, (-2.15, 2.15), (-2.15, 2.15))
    for radius in (1, 2):
        drawing.circle(frame((0, 0)), radius * 298 / 4.3, "none", "hair", 1)
    start, end = np.arctan2(x[1], x[0]), np.arctan2(y[1], y[0])
    turn = np.pi - (np.pi + start - end) % (2 * np.pi)  # half a turn is one to the left
    sweep = np.linspace(start, start + turn, 40)
    drawing.path([frame((0.32 * np.cos(one), 0.32 * np.sin(one))) for one in sweep], "faint", 1.5)
    drawing.line(frame(x), frame(y), "accent2", 2, "4 4")
    for vector, tone, name in ((x, "slate", "x"), (y, "accent", "y")):
        drawing.arrow(frame((0, 0)), frame(vector), tone, 3, 11)
        away = np.asarray(vector) * (1 + 0.2 / max(float(geometry.norm(vector)), 1e-9))
        drawing.text(frame(away), name, tone, 17, italic=True, serif=True)
    _over_angles(drawing, x, y)
    return drawing.svg(says)


def _over_angles(drawing: Drawing, x: Any, y: Any) -> None:
    length, now = float(geometry.norm(y)), float(np.degrees(geometry.angle(x, y)))
    degrees = np.linspace(0, 180, 91)
    turned = length * np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=-1)
    straight = np.array([float(geometry.norm(x)), 0.0])
    frame = Frame(352, 18, 240, 250, (0, 180), (-2.1, 3.1))
    drawing.line(frame((0, 0)), frame((180, 0)), "hair", 1.2)
    for tick in (0, 45, 90, 135, 180):
        drawing.line(frame((tick, -2.1)), frame((tick, 3.1)), "hair", 1)
        drawing.text((frame((tick, 0))[0], 282), f"{tick}°", "faint", 14)
    for tick in (-2, -1, 0, 1, 2, 3):
        drawing.text((344, frame((0, tick))[1]), f"{tick}", "faint", 14, "end")
    curves: Mapping[str, tuple[str, Any, float]] = {
        "distance": ("accent2", geometry.distance(straight, turned), float(geometry.distance(x, y))),
        "dot product": ("ink", geometry.inner(straight, turned), float(geometry.inner(x, y))),
        "cosine": ("faint", geometry.cosine(straight, turned), float(geometry.cosine(x, y))),
    }
    for tone, values, _ in curves.values():
        drawing.path([frame(point) for point in zip(degrees, np.asarray(values), strict=True)], tone, 2)
    drawing.line(frame((now, -2.1)), frame((now, 3.1)), "accent", 1.5, "2 3")
    ends = {name: frame((180, float(values[-1])))[1] for name, (_, values, _) in curves.items()}
    for name, height in _apart(ends, 34).items():
        tone, _, value = curves[name]
        drawing.circle(frame((now, value)), 4.5, tone)
        drawing.text((602, height - 7), name, tone, 15, "start")
        drawing.text((602, height + 9), f"{value:.2f}".replace("-", "−"), tone, 16, "start", bold=True)


def _apart(places: Mapping[str, float], least: float) -> dict[str, float]:
    """Heights of labels, moved down where they would touch."""
    moved: dict[str, float] = {}
    below = -np.inf
    for name, height in sorted(places.items(), key=lambda one: one[1]):
        below = max(height, below + least)
        moved[name] = below
    over = max(0.0, below - 256)  # above the numbers of the axis
    return {name: height - over for name, height in moved.items()}


def people_of(names: Sequence[str], rows: Any, unit: str, *, says: str) -> str:
    """People by height and shoe size, both drawn to one scale, and who is nearest to the first."""
    rows = np.asarray(rows, float)
    far = np.asarray(geometry.distances(rows[:1], rows)[0])
    nearest = 1 + int(np.argmin(far[1:]))
    drawing, middle = Drawing(700, 330), rows[0]
    span = np.abs(rows - middle).max(axis=0)
    scale = min(290 / span[0], 130 / span[1])

    def place(row: Any) -> tuple[float, float]:
        return 330 + float(row[0] - middle[0]) * scale, 158 - float(row[1] - middle[1]) * scale

    drawing.circle(place(middle), far[nearest] * scale, "wash", "accent", 1.2)
    drawing.line((10, 318), (690, 318), "hair", 1.2)
    drawing.text((690, 306), f"height in {unit} →", "faint", 15, "end")
    drawing.text((14, 12), "↑ shoe size", "faint", 15, "start")
    drawing.line(place(middle), place(rows[nearest]), "accent", 2)
    for at, (name, row) in enumerate(zip(names, rows, strict=True)):
        tone = "accent" if at in (0, nearest) else "slate"
        drawing.circle(place(row), 6 if at == 0 else 5, tone)
        right = at > 0 and row[0] <= middle[0] + 0.6 * span[0]
        spot = place(row)
        text = name if at == 0 else f"{name}  {far[at]:.2f}"
        drawing.text((spot[0] + (11 if right else -11), spot[1] - 11), text, tone, 16, "start" if right else "end")
    return drawing.svg(says)
