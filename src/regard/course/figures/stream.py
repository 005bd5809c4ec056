"""Softmax, block by block: scores as bars, what was read so far, and the three numbers that are remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing

WIDTH, LEFT, HIGH = 700.0, 62.0, 170.0
ROWS = ("m", "factor", "Z", "Σ", "y")


def stream_of(scores: Any, block: int, at: int, states: Sequence[dict[str, float]], *, whole: float, says: str) -> str:
    """One query's scores; blocks up to `at` are read. Below each: the running m, the factor, Z, Σ and y = Σ / Z.

    states: for each block {"m", "factor", "Z", "sum", "y"} after it was read;  whole: y of all keys at once
    """
    scores = np.asarray(scores, float)
    drawing, count = Drawing(WIDTH, 404), len(scores)
    step = (WIDTH - LEFT - 8) / count
    low, high = float(min(scores.min(), 0)) - 0.3, float(scores.max()) + 0.5

    def up(score: float) -> float:
        return 38 + HIGH * (1 - (score - low) / (high - low))

    for n, first in enumerate(range(0, count, block)):
        wide = (min(first + block, count) - first) * step
        left = LEFT + first * step
        if n == at - 1:
            drawing.rect((left + 1, 10), wide - 3, 384, "wash", round_=6)
        drawing.text((left + wide / 2, 20), _block_name(n, at), "accent" if n == at - 1 else "faint", 11.5)
    for key, score in enumerate(scores):
        seen, here = key < at * block, (at - 1) * block <= key < at * block
        top, bottom = min(up(score), up(0)), max(up(score), up(0))
        tone = "accent" if here else "slate" if seen else "hair"
        drawing.rect((LEFT + key * step + 2, top), max(step - 5, 2), max(bottom - top, 1), tone, round_=2)
    drawing.line((LEFT, up(0)), (WIDTH - 8, up(0)), "faint", 1)
    drawing.text((LEFT - 10, up(0)), "score 0", "faint", 11, "end")
    _maximum(drawing, up, states, at, block, count, step)
    _remembered(drawing, states, at, block, count, step)
    if at == len(states):
        drawing.text((WIDTH - 10, 396), f"all at once: y = {whole:.6f}", "slate", 12.5, "end")
    return drawing.svg(says)


def _block_name(n: int, at: int) -> str:
    return "read now" if n == at - 1 else "forgotten" if n < at else "to come"


def _maximum(drawing: Drawing, up: Any, states: Any, at: int, block: int, count: int, step: float) -> None:
    """The running maximum, as a stair over what was read."""
    for n in range(at):
        y = up(states[n]["m"])
        start, end = LEFT + n * block * step, LEFT + min((n + 1) * block, count) * step
        drawing.line((start, y), (end - 4, y), "accent2", 1.6, "4 3")
    if at:
        end = LEFT + min(at * block, count) * step
        drawing.text(
            (min(end + 2, WIDTH - 20), up(states[at - 1]["m"]) - 9), "m", "accent2", 13, "end", italic=True, serif=True
        )


def _remembered(drawing: Drawing, states: Any, at: int, block: int, count: int, step: float) -> None:
    names = {"m": "m", "factor": "old ×", "Z": "Z", "sum": "Σ ψ v", "y": "y"}
    for line, (name, label) in enumerate(names.items()):
        y = 244 + 30 * line
        drawing.text((LEFT - 10, y), label, "soft", 12.5, "end", italic=name in "mZy", serif=name in "mZy")
        drawing.line((LEFT, y + 15), (WIDTH - 8, y + 15), "hair", 0.7)
        for n in range(min(at, len(states))):
            middle = LEFT + (n * block + min((n + 1) * block, count)) / 2 * step
            now = n == at - 1
            tone = "accent2" if name == "factor" and now and states[n]["factor"] < 1 else "ink" if now else "faint"
            drawing.text((middle, y), f"{states[n][name]:.3g}", tone, 13 if now else 11.5, bold=now)
