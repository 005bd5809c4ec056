"""The command `regard check`: reports for each target, a summary, and what the process says when it ends.

0   every target is right          1   a mistake was found          2   a target could not be found, read or called
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algebra.errors import CallError, MissingExtra, RegardError
from .checking import check
from .report import Report
from .sandbox.loading import source_of

if TYPE_CHECKING:
    from rich.console import Console

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body>{body}</body></html>
"""
RIGHT, WRONG, UNREAD = 0, 1, 2


@dataclass(frozen=True)
class Checked:
    """One target: its report, or why there is none."""

    target: str
    report: Report | None
    trouble: str = ""

    def status(self, strict: bool) -> int:
        """What the process would end with, for this one alone."""
        if self.report is None:
            return UNREAD
        counted = self.report.findings if strict else self.report.errors
        return WRONG if counted else RIGHT

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"target": self.target, "error": self.trouble} if self.report is None else self.report.to_dict()


@dataclass(frozen=True)
class Command:
    """How reports are given: to people, or as JSON; also as a page of HTML; warnings counted or not."""

    console: Console
    errors: Console
    json: bool = False
    html: Path | None = None
    strict: bool = False

    def run(self, targets: Sequence[str], options: Mapping[str, Any]) -> int:
        """Check every target; the status for the process to end with."""
        if not targets:
            raise CallError("check: what to check, as in model.py:attend; got nothing; `regard check --help` says more")
        if self.html is not None and not self.html.absolute().parent.is_dir():
            raise CallError(f"--html: a file in a folder that exists; got {str(self.html)!r}")
        done = []
        for target in targets:
            done.append(self._checked(target, options))
            self._show(done)
        self._finish(done)
        return max(one.status(self.strict) for one in done)

    def _checked(self, target: str, options: Mapping[str, Any]) -> Checked:
        label = source_of(target).label if target else target
        try:
            with self._progress(label) as progress:
                return Checked(target, check(target, **options, progress=progress))
        except (RegardError, MissingExtra) as problem:
            return Checked(target, None, str(problem))

    @contextmanager
    def _progress(self, label: str) -> Iterator[Callable[[str], None] | None]:
        """A line that says what is being done, where a person watches."""
        if not self.errors.is_terminal:
            yield None
            return
        with self.errors.status(escape_markup(label)) as line:
            yield lambda stage: line.update(escape_markup(f"{label}: {stage} …"))

    def _show(self, done: Sequence[Checked]) -> None:
        last = done[-1]
        if last.report is None:
            told = f"regard: {last.trouble}"
            self.errors.print(told, markup=False, highlight=False, soft_wrap=True)
        elif not self.json:
            from .display.terminal import show

            if len(done) > 1:
                self.console.print()
            show(last.report, self.console)

    def _finish(self, done: Sequence[Checked]) -> None:
        if self.json:
            plain = [one.plain() for one in done]
            sys.stdout.write(json.dumps(plain[0] if len(plain) == 1 else plain, indent=2, allow_nan=False) + "\n")
        elif len(done) > 1:
            self.console.print(f"\n{summary(done, self.strict)}", markup=False, highlight=False, soft_wrap=True)
        if self.html is not None:
            self.html.write_text(pages([one.report for one in done if one.report is not None]), encoding="utf-8")


def summary(done: Sequence[Checked], strict: bool) -> str:
    """How many were right, wrong, or could not be read."""
    words = {RIGHT: "right", WRONG: "wrong", UNREAD: "could not be checked"}
    counts = {status: sum(one.status(strict) == status for one in done) for status in words}
    told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    wrong = ", ".join(one.target for one in done if one.status(strict) != RIGHT)
    return f"{len(done)} targets: {told}" + (f" ({wrong})" if wrong else "")


def pages(reports: Sequence[Report]) -> str:
    """All reports as one page of HTML."""
    title = escape("regard check: " + ", ".join(report.target for report in reports))
    return PAGE.format(title=title, body="\n<hr>\n".join(report._repr_html_() for report in reports))


def escape_markup(text: str) -> str:
    """Text that rich prints as it is."""
    from rich.markup import escape as escaped

    return escaped(text)


# -- the catalogue -------------------------------------------------------------------------------------------------


def show_catalogue(console: Console, markdown: bool = False) -> None:
    """Every bug with what goes wrong; as the page docs/bugs.md where that is asked for."""
    from .display import catalogue

    if markdown:
        sys.stdout.write(catalogue.markdown())
        return
    _show_lines(console, catalogue.listing(console.width, console.encoding))


def show_bug(console: Console, name: str, library: str | None = None) -> None:
    """One bug in full: its texts, a small matrix, the lines that are right."""
    from .display.catalogue import whole
    from .explaining import bug_of, finding_of

    _show_lines(console, whole(finding_of(bug_of(name), library), console.width, console.encoding))


def _show_lines(console: Console, lines: Iterator[Any]) -> None:
    from .display.terminal import coloured

    for line in lines:
        console.print(coloured(line), soft_wrap=True)
