"""Where a word stands: how the score of one and the same word changes from place to place, and an angle that turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame, shade


def stairs_of(scores: Any, here: int, *, says: str, hidden: Sequence[bool] = ()) -> str:
    """The score of the same key at every place, as seen from the query's place."""
    scores = np.asarray(scores, float)
    n = len(scores)
    drawing = Drawing(640, 250)
    low, high = min(float(scores.min()), 0.0), max(float(scores.max()), 0.0)
    room = (high - low) * 0.12 or 1.0
    frame = Frame(10, 16, 620, 190, (-0.5, n - 0.5), (low - room, high + room))
    zero = frame((0, 0))[1]
    drawing.line((frame.left, zero), (frame.left + frame.width, zero), "hair", 1)
    for place, score in enumerate(scores):
        x, y = frame((place, score))
        shut = bool(hidden) and hidden[place]
        tone = "hair" if shut else "accent" if place == here else "slate"
        drawing.line((x, zero), (x, y), tone, 3.4)
        drawing.circle((x, y), 5, "paper" if shut else tone, tone, 1.6)
        drawing.text((x, 222), str(place), "accent" if place == here else "faint", 12, bold=place == here)
    drawing.text((320, 242), "place of the key; the query stands at the coloured one", "faint", 12.5)
    return drawing.svg(says)


def waves_of(table: Any, *, says: str) -> str:
    """A table of positions, one row for each place, as cells."""
    table = np.asarray(table, float)
    n, d = table.shape
    cell = 640 / (d + 3)
    tall = min(cell, 13)
    drawing = Drawing(640, n * tall + 30)
    for i in range(n):
        for j in range(d):
            value = float(table[i, j])
            fill = shade(abs(value) * 0.85, "accent" if value > 0 else "slate")
            drawing.rect((40 + j * cell, i * tall), cell - 1, tall - 1, fill, round_=1)
        if i % 4 == 0:
            drawing.text((32, (i + 0.5) * tall), str(i), "faint", 11, "end")
    drawing.text((40, n * tall + 16), "← fast waves", "faint", 12, "start")
    drawing.text((40 + d * cell, n * tall + 16), "slow waves →", "faint", 12, "end")
    return drawing.svg(says)


def turned_of(q: Any, k: Any, i: int, j: int, turned: tuple[Any, Any], *, says: str) -> str:
    """A query and a key before and after they were turned by the angle of their places."""
    drawing, side = Drawing(560, 250), 210.0
    reach = 1.15 * float(max(np.linalg.norm(q), np.linalg.norm(k)))
    for number, (a, b, title) in enumerate(((q, k, "as they are"), (*turned, f"at places {i} and {j}"))):
        frame = Frame(30 + number * 290, 8, side, side, (-reach, reach), (-reach, reach))
        centre = frame((0, 0))
        drawing.circle(centre, side / 2.3, "none", "hair", 1)
        for vector, name, tone in ((a, "q", "accent"), (b, "k", "slate")):
            end = frame(vector)
            drawing.arrow(centre, end, tone, 2.6, 10)
            out = np.asarray(vector) * (1 + 0.13 * reach / float(np.linalg.norm(vector)))
            drawing.text(frame(out), name, tone, 16, italic=True, serif=True)
        product = float(np.dot(a, b))
        drawing.text((frame.left + side / 2, side + 26), f"{title}: q · k = {product:.2f}", "soft", 13)
    return drawing.svg(says)
