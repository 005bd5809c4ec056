"""Dates as people write them, and as ISO 8601 writes them: a small translation that anyone can check.

    Sunday, 3 May 1998 · May 3rd, 1998 · the third of May 1998 · 3 May '98   →   1998-05-03

The day is read here, the month there, the year elsewhere, in another order than they are written: each letter of the
target has to look up its own place of the source. Years are from 1950 to 2049, so that two digits tell the year.
A date that is held out is held out in every way of writing it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np

from .draws import Draws

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
COUNT = 20_000  # dates, each written in one way

MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


def month(day: date) -> str:
    """May."""
    return MONTHS[day.month - 1]


def short(day: date) -> str:
    """Sep., but May, which is short."""
    return month(day)[:3] + "." * (len(month(day)) > 3)


def weekday(day: date) -> str:
    """Sunday."""
    return WEEKDAYS[day.weekday()]


def numbered(day: date) -> str:
    """3rd."""
    return f"{day.day}{ENDINGS.get(day.day, 'th')}"


def worded(day: date) -> str:
    """third; twenty-first."""
    tens, ones = divmod(day.day, 10)
    if day.day <= len(ORDINALS):
        return ORDINALS[day.day - 1]
    if not ones:
        return "thirtieth"
    return f"{'twenty' if tens == 2 else 'thirty'}-{ORDINALS[ones - 1]}"


WAYS: tuple[Callable[[date], str], ...] = (
    lambda day: f"{day.day} {month(day)} {day.year}",
    lambda day: f"{weekday(day)}, {day.day} {month(day)} {day.year}",
    lambda day: f"{weekday(day)[:3]} {day.day} {month(day)[:3]} {day.year}",
    lambda day: f"{numbered(day)} of {month(day)}, {day.year}",
    lambda day: f"the {worded(day)} of {month(day)} {day.year}",
    lambda day: f"the {worded(day)} of {month(day)}, a {weekday(day)}, in {day.year}",
    lambda day: f"{month(day)} {day.day}, {day.year}",
    lambda day: f"{month(day)} {numbered(day)}, {day.year}",
    lambda day: f"{weekday(day)}, {short(day)} {day.day}, {day.year}",
    lambda day: f"{month(day)} the {worded(day)}, {day.year}",
    lambda day: f"{day.day}-{month(day)[:3]}-{day.year}",
    lambda day: f"{month(day)[:3].upper()} {day.day:02d} {day.year}",
    lambda day: f"{day.day} {month(day)[:3]} '{day.year % 100:02d}",
    lambda day: f"{numbered(day)} {month(day).lower()} {day.year % 100:02d}",
    lambda day: f"{day.year}, {month(day)} {day.day}",
    lambda day: f"in {day.year}, on the {numbered(day)} of {month(day)}",
)
"""No way with a month in figures: 3/5/98 is a day in May to some and in March to others."""


def date_pairs(count: int = COUNT, seed: int = 0) -> list[tuple[str, str]]:
    """So many different dates, drawn from all; each in one way of writing it, and in ISO's.

    >>> date_pairs(2)
    [('in 1965, on the 11th of February', '1965-02-11'), ('1st june 23', '2023-06-01')]
    """
    first, last = FIRST.toordinal(), LAST.toordinal()
    drawn = first + Draws(seed, "dates").order(last - first + 1)[:count]
    ways = Draws(seed, "ways").integers(0, len(WAYS) - 1, len(drawn))
    days = [date.fromordinal(number) for number in np.asarray(drawn).tolist()]
    return [(WAYS[way](day), day.isoformat()) for day, way in zip(days, ways.tolist(), strict=True)]
