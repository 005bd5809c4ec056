"""What a formula knows of the directions of vectors alone: their lengths, and gradients across them.

    lengths     1/‖x‖, by which products are multiplied; 0 for vectors of length 0
    across      dx − (x·dx / ‖x‖²) x: the gradient of what sees x/‖x‖, made of that in which ‖x‖ is a number

So a length has no gradient of its own, and what comes to x is read and written once. Where dx is 0, as for vectors that
no one reads, x may hold anything. For float32 sums are in float64.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..starting import sixteens, start
from .common import Constants, put, tile
from .launch import near, padded, strided

ROWS = {2: 64, 4: 16}  # of one program, by the bytes of a number: those of float32 become float64


@triton.jit
def inverse_lengths(x, out, sizes, S: tl.constexpr):
    """out[b, h, r] = 1/‖x_r‖, float32."""
    H, N = sizes
    b, h, first = place(H, N, S)
    one = wide(tile(x, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True))
    square = tl.sum(one * one, 1)
    found = tl.where(square == 0.0, 0.0, 1.0 / tl.sqrt(square)).to(tl.float32)
    r = first + tl.arange(0, S.ROWS)
    tl.store(out + tl.cast(b * H + h, tl.int64) * N + r, found, mask=r < N)


@triton.jit
def part_across(x, dx, sizes, S: tl.constexpr):
    """dx ← dx without its part along x."""
    H, N = sizes
    b, h, first = place(H, N, S)
    one = wide(tile(x, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True))
    slope = wide(tile(dx, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True))
    square, along = tl.sum(one * one, 1), tl.sum(tl.where(slope == 0.0, 0.0, one * slope), 1)
    share = tl.where((along == 0.0) | (square == 0.0), 0.0, along / square)[:, None]
    found = tl.where(share == 0.0, slope, slope - share * one)
    put(dx, found, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED)


@triton.jit
def place(H, N, S: tl.constexpr):
    """(b, h) of this program, and its first row."""
    number, count = tl.program_id(0), tl.cdiv(N, S.ROWS)
    return number // count // H, number // count % H, number % count * S.ROWS


@triton.jit
def wide(x):
    """The same in more digits."""
    return x.to(tl.float64 if x.dtype == tl.float32 else tl.float32)


def lengths(x: Any) -> Any:
    """1/‖x‖ of each vector of x (B, heads, length, width), as (B, heads, length) float32."""
    out = torch.empty(x.shape[:3], dtype=torch.float32, device=x.device)
    _start(inverse_lengths, x, out)
    return out


def across(x: Any, dx: Any) -> None:
    """Take out of dx, a gradient in the shape of x, what is along x."""
    _start(part_across, x, strided(dx))


def _start(kernel: Any, x: Any, other: Any) -> None:
    batch, heads, length, width = x.shape
    rows = ROWS[x.element_size()]
    sizes = Constants(ROWS=rows, VALUE=int(width), VALUE_PADDED=padded(int(width)))
    grid = (triton.cdiv(length, rows) * heads * batch,)
    start(kernel, grid, strided(near(x)), other, (heads, *sixteens(length)), sizes, num_warps=4)
