"""What the lens finds, as still pictures: a sentence that one token reads, a wall of heads, a photograph."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, shade


def sentence_of(labels: Sequence[str], weights: Any, query: int, *, says: str) -> str:
    """The words as they are read, each on a shade of its weight; the one that reads is framed."""
    words = "".join(_word(label, float(weights[at]), at == query) for at, label in enumerate(labels))
    return f'<p role="img" aria-label="{escape(says, quote=True)}" style="margin:0;line-height:2.9">{words}</p>'


def _word(label: str, weight: float, reads: bool) -> str:
    edge = "var(--accent)" if reads else "transparent"
    tone = "var(--paper)" if weight > 0.5 else "var(--ink)"
    look = (
        f"display:inline-block;line-height:1.5;padding:0.05em 0.35em;margin-right:0.12em;"
        f"border-radius:5px;position:relative;"
        f"border:2px solid {edge};background:{shade(weight**0.8)};color:{tone}"
    )
    below = (
        f'<span style="position:absolute;left:0;right:0;top:100%;text-align:center;line-height:1.4;'
        f'font:11px var(--sans);color:var(--soft)">{weight:.0%}</span>'
        if weight >= 0.02
        else ""
    )
    return f'<span style="{look}">{escape(label.strip() or label)}{below}</span>'


def wall_of(values: Any, *, says: str, lit: tuple[int, int] | None = None, top: float | None = None) -> str:
    """Layers downwards, heads across: a cell for each head, darker where its number is larger."""
    values = np.asarray(values, float)
    layers, heads = values.shape
    cell = (38.0, 22.0 if layers > 12 else 30.0)
    drawing = Drawing(64 + heads * cell[0], 34 + layers * cell[1])
    most = float(values.max()) if top is None else top
    for layer in range(layers):
        drawing.text((52, 30 + (layer + 0.5) * cell[1]), str(layer), "faint", 11, "end")
        for head in range(heads):
            share = values[layer, head] / most if most else 0.0
            corner = (60 + head * cell[0], 30 + layer * cell[1])
            drawing.rect(corner, cell[0] - 2, cell[1] - 2, shade(share), round_=2)
            tone = "paper" if share > 0.55 else "faint"
            drawing.text(
                (corner[0] + cell[0] / 2 - 1, corner[1] + cell[1] / 2 - 1), f"{values[layer, head]:.2f}", tone, 10.5
            )
    for head in range(heads):
        drawing.text((60 + (head + 0.5) * cell[0], 20), str(head), "faint", 11)
    drawing.text((0, 30 + layers * cell[1] / 2), "layer", "soft", 12, "start")
    drawing.text((60 + heads * cell[0] / 2, 6), "head", "soft", 12)
    if lit is not None:
        drawing.rect((58 + lit[1] * cell[0], 28 + lit[0] * cell[1]), cell[0] + 2, cell[1] + 2, "none", "accent", 2.2, 4)
    return drawing.svg(says)


def photograph_of(image: bytes, weights: Any, grid: tuple[int, int], *, says: str, side: float = 300) -> str:
    """A photograph, dark but for the patches that are read."""
    drawing = Drawing(side, side)
    drawing.add("image", href=f"data:image/jpeg;base64,{_small(image)}", width=side, height=side)
    weights = np.asarray(weights, float).reshape(grid)
    edge = side / grid[0], side / grid[1]
    light = np.clip(weights / np.quantile(weights, 0.98), 0, 1)
    for row in range(grid[0]):
        for column in range(grid[1]):
            hidden = 0.86 * (1 - float(light[row, column]))
            drawing.add("rect", x=column * edge[1], y=row * edge[0], width=edge[1] + 0.3, height=edge[0] + 0.3,
                        fill="#191512", opacity=hidden)  # fmt: skip
    return drawing.svg(says).replace('style="', 'style="margin:0 auto;border-radius:6px;', 1)


def _small(image: bytes, side: int = 256) -> str:
    from PIL import Image

    kept = io.BytesIO()
    Image.open(io.BytesIO(image)).convert("RGB").resize((side, side)).save(kept, "JPEG", quality=82)
    return base64.b64encode(kept.getvalue()).decode("ascii")
