"""Dot products, distances and cosines as products of two matrices with row and column terms.

    u_ij = clamp(left_i · right_j + row_i + column_j)

Each prepares its sides once for a call, and takes their gradients back to q, k and its metric once:

    dot       left = q,  or q M                         right = k
    sqdist    left = −2 q',  or −q' (P + Pᵀ)            right = k'    row = ‖q'‖²    column = ‖k'‖²    at least 0
    cosine    left = q / ‖q‖                            right = k / ‖k‖                               within [−1, 1]

A prime is a vector with the keys' mean subtracted: differences do not see it, and rounding far from the origin does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from ...algebra.nodes import Pair
from ..reading import Reading


@dataclass(frozen=True)
class Sides:
    """What makes the numbers of all pairs: left (B, H, N, D), right (B, G, n, D), with `factor` multiplied in."""

    left: Any
    right: Any
    row: Any | None = None  # (B, H, N, 1)
    column: Any | None = None  # (B, H, 1, n)
    low: Any | None = None  # a number, or (B or 1, H or 1, 1, 1)
    high: Any | None = None
    piece: int | None = None  # of the width that is summed at once: shorter sums round less

    def products(self, left: Any, right: Any, out: Any) -> None:
        """left · right of every pair of a block."""
        piece = self.piece or left.shape[-1]
        for first in range(0, left.shape[-1], piece):
            part = slice(first, first + piece)
            torch.baddbmm(out, left[..., part], right[..., part].mT, beta=int(first > 0), out=out)


@dataclass(frozen=True)
class Pulls:
    """Sums of gradients g of u: Σ_j g right_j (B, H, N, D), Σ_i g left_i (B, G, n, D), Σ_j g, Σ_i g."""

    left: Any
    right: Any
    row: Any | None = None
    column: Any | None = None


PIECES = 4  # −2 q·k is as large as the distance is small, so that its rounding counts


class Dot:
    """q·k, or qᵀ M k."""

    @staticmethod
    def sides(q: Any, k: Any, metric: Any | None) -> Sides:
        return Sides(q if metric is None else _wide(q) @ _wide(metric), k)

    @staticmethod
    def back(q: Any, k: Any, metric: Any | None, g: Pulls) -> tuple[Any, Any, Any]:
        if metric is None:
            return g.left, g.right, None
        return g.left @ metric.mT, g.right, q.mT @ g.left


class SqDist:
    """‖q − k‖², or (q−k)ᵀ P (q−k)."""

    @staticmethod
    def sides(q: Any, k: Any, metric: Any | None) -> Sides:
        group = q.shape[1] // k.shape[1]
        beyond = _beyond(q), _repeated(_beyond(k), group)
        q, k = _moved(q, k)
        wide = _repeated(k, group)
        if metric is None:
            row, column = _inner(_wide(q), q) + beyond[0], (_inner(_wide(wide), wide) + beyond[1]).mT
            low = torch.zeros((), dtype=q.dtype, device=q.device)
            return Sides(-2 * q, k, row, column, low=low, piece=_piece(k))
        row, column = _inner(_wide(q) @ _wide(metric), q), _inner(_wide(wide) @ _wide(metric), wide).mT
        row, column = row + beyond[0], column + beyond[1].mT
        return Sides(-(_wide(q) @ _wide(metric + metric.mT)), k, row, column, piece=_piece(k))

    @staticmethod
    def back(q: Any, k: Any, metric: Any | None, g: Pulls) -> tuple[Any, Any, Any]:
        group = q.shape[1] // k.shape[1]
        q, k = _moved(q, k)
        assert g.row is not None
        assert g.column is not None
        if metric is None:
            return 2 * (g.row * q - g.left), g.right + 2 * _grouped(g.column.mT, group) * k, None
        both, wide = metric + metric.mT, _repeated(k, group)
        dq = (g.row * q - g.left) @ both
        dk = g.right + _grouped(g.column.mT * (wide @ both), group)
        cross = q.mT @ g.left
        return dq, dk, q.mT @ (g.row * q) + wide.mT @ (g.column.mT * wide) - cross - cross.mT


class Cosine:
    """q·k / (‖q‖ ‖k‖), and 0 where either is the zero vector."""

    @staticmethod
    def sides(q: Any, k: Any, metric: Any | None) -> Sides:
        one = torch.ones((), dtype=q.dtype, device=q.device)
        return Sides(_unit(q)[0], _unit(k)[0], low=-one, high=one)

    @staticmethod
    def back(q: Any, k: Any, metric: Any | None, g: Pulls) -> tuple[Any, Any, Any]:
        (q, q_norm), (k, k_norm) = _unit(q), _unit(k)
        dq = g.left - (g.left * q).sum(-1, keepdim=True) * q
        dk = g.right - (g.right * k).sum(-1, keepdim=True) * k
        return _over(dq, q_norm), _over(dk, k_norm), None


PAIRS: dict[str, Any] = {"dot": Dot, "sqdist": SqDist, "cosine": Cosine}


@dataclass(frozen=True)
class Side:
    """One pair of a call with its factor: u = factor · pair."""

    pair: Pair
    factor: Any  # (B or 1, H or 1, 1, 1)
    plain: Sides  # without the factor
    scaled: Sides


def prepared(reading: Reading, pair: Pair, factor: Any, q: Any, k: Any) -> Side:
    """The sides of a pair, and with its factor multiplied in."""
    metric = None if pair.metric is None else reading.metric(pair)
    plain = PAIRS[pair.word].sides(q, k, metric)
    row, column = (None if term is None else (term * factor).to(q.dtype) for term in (plain.row, plain.column))
    low, high = plain.low, plain.high
    if low is not None:
        far = torch.where(factor == 0, 0.0, (math.inf if high is None else high) * factor)
        ends = [low * factor, far]
        low, high = torch.minimum(*ends), torch.maximum(*ends)
        if plain.high is None:  # one end is infinite: keep the other alone, where all factors have one sign
            low = None if bool((low == -math.inf).all()) else low
            high = None if bool((high == math.inf).all()) else high
        if factor.numel() == 1:
            low, high = (None if end is None else float(end) for end in (low, high))
    left = plain.left if factor.numel() == 1 and float(factor) == 1.0 else plain.left * factor
    return Side(pair, factor, plain, Sides(left.to(q.dtype), plain.right, row, column, low, high, plain.piece))


def pulled_back(reading: Reading, side: Side, q: Any, k: Any, g: Pulls) -> tuple[Any, Any, Any, Any]:
    """The gradients of q, k, the metric (B, H, D, D) and the factor (B, H, 1, 1); `g` of u itself."""
    factor, plain = side.factor, side.plain
    dfactor = (g.left * finite(plain.left)).sum((2, 3), keepdim=True)
    row = column = None
    if g.row is not None and plain.row is not None:
        dfactor = dfactor + (g.row * finite(plain.row)).sum(2, keepdim=True)
        row = g.row * factor
    if g.column is not None and plain.column is not None:
        dfactor = dfactor + (g.column * finite(plain.column)).sum(3, keepdim=True)
        column = g.column * factor
    metric = None if side.pair.metric is None else reading.metric(side.pair)
    scaled = Pulls(g.left * factor, g.right, row, column)
    dq, dk, dmetric = PAIRS[side.pair.word].back(q, k, metric, scaled)
    return dq, dk, dmetric, dfactor


def _moved(q: Any, k: Any) -> tuple[Any, Any]:
    """Both with the mean of the keys subtracted; NaN and ∞ as 0, for a key that no one reads may hold them."""
    q, k = finite(q), finite(k)
    if not k.shape[2]:
        return q, k
    origin = k.mean(2, keepdim=True)
    return q - _repeated(origin, q.shape[1] // k.shape[1]), k - origin


def finite(x: Any) -> Any:
    """The numbers, with 0 for NaN and ∞."""
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def _beyond(x: Any) -> Any:
    """(B, H, n, 1): ∞ or NaN where a vector holds one, 0 elsewhere; so far away is everything then."""
    return torch.where(x.isfinite().all(-1, keepdim=True), 0.0, x.abs().amax(-1, keepdim=True))


def _piece(k: Any) -> int:
    return max(8, -(-int(k.shape[-1]) // PIECES))


def _inner(x: Any, y: Any) -> Any:
    """Σ_d x y, (B, H, n, 1)."""
    return (x * _wide(y)).sum(-1, keepdim=True)


def _wide(x: Any) -> Any:
    """With more digits, before the one rounding to the working dtype: what a side loses, all its pairs would."""
    return x if x.device.type == "mps" else x.double()


def _repeated(x: Any, group: int) -> Any:
    return x if group == 1 else x.repeat_interleave(group, dim=1)


def _grouped(x: Any, group: int) -> Any:
    """The sum over query heads that read one key head."""
    return x if group == 1 else x.unflatten(1, (-1, group)).sum(2)


def _unit(x: Any) -> tuple[Any, Any]:
    """Vectors of length 1, and the lengths; the zero vector stays zero."""
    largest = x.abs().amax(-1, keepdim=True)  # so that no square over- or underflows
    scale = torch.where((largest > 0) & largest.isfinite(), largest, torch.ones_like(largest))
    scaled = x / scale
    norm = (scaled * scaled).sum(-1, keepdim=True).sqrt()
    return _over(scaled, norm), norm * scale


def _over(x: Any, norm: Any) -> Any:
    zero = norm == 0
    return torch.where(zero, torch.zeros_like(x), x / torch.where(zero, torch.ones_like(norm), norm))
