"""What a reader leaves out, by reason: counted, the first few named, and refused if it is most of what there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...algebra.errors import CallError

NAMED = 3  # of each reason
MOST = 0.5  # of all; beyond it the source is another than the reader took it for


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count with its noun: 1 image, 1 797 images.

    >>> counted(1, "image"), counted(1797, "image"), counted(2, "class", "classes")
    ('1 image', '1 797 images', '2 classes')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}".replace(",", " ")


def listed(names: Iterable[str], shown: int = NAMED) -> str:
    """The first few names; an ellipsis for the others.

    >>> listed(["a", "b", "c", "d"])
    'a, b, c, …'
    """
    every = list(names)
    return ", ".join([*every[:shown], "…"] if len(every) > shown else every)


@dataclass
class Skipped:
    """Examples that were left out. `one` is what an example is called.

    >>> skipped = Skipped("line")
    >>> skipped.add("without a tab", "line 3")
    >>> skipped.add("without a tab", "line 5")
    >>> skipped.notes()
    ('2 lines skipped, without a tab: line 3, line 5',)
    """

    one: str
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """One more."""
        self.reasons.setdefault(reason, []).append(name)

    def __len__(self) -> int:
        return sum(map(len, self.reasons.values()))

    def notes(self) -> tuple[str, ...]:
        """A sentence for each reason."""
        return tuple(
            f"{counted(len(names), self.one)} skipped, {why}: {listed(names)}" for why, names in self.reasons.items()
        )

    def refuse_most(self, total: int, where: str, hint: str) -> None:
        """An error if more than half of all were left out."""
        if len(self) > MOST * total:
            raise CallError(
                f"source: at least half of the {self.one}s of use; got {where}, where {len(self)} of {total} are not "
                f"({'; '.join(self.notes())}); {hint}"
            )
