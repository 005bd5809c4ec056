"""Numbers that make sense where something is made of them."""

from __future__ import annotations

import math

from .algebra.errors import CallError, KindError


def check_number(name: str, value: object, least: float, *, above: bool = False) -> None:
    """Refuse what is no finite number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise KindError(f"{name}: a number; got {value!r}")
    if not math.isfinite(value) or value < least or (above and value == least):
        raise CallError(f"{name}: a finite number {'above' if above else 'of at least'} {least:g}; got {value!r}")


def check_count(name: str, value: object, least: int) -> None:
    """Refuse what is no integer, or too small."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindError(f"{name}: an integer; got {value!r}")
    if value < least:
        raise CallError(f"{name}: an integer of at least {least}; got {value}")
