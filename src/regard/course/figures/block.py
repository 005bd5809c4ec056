"""A block of a transformer: a stream that runs through, and two branches that read it and add to it."""

from __future__ import annotations

from collections.abc import Collection

from ..._drawing.svg import Drawing

STREAM, UP = 196.0, 84.0  # heights of the stream and of the branches


def block_of(left_out: Collection[str] = (), *, says: str = "a block of a transformer", blocks: str = "× L") -> str:
    """The block; parts that are left out ("attention", "feed-forward", "normalisation", "residual") are dashed."""
    drawing = Drawing(680, 262)
    gone = set(left_out)
    drawing.rect((124, 24), 432, 204, "none", "hair", 1.3, 14)
    drawing.text((542, 42), blocks, "faint", 13, "end")
    _ends(drawing)
    _stream(drawing, broken="residual" in gone)
    _branch(drawing, 148, "attention", "between the rows", gone)
    _branch(drawing, 356, "feed-forward", "each row by itself", gone)
    return drawing.svg(says)


def _ends(drawing: Drawing) -> None:
    _box(drawing, 2, STREAM - 25, 101, 50, "embedding", "+ position", "slate")
    _box(drawing, 580, STREAM - 25, 92, 50, "head", "scores", "slate")


def _stream(drawing: Drawing, *, broken: bool) -> None:
    """The line from left to right; where nothing is added, it is broken beneath each branch."""
    drawing.line((103, STREAM), (156, STREAM), "ink", 5)
    drawing.line((531, STREAM), (556, STREAM), "ink", 5)
    drawing.arrow((556, STREAM), (579, STREAM), "ink", 5, 13)
    for left in (148, 356):
        dash, tone, opacity = ("2 9", "faint", 0.7) if broken else ("", "ink", 1.0)
        drawing.line((left + 8, STREAM), (left + 158, STREAM), tone, 5, dash, opacity)
    drawing.line((324, STREAM), (364, STREAM), "ink", 5)


def _branch(drawing: Drawing, left: float, part: str, does: str, gone: set[str]) -> None:
    """Up from the stream, through norm and part, and down again to a sum."""
    away = part in gone
    tone, dash = ("faint", "4 5") if away else ("accent2", "")
    x0, x1, x2 = left + 8, left + 46, left + 175
    drawing.path([(x0, STREAM), (x0, UP + 34), (x0 + 10, UP + 24), (x1 - 26, UP + 24)], tone, 2.2, dash=dash)
    no_norm = "normalisation" in gone
    _small(drawing, x0 - 4, UP + 64, "norm", no_norm or away)
    _box(drawing, x1 - 26, UP - 6, 128, 58, part, does, "faint" if away else "accent2", dashed=away)
    right = x1 + 102
    drawing.path([(right, UP + 24), (x2 - 18, UP + 24), (x2 - 8, UP + 34), (x2 - 8, STREAM - 14)], tone, 2.2, dash=dash)
    centre = (x2 - 8, STREAM)
    if not away:
        drawing.path([(centre[0] - 5, STREAM - 20), (centre[0], STREAM - 13), (centre[0] + 5, STREAM - 20)], tone, 2.2)
    if "residual" in gone:
        drawing.line((centre[0] - 13, STREAM), (centre[0] + 13, STREAM), "ink", 5)
        drawing.line((centre[0], STREAM - 13), (centre[0], STREAM), tone, 2.2)
        return
    drawing.circle(centre, 12, "paper", "faint" if away else "ink", 2)
    drawing.text((centre[0], STREAM - 0.5), "+", "faint" if away else "ink", 19)


def _small(drawing: Drawing, left: float, top: float, word: str, gone: bool) -> None:
    dashed = {"stroke_dasharray": "4 4"} if gone else {}
    drawing.add("rect", x=left - 20, y=top, width=48, height=24, rx=6, fill="var(--paper)",
                stroke=f"var(--{'faint' if gone else 'accent'})", stroke_width=1.8, **dashed)  # fmt: skip
    drawing.text((left + 4, top + 12), word, "faint" if gone else "ink", 12.5)


def _box(drawing: Drawing, left: float, top: float, width: float, height: float, word: str, does: str, tone: str,
         *, dashed: bool = False) -> None:  # fmt: skip
    line = {"stroke_dasharray": "5 5"} if dashed else {}
    drawing.add("rect", x=left, y=top, width=width, height=height, rx=8, fill="var(--paper)", stroke=f"var(--{tone})",
                stroke_width=2, **line)  # fmt: skip
    drawing.text((left + width / 2, top + height / 2 - 9), word, "faint" if dashed else "ink", 14, bold=not dashed)
    drawing.text((left + width / 2, top + height / 2 + 10), does, "faint", 11.5)
