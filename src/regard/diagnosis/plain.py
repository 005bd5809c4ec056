"""Values that strict JSON can hold, and back: arrays as nested lists, NaN and ±∞ as words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # numbers that strict JSON lacks


def plain(value: Any) -> Any:
    """The value in strings, finite numbers, truths, None, lists and dictionaries alone.

    >>> plain({"x": np.array([[1.0, np.nan]])})
    {'x': [[1.0, 'NaN']]}
    """
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def numbers(value: Any) -> Any:
    """The values with NaN and ±∞ for their words."""
    if isinstance(value, list):
        return [numbers(part) for part in value]
    return WORDS.get(value, value) if isinstance(value, str) else value


def matrix(value: Any) -> NDArray[np.float64]:
    """Numbers of any library, or as plain values, in a float64 array that nobody writes to."""
    made = np.array(numbers(plain(value)), dtype=np.float64)
    made.setflags(write=False)
    return made


def handed_over(value: Any) -> Any:
    """Lists of numbers and arrays of any library as arrays of NumPy; whatever else was handed over, as it is."""
    found = numbers(plain(value))
    if not isinstance(found, list):
        return found
    try:
        made = np.array(found)
    except ValueError:  # rows of different lengths
        return found
    return made if made.dtype.kind in "biuf" and plain(made) == plain(found) else found
