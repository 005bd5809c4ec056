"""Cost against length, both on logarithmic axes: straight lines whose slope is the power of N."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .rolling import rolled
from .svg import Drawing, Frame


def costs_of(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float], float]], *, says: str, unit: str = "seconds",
    width: float = 640, height: float = 320,
) -> str:  # fmt: skip
    """Measured points (N, cost, power) with the line of their power, and its name at the end."""
    drawing = Drawing(width, height)
    every = [np.log10(np.asarray(values, float)) for x, y, _ in lines.values() for values in (x, y)]
    x, y = np.concatenate(every[::2]), np.concatenate(every[1::2])
    frame = Frame(58, 26, width - 58 - 150, height - 76, (x.min() - 0.1, x.max() + 0.1), (y.min() - 0.2, y.max() + 0.2))
    _grid(drawing, frame, unit)
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
    return rolled(drawing.svg(says))


def _grid(drawing: Drawing, frame: Frame, unit: str) -> None:
    bottom, right = frame.top + frame.height, frame.left + frame.width
    for power in range(int(np.ceil(frame.y[0])), int(np.floor(frame.y[1])) + 1):
        y = frame((frame.x[0], power))[1]
        drawing.line((frame.left, y), (right, y), "hair", 1)
        drawing.text((frame.left - 8, y), _said(10.0**power), "faint", 11.5, "end")
    for size in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384):
        if frame.x[0] <= np.log10(size) <= frame.x[1]:
            x = frame((np.log10(size), frame.y[0]))[0]
            drawing.line((x, bottom), (x, bottom + 4), "faint", 1)
            drawing.text((x, bottom + 15), str(size), "faint", 11.5)
    drawing.line((frame.left, bottom), (right, bottom), "hair", 1)
    drawing.text(((frame.left + right) / 2, bottom + 36), "N", "soft", 12.5)
    drawing.text((frame.left - 46, frame.top - 14), unit, "soft", 12.5, "start")


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.10f}".rstrip("0")
