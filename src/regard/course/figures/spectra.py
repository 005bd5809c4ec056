"""Singular values as columns: how many directions a matrix really has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing

EMPTY = 1e-10  # of the largest: below it a direction is not there


def spectra_of(
    matrices: Mapping[str, Any], *, says: str, tones: tuple[str, ...] = ("accent2", "accent", "slate")
) -> str:
    """For each matrix its singular values over the largest, and how many of them are not zero."""
    found = {name: np.linalg.svd(np.asarray(one, float), compute_uv=False) for name, one in matrices.items()}
    drawing, high = Drawing(600, 180), 110.0
    room = drawing.width / len(found)
    for number, (name, sizes) in enumerate(found.items()):
        left, wide = number * room + 8, (room - 40) / len(sizes)
        kept = sizes > EMPTY * sizes[0]
        for place, (size, there) in enumerate(zip(sizes, kept, strict=True)):
            tall = max(high * float(size / sizes[0]) ** 0.5, 2) if there else 0
            drawing.rect((left + place * wide, 130 - tall), wide - 3, tall, tones[number], round_=2)
            drawing.rect((left + place * wide, 130), wide - 3, 1.5, "hair")
        drawing.text((left, 146), name, "ink", 13.5, "start")
        drawing.text((left, 164), f"rank {int(kept.sum())} of {len(sizes)}", "faint", 12.5, "start")
    return drawing.svg(says)
