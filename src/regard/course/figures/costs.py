"""Cost against length, both on logarithmic axes: straight lines whose slope is the power of N."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..._drawing.axes import Axis, axes
from ..._drawing.svg import Drawing, Frame

SIZES = [2**power for power in range(4, 15)]


def costs_of(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float], float]], *, says: str, unit: str = "seconds",
    width: float = 640, height: float = 320,
) -> str:  # fmt: skip
    """Measured points (N, cost, power) with the line of their power, and its name at the end."""
    drawing = Drawing(width, height)
    every = [np.log10(np.asarray(values, float)) for x, y, _ in lines.values() for values in (x, y)]
    x, y = np.concatenate(every[::2]), np.concatenate(every[1::2])
    frame = Frame(58, 26, width - 58 - 150, height - 76, (x.min() - 0.1, x.max() + 0.1), (y.min() - 0.2, y.max() + 0.2))
    axes(drawing, frame, Axis("N", *frame.x, _doubled(*frame.x)), Axis(unit, *frame.y, _powers(*frame.y)))
    for (name, (sizes, costs, power)), tone in zip(lines.items(), ("slate", "accent", "accent2"), strict=False):
        across, up = np.log10(np.asarray(sizes, float)), np.log10(np.asarray(costs, float))
        middle = up.mean() - power * across.mean()
        ends = [(place, middle + power * place) for place in (across.min() - 0.04, across.max() + 0.04)]
        drawing.path([frame(end) for end in ends], tone, 2)
        for point in zip(across, up, strict=True):
            drawing.circle(frame(point), 4.5, tone, "paper", 1.5)
        last = frame(ends[-1])
        drawing.text((last[0] + 10, last[1] - 7), name, tone, 13, "start", bold=True)
        drawing.text((last[0] + 10, last[1] + 10), f"N to the {power:.2f}", tone, 12.5, "start")
    return drawing.svg(says)


def _powers(low: float, high: float) -> dict[float, str]:
    """Powers of ten between two logarithms."""
    return {float(power): _said(10.0**power) for power in range(math.ceil(low), math.floor(high) + 1)}


def _doubled(low: float, high: float) -> dict[float, str]:
    """Powers of two between two logarithms."""
    return {log: str(size) for size in SIZES if low <= (log := math.log10(size)) <= high}


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.10f}".rstrip("0")
