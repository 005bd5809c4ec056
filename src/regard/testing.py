"""A project's own attention, checked in the project's own tests.

    import regard.testing

    @regard.testing.parametrize(my_attention, causal=True)
    def test_attention(check):
        check()

makes one test for each part of attention, so that the name of the test that fails says where to look, as in
`test_attention[attend-masks]`. The target is checked once for all of them.

    formula       it can be called, and what it computes is known
    scale, weights, masks, heads, projections, positions, numbers, behaviour      no mistake of that group is found
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from inspect import signature
from typing import Any

from .algebra.errors import KindError, MissingExtra, RegardError
from .diagnosis import CATALOGUE, Finding, Report, check
from .diagnosis.catalogue import GROUPS
from .diagnosis.display.catalogue import in_full
from .diagnosis.display.text import written
from .diagnosis.sandbox.loading import source_of

__all__ = ["assert_right", "parametrize"]

FORMULA = "formula"  # what is in no group of the catalogue
OPTIONS = [name for name in signature(check).parameters if name not in ("target", "progress")]


def assert_right(target: Any, *, strict: bool = False, allow: Iterable[str] = (), **options: Any) -> Report:
    """Raise an AssertionError with the whole report where a check finds a mistake; the report, where it does not.

    target:  a function, a class or a module, or its place as text, as `regard.check` takes it
    strict:  warnings count as mistakes
    allow:   names of mistakes that are known and meant, as ["finite mask value"]
    options: those of `regard.check`: causal=True, heads=4, …
    """
    __tracebackhide__ = True
    checked = _Checked(target, options, strict, allowed(allow))
    if checked.counted:
        raise AssertionError(f"{_names(checked.counted)}\n\n{written(checked.report)}")
    return checked.report


def parametrize(targets: Any, *, strict: bool = False, allow: Iterable[str] = (), **options: Any) -> Any:
    """A decorator for pytest: the test's argument `check` is called once for each part of attention.

    targets: one target, a list of them, or a mapping from names to them
    strict, allow, options: as for `assert_right`
    """
    marks = _pytest().mark
    known = allowed(allow)
    every = [(name, _Checked(target, options, strict, known)) for name, target in _named(targets)]
    cases = [Case(checked, group) for _, checked in every for group in (FORMULA, *GROUPS)]
    ids = [f"{name}-{group}" for name, _ in every for group in (FORMULA, *GROUPS)]
    return marks.parametrize("check", cases, ids=ids)


@dataclass(frozen=True, eq=False)
class Case:
    """One part of attention of one target. Calling it fails with the mistakes that were found there."""

    checked: _Checked
    group: str

    def __call__(self) -> None:
        """Raise an AssertionError with the findings of this group."""
        __tracebackhide__ = True
        found = [one for one in self.checked.counted if group_of(one) == self.group]
        if found:
            texts = "\n".join(in_full(one) for one in found)
            raise AssertionError(f"{self.checked.label}: {_names(found)}\n\n{texts}")


@dataclass(frozen=True, eq=False)
class _Checked:
    """A target with its options; checked when its report is first asked for, and once."""

    target: Any
    options: Mapping[str, Any]
    strict: bool = False
    allow: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        source_of(self.target)  # refused while tests are collected
        for name in self.options:
            if name not in OPTIONS:
                raise KindError(f"{name}: an option of regard.check, {', '.join(OPTIONS)}{_guess(name, OPTIONS)}")

    @property
    def label(self) -> str:
        return source_of(self.target).label

    @cached_property
    def _outcome(self) -> Report | RegardError:
        try:
            return check(self.target, **self.options)
        except RegardError as problem:
            return problem

    @property
    def report(self) -> Report:
        if isinstance(self._outcome, RegardError):
            raise self._outcome.with_traceback(None)
        return self._outcome

    @property
    def counted(self) -> list[Finding]:
        """The findings that make a test fail."""
        found = self.report.findings if self.strict else self.report.errors
        return [one for one in found if one.name not in self.allow]


def group_of(finding: Finding) -> str:
    """The group of the catalogue that the finding belongs to; `formula` where the catalogue has no such name."""
    return next((group for group, bugs in GROUPS.items() if finding.name in {bug.name for bug in bugs}), FORMULA)


def allowed(names: Iterable[str]) -> frozenset[str]:
    """Names of the catalogue; a name that it does not have is refused."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in CATALOGUE:
            raise KindError(f"allow: names of the catalogue; got {name!r}{_guess(name, CATALOGUE)}")
    return frozenset(names)


def _named(targets: Any) -> list[tuple[str, Any]]:
    if isinstance(targets, Mapping):
        return [(str(name), target) for name, target in targets.items()]
    many = targets if isinstance(targets, list | tuple) else [targets]
    return [(source_of(target).label, target) for target in many]


def _names(found: Sequence[Finding]) -> str:
    return ", ".join(one.name for one in found)


def _guess(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _pytest() -> Any:
    try:
        import pytest
    except ImportError:
        raise MissingExtra("pytest", "testing") from None
    return pytest
