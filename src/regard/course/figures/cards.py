"""Cards on a table and on a clock: which card, and which two together, complete the one that asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin

from ..._drawing.svg import Drawing, shade

CARD, HIGH, GAP = 58.0, 78.0, 16.0
SIDE, RADIUS = 350.0, 108.0


def cards_of(
    cards: Sequence[int], single: Sequence[float], pairs: Mapping[tuple[int, int], float], *, says: str
) -> str:
    """Cards in a row, the first one asking; bars below for single weights, arcs above for pairs."""
    width = 20 + len(cards) * (CARD + GAP)
    drawing, top = Drawing(width, 250), 120.0
    middle = [10 + GAP / 2 + n * (CARD + GAP) + CARD / 2 for n in range(len(cards))]
    for (one, two), weight in pairs.items():
        if weight > 0.005:
            _arc(drawing, middle[one], middle[two], top - 4, weight)
    for n, number in enumerate(cards):
        asks = n == 0
        drawing.rect(
            (middle[n] - CARD / 2, top),
            CARD,
            HIGH,
            "accent" if asks else "paper",
            "accent" if asks else "faint",
            1.3,
            8,
        )
        drawing.text((middle[n], top + HIGH / 2), str(number), "paper" if asks else "ink", 27, serif=True)
    drawing.text((middle[0], top + HIGH + 15), "asks", "accent", 13)
    for n, weight in enumerate(single):
        if n:
            drawing.rect((middle[n] - CARD / 2, top + HIGH + 9), CARD, 12, "wash", round_=3)
            drawing.rect((middle[n] - CARD / 2, top + HIGH + 9), CARD * weight, 12, "accent2", round_=3)
            drawing.text((middle[n], top + HIGH + 33), f"{weight:.2f}" if weight >= 0.005 else "0", "soft", 12)
    return drawing.svg(says)


def _arc(drawing: Drawing, start: float, end: float, y: float, weight: float) -> None:
    """An arc from card to card, stronger where the pair has more weight, with its weight on top."""
    reach = min(24 + abs(end - start) * 0.22, 95)
    d = f"M{start:.1f} {y} C{start:.1f} {y - reach * 1.3:.1f} {end:.1f} {y - reach * 1.3:.1f} {end:.1f} {y}"
    drawing.add("path", d=d, fill="none", stroke="var(--accent2)", stroke_width=1.2 + 2.6 * weight,
                opacity=0.25 + 0.75 * weight, stroke_linecap="round")  # fmt: skip
    if weight >= 0.05:
        drawing.text(((start + end) / 2, y - reach - 9), f"{weight:.2f}", "soft", 12)


def clock_of(points: Sequence[tuple[int, str, float]], hours: int, hand: int, says: str, *, rest: float) -> str:
    """A clock: points at their hours, larger and darker by their weight; the hand shows which hour would complete."""
    drawing, centre = Drawing(SIDE, 2 * RADIUS + 122), (SIDE / 2, RADIUS + 70)
    drawing.text((centre[0], 8), says, "ink", 13.5)
    drawing.circle(centre, RADIUS, "none", "hair", 1.5)
    for hour in range(hours):
        drawing.text(_place(centre, hour, hours, RADIUS - 16), str(hour), "accent" if hour == hand else "faint", 12)
    drawing.arrow(centre, _place(centre, hand, hours, RADIUS - 30), "accent", 2.4, 10)
    seen: dict[int, int] = {}
    for hour, _, weight in sorted(points, key=lambda point: -point[2]):
        level = seen[hour] = seen.get(hour, -1) + 1
        place = _place(centre, hour, hours, RADIUS + 14 * level)
        edge = "accent2" if weight > 0.02 else "faint"
        drawing.circle(place, 4.5 + 4.5 * weight**0.5, shade(0.12 + 0.88 * weight), edge, 1)
    for hour, count in seen.items():
        read = [label for at, label, weight in points if at == hour and weight > 0.02]
        if read:
            _named(drawing, centre, _place(centre, hour, hours, RADIUS + 20 + 14 * count), read)
    drawing.text(
        (centre[0], centre[1] + (44 if cos(2 * pi * hand / hours) > 0 else -44)), f"nobody {rest:.2f}", "soft", 12.5
    )
    return drawing.svg(says).replace('style="', 'style="margin:0 auto;', 1)


def _named(drawing: Drawing, centre: tuple[float, float], place: tuple[float, float], read: list[str]) -> None:
    """Names one below the other, on the side of the clock on which they stand."""
    side = place[0] - centre[0]
    anchor = "middle" if abs(side) < 30 else "start" if side > 0 else "end"
    for line, label in enumerate(read):
        drawing.text(
            (place[0], place[1] + 14 * (line - (len(read) - 1) / 2)), label, "accent2", 12.5, anchor, bold=True
        )


def _place(centre: tuple[float, float], hour: float, hours: int, radius: float) -> tuple[float, float]:
    angle = 2 * pi * hour / hours
    return centre[0] + radius * sin(angle), centre[1] - radius * cos(angle)
