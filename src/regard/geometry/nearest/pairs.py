"""Given pairs, compared in float64 in one fixed order of rounding.

A library sums as suits the shape: a pair by itself may round otherwise than the same pair among a thousand. Here equal
vectors have equal products whatever stands beside them, so that equal rows come in the order of the corpus.
"""

from __future__ import annotations

from typing import Any

from ..._arrays import Library

PAIRS = 2**22  # entries of the vectors that are compared at once
TILE = 64  # rows that are mapped at once; a width is filled up with zeros to a multiple of it


def products(x: Any, y: Any) -> Any:
    """x·y of each pair: the upper half is added to the lower until one number is left."""
    terms, width = x * y, int(x.shape[1])
    while width > 1:
        half = (width + 1) // 2
        terms[:, : width - half] += terms[:, half:width]
        width = half
    return terms[:, 0]


def cosines(xp: Library, x: Any, own: Any, y: Any) -> Any:
    """x·y / (‖x‖ ‖y‖) of each pair, 0 for a zero vector; `own` is ‖x‖², of an x that is even."""
    y = even(xp, y)
    lengths = xp.sqrt(own * products(y, y))
    return xp.clip(products(x, y) / xp.where(lengths > 0, lengths, xp.ones_like(lengths)), -1.0, 1.0)


def squares(xp: Library, x: Any, matrix: Any) -> Any:
    """‖A x‖² of each row, by products of one shape: a library treats all rows of such a tile alike."""
    count, width = (int(size) for size in x.shape)
    whole, device = -(-width // TILE) * TILE, xp.device(x)
    turned, found = xp.zeros((whole, whole), dtype=x.dtype, device=device), []
    turned[:width, :width] = xp.matrix_transpose(matrix)
    for first in range(0, count, TILE):
        part = x[first : first + TILE, :]
        tile = xp.zeros((TILE, whole), dtype=x.dtype, device=device)
        tile[: part.shape[0], :width] = part
        mapped = tile @ turned
        found.append(products(mapped, mapped)[: part.shape[0]])
    return xp.concat(found)


def even(xp: Library, x: Any) -> Any:
    """x over its largest entry: no square over- or underflows."""
    largest = xp.max(xp.abs(x), axis=1, keepdims=True)
    return x / xp.where(largest > 0, largest, xp.ones_like(largest))
