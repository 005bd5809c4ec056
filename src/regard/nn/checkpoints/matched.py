"""What did not match between a model and a checkpoint, as a list that a person can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOST = 16  # lines of one list
NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class Misfit:
    """Two tensors that belong together and are of different shape.

    ours, theirs: their names;  expected, found: their shapes;  axes: what the axes are, where the config names them
    """

    ours: str
    theirs: str
    expected: tuple[int, ...]
    found: tuple[int, ...]
    axes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.ours} ← {self.theirs}: {_by(self.expected)} by the config, {_by(self.found)} there{self._told}"

    @property
    def _told(self) -> str:
        """The fields of the config that say something else."""
        if len(self.axes) != len(self.found) or len(self.found) != len(self.expected):
            return ""
        sizes = zip(self.axes, self.expected, self.found, strict=True)
        wrong = [f"{axis} is {expected}, not {found}" for axis, expected, found in sizes if expected != found]
        return f": {', '.join(wrong)}" if wrong else ""


@dataclass(frozen=True)
class Matched:
    """How a checkpoint was read; prints as a list.

    family:  the kind of checkpoint, such as "llama"
    taken:   how many tensors of ours were filled
    missing: (ours, theirs) that the checkpoint does not have
    unused:  theirs that the model does not read
    misfits: those of another shape
    known:   theirs that have no place in such a model, and none in what it computes: buffers, heads for other tasks
    """

    family: str
    taken: int
    missing: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything matched."""
        return not (self.missing or self.unused or self.misfits)

    def __str__(self) -> str:
        missing = [ours + (f" ← {theirs}" if theirs else "") for ours, theirs in self.missing]
        lists = {
            "the checkpoint does not have": missing,
            "the model does not read": self.unused,
            "of another shape": [str(misfit) for misfit in self.misfits],
            "not needed here": self.known,
        }
        parts = [f"{self.family}: {self.taken} tensors taken"]
        parts += [f"{title} ({len(names)}):\n{_listed(names)}" for title, names in lists.items() if names]
        return "\n".join(parts)


def _listed(names: Iterable[str]) -> str:
    lines = list(grouped(names))
    more = [f"    … and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "\n".join([*(f"    {line}" for line in lines[:MOST]), *more])


def grouped(names: Iterable[str]) -> Iterator[str]:
    """Names that differ in their layer as one.

    >>> list(grouped(["h.0.a", "h.0.b", "h.1.a", "h.3.a", "c"]))
    ['h.{0…1, 3}.a', 'h.0.b', 'c']
    """
    layers: dict[str, list[int]] = {}
    for name in names:
        numbers = NUMBER.findall(name)
        layers.setdefault(NUMBER.sub("{}", name), []).extend(map(int, numbers[:1]))
    for name, found in layers.items():
        runs = _runs(sorted(set(found)))
        yield name.replace("{}", runs if runs.isdigit() else f"{{{runs}}}")


def _runs(numbers: list[int]) -> str:
    """0, 1, 2, 5 as "0…2, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}…{run[-1]}" for run in runs)


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a number"
