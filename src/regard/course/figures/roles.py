"""Asking and answering: who needs whom, the two arrows of one point, and scores that need not be symmetric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame, shade
from .photograph import as_grey, place_image


def directed_of(asks: Any, answers: Any, *, says: str) -> str:
    """Boat and water, and the two scores between them: an arrow from who asks to who is asked, as wide as the score."""
    drawing, side, right = Drawing(700, 226), 138.0, 700 - 138.0
    for left, name in ((0.0, "boat"), (right, "water")):
        drawing.rect((left, 24), side, side, "wash", "hair", 1, 8)
        drawing.text((left + side / 2, 10), name, "ink", 15, bold=True)
    _boat(drawing, (side / 2, 100))
    for row in range(4):
        _wave(drawing, (right + 16, 58 + row * 24), side - 32, "slate")
    for at, left in enumerate((0.0, right)):
        drawing.text((left + side / 2, 182), f"asks {_told(asks[at])}", "accent", 16)
        drawing.text((left + side / 2, 202), f"answers {_told(answers[at])}", "slate", 16)
    for from_, to, height, start, end in ((0, 1, 66.0, side + 16, right - 16), (1, 0, 134.0, right - 16, side + 16)):
        score = float(asks[from_] * answers[to])
        width = 1.2 + 1.9 * min(abs(score), 12) ** 0.75
        drawing.arrow((start, height), (end, height), "accent" if score >= 0 else "slate", width, 10 + 1.7 * width)
        names = "boat", "water"
        told = f"{names[from_]} to {names[to]}: {_told(asks[from_])} × {_told(answers[to])} = {_told(score)}"
        drawing.text((350, height - 12 - width / 2), told, "ink", 16)
    return drawing.svg(says)


def _told(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


def _boat(drawing: Drawing, centre: tuple[float, float]) -> None:
    x, y = centre
    drawing.path(
        [(x - 40, y + 14), (x + 40, y + 14), (x + 26, y + 32), (x - 28, y + 32)], "none", 0, "ink", closed=True
    )
    drawing.line((x - 4, y + 14), (x - 4, y - 44), "ink", 2.5)
    drawing.path([(x, y - 42), (x + 30, y + 6), (x, y + 6)], "none", 0, "accent", closed=True)
    drawing.path([(x - 8, y - 32), (x - 28, y + 6), (x - 8, y + 6)], "none", 0, "soft", closed=True)


def _wave(drawing: Drawing, corner: tuple[float, float], width: float, tone: str) -> None:
    across = np.linspace(0, 1, 60)
    drawing.path([(corner[0] + width * one, corner[1] + 4 * np.sin(one * 6 * np.pi)) for one in across], tone, 2.2)


def signed_of(
    scores: Any, rows: Sequence[str], columns: Sequence[str], *, says: str, cell: float = 62,
    lit: Sequence[tuple[int, int]] = (), digits: int = 1, most: float | None = None, corner: str = "",
) -> str:  # fmt: skip
    """A matrix whose entries have signs: one colour above zero, another below; some cells are marked."""
    scores = np.asarray(scores, float)
    top = float(np.abs(scores).max()) if most is None else most
    left, head = 18 + 8.5 * max((len(name) for name in rows), default=0), 30.0
    drawing = Drawing(left + scores.shape[1] * cell + 6, head + scores.shape[0] * cell + 6)
    for i, row in enumerate(scores):
        for j, value in enumerate(row):
            share = min(abs(value) / (top or 1), 1)
            place = (left + j * cell, head + i * cell)
            tone = shade(0.92 * share, "accent" if value > 0 else "slate")
            drawing.rect(place, cell - 2, cell - 2, tone, round_=3)
            text = f"{value:.{digits}f}".replace("-", "−")
            drawing.text((place[0] + cell / 2 - 1, place[1] + cell / 2 - 1), text, "paper" if share > 0.75 else "ink",
                         cell * 0.25)  # fmt: skip
    for i, j in lit:
        drawing.rect((left + j * cell - 1, head + i * cell - 1), cell, cell, "none", "ink", 2.4, 4)
    for i, name in enumerate(rows):
        drawing.text((left - 10, head + (i + 0.5) * cell), name, "ink", 13.5, "end")
    for j, name in enumerate(columns):
        drawing.text((left + (j + 0.5) * cell, head - 14), name, "ink", 13.5)
    if corner:
        drawing.text((left - 10, head - 14), corner, "faint", 12.5, "end")
    return drawing.svg(says)


def turned_of(q: Any, k: Any, names: Sequence[str], *, says: str) -> str:
    """Each point as it asks and as it answers: two arrows from the origin."""
    side = 330.0
    drawing, frame = Drawing(side, side), Frame(0, 0, side, side, (-1.55, 1.55), (-1.55, 1.55))
    drawing.circle(frame((0, 0)), side / 3.1, "none", "hair", 1)
    for at, name in enumerate(names):
        drawing.arrow(frame((0, 0)), frame(k[at]), "slate", 6, 15)
        drawing.arrow(frame((0, 0)), frame(q[at]), "accent", 2.6, 10)
        apart = float(np.linalg.norm(np.asarray(q[at]) - np.asarray(k[at]))) > 0.3
        for vector, letter, tone in ((q[at], "q", "accent"), (k[at], "k", "slate")):
            if not apart and letter == "k":
                continue
            away = np.asarray(vector) * (1 + 0.24 / float(np.linalg.norm(vector)))
            drawing.text(frame(away), f"{letter} {name}" if apart else name, tone if apart else "ink", 16)
    return drawing.svg(says)


def middle_of(matrix: Any, sizes: Any, rank: int, *, says: str) -> str:
    """The matrix in the middle as a picture, and its singular values."""
    drawing, side = Drawing(700, 290), 250.0
    top = float(np.abs(matrix).max())
    place_image(drawing, as_grey(matrix, -top, top), (0, 6), side, side)
    drawing.rect((0, 6), side, side, "none", "hair")
    drawing.text((side / 2, side + 24), f"M: {len(matrix)} × {len(matrix)}", "soft", 16)
    frame = Frame(320, 6, 370, side, (0, len(sizes)), (0, float(np.max(sizes)) * 1.05))
    wide = frame.width / len(sizes)
    for at, size in enumerate(sizes):
        tip = frame((at, float(size)))
        drawing.rect(
            (tip[0], tip[1]), wide * 0.78, frame.top + frame.height - tip[1], "accent" if at < rank else "faint"
        )
    drawing.line((320, side + 6), (690, side + 6), "hair", 1.2)
    drawing.text((505, side + 24), f"its singular values: {rank} above zero, {len(sizes) - rank} at zero", "soft", 16)
    return drawing.svg(says)


def scene_of(
    pixels: Any, size: int, weights: Any, readers: Sequence[int], titles: Sequence[str], ground: Any, *, says: str
) -> str:
    """A scene, once for each reader: arrows from it to what it reads, as wide as the weight; ground is framed."""
    side, gap = 300.0, 100.0
    drawing = Drawing(len(readers) * (side + gap) - gap, side + 30)
    across = np.asarray(pixels).shape[1] // size
    edge = side / across
    for at, (reader, title) in enumerate(zip(readers, titles, strict=True)):
        left = at * (side + gap)
        place_image(drawing, as_grey(pixels, -2.2, 2.2), (left, 0), side, side)
        for line in range(1, across):
            drawing.line((left + line * edge, 0), (left + line * edge, side), "paper", 2)
            drawing.line((left, line * edge), (left + side, line * edge), "paper", 2)
        for framed in np.flatnonzero(ground).tolist():
            drawing.rect(
                (left + (framed % across) * edge + 2, (framed // across) * edge + 2),
                edge - 4,
                edge - 4,
                "none",
                "slate",
                3,
            )
        start = (left + (reader % across + 0.5) * edge, (reader // across + 0.5) * edge)
        for j, weight in enumerate(weights[reader]):
            if weight > 0.05 and j != reader:
                end = (left + (j % across + 0.5) * edge, (j // across + 0.5) * edge)
                drawing.arrow(start, end, "accent", 1 + 14 * float(weight), 8 + 20 * float(weight), opacity=0.9)
        drawing.rect((start[0] - edge / 2, start[1] - edge / 2), edge, edge, "none", "accent", 3)
        drawing.text((left + side / 2, side + 17), title, "soft", 16)
    return drawing.svg(says)
