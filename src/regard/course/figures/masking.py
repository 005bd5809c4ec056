"""Who may read whom: weights under a mask, the leak through the total, what rows sum to, and three kinds of model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, shade, upon


def masked_of(
    weights: Any, admitted: Any, rows: Sequence[str], columns: Sequence[str], *, says: str, cell: float = 52
) -> str:
    """Weights as cells; a pair that is not admitted is an empty frame."""
    weights, admitted = np.asarray(weights, float), np.asarray(admitted, bool)
    n, m = weights.shape
    left, head = 16 + 8 * max(map(len, rows)), 28.0
    drawing = Drawing(left + m * cell + 6, head + n * cell + 6)
    for i in range(n):
        for j in range(m):
            _cell(drawing, (left + j * cell, head + i * cell), cell, float(weights[i, j]), bool(admitted[i, j]))
        drawing.text((left - 8, head + (i + 0.5) * cell), rows[i], "ink", 13, "end")
    for j, name in enumerate(columns):
        drawing.text((left + (j + 0.5) * cell, head - 12), name, "ink", 13)
    return drawing.svg(says)


def _cell(drawing: Drawing, corner: tuple[float, float], cell: float, weight: float, admitted: bool) -> None:
    if not admitted:
        drawing.rect((corner[0] + 1, corner[1] + 1), cell - 4, cell - 4, "none", "hair", 1, 3)
    else:
        drawing.rect(corner, cell - 2, cell - 2, shade(weight), round_=3)
    if admitted or weight:
        text = f"{weight:.2f}" if weight == weight else "NaN"
        place = (corner[0] + cell / 2 - 1, corner[1] + cell / 2 - 1)
        drawing.text(place, text, upon(weight) if admitted else "soft", min(cell * 0.27, 13))


def leak_of(rows: Mapping[str, Any], tokens: Sequence[str], hidden: Sequence[bool], raised: int, *, says: str) -> str:
    """One query's weights, masked in several ways, each with its sum; `raised` is the hidden key that is moved."""
    cell, left, head = 58.0, 168.0, 34.0
    drawing = Drawing(left + len(tokens) * cell + 96, head + len(rows) * cell + 4)
    for j, token in enumerate(tokens):
        tone = "accent" if j == raised else "faint" if hidden[j] else "ink"
        drawing.text((left + (j + 0.5) * cell, head - 16), token, tone, 13.5, bold=j == raised)
    drawing.text((left + len(tokens) * cell + 44, head - 16), "sum", "faint", 12.5)
    for i, (name, weights) in enumerate(rows.items()):
        top = head + i * cell
        drawing.text((left - 12, top + cell / 2), name, "ink", 13, "end")
        for j, weight in enumerate(np.asarray(weights, float)):
            _cell(drawing, (left + j * cell, top), cell, float(weight), not hidden[j])
        total = float(np.sum(weights))
        right = abs(total - 1) < 1e-6
        text = "NaN" if total != total else f"{total:.3f}"
        drawing.text(
            (left + len(tokens) * cell + 44, top + cell / 2), text, "soft" if right else "accent", 14, bold=not right
        )
    return drawing.svg(says)


def sums_of(steps: Any, *, says: str) -> str:
    """How many rows sum to 1, and how many a step or more beside it."""
    values, counts = np.unique(np.asarray(steps, int), return_counts=True)
    drawing, most = Drawing(560, 190), float(counts.max())
    places = np.arange(int(values.min()) - 1, int(values.max()) + 2)
    wide = 520 / len(places)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    for number, place in enumerate(places.tolist()):
        x, tall = 20 + number * wide, 120 * found.get(place, 0) / most
        drawing.rect((x + 3, 140 - tall), wide - 6, tall, "slate" if place == 0 else "accent", round_=2)
        drawing.text(
            (x + wide / 2, 154), f"{place:+d}" if place else "exactly 1", "soft" if place == 0 else "faint", 12
        )
        if place in found:
            drawing.text((x + wide / 2, 132 - tall), f"{found[place] / sum(counts):.0%}", "soft", 12)
    drawing.line((20, 140), (540, 140), "hair", 1)
    drawing.text((280, 178), "sum of a row less 1, in steps of 2⁻²⁴", "faint", 12.5)
    return drawing.svg(says)


def sides_of(source: int, target: int, *, says: str) -> str:
    """Encoder, decoder, and both with the target reading the source: the pairs that each admits."""
    cell, gap = 15.0, 74.0
    full, past, across = np.ones((source, source)), np.tri(target), np.ones((target, source))
    drawing = Drawing((3 * source + 2 * target) * cell + 2 * gap + 70, 195)
    left = 6.0
    _grid(drawing, (left, 24), full, cell, "slate")
    _title(drawing, left + source * cell / 2, "encoder", "all read all")
    left += source * cell + gap
    _grid(drawing, (left, 24), past, cell, "accent")
    _title(drawing, left + target * cell / 2, "decoder", "each reads its past")
    left += target * cell + gap
    for corner, pairs, tone in (((left, 24), full, "slate"), ((left + source * cell + 26, 24), across, "accent2"),
                                ((left + 2 * source * cell + 52, 24), past, "accent")):  # fmt: skip
        _grid(drawing, corner, pairs, cell, tone)
    names = ("source, itself", "target reads source", "target, its past")
    for number, name in enumerate(names):
        wide = (target if number == 2 else source) * cell
        drawing.text((left + number * (source * cell + 26) + wide / 2, 12), name, "faint", 11.5)
    _title(drawing, left + (2 * source + target) * cell / 2 + 26, "both", "three attentions, one mask among them")
    return drawing.svg(says)


def _grid(drawing: Drawing, corner: tuple[float, float], pairs: Any, cell: float, tone: str) -> None:
    for i, row in enumerate(pairs):
        for j, there in enumerate(row):
            fill = shade(0.75, tone) if there else "none"
            drawing.rect(
                (corner[0] + j * cell, corner[1] + i * cell),
                cell - 2,
                cell - 2,
                fill,
                "none" if there else "hair",
                0.8,
                2,
            )


def _title(drawing: Drawing, middle: float, name: str, says: str) -> None:
    drawing.text((middle, 160), name, "ink", 14.5)
    drawing.text((middle, 180), says, "faint", 12.5)
