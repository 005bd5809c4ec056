"""Heads: the width cut into slices, each with weights of its own, side by side again; and real heads as small maps.

slices_of    Q, K, V of N × D, cut into H; H matrices of N × N; the outputs joined
wall_of      one small map for each head
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import viewer
from ..._drawing.svg import Drawing, shade
from .photograph import place_image

GALLERY = Path(viewer.__file__).parent / "gallery"
UNIT = 11.0
TONES = ("accent", "slate", "accent2", "faint")
INK = (178, 70, 128)  # legible on paper and at night


@lru_cache(maxsize=4)
def sentence(name: str) -> tuple[list[str], Any]:
    """The tokens of a text in the lens's gallery, and the weights of all layers and heads, (layers, heads, n, n)."""
    lens = viewer.Lens.open(GALLERY / f"{name}.lens")
    tokens = [one.strip() for one in next(iter(lens.axes[0].values())).labels]
    heads = lens.layers[0].q.shape[1]
    weights = [[lens.weights(layer, head=head) for head in range(heads)] for layer in range(len(lens.layers))]
    return tokens, np.asarray(weights)


def wall_of(
    maps: Any, names: Sequence[str], *, says: str, lit: int | None = None, across: int = 6, side: float = 96
) -> str:
    """A small map for each head, darker where more is read."""
    maps = np.asarray(maps, float)
    down = -(-len(maps) // across)
    drawing = Drawing(across * (side + 14) - 14, down * (side + 32))
    for number, (weights, name) in enumerate(zip(maps, names, strict=True)):
        left, top = (number % across) * (side + 14), (number // across) * (side + 32)
        drawing.rect(
            (left, top), side, side, "none", "accent" if number == lit else "hair", 2 if number == lit else 1, 2
        )
        pixels = np.zeros((*weights.shape, 4))
        pixels[..., :3], pixels[..., 3] = INK, 255 * np.sqrt(weights / (weights.max() or 1.0))
        place_image(drawing, np.rint(pixels), (left + 2, top + 2), side - 4, side - 4)
        drawing.text((left + side / 2, top + side + 12), name, "accent" if number == lit else "faint", 12)
    return drawing.svg(says)


def slices_of(N: int, D: int, H: int, *, says: str) -> str:
    """The way of every head, in a colour of its own."""
    drawing, width = Drawing(740, 354), D // H
    middles = [22 + row * 104 + N * UNIT / 2 for row in range(3)]
    for role, height in zip("QKV", middles, strict=True):
        _grid(drawing, (20, height - N * UNIT / 2), N, D, width)
        _said(drawing, (20 + D * UNIT / 2, height + N * UNIT / 2 + 11), role, f"{N} × {D}")
    middle = 170.0
    start = _met(drawing, 20 + D * UNIT + 10, middles[0], middles[1])
    _carried(drawing, (20 + D * UNIT + 10, middles[2]), (474 + D * UNIT / 2, middle + N * UNIT / 2 + 28))
    cell = min(UNIT, (300 - 10 * H) / (H * N))
    tall = N * cell
    for head in range(H):
        top = middle + (head - (H - 1) / 2) * (tall + 12) - tall / 2
        for i in range(N):
            for j in range(N):
                drawing.rect(
                    (300 + j * cell, top + i * cell), cell - 1, cell - 1, shade(_depth(head), _tone(head)), round_=1
                )
        drawing.arrow(start, (290, top + tall / 2), _tone(head), 1.5, 7)
        drawing.arrow((300 + N * cell + 10, top + tall / 2), (460, middle), _tone(head), 1.5, 7)
    drawing.text((300 + N * cell / 2, 8), f"weights of each head, {H} × {N} × {N}", "faint", 12.5)
    _grid(drawing, (474, middle - N * UNIT / 2), N, D, width)
    _said(drawing, (474 + D * UNIT / 2, middle + N * UNIT / 2 + 12), "side by side", f"{N} × {D}")
    drawing.arrow((474 + D * UNIT + 10, middle), (630, middle), "faint", 1.5, 7)
    for i in range(D):
        for j in range(D):
            drawing.rect(
                (640 + j * UNIT, middle - D * UNIT / 2 + i * UNIT), UNIT - 1, UNIT - 1, "none", "ink", 0.7, 1.5
            )
    _said(drawing, (640 + D * UNIT / 2, middle + D * UNIT / 2 + 12), "W", f"{D} × {D}", "O")
    return drawing.svg(says)


def _met(drawing: Drawing, x: float, first: float, second: float) -> tuple[float, float]:
    """A bracket from Q and K: weights are made of both. Returns where it ends."""
    middle, out = (first + second) / 2, x + 18
    drawing.path([(x, first), (out, first), (out, second), (x, second)], "faint", 1.5)
    drawing.line((out, middle), (out + 12, middle), "faint")
    return out + 14, middle


def _carried(drawing: Drawing, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From V below all weights to what they mix."""
    low = 345.0
    drawing.path([start, (start[0] + 18, start[1]), (start[0] + 18, low), (end[0], low)], "faint", 1.5)
    drawing.arrow((end[0], low), end, "faint", 1.5, 7)
    drawing.text((end[0] + 10, (low + end[1]) / 2 + 8), "each head mixes its slice of V", "faint", 12.5, "start")


def _tone(head: int) -> str:
    return TONES[head % len(TONES)]


def _depth(head: int) -> float:
    return 0.75 if head < len(TONES) else 0.4


def _grid(drawing: Drawing, corner: tuple[float, float], rows: int, columns: int, width: int) -> None:
    for i in range(rows):
        for j in range(columns):
            head = j // width
            place = (corner[0] + j * UNIT, corner[1] + i * UNIT)
            drawing.rect(place, UNIT - 1, UNIT - 1, shade(_depth(head), _tone(head)), round_=1.5)


def _said(drawing: Drawing, place: tuple[float, float], name: str, shape: str, below: str = "") -> None:
    low = f'<tspan dy="3" font-size="10">{below}</tspan>' if below else ""
    drawing.add(
        "text", f'<tspan font-style="italic" font-family="var(--serif)" font-size="14">{name}{low}</tspan>'
        f'<tspan dx="6" dy="{-3 if below else 0}" fill="var(--soft)" font-size="12">{shape}</tspan>',
        x=place[0], y=place[1] + 4, fill="var(--ink)", text_anchor="middle",
    )  # fmt: skip
