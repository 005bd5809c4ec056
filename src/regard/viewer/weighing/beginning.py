"""Where a page begins: a head and a pair that show something, found from the weights themselves.

Of words it is the largest w_ij · log |i − j|, since a link that reaches far tells more: no pieces of words, no signs,
no special tokens, not the first place, which is often a sink. Of patches it is the head, in the later half of the
layers, whose class token, or whose middle patch, reads the most in one place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import numpy_of
from ..record import Axis, Captured
from .totals import without_values

CELLS = 2**22  # weights that are looked at; a longer input begins at its first head


def beginning(lens: Any, batch: int = 0) -> dict[str, int]:
    """{"layer", "head", "query", "key"}, or nothing where no weight stands out or there are too many to look at."""
    if sum(map(_cells, lens.layers)) > CELLS:
        return {}
    found: tuple[float, dict[str, int]] = (0.0, {})
    for layer, captured in enumerate(lens.layers):
        axes = lens.axes[batch]
        if (axes[captured.query].grid is not None and 2 * layer < len(lens.layers) - 1) or _is_slow(captured):
            continue
        worth = _worth(axes[captured.query], axes[captured.key], captured.query == captured.key)
        if not worth.any():
            continue
        weights = numpy_of(without_values(captured, captured.formula).weights(batch=batch))[0]
        shown = np.nan_to_num(worth * weights)
        place = np.unravel_index(np.argmax(shown), shown.shape)
        if shown[place] > found[0]:
            head, query, key = map(int, place)
            found = float(shown[place]), {"layer": layer, "head": head, "query": query, "key": key}
    return found[1]


def _cells(captured: Captured) -> int:
    return int(np.prod(captured.shape[1:]))


def _is_slow(captured: Captured) -> bool:
    """Whether every pair has a difference of vectors of its own, and there are too many for a beginning."""
    distances = any(pair.word == "sqdist" for pair in captured.formula.pairs)
    return distances and _cells(captured) * int(captured.k.shape[-1]) > CELLS


def _worth(query: Axis, key: Axis, square: bool) -> Any:
    """What a weight between two counts; 0 where a pair is not to be shown."""
    if query.grid is not None:
        at = min(query.special) if query.special else query.grid[0] // 2 * query.grid[1] + query.grid[1] // 2
        others = _patches(key)
        others[at : at + 1] &= not square
        return (np.arange(len(query)) == at)[:, None] & others
    pairs = _words(query)[:, None] & _words(key)
    if square:
        places = np.arange(len(query))
        labels = np.array([label.strip().lower() for label in query.labels])
        far = np.log(np.maximum(np.abs(places[:, None] - places), 1))
        return far * (pairs & (places > 0) & (labels[:, None] != labels))
    return pairs


def _words(axis: Axis) -> Any:
    """Whole words: a piece has no space before it, and is followed by one that has none."""
    begins = [label[:1].isspace() or place == 0 or place - 1 in axis.special for place, label in enumerate(axis.labels)]
    ends = [*begins[1:], True]
    following = [*axis.labels[1:], ""]
    whole = [
        first and (last or not following[place][:1].isalpha()) and place not in axis.special
        for place, (first, last) in enumerate(zip(begins, ends, strict=True))
    ]
    return np.array([is_whole and label.strip().isalpha() for is_whole, label in zip(whole, axis.labels, strict=True)])


def _patches(axis: Axis) -> Any:
    return np.array([place not in axis.special for place in range(len(axis))])
