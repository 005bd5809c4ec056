"""Numbers as they are set: a true minus, powers of ten, shares that are too small to round.

    as_set("-0.5 and 2e-16")    −0.5 and 2 × 10⁻¹⁶          percent(2e-6)    less than 0.1%

All that a page says goes through `as_set`: prose, cells of tables, the words of a picture. Code does not.
"""

from __future__ import annotations

import re

MINUS = re.compile(r"(?<![\w.-])-(?=\.?\d)")
POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d+)\b")
WORDS = re.compile(r">[^<>]+<")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def as_set(text: str) -> str:
    """A text with its numbers as they are set.

    >>> as_set("-0.5, 1e-16 and 1e+03; a-1 and 2024-05 are no numbers")
    '−0.5, 10⁻¹⁶ and 10³; a-1 and 2024-05 are no numbers'
    """
    return MINUS.sub("−", POWER.sub(_raised, text))


def words_set(picture: str) -> str:
    """A picture, as SVG or other HTML, whose words have their numbers as they are set.

    >>> words_set('<text x="-2">-2</text>')
    '<text x="-2">−2</text>'
    """
    return WORDS.sub(lambda found: as_set(found[0]), picture)


def percent(share: float) -> str:
    """A share of a whole, in at most one digit after the point.

    >>> percent(0.046), percent(2e-6), percent(0.0)
    ('4.6%', 'less than 0.1%', '0.0%')
    """
    return "less than 0.1%" if 0 < share < 0.001 else f"{share:.1%}"


def _raised(found: re.Match[str]) -> str:
    power = f"10{str(int(found[2])).translate(RAISED)}"
    return power if found[1] == "1" else f"{found[1]}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{power}"
