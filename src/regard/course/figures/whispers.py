"""Guests around a table: a word that is whispered from one to the next, and one look across.

chain   what arrives at guest n is kept^(n − 1) of what guest 1 said        look   one step from anybody to anybody
"""

from __future__ import annotations

from itertools import pairwise
from math import cos, pi, sin

from ..._drawing.svg import Drawing, shade

SIDE, RING, TABLE, MIDDLE, ABOVE = 320.0, 134.0, 98.0, 116.0, 0.5
Place = tuple[float, float]


def whispers_of(guests: int, kept: float, *, says: str = "a chain of whispers, and looks across the table") -> str:
    """Two tables with as many guests; `kept` is what each passes on of what it hears."""
    drawing = Drawing(2 * SIDE + 20, MIDDLE + RING + 56)
    chain, look = (_seats(guests, (SIDE / 2 + shift, MIDDLE)) for shift in (0.0, SIDE + 20))
    _table(drawing, (SIDE / 2, MIDDLE), _arrives(kept ** (guests - 1)), _steps(guests - 1))
    _table(drawing, (SIDE * 1.5 + 20, MIDDLE), "", "")
    _whispered(drawing, chain, kept)
    _looked(drawing, look)
    drawing.text((SIDE / 2, MIDDLE + RING + 42), "a chain of whispers", "soft", 14, italic=True, serif=True)
    drawing.text(
        (SIDE * 1.5 + 20, MIDDLE + RING + 42), "one look across the table", "soft", 14, italic=True, serif=True
    )
    return drawing.svg(says)


def _seats(guests: int, centre: Place, radius: float = RING) -> list[Place]:
    """Around the table, guest 1 at the left, the last at the right: across from each other."""
    angles = [pi + ABOVE - at / (guests - 1) * (pi + 2 * ABOVE) for at in range(guests)]
    return [(centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)) for angle in angles]


def _table(drawing: Drawing, centre: Place, big: str, small: str) -> None:
    drawing.circle(centre, TABLE, "wash", "hair", 1.4)
    if big:
        drawing.text((centre[0], centre[1] - 8), big, "ink", 25, serif=True)
        drawing.text((centre[0], centre[1] + 18), "of the joke arrives,", "faint", 12)
        drawing.text((centre[0], centre[1] + 34), f"after {small}", "faint", 12)


def _whispered(drawing: Drawing, seats: list[Place], kept: float) -> None:
    """From each to the next, with ink that fades."""
    size = _size(len(seats))
    for hop, (start, end) in enumerate(pairwise(seats)):
        left = kept**hop
        a, b = _shortened(start, end, size + 2, size + 5)
        drawing.arrow(a, b, "accent", 1.2 + 3.2 * min(1.0, left), 8, 0.1 + 0.9 * min(1.0, left))
    for at, seat in enumerate(seats):
        _guest(drawing, seat, at, size, min(1.0, kept**at), last=at == len(seats) - 1)


def _looked(drawing: Drawing, seats: list[Place]) -> None:
    """From the last to all, and to the first with all its ink."""
    size = _size(len(seats))
    for start in range(len(seats)):
        for end in range(start):
            drawing.line(seats[start], seats[end], "slate", 0.6, opacity=min(0.3, 2.2 / len(seats)))
    for seat in seats[1:-1]:
        drawing.line(seats[-1], seat, "slate", 1.3, opacity=0.55)
    a, b = _shortened(seats[0], seats[-1], size + 2, size + 5)
    drawing.arrow(a, b, "accent", 4.2, 11)
    for at, seat in enumerate(seats):
        _guest(drawing, seat, at, size, 1.0 if at in (0, len(seats) - 1) else 0.0, last=at == len(seats) - 1)


def _guest(drawing: Drawing, place: Place, at: int, size: float, share: float, *, last: bool) -> None:
    """A disc with a number, as red as what it knows."""
    drawing.circle(place, size, shade(share, "accent"), "ink" if last else "faint", 2.4 if last else 1.2)
    drawing.text(place, str(at + 1), "paper" if share > 0.55 else "ink", size * 0.95, bold=at == 0 or last)


def _shortened(start: Place, end: Place, first: float, second: float) -> tuple[Place, Place]:
    """A line without what lies under the discs at its ends."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    first, second = min(first, 0.45 * length), min(second, 0.45 * length)
    return (
        (start[0] + dx * first / length, start[1] + dy * first / length),
        (end[0] - dx * second / length, end[1] - dy * second / length),
    )


def _size(guests: int) -> float:
    return min(17.0, (pi + 2 * ABOVE) * RING / (guests - 1) * 0.34)


def _arrives(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "< 0.1%"


def _steps(count: int) -> str:
    return f"{count} whisper{'s' * (count != 1)}"
