"""What a check found, as values: findings with their smallest examples, laws, and how the target was read.

    report = how it was read + findings (errors, warnings) + laws        ok: no finding is an error
    JSON   = {"version": 1, "ok": …, every field under its own name}     NaN and ±∞ as the strings "NaN", "Infinity"

A report prints as text (`str`), in a notebook (`_repr_html_`) and in a terminal (`display.terminal.show`); it goes to
strict JSON and back without loss, so that another program may read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..algebra.errors import CallError, KindError
from .plain import handed_over, matrix, numbers, plain

if TYPE_CHECKING:
    from .bugs import Reference

VERSION = 1  # of the JSON
SEVERITIES = ("error", "warning")

# -- the parts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Example:
    """The smallest failing example: what was handed over, what came out, and what is right.

        an entry is wrong where  |yours − right| > tolerance · max |right|,  or where only one of the two is NaN

    inputs: argument name -> array, as it was handed over
    shown: what the two matrices are, as in "weights", "output", "gradient of q"
    where: the place in a larger array, as in "batch 0, head 1"
    """

    inputs: Mapping[str, Any]
    shown: str
    yours: NDArray[np.float64]
    right: NDArray[np.float64]
    where: str = ""
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        yours, right = matrix(self.yours), matrix(self.right)
        if yours.ndim != 2 or yours.shape != right.shape or not yours.size:
            raise CallError(f"example: yours and right are two matrices of one shape; got {yours.shape}, {right.shape}")
        object.__setattr__(self, "yours", yours)
        object.__setattr__(self, "right", right)
        object.__setattr__(self, "inputs", {name: handed_over(value) for name, value in self.inputs.items()})

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which entries differ: beyond the tolerance, or in being NaN or infinite."""
        finite = np.isfinite(self.yours) & np.isfinite(self.right)
        sizes = np.abs(self.right[np.isfinite(self.right)])
        scale = float(sizes.max(initial=0)) or 1.0
        with np.errstate(over="ignore"):  # beyond the largest number is apart too
            apart = np.abs(np.subtract(self.yours, self.right, where=finite, out=np.zeros_like(self.right)))
        same = (self.yours == self.right) | (np.isnan(self.yours) & np.isnan(self.right))
        return np.asarray(np.where(finite, apart > self.tolerance * scale, ~same))

    def __eq__(self, other: object) -> bool:
        return plain(self) == plain(other) if isinstance(other, Example) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.shown, self.where, self.yours.shape))


@dataclass(frozen=True)
class SourceLine:
    """A line of the target's source, with its number in the file."""

    number: int
    text: str


@dataclass(frozen=True)
class Finding:
    """One mistake: its name, what goes wrong, the evidence, and how to mend it.

    severity: "error", or "warning" where ordinary inputs come out right
    hides: why the loss does not show it
    mend: the right line, in the target's library
    seen: where it happened in public
    evidence: a sentence with measured numbers
    also: other names of the catalogue that are the same function here
    lines: where in the source the mistake is usually made
    """

    name: str
    severity: str
    wrong: str
    hides: str
    advice: str
    mend: str
    seen: Reference | None
    evidence: str = ""
    also: tuple[str, ...] = ()
    lines: tuple[SourceLine, ...] = ()
    example: Example | None = None

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise KindError(f'severity: "error" or "warning"; got {self.severity!r}')


@dataclass(frozen=True)
class LawResult:
    """Whether a law holds; None where it does not apply, and `measured` says why."""

    name: str
    holds: bool | None
    measured: str


# -- the whole -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Report:
    """What a check found out about one target.

    reading: how it was read, as pairs such as ("layout", "batch, heads, positions, width"); further lines of the second
        say with which option to read it otherwise
    formula: what it computes, "" where nothing of the catalogue fits
    recognised: the name and paper of another formula of the zoo, where it is one
    asked: the formula it was checked against
    """

    target: str
    reading: tuple[tuple[str, str], ...]
    formula: str
    recognised: str = ""
    asked: str = ""
    findings: tuple[Finding, ...] = ()
    laws: tuple[LawResult, ...] = ()
    remarks: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the target wrong."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that leave ordinary inputs right."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def ok(self) -> bool:
        """No finding is an error."""
        return not self.errors

    @property
    def broken(self) -> tuple[LawResult, ...]:
        """The laws that do not hold."""
        return tuple(law for law in self.laws if law.holds is False)

    def __bool__(self) -> bool:
        """Whether it is right: `assert rg.check(attend)` fails where it is not."""
        return self.ok

    def to_html(self) -> str:
        """The report as a piece of a page, as notebooks show it."""
        return self._repr_html_()

    def __str__(self) -> str:
        from .display.text import written

        return written(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .display.html import report_page

        return report_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Every field under its own name, in strings, numbers, truths, lists and dictionaries alone."""
        return {"version": VERSION, "ok": self.ok, **plain(self)}

    def to_json(self, indent: int | None = 2) -> str:
        """The same as strict JSON, in ASCII."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The report that `to_dict` gave."""
        version = values.get("version")
        if version != VERSION:
            raise CallError(f"report: version {VERSION} is read here; got {version!r}; make it anew with this regard")
        parts = {name: value for name, value in values.items() if name not in ("version", "ok")}
        parts["reading"] = tuple((name, value) for name, value in parts.get("reading", ()))
        parts["findings"] = tuple(map(_finding, parts.get("findings", ())))
        parts["laws"] = tuple(_made(LawResult, law) for law in parts.get("laws", ()))
        made: Self = _made(cls, parts)
        return made

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The report that `to_json` gave."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise CallError(f"report: a JSON object, as to_json gives it; got a {type(values).__name__}")
        return cls.from_dict(values)


# -- back from plain values ------------------------------------------------------------------------------------


def _made(kind: type[Any], values: Any) -> Any:
    """A value of the class; lists become tuples, numbers come back from their words."""
    if not isinstance(values, Mapping):
        raise CallError(f"report: {kind.__name__} is an object; got a {type(values).__name__}")
    known = {part.name: part for part in fields(kind)}
    if strange := [name for name in values if name not in known]:
        raise CallError(f"report: {kind.__name__} has the fields {', '.join(known)}; got {', '.join(strange)}")
    try:
        return kind(**{name: _field(known[name].type, value) for name, value in values.items()})
    except TypeError as problem:  # a field that is missing
        raise CallError(f"report: {kind.__name__}: {problem}") from None


def _field(kind: Any, value: Any) -> Any:
    if kind == "float":
        return float(numbers(value))
    return tuple(value) if isinstance(value, list) and str(kind).startswith("tuple") else value


def _finding(values: Mapping[str, Any]) -> Finding:
    from .bugs import Reference

    parts = dict(values)
    for name, kind in {"seen": Reference, "example": Example}.items():
        parts[name] = None if parts.get(name) is None else _made(kind, parts[name])
    parts["lines"] = tuple(_made(SourceLine, line) for line in parts.get("lines", ()))
    found: Finding = _made(Finding, parts)
    return found
