"""Dates and their translation: lines that can be filled, written on, and translated.

    07 mar 84=84-03-07      07 mar 84=07.03.84

Both translations are right, and drawn evenly: whoever writes the second half has to keep to the one that was begun. A
digit that is hidden on the left of = stands on its right, and the other way round. A seventh of all dates is held out.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
SOURCE, TARGET = 9, 8  # characters of a date, and of its translation
EQUALS = SOURCE  # where = stands
LINE = SOURCE + 1 + TARGET
LETTERS = sorted({*"0123456789 -.=", *"".join(MONTHS)})
HIDDEN = len(LETTERS)  # the id of what is not shown
TOKENS = HIDDEN + 1
BEFORE = (1, 7, 8)  # the day's second digit and the year's two, in the date
AFTER = (LINE - 2, LINE - 1)  # the last two digits of either translation


def source(day: int, month: int, year: int) -> str:
    """A date.

    >>> source(7, 2, 84)
    '07 mar 84'
    """
    return f"{day:02d} {MONTHS[month]} {year:02d}"


def translations(day: int, month: int, year: int) -> tuple[str, str]:
    """Both of them.

    >>> translations(7, 2, 84)
    ('84-03-07', '07.03.84')
    """
    return f"{year:02d}-{month + 1:02d}-{day:02d}", f"{day:02d}.{month + 1:02d}.{year:02d}"


def ids(texts: list[str]) -> Tensor:
    """Texts of one length as (texts, characters)."""
    place = {letter: at for at, letter in enumerate(LETTERS)}
    return torch.tensor([[place[letter] for letter in text] for text in texts])


@cache
def all_dates() -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Dates to learn from, and dates that are held out, in an order of their own."""
    dates = [(day, month, year) for year in range(100) for month in range(12) for day in range(1, 29)]
    mixed = [dates[at] for at in np.random.default_rng(0).permutation(len(dates))]
    cut = len(mixed) // 7
    return mixed[cut:], mixed[:cut]


def lines(rng: np.random.Generator, count: int, *, held_out: bool = False) -> Tensor:
    """So many dates with one of their translations, (count, LINE)."""
    dates = all_dates()[held_out]
    chosen = [dates[at] for at in rng.integers(len(dates), size=count)]
    kinds = rng.integers(2, size=count)
    return ids([f"{source(*date)}={translations(*date)[kind]}" for date, kind in zip(chosen, kinds, strict=True)])


def right(written: Tensor) -> Tensor:
    """Of each line, whether what stands behind = is one of the translations of what stands before it."""
    texts = ["".join(LETTERS[at] if at < HIDDEN else "?" for at in row) for row in written.tolist()]
    return torch.tensor([_is_translation(text[:SOURCE], text[EQUALS + 1 :]) for text in texts])


def _is_translation(date: str, translation: str) -> bool:
    day, month, year = date.split(" ")
    return translation in translations(int(day), MONTHS.index(month), int(year))
