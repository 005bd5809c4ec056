"""What the hand moves: five widgets, each a picture of the formula that answers at once.

    given → at → found        what is shown, what the hand moves, what the library finds for it

    base      the contract, and what every widget keeps to;   checks  arguments, at the door;   convex  hulls
    plane     Plane     a vector in the plane, what it reads, and the mean of the values that it brings back
    rows      Rows      one query against all keys, number by number
    matrix    Matrix    the weights of each head over a sentence
    ellipse   Ellipse   a covariance to pull at, and the neighbours that it makes
    mistakes  Mistakes  the classic mistakes, on and off
    still     the same in a page without Python;   pictures  and without a script

Their pictures are ES modules in `course/page`, joined with those of the lens. No number is computed there.
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name(
    {
        "base": "Hand",
        "plane": "Plane",
        "rows": "Rows",
        "matrix": "Matrix",
        "ellipse": "Ellipse",
        "mistakes": "Mistakes",
        "still": "mount_html shared_html still_html",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, anywidget="learn", traitlets="learn")


def __dir__() -> list[str]:
    return list(__all__)
