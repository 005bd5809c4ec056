"""Numbers and matrices of an example, as they are shown.

number   3 significant digits; more where a wrong entry would else print like the right one
matrix   at most 8 × 8 entries, wrong ones first; a gap stands for the rest
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .words import UNICODE, Signs

if TYPE_CHECKING:
    from ..report import Example

MOST = 8  # rows and columns of a matrix that are shown
MOST_ENTRIES = 16  # of an input
MOST_DIGITS = 17  # which tell any two float64 apart

# -- numbers ---------------------------------------------------------------------------------------------------


def number(value: float, digits: int = 3, infinity: str = "∞") -> str:
    """A number of so many significant digits; a small whole number is printed as one.

    >>> [number(x) for x in (1, 1 / 3, 0.5, 12.345, 1.2e-7, float("nan"), float("-inf"))]
    ['1', '0.333', '0.500', '12.3', '1.20e-7', 'NaN', '-∞']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else infinity if value > 0 else f"-{infinity}"
    if value == int(value) and abs(value) < 1e5:
        return str(int(value))
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(power)}"


def literal(value: Any, signs: Signs = UNICODE) -> str:
    """A small array as nested lists; a large one as its shape."""
    if hasattr(value, "shape") and value.size > MOST_ENTRIES:
        return f"array of {f' {signs.times} '.join(map(str, value.shape))}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return f"[{', '.join(literal(part, signs) for part in value)}]"
    return number(value, infinity=signs.infinity) if isinstance(value, float) else str(value)


def literals(value: Any, room: int, signs: Signs = UNICODE) -> list[str]:
    """The literal on one line, or where that has no room on one for each row.

    >>> import numpy as np
    >>> literals(np.eye(2), 12)
    ['[[1, 0],', ' [0, 1]]']
    """
    text = literal(value, signs)
    is_nested = text.startswith("[[") and len(text) > room
    return text.replace("], [", "],\n [").split("\n") if is_nested else [text]


def aligned(texts: Iterable[str]) -> list[str]:
    """The texts at one width, their points below each other; NaN and ∞, which have none, at the right.

    >>> aligned(["0.500", "12", "NaN"])
    [' 0.500', '12    ', '   NaN']
    """
    texts = list(texts)
    parts = {text: text.partition(".") for text in texts if text[-1:].isdigit()}
    before = max((len(whole) for whole, _, _ in parts.values()), default=0)
    after = max((len(point + rest) for _, point, rest in parts.values()), default=0)
    size = max(before + after, *map(len, texts))
    placed = {text: whole.rjust(before) + (point + rest).ljust(after) for text, (whole, point, rest) in parts.items()}
    return [placed.get(text, text).rjust(size) for text in texts]


# -- matrices --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One entry in both matrices, as printed."""

    yours: str
    right: str
    wrong: bool


@dataclass(frozen=True)
class Grid:
    """The part of two matrices that is shown. A row, a column and their labels are None where some are left out."""

    rows: list[str | None]
    columns: list[str | None]
    cells: list[list[Cell | None]]


def grid(example: Example, columns: int = MOST, rows: int = MOST, infinity: str = "∞") -> Grid:
    """At most so many rows and columns of an example, those with wrong entries first."""
    wrong = example.wrong
    down, across = shown(wrong.any(1), rows), shown(wrong.any(0), columns)
    digits = _digits(example)
    places = [(row, column) for row in down for column in across if row is not None and column is not None]
    printed = [
        number(float(made[place]), digits, infinity) for made in (example.yours, example.right) for place in places
    ]
    texts = aligned(printed)
    cells = {
        place: Cell(yours, right, bool(wrong[place]))
        for place, yours, right in zip(places, texts[: len(places)], texts[len(places) :], strict=True)
    }
    name_down, name_across = axes(example.shown)
    return Grid(
        [None if row is None else f"{name_down} {row}" for row in down],
        [None if column is None else f"{name_across} {column}" for column in across],
        [[cells.get((row, column)) for column in across] for row in down],  # type: ignore[arg-type]
    )


def shown(wrong: Any, most: int) -> list[int | None]:
    """Which places of an axis to show, in order: wrong ones, then the first, and None for each stretch left out.

    >>> import numpy as np
    >>> shown(np.arange(9) == 6, 3)
    [0, 1, None, 6, None]
    """
    size = len(wrong)
    ranked = sorted(range(size), key=lambda place: (not wrong[place], place))
    kept = sorted(ranked[:most])
    found: list[int | None] = []
    for before, place in zip([-1, *kept], [*kept, size], strict=True):
        found += ([None] if place > before + 1 else []) + ([place] if place < size else [])
    return found


def axes(name: str) -> tuple[str, str]:
    """What the rows and columns of a matrix are, from what it is called."""
    if any(word in name for word in ("weight", "score", "mask")) and "gradient" not in name:
        return "query", "key"
    last = name.split()[-1] if name else ""
    if "output" in name or last == "q":
        return "query", "dim"
    return ("key", "dim") if last in ("k", "v") else ("row", "col")


def _digits(example: Example) -> int:
    """Enough of them that no wrong entry prints like the right one."""
    pairs = [
        (float(a), float(b)) for a, b in zip(example.yours[example.wrong], example.right[example.wrong], strict=True)
    ]
    return next((digits for digits in range(3, MOST_DIGITS) if _apart(pairs, digits)), MOST_DIGITS)


def _apart(pairs: Sequence[tuple[float, float]], digits: int) -> bool:
    infinity = "inf"  # which float reads
    return all(float(number(a, digits, infinity)) != float(number(b, digits, infinity)) for a, b in pairs)
