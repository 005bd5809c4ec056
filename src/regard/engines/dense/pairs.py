"""Dot products, squared distances and cosines of all pairs at once: each forward beside its derivative."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..._arrays import Library
from ..._shapes import Array, Float
from ...algebra.functions import Sqrt
from ...algebra.nodes import Pair
from ..select import keep, quotient

if TYPE_CHECKING:
    from .matrices import Matrices

ROWS = 2**24  # differences q − k held at once, in entries: pieces that memory takes back whole


class Dot:
    """q·k, or qᵀ M k."""

    @staticmethod
    def forward(reading: Matrices, pair: Pair) -> Float[Array, "b h i j"]:
        q = reading.q if pair.metric is None else reading.q @ reading.metric(pair)
        return q @ reading.xp.matrix_transpose(reading.k)

    @staticmethod
    def backward(reading: Matrices, pair: Pair, g: Float[Array, "b h i j"]) -> tuple[Any, ...]:
        xp, q, k = reading.xp, reading.q, reading.k
        back = xp.matrix_transpose
        if pair.metric is None:
            return reading.mix(g, k), reading.mix_back(g, q)
        metric = reading.metric(pair)
        return reading.mix(g, k @ back(metric)), reading.mix_back(g, q @ metric), back(q) @ g @ k


class SqDist:
    """‖q − k‖², or (q−k)ᵀ P (q−k), from the differences themselves: exact also far from the origin."""

    @staticmethod
    def forward(reading: Matrices, pair: Pair) -> Float[Array, "b h i j"]:
        xp, q, k = reading.xp, reading.q, reading.k
        metric = None if pair.metric is None else reading.metric(pair)[:, :, None, :, :]
        step = max(1, ROWS // max(1, math.prod(k.shape)))
        blocks = []
        for first in range(0, max(q.shape[2], 1), step):
            difference = q[:, :, first : first + step, None, :] - k[:, :, None, :, :]
            other = difference if metric is None else difference @ metric
            blocks.append(xp.sum(difference * other, axis=-1))
        return xp.concat(blocks, axis=2)

    @staticmethod
    def backward(reading: Matrices, pair: Pair, g: Float[Array, "b h i j"]) -> tuple[Any, ...]:
        xp = reading.xp
        back = xp.matrix_transpose
        origin = reading.k[:, :, :1, :] if reading.k.shape[2] else 0.0  # differences do not see it; rounding does
        q, k = reading.q - origin, reading.k - origin
        rows, columns = xp.sum(g, axis=3)[..., None], xp.sum(g, axis=2)[..., None]
        dq, dk = rows * q - reading.mix(g, k), columns * k - reading.mix_back(g, q)
        if pair.metric is None:
            return 2 * dq, 2 * dk
        metric = reading.metric(pair)
        both = metric + back(metric)
        cross = back(q) @ g @ k
        return dq @ both, dk @ both, back(q) @ (rows * q) + back(k) @ (columns * k) - cross - back(cross)


class Cosine:
    """q·k / (‖q‖ ‖k‖), and 0 where either is the zero vector."""

    @staticmethod
    def forward(reading: Matrices, pair: Pair) -> Float[Array, "b h i j"]:
        xp = reading.xp
        (q, _), (k, _) = _unit(xp, reading.q), _unit(xp, reading.k)
        return xp.clip(q @ xp.matrix_transpose(k), -1.0, 1.0)

    @staticmethod
    def backward(reading: Matrices, pair: Pair, g: Float[Array, "b h i j"]) -> tuple[Any, ...]:
        xp = reading.xp
        (q, q_norm), (k, k_norm) = _unit(xp, reading.q), _unit(xp, reading.k)
        pull = keep(xp, reading.live, g * (q @ xp.matrix_transpose(k)))
        dq = reading.mix(g, k) - xp.sum(pull, axis=3)[..., None] * q
        dk = reading.mix_back(g, q) - xp.sum(pull, axis=2)[..., None] * k
        return quotient(xp, dq, q_norm), quotient(xp, dk, k_norm)


def _unit(xp: Library, x: Float[Array, "b h n d"]) -> tuple[Float[Array, "b h n d"], Float[Array, "b h n 1"]]:
    """Vectors of length 1, and the lengths; the zero vector stays zero."""
    largest = xp.constant(xp.max(xp.abs(x), axis=-1, keepdims=True))  # so that no square over- or underflows
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, xp.ones_like(largest))
    scaled = x / scale
    norm = Sqrt.array(xp, xp.sum(scaled * scaled, axis=-1, keepdims=True))
    return quotient(xp, scaled, norm), norm * scale


PAIRS: dict[str, Any] = {"dot": Dot, "sqdist": SqDist, "cosine": Cosine}
