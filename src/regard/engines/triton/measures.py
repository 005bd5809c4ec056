"""What a call makes of vectors: ‖x‖², 1/‖x‖, xᵀ M x and x M, in more digits than x has.

A vector that no gradient comes to, because no one reads it, may hold anything: its own gradient is 0.
"""

from __future__ import annotations

from typing import Any

import torch

from ..operators import define, differentiable_once
from .templates import directions

Once: Any = differentiable_once("triton")


def _lengths(x: Any) -> Any:
    with torch.cuda.device_of(x):  # kernels start on the device that is current
        return directions.lengths(x)


define("lengths", "(Tensor x) -> Tensor", _lengths, lambda x: x.new_empty(x.shape[:3], dtype=torch.float32))


def wide(x: Any) -> Any:
    """The same in more digits."""
    return x.to(_wider(x.dtype))


def _wider(dtype: Any) -> Any:
    return torch.float64 if dtype == torch.float32 else torch.float32


class Measured(Once):  # type: ignore[misc]
    """‖x‖² or 1/‖x‖ of each vector, as (B, heads, length, 1)."""

    @staticmethod
    def forward(x: Any, power: int) -> Any:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=_wider(x.dtype))
        return length.square() if power == 2 else torch.where(length == 0, 0.0, 1 / length)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.power = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, found = ctx.saved_tensors
        slope = 2 * g * x if ctx.power == 2 else -g * found.square() * (found * x)  # found³ may be too large
        return slope.to(x.dtype).masked_fill(g == 0, 0.0), None


class Lengths(Once):  # type: ignore[misc]
    """1/‖x‖ of each vector, as (B, heads, length), with no gradient of its own: see `templates.directions`."""

    @staticmethod
    def forward(x: Any) -> Any:
        return torch.ops.regard.lengths(x)

    @staticmethod
    def setup_context(ctx: Any, _inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(_ctx: Any, _g: Any) -> Any:
        return None


class MeasuredBy(Once):  # type: ignore[misc]
    """xᵀ M x of each vector, as (B, heads, length, 1)."""

    @staticmethod
    def forward(x: Any, metric: Any) -> Any:
        return ((x @ metric) * x).sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, metric = ctx.saved_tensors
        x = x.masked_fill(g == 0, 0.0)
        return g * (x @ (metric + metric.mT)), (x.mT @ (g * x)).sum_to_size(metric.shape)


class Turned(Once):  # type: ignore[misc]
    """x M of each vector."""

    @staticmethod
    def forward(x: Any, metric: Any) -> Any:
        return x @ metric

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, metric = ctx.saved_tensors
        x = x.masked_fill((g == 0).all(-1, keepdim=True), 0.0)
        return g @ metric.mT, (x.mT @ g).sum_to_size(metric.shape)
