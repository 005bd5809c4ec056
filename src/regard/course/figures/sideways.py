"""Pictures on a narrow screen: one that scrolls sideways in place of being too small, and several that wrap."""

from __future__ import annotations

from collections.abc import Iterable


def sideways(picture: str, least: float) -> str:
    """A picture that is never drawn narrower than so many pixels; a narrow page scrolls it."""
    return f'<div style="overflow-x:auto"><div style="min-width:{least:.0f}px">{picture}</div></div>'


def wrapped(pictures: Iterable[str], least: float) -> str:
    """Pictures beside each other, and below each other where there is no room."""
    cells = "".join(f'<div style="flex:1 1 {least:.0f}px;max-width:320px">{picture}</div>' for picture in pictures)
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px 24px">{cells}</div>'
