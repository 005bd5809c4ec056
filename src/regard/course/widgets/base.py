"""What every widget keeps to: found = find(allowed(at)).

    given   what it shows: a dict of plain numbers and texts, fixed when it is made
    at      what the hand moves: a dict; the page sets it
    found   what the library finds for this `at`: a dict; Python sets it

What the page sends is never trusted: `allowed` brings it back into range, or refuses it, and then nothing changes.
"""

from __future__ import annotations

from typing import Any

import anywidget
import numpy as np
import traitlets

from ...viewer.joined import script, style

PACKAGES = ("regard.course", "regard.viewer")


def joined_script() -> str:
    """The course's page and what it takes of the lens's, as one script that defines renderHand and mountHands."""
    return script("hands", PACKAGES)


def joined_style() -> str:
    """The lens's paper, ink and type, and the widgets' own styles."""
    return style(("style.css", "hands.css"), PACKAGES)


class Place(traitlets.TraitType):  # type: ignore[type-arg]
    """A dict that its widget allows; whatever else is set leaves it as it was."""

    default_value = None

    def validate(self, obj: Any, value: Any) -> Any:
        """What the widget allows of it, or what was there."""
        before = obj._trait_values.get(self.name)
        if before is None:  # the first is the constructor's own
            return value
        allowed = obj.allowed({**before, **value}) if isinstance(value, dict) else None
        return before if allowed is None else allowed


class Hand(anywidget.AnyWidget):
    """A picture that a hand moves. In marimo: mo.ui.anywidget(Plane(…)), and its `found` in another cell.

    kind: which picture; given, at, found: as above
    """

    _esm = f"{joined_script()}\nexport default {{ render: renderHand }};\n"
    _css = joined_style()
    kind = traitlets.Unicode().tag(sync=True)
    given = traitlets.Dict().tag(sync=True)
    at = Place().tag(sync=True)
    found = traitlets.Dict().tag(sync=True)

    def __init__(self, given: dict[str, Any], at: dict[str, Any]) -> None:
        super().__init__(kind=type(self).__name__.lower(), given=given, at=at, found=self.find(at))

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """A place that there is: `at` in range, all its parts there; None where it means nothing."""
        raise NotImplementedError

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """What the library finds for an `at` that is allowed."""
        raise NotImplementedError

    @traitlets.observe("at")
    def _moved(self, change: Any) -> None:
        self.found = self.find(change["new"])


# -- plain values, both ways -----------------------------------------------------------------------------------


def plain(array: Any) -> Any:
    """Nested lists of floats; None where a number is not finite, as JSON has no word for it."""
    values = np.asarray(array)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        values = values.astype(object)
        values[~np.isfinite(values.astype(float))] = None
    return values.tolist()


def real(value: Any, least: float, most: float) -> float | None:
    """A number brought into least … most; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return float(min(max(value, least), most))


def place(value: Any, reach: float) -> list[float] | None:
    """A place in the plane, each coordinate within ± reach; None for what is none."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    found = [real(one, -reach, reach) for one in value]
    return None if None in found else found  # type: ignore[return-value]


def index(value: Any, count: int) -> int | None:
    """A whole number brought into 0 … count − 1; None for what is none."""
    found = real(value, 0, count - 1)
    return None if found is None or found != int(found) else int(found)
