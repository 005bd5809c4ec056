"""Words in a row with a vector below each, two orders of the same words beside each other, and vectors in the plane.

orders_of     what becomes of every word, in one order and in another
phrases_of    the words of three phrases as points, and the one that is farthest along a direction
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame, shade
from ..widgets.convex import hull
from .sideways import wrapped

CELL, NAME = 17.0, 74.0


def signed(value: float, most: float) -> str:
    """A colour for a number of either sign."""
    return shade(min(abs(value) / most, 1.0) * 0.85, "accent" if value > 0 else "slate")


def orders_of(
    words: Sequence[str], before: Any, others: Sequence[str], after: Any, moved: Sequence[int], *, says: str
) -> str:
    """Outputs in both orders, a line from each word to where it went; `moved`: where each stood before."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    n, d = before.shape
    most, step = float(np.abs(before).max()), 34.0
    drawing = Drawing(2 * (NAME + d * CELL) + 130, n * step + 34)
    right = NAME + d * CELL + 130
    drawing.text((NAME + d * CELL / 2, 10), "outputs in this order", "faint", 12.5)
    drawing.text((right + d * CELL / 2, 10), "and in the other", "faint", 12.5)
    for place, old in enumerate(moved):
        same = bool(np.allclose(after[place], before[old], atol=1e-9))
        ends = (NAME + d * CELL + 6, 30 + (old + 0.5) * step), (right - NAME + 4, 30 + (place + 0.5) * step)
        drawing.line(*ends, "faint" if same else "accent", 1.3, "" if same else "3 4")
    for left, names, rows in ((NAME, words, before), (right, others, after)):
        for i, (name, row) in enumerate(zip(names, rows, strict=True)):
            top = 30 + i * step
            drawing.text((left - 10, top + step / 2), name, "ink", 14, "end")
            for j, value in enumerate(row):
                drawing.rect((left + j * CELL, top + 5), CELL - 1.5, step - 10, signed(float(value), most), round_=2)
    return drawing.svg(says)


@dataclass(frozen=True, eq=False)
class Laid:
    """A phrase laid out in the plane: its words, their vectors, where “cat” stands and which word it ought to read."""

    words: Sequence[str]
    x: Any
    cat: int
    wanted: int


def phrases_of(phrases: Sequence[Laid], direction: Any, *, says: str) -> str:
    """Every phrase in a plane of its own, with its hull, and the winner along a direction."""
    return wrapped([_phrase(phrase, np.asarray(direction, float), says) for phrase in phrases], 190)


def _phrase(phrase: Laid, u: Any, says: str) -> str:
    side = 230.0
    drawing = Drawing(side, side + 46)
    frame = Frame(14, 4, side - 28, side - 28, (0.1, 1.3), (0.15, 1.2))
    drawing.path([frame(point) for point in hull(phrase.x)], "hair", 1.2, "wash", closed=True)
    middle, scores = phrase.x.mean(0), phrase.x @ u
    best = scores >= scores.max() - 1e-9
    drawing.arrow(frame(middle), frame(middle + 0.3 * u), "faint", 1.6, 7)
    _words(drawing, frame, phrase, best)
    drawing.text((side / 2, side + 6), " ".join(phrase.words), "soft", 14, italic=True, serif=True)
    won = " and ".join(word for word, one in zip(phrase.words, best, strict=True) if one)
    drawing.text((side / 2, side + 28), f"wins: {won}", "accent" if best[phrase.wanted] else "faint", 14)
    return drawing.svg(f"{says}: {' '.join(phrase.words)}")


def _words(drawing: Drawing, frame: Frame, phrase: Laid, best: Any) -> None:
    """Each word at its vector; those at one place share their label."""
    places: dict[tuple[float, float], list[int]] = {}
    for number, point in enumerate(phrase.x):
        places.setdefault((round(float(point[0]), 9), round(float(point[1]), 9)), []).append(number)
    written: list[tuple[float, float]] = []
    for point, here in places.items():
        place = frame(point)
        wanted, won = phrase.wanted in here, any(best[one] for one in here)
        drawing.circle(place, 6 if wanted else 4.2, "accent" if wanted else "ink", "paper", 1)
        if won:
            drawing.circle(place, 10, "none", "accent", 1.8)
        label = " = ".join(phrase.words[one] for one in here)
        below = point[1] <= phrase.x[:, 1].mean()
        label_at = place[1] + (17 if below else -17)
        if any(abs(place[0] - x) < 28 and abs(label_at - y) < 12 for x, y in written):
            label_at = place[1] + (-17 if below else 17)
        written.append((place[0], label_at))
        drawing.text((place[0], label_at), label, "accent" if wanted else "ink", 12.5)
