"""Why a weight rises: values in the plane, what is wanted, and the line that δ draws between them.

∂L/∂s_j = w_j (dy · v_j − δ),   δ = dy · y:        the values with dy · v_j = δ lie on a line through y
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame


def pull_of(
    values: Any, weights: Any, changes: Any, trace: Any, target: Sequence[float], slope: Any, level: float, *, says: str
) -> str:
    """Values as discs as large as their weight, each with how its score is about to move.

    changes: −∂L/∂s_j;  trace: where y was, the last where it is;  slope: dy;  level: the line is dy · v = level
    """
    drawing, frame = Drawing(640, 430), Frame(110, 12, 420, 406, (-1.62, 1.62), (-1.57, 1.57))
    slope = np.asarray(slope, float)
    size = float(np.linalg.norm(slope))
    if size > 1e-9:
        _line(drawing, frame, slope / size, level / size)
    drawing.path([frame(point) for point in trace], "ink", 1.6, dash="1 5")
    y = trace[-1]
    if size > 1e-9:
        drawing.arrow(frame(y), frame(target), "accent", 2, 10, 0.85)
    for j, (value, weight, change) in enumerate(zip(values, weights, changes, strict=True)):
        rises = change > 0
        place, tone = frame(value), "accent2" if rises else "slate"
        radius = 4 + 34 * float(np.sqrt(weight))
        drawing.circle(place, radius, tone, "paper", 1.5, 0.85)
        if radius > 14:
            drawing.text(place, f"{weight:.2f}", "paper", 11.5)
        arrow = "▲" if rises else "▼"
        below = place[1] + radius + 11 if value[1] < 0 else place[1] - radius - 11
        drawing.text((place[0], below), f"v{'₁₂₃₄₅₆₇₈₉'[j]} {arrow} {abs(change):.2f}", tone, 12)
    drawing.circle(frame(y), 6, "ink", "paper", 2)
    _told(drawing, frame, y, "y")
    drawing.circle(frame(target), 7, "none", "accent", 2.4)
    drawing.circle(frame(target), 2, "accent")
    _told(drawing, frame, target, "wanted")
    return drawing.svg(says)


def _told(drawing: Drawing, frame: Frame, point: Sequence[float], word: str) -> None:
    across, down = frame(point)
    drawing.text((across + 12, down - 13), word, "ink", 13.5, "start", italic=True, serif=True)


def _line(drawing: Drawing, frame: Frame, along: Any, level: float) -> None:
    """dy · v = level, with a wash on the side where scores rise: dy · v < level."""
    across, far = np.array([-along[1], along[0]]), 9.0
    foot = along * level
    corners = [foot - across * far, foot + across * far, foot + across * far - along * far,
               foot - across * far - along * far]  # fmt: skip
    kept = _clipped(corners, frame)
    if len(kept) > 2:
        drawing.path([frame(point) for point in kept], "none", 0, "wash", closed=True)
    ends = [point for point in kept if abs(float(point @ along) - level) < 1e-6]
    if len(ends) >= 2:
        drawing.line(frame(ends[0]), frame(ends[-1]), "faint", 1.3, "6 5")


def _clipped(corners: list[Any], frame: Frame) -> list[Any]:
    """A polygon cut to the frame, side after side."""
    bounds = [(0, 1, frame.x[1]), (0, -1, -frame.x[0]), (1, 1, frame.y[1]), (1, -1, -frame.y[0])]
    kept = corners
    for axis, sign, most in bounds:
        found = []
        for a, b in zip(kept, [*kept[1:], *kept[:1]], strict=True):
            inside, next_inside = sign * a[axis] <= most, sign * b[axis] <= most
            if inside:
                found.append(a)
            if inside != next_inside:
                share = (most - sign * a[axis]) / (sign * b[axis] - sign * a[axis])
                found.append(a + share * (b - a))
        kept = found
        if not kept:
            break
    return kept
