"""Two judges, one after the other: the chapter's own mistakes by their names, then all that rg.check knows.

Named(compared, checked)    a mistake of the chapter, if it is one of those; else what the check finds
"""

from __future__ import annotations

from dataclasses import dataclass

from .exercise import Verdict
from .judges import Checked, Compared

UNNAMED = "another result"


@dataclass(frozen=True)
class Named:
    """An attention whose typical mistakes a chapter has names for, beside those of the catalogue.

    compared: finds the chapter's mistakes on a few inputs;  checked: finds the others, and says what is right
    """

    compared: Compared
    checked: Checked

    def __call__(self, target: str) -> Verdict:
        first = self.compared(target)
        if not first.right and first.found[0].name != UNNAMED:
            return first
        return self.checked(target)
