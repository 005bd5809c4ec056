"""Random blocks, one after the other: how long the rows grow, and how alike they become.

x ← x + attention(norm(x))        x ← x + feed_forward(norm(x))        any part may be left out
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from ....attention import Attention

PARTS = ("residual", "normalisation", "attention", "feed-forward")


class Stream(NamedTuple):
    """Before the first block and behind each: mean length of a row, and mean cosine between two rows."""

    lengths: list[float]
    alike: list[float]


def flow(left_out: Collection[str] = (), depth: int = 12, rows: int = 16, width: int = 32, seed: int = 0) -> Stream:
    """Random rows through random blocks."""
    rng, attention = np.random.default_rng(seed), Attention()
    x = rng.standard_normal((rows, width))
    seen = [_measured(x)]
    for _ in range(depth):
        q, k, v, o = rng.standard_normal((4, width, width)) / np.sqrt(width)
        inner = rng.standard_normal((width, 4 * width)) / np.sqrt(width)
        outer = rng.standard_normal((4 * width, width)) / np.sqrt(2 * width)  # relu lets half of the squares through
        if "attention" not in left_out:
            x = _step(x, lambda z, q=q, k=k, v=v, o=o: attention(z @ q, z @ k, z @ v) @ o, left_out)  # type: ignore[misc]
        if "feed-forward" not in left_out:
            x = _step(x, lambda z, a=inner, b=outer: np.maximum(z @ a, 0) @ b, left_out)  # type: ignore[misc]
        seen.append(_measured(x))
    lengths, alike = zip(*seen, strict=True)
    return Stream(list(lengths), list(alike))


def _step(x: Any, part: Callable[[Any], Any], left_out: Collection[str]) -> Any:
    added = part(x if "normalisation" in left_out else _norm(x))
    return added if "residual" in left_out else x + added


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-12)


def _measured(x: Any) -> tuple[float, float]:
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    cosines = (x / length) @ (x / length).T
    n = len(x)
    return float(length.mean()), float((cosines.sum() - n) / (n * (n - 1)))
