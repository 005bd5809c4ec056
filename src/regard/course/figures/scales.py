"""Curves over powers of ten or plain numbers, each with its name at its end, and a mark where a reader stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._drawing.axes import Axis, axes, round_ticks
from ..._drawing.svg import Drawing, Frame

TONES = ("accent", "slate", "accent2", "faint")
APART = 16  # between names at the right


def powers_of(
    x: Any, curves: Mapping[str, Any], *, says: str, across: str, up: str, width: float = 640, height: float = 300,
    colours: Sequence[str] = TONES, mark: float | None = None, levels: Mapping[str, float] | None = None,
    low: float = 1e-12, high: float | None = None, widths: Sequence[float] = (2.2, 2.2, 2.2, 2.2),
) -> str:  # fmt: skip
    """Curves of positive numbers on a scale of powers of ten.

    mark:   an x at which a line stands, with a dot on each curve;  levels: heights with a name, as dashed lines
    low:    smaller numbers are drawn there;                        high: the highest power at least
    widths: of the lines, so that one that lies on another is seen
    """
    ys = {name: np.log10(np.maximum(np.asarray(y, float), low)) for name, y in curves.items()}
    named = {name: float(np.log10(max(y, low))) for name, y in (levels or {}).items()}
    every = np.concatenate([*ys.values(), np.array(list(named.values()))])
    bottom, top = np.floor(every.min() + 1e-9), np.ceil(every.max() - 1e-9)
    top = top if high is None else max(top, np.ceil(np.log10(high)))
    drawing, x = Drawing(width, height), np.asarray(x, float)
    frame = _frame(width, height, x, (float(bottom), float(max(top, bottom + 1))), (*ys, *named))
    step = max(1, int(np.ceil((frame.y[1] - frame.y[0]) / 6)))
    powers = [power for power in range(int(frame.y[0]), int(frame.y[1]) + 1) if power % step == 0]
    plainly = all(-3 < power < 3 for power in powers)
    named_powers = {float(power): f"{10.0**power:g}" if plainly else _power(power) for power in powers}
    axes(drawing, frame, Axis(across, *frame.x), Axis(up, *frame.y, named_powers))
    _curves(drawing, frame, x, ys, named, colours, widths, mark)
    return drawing.svg(says)


def lines_of(
    x: Any, curves: Mapping[str, Any], *, says: str, across: str, up: str, width: float = 640, height: float = 300,
    colours: Sequence[str] = TONES, mark: float | None = None, levels: Mapping[str, float] | None = None,
    low: float | None = None, high: float | None = None,
) -> str:  # fmt: skip
    """Curves on a plain scale, with levels and a mark as `powers_of` has them."""
    ys = {name: np.asarray(y, float) for name, y in curves.items()}
    named = dict(levels or {})
    every = np.concatenate([*ys.values(), np.array(list(named.values()))])
    ticks = round_ticks(float(every.min() if low is None else low), float(every.max() if high is None else high), 3)
    drawing, x = Drawing(width, height), np.asarray(x, float)
    ends = (min(float(every.min()), *ticks) if low is None else low, max(float(every.max()), *ticks))
    frame = _frame(width, height, x, ends, (*ys, *named))
    axes(drawing, frame, Axis(across, *frame.x), Axis(up, *frame.y, ticks))
    _curves(drawing, frame, x, ys, named, colours, (2.2,) * len(ys), mark)
    return drawing.svg(says)


def _frame(width: float, height: float, x: Any, y: tuple[float, float], names: Sequence[str]) -> Frame:
    room = 20 + 7.2 * max(len(name) for name in names)
    return Frame(52, 30, width - 52 - room, height - 78, (float(x[0]), float(x[-1])), y)


def _curves(
    drawing: Drawing, frame: Frame, x: Any, ys: Mapping[str, Any], named: Mapping[str, float], colours: Sequence[str],
    widths: Sequence[float], mark: float | None,
) -> None:  # fmt: skip
    ends = [(name, float(y[-1]), tone) for (name, y), tone in zip(ys.items(), colours, strict=False)]
    for name, y in named.items():
        drawing.line(frame((x[0], y)), frame((x[-1], y)), "faint", 1.2, "3 5")
        ends.append((name, y, "faint"))
    if mark is not None:
        drawing.line(frame((mark, frame.y[0])), frame((mark, frame.y[1])), "ink", 1, opacity=0.55)
    for y, tone, thick in zip(ys.values(), colours, widths, strict=False):
        drawing.path([frame(point) for point in zip(x[: len(y)], y, strict=True)], tone, thick)
        if mark is not None:
            drawing.circle(frame((mark, float(np.interp(mark, x[: len(y)], y)))), 4.5, tone, "paper", 1.5)
    _names(drawing, frame, ends)


def _power(power: int) -> str:
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if power else "1"


def _names(drawing: Drawing, frame: Frame, ends: list[tuple[str, float, str]]) -> None:
    """Names at the right, moved apart where they would touch."""
    right = frame.left + frame.width + 9
    placed = sorted((frame((frame.x[1], y))[1], name, tone) for name, y, tone in ends)
    heights = [height for height, _, _ in placed]
    for at in range(1, len(heights)):
        heights[at] = max(heights[at], heights[at - 1] + APART)
    over = max(0.0, heights[-1] - (frame.top + frame.height + 4))
    for height, (_, name, tone) in zip(heights, placed, strict=True):
        drawing.text((right, height - over), name, tone, 13, "start")
