"""What every display of a report says: the verdict, the numbers, the part of a matrix that is shown.

number   3 significant digits; more where a wrong entry would else print like the right one
matrix   at most 8 × 8 entries, wrong ones first; a gap stands for the rest
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from textwrap import dedent
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ..report import Example, Finding, LawResult, Report

Value = TypeVar("Value")

# -- signs and letters -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Signs:
    """The signs beside the words; `mark` follows a wrong entry of a matrix."""

    good: str = "✓"
    bad: str = "✗"
    none: str = "–"
    warning: str = "!"
    unknown: str = "?"
    mark: str = "✗"
    gap: str = "…"
    bar: str = "│"
    rule: str = "─"
    infinity: str = "∞"
    times: str = "×"


UNICODE = Signs()
ASCII = Signs("ok", "x", "-", "!", "?", "*", "...", "|", "-", "inf", "x")
SPELLED = str.maketrans(
    {"√": "sqrt ", "·": "*", "×": "x", "−": "-", "–": "-", "—": "-", "…": "...", "≤": "<=", "≥": ">=", "≠": "!="}
    | {"∞": "inf", "Σ": "sum", "ψ": "psi", "ᵀ": "^T", "²": "^2", "←": "<-", "→": "->", "“": '"', "”": '"', "’": "'"}
)


def signs_of(encoding: str) -> Signs:
    """Those that the encoding can hold."""
    wanted = "".join(getattr(UNICODE, part.name) for part in fields(Signs))
    return UNICODE if _holds(encoding, wanted) else ASCII


def _holds(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def clean(text: str) -> str:
    """The text without what steers a terminal or a page: escapes, overstrikes, changes of direction, half characters.

    >>> clean("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    return "".join(map(_visible, text.expandtabs(4)))


def _visible(sign: str) -> str:
    steers = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign != "\n"
    return sign.encode("unicode_escape").decode() if steers else sign


def spelled(text: str, encoding: str) -> str:
    """The text in letters of the encoding: √ as sqrt where it has no √."""
    if _holds(encoding, text):
        return text
    return text.translate(SPELLED).encode("ascii", "replace").decode()


def legible(value: Value, encoding: str = "utf-8") -> Value:
    """A report, or a part of one, with every text of it clean, and in letters of the encoding."""
    return _each_text(value, lambda text: spelled(clean(text), encoding))


def _each_text(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, str):
        return change(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(_each_text(part, change) for part in value)  # type: ignore[return-value]
    if isinstance(value, dict):
        return {change(name): _each_text(part, change) for name, part in value.items()}  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _each_text(getattr(value, part.name), change) for part in fields(value)})
    return value


# -- the verdict -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What the target is, in words, and the mark at the end: how it is, a sign's name, the words."""

    says: str
    role: str
    mark: str


def verdict(report: Report) -> Verdict:
    """The first line: what the target computes, and whether it is right."""
    aside = f", {counted(len(report.warnings), 'warning')}" if report.warnings else ""
    if report.errors:
        names = [finding.name for finding in report.errors]
        unknown = "fits nothing in the catalogue"
        says = "" if report.formula or report.recognised else unknown if unknown in names else names[0]
        return Verdict(says, "bad", counted(len(report.errors), "mistake") + aside)
    if report.recognised:
        return Verdict(f"is {report.recognised}", "good", f"recognised, no mistake{aside}")
    if report.formula:
        return Verdict(f"computes {report.formula}", "good", f"right{aside}")
    broken = f"breaks {counted(len(report.broken), 'law')}" if report.broken else "breaks no law that was tried"
    return Verdict("fits nothing in the catalogue", "unknown", broken + aside)


def told(report: Report) -> list[tuple[str, str]]:
    """How it was read, then which formula was asked for and which was found, where the verdict has not said so."""
    rows = [*report.reading]
    if report.asked and report.asked != report.formula:
        rows.append(("checked against", report.asked))
    if report.formula and (report.errors or report.recognised):
        rows.append(("computes", report.formula))
    return rows


def counted(count: int, noun: str) -> str:
    """ "1 law", "2 laws"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def caption(example: Example, mark: str) -> str:
    """What the two matrices are, and what the mark says."""
    count, size = int(example.wrong.sum()), example.yours.size
    place = f" of {example.where}" if example.where else ""
    return f"{example.shown}{place} ({mark} differs: {count} of {size})"


def alike(finding: Finding) -> str:
    """Other names of the catalogue that no input could tell from this one."""
    return ", ".join(finding.also)


def broken_first(laws: Iterable[LawResult]) -> list[LawResult]:
    """The laws that do not hold, those that hold, those that do not apply."""
    return sorted(laws, key=lambda law: [False, True, None].index(law.holds))


def source(finding: Finding) -> list[str]:
    """The suspicious lines, less the indent that they share."""
    return dedent("\n".join(" ".join(line.text.splitlines()) for line in finding.lines)).split("\n")
