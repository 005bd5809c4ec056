"""A phrase, and what one word of it reads: arcs as thick as their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._drawing.svg import Drawing, shade

SIZE, GAP = 22.0, 30.0


def arcs_of(
    words: Sequence[str], weights: Any, reader: int, decisive: int, answer: str = "", *, says: str, width: float = 640
) -> str:
    """Arcs from the word that reads to every word, the one that decides underlined; behind them the word to come."""
    lengths = [_length(word) for word in words]
    total = sum(lengths) + GAP * len(words) + _length(answer)
    scale = min(1.0, (width - 24) / total)
    drawing, left, line = Drawing(width, 150), (width - total * scale) / 2, 108.0
    middles = []
    for length in lengths:
        middles.append(left + length * scale / 2)
        left += (length + GAP) * scale
    for j, (middle, share) in enumerate(zip(middles, weights, strict=True)):
        if j != reader:
            _arc(drawing, middles[reader], middle, line - 18, float(share))
    for j, (word, middle, share) in enumerate(zip(words, middles, weights, strict=True)):
        half = lengths[j] * scale / 2
        drawing.rect((middle - half - 6, line - 17), 2 * half + 12, 34, shade(0.8 * float(share)), round_=5)
        tone = "paper" if share > 0.6 else "ink"
        drawing.text((middle, line - 1), word, tone, SIZE * scale, serif=True, italic=j == reader, bold=j == reader)
        decides = j == decisive
        drawing.text((middle, line + 32), f"{share:.2f}", "accent" if decides else "faint", 13, bold=decides)
        if decides:
            drawing.line((middle - half, line + 20), (middle + half, line + 20), "accent", 2.6)
    drawing.text((left - 4, line - 1), f"{answer}?", "faint", SIZE * scale, "start", serif=True)
    return drawing.svg(says)


def _length(word: str) -> float:
    """About as wide as a word is in a serif type."""
    return SIZE * sum(0.86 if letter in "mw" else 0.36 if letter in "ijlt" else 0.56 for letter in word)


def _arc(drawing: Drawing, start: float, end: float, down: float, share: float) -> None:
    rise = min(100.0, 18 + 0.3 * abs(end - start))
    path = f"M{start:.1f} {down:.1f} C{start:.1f} {down - rise:.1f} {end:.1f} {down - rise:.1f} {end:.1f} {down:.1f}"
    drawing.add("path", d=path, fill="none", stroke="var(--accent2)", stroke_width=0.6 + 11 * share,
                stroke_linecap="round", opacity=0.18 + 0.7 * share)  # fmt: skip
