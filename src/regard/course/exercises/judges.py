"""Who decides on an answer: rg.check, or a comparison with what is right and with known ways to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from ...attention import Attention
from ...diagnosis.checking import check
from ...diagnosis.sandbox.limits import Limits
from ...diagnosis.sandbox.process import Call, runner_for
from .exercise import Found, Verdict

SECONDS = 30.0  # that an answer may take


def as_given(array: Any) -> Any:
    """An argument as it is."""
    return array


@dataclass(frozen=True)
class Checked:
    """An attention, judged by rg.check: every mistake by its name, on the smallest input that shows it.

    formula: what it should compute;  options: as `rg.check` takes them
    """

    formula: Attention
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, target: str) -> Verdict:
        report = check(target, formula=self.formula, limits=Limits(seconds=SECONDS), **self.options)
        found = tuple(Found(one.name, one.wrong, one.mend) for one in report.findings)
        if report.ok:
            return Verdict(True, f"Right: it is {report.formula or self.formula}.", found)
        named = "; ".join(one.name for one in found[:2])
        whole = f"<details><summary>On the smallest input, and all that was tried</summary>{report.to_html()}</details>"
        return Verdict(False, f"Not yet: {named}.", found, whole)


@dataclass(frozen=True)
class Compared:
    """A function of arrays, compared with what is right and with known ways to be wrong.

    right:    the function itself;  problems: arguments to try it on, one tuple for each call
    mistakes: name -> (a function that makes it, what goes wrong, how to mend it)
    kind:     makes the arguments that the answer gets of NumPy arrays, as `numpy.ndarray.tolist`
    """

    right: Callable[..., Any]
    problems: tuple[tuple[Any, ...], ...]
    mistakes: Mapping[str, tuple[Callable[..., Any], str, str]] = field(default_factory=dict)
    kind: Callable[[Any], Any] = as_given
    tolerance: float = 1e-6
    seconds: float = SECONDS

    def __call__(self, target: str) -> Verdict:
        with runner_for(target, Limits(seconds=self.seconds)) as runner:
            returned = [_numbers(runner.ask(Call(self._handed(problem)))) for problem in self.problems]
        if self._agrees(self.right, returned):
            return Verdict(True, f"Right, on all {len(returned)} inputs that it was tried on.")
        for name, (wrong, says, mend) in self.mistakes.items():
            if self._agrees(wrong, returned):
                return Verdict(False, f"Not yet: {name}.", (Found(name, says, mend),), self._shown(returned))
        return self._unnamed(returned)

    def _unnamed(self, returned: list[Any]) -> Verdict:
        """Wrong, and no mistake that is known: what can be said of it all the same."""
        if any(one is None for one in returned):
            says = "It returns something that is no array of numbers. Is a return missing, or are dots left to fill in?"
            return Verdict(False, "Not yet: no numbers.", (Found("no numbers yet", says),))
        for ours, problem in zip(returned, self.problems, strict=True):
            wanted = np.shape(self.right(*problem))
            if ours.shape != wanted:
                says = f"It returns {_shaped(ours.shape)}; asked for is {_shaped(wanted)}."
                return Verdict(False, "Not yet: another shape.", (Found("another shape", says),), self._shown(returned))
        says = "It differs from what is right in a way that has no name here."
        return Verdict(False, "Not yet.", (Found("another result", says),), self._shown(returned))

    def _handed(self, problem: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.kind(one) if isinstance(one, np.ndarray) else one for one in problem)

    def _agrees(self, function: Callable[..., Any], returned: list[Any]) -> bool:
        wanted = [np.asarray(function(*problem), dtype=float) for problem in self.problems]
        return all(
            ours is not None
            and ours.shape == right.shape
            and np.allclose(ours, right, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)
            for ours, right in zip(returned, wanted, strict=True)
        )

    def _shown(self, returned: list[Any]) -> str:
        """The first input on which it differs: yours, and what is right."""
        for ours, problem in zip(returned, self.problems, strict=True):
            right = np.asarray(self.right(*problem), dtype=float)
            if ours is None or ours.shape != right.shape or not np.allclose(ours, right, atol=self.tolerance):
                given = ", ".join(_told(one) for one in problem)
                return f"<pre>given   {given}\nyours   {_told(ours)}\nright   {_told(right)}</pre>"
        return ""


def _numbers(value: Any) -> Any:
    """What was returned as an array; None where it is none."""
    if value is None:  # np.asarray would make it not-a-number
        return None
    try:
        return np.asarray(value.detach() if hasattr(value, "detach") else value, dtype=float)
    except (TypeError, ValueError):
        return None


def _shaped(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "one number"


def _told(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return escape("something that is no array of numbers" if value is None else repr(value))
    if value.ndim > 2 and value.size > 24:  # too much to read: its last row will do
        return f"an array {value.shape}, at its end {_told(np.asarray(value, dtype=float)[(-1,) * (value.ndim - 1)])}"
    text = np.array2string(np.asarray(value, dtype=float), precision=3, threshold=24, edgeitems=2, suppress_small=True)
    return escape(text.replace("\n", "\n        "))
