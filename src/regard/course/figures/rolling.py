"""A picture that stays readable where the page is narrow: it is rolled sideways in place of being shrunk."""

from __future__ import annotations


def rolled(svg: str, least: float = 520) -> str:
    """The picture in a strip of its own, at least so many pixels wide."""
    wide = svg.replace('style="', f'style="min-width:{least:g}px;', 1)
    return f'<div style="overflow-x:auto;overflow-y:hidden">{wide}</div>'
