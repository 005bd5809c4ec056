"""The catalogue to read: as lines of a terminal, and as the page docs/bugs.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..bugs import Bug
from ..catalogue import GROUPS
from .lines import Line, Piece, columns, flow, labelled
from .text import NARROWEST, USUAL, WIDEST, Layout
from .words import legible, signs_of

if TYPE_CHECKING:
    from ..report import Finding

TITLES = {"torch": "PyTorch", "numpy": "NumPy", "jax": "JAX", "python": "plain Python", "any": "in any library"}
INTRODUCTION = """\
# The catalogue of bugs

What `regard check` knows by name: {count} mistakes, each with a place where it has been made. [check.md](check.md)
says how to look for them in your own attention; `regard check --explain "no root of d"` shows one on a small matrix.

This page is printed by `regard check --list --markdown`; the texts stand in `src/regard/diagnosis/catalogue/`.
"""

# -- in a terminal -----------------------------------------------------------------------------------------------


def listing(width: int, encoding: str) -> Iterator[Line]:
    """Every bug with what goes wrong, one group below the other."""
    layout = Layout(max(NARROWEST, min(width, WIDEST)), signs_of(encoding))
    size = max(columns(bug.name) for bugs in GROUPS.values() for bug in bugs) + 2
    for group, bugs in GROUPS.items():
        yield from ((), layout.heading(group))
        for bug in (legible(bug, encoding) for bug in bugs):
            told = [Piece(_opening(bug)), *([Piece("(a warning)", "warning")] if bug.severity == "warning" else [])]
            yield from labelled(bug.name, flow(told, layout.width - size - 2), size)


def whole(finding: Finding, width: int, encoding: str) -> Iterator[Line]:
    """A bug in full, without the number that a report gives it."""
    layout = Layout(max(NARROWEST, min(width, WIDEST)), signs_of(encoding))
    finding = legible(finding, encoding)
    _, _, *body = layout.finding(1, finding)  # a blank line, and a heading with a number
    role = "bad" if finding.severity == "error" else "warning"
    yield layout.heading(finding.name, getattr(layout.signs, role), role)
    yield from body


def in_full(finding: Finding) -> str:
    """The same as plain text."""
    lines = whole(finding, USUAL, "utf-8")
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


# -- as a page ---------------------------------------------------------------------------------------------------


def markdown() -> str:
    """The page docs/bugs.md."""
    count = sum(map(len, GROUPS.values()))
    parts = [part for group, bugs in GROUPS.items() for part in (_table(group), *map(_section, bugs))]
    return "\n".join([INTRODUCTION.format(count=count), *parts])


def _table(group: str) -> str:
    told = {bug.name: _opening(bug).replace("|", "&#124;") for bug in GROUPS[group]}
    rows = [f"| [{name}](#{_anchor(name)}) | {opening} |" for name, opening in told.items()]
    return "\n".join([f"## {group}", "", "| name | what goes wrong |", "|---|---|", *rows, ""])


def _section(bug: Bug) -> str:
    severity = ["A warning: ordinary inputs come out right.", ""] if bug.severity == "warning" else []
    told = [f"**Why the loss hides it.** {bug.hides}", "", f"**Mend it.** {bug.advice}", "", *_code(bug)]
    seen = f"**Seen.** {bug.seen.title}, <{_address(bug.seen.where)}>"
    return "\n".join([f"### {bug.name}", "", bug.wrong, "", *severity, *told, seen, ""])


def _code(bug: Bug) -> list[str]:
    """The lines that are right, of each library; `py`, since they are no program by themselves."""
    return ["```py", lines_of(bug.mend, "\n\n"), "```", ""] if any(bug.mend.values()) else []


def lines_of(mend: Mapping[str, str], between: str) -> str:
    """The lines of each library below its name; without a name where there is one library."""
    named = [f"# {TITLES[name]}\n{lines}" for name, lines in mend.items()]
    return between.join(named if len(mend) > 1 else mend.values())


def _opening(bug: Bug) -> str:
    """The first sentence of what goes wrong."""
    first, dot, _ = bug.wrong.partition(". ")
    return first + dot.strip()


def _anchor(name: str) -> str:
    kept = "".join(sign for sign in name.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")


def _address(where: str) -> str:
    return where if "://" in where else f"https://{where}"
