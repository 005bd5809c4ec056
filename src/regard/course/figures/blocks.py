"""Blocks of pairs, as a mask's algebra sees them: all, some or none of a block is admitted."""

from __future__ import annotations

from collections.abc import Sequence

from ..._drawing.svg import Drawing, shade


def blocks_of(kinds: Sequence[Sequence[str]], *, says: str, side: float = 300) -> str:
    """A square of blocks: full, half-tone with a diagonal, or empty."""
    drawing, cell = Drawing(side + 66, side + 40), side / len(kinds)
    for row, line in enumerate(kinds):
        for column, kind in enumerate(line):
            place = (58 + column * cell, 24 + row * cell)
            fill = {"all": shade(0.85, "slate"), "some": shade(0.45, "accent"), "none": "none"}[kind]
            drawing.rect(place, cell - 1.5, cell - 1.5, fill, "hair" if kind == "none" else "none", 1, 2)
    drawing.text((58 + side / 2, 10), "keys", "soft", 12.5)
    drawing.text((2, 24 + side / 2), "queries", "soft", 12.5, "start")
    return drawing.svg(says).replace('style="', 'style="margin:0 auto;', 1)
