"""How an image is cut: into so few patches that attention is cheap, and so many that there is something to attend to.

    16 ≤ (height / p) · (width / p) ≤ 64          p a divisor of both, the smallest from 2 on; 1 for tiny images

For a size without such a p there is one nearby, `fitting`, to which images are resized.
"""

from __future__ import annotations

import math
from itertools import chain

FEWEST, MOST = 16, 64
COUNTS = [(rows, n // rows) for n in range(FEWEST, MOST + 1) for rows in range(1, n + 1) if n % rows == 0]


def patch_for(height: int, width: int) -> int:
    """The side of a patch, in pixels, for images of that size or, if none fits, for those of `fitting`.

    >>> [patch_for(side, side) for side in (8, 28, 32, 64, 224)]
    [2, 4, 4, 8, 28]
    >>> patch_for(97, 89), fitting(97, 89)
    (12, (96, 84))
    """
    high, wide = fitting(height, width)
    return _divisor(high, wide) or 1


def fitting(height: int, width: int) -> tuple[int, int]:
    """The size itself if patches fill it, else the nearest one that they do; of equals, the smallest.

    >>> fitting(28, 28), fitting(29, 29), fitting(375, 500)
    ((28, 28), (28, 28), (372, 496))
    """
    if height * width < FEWEST or _divisor(height, width):
        return height, width
    sizes = {(rows * p, columns * p) for rows, columns in COUNTS for p in _near(height / rows, width / columns)}
    return min(sizes, key=lambda size: (_change(size, (height, width)), size))


def _near(*ratios: float) -> set[int]:
    """Patches next to what would be exact for one of the sides: one of them is best for so many rows and columns."""
    return {max(1, p) for ratio in ratios for p in (math.floor(ratio), math.ceil(ratio))}


def _change(size: tuple[int, int], wanted: tuple[int, int]) -> float:
    return round(
        sum(abs(side - other) / other for side, other in zip(size, wanted, strict=True)), 9
    )  # equals are equal


def _divisor(height: int, width: int) -> int | None:
    common = (p for p in chain(range(2, min(height, width) + 1), [1]) if height % p == 0 and width % p == 0)
    return next((p for p in common if _fits(height, width, p)), None)


def _fits(height: int, width: int, p: int) -> bool:
    return FEWEST <= (height // p) * (width // p) <= MOST
