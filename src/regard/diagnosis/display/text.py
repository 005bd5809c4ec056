"""A report as plain text: lines of pieces, each with a role that a terminal may colour.

    verdict · how it was read · each finding · laws · remarks

No line is wider than asked, and nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .lines import FIXED, LABEL, Line, Piece, columns, flow, folded, indented, labelled, length
from .matrices import MOST, Grid, grid, literals, number
from .words import UNICODE, Signs, alike, broken_first, caption, legible, signs_of, source, told, verdict

if TYPE_CHECKING:
    from ..report import Example, Finding, LawResult, Report

NARROWEST, USUAL, WIDEST = 60, 80, 120
BETWEEN = 4  # columns between two matrices


def written(report: Report, width: int = USUAL, encoding: str = "utf-8") -> str:
    """The report as text, in lines of at most `width` columns, in letters that the encoding holds."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines(report, width, encoding))


def lines(report: Report, width: int = USUAL, encoding: str = "utf-8") -> Iterator[Line]:
    """The lines of a report; `width` is kept between 60 and 120."""
    return Layout(max(NARROWEST, min(width, WIDEST)), signs_of(encoding)).report(legible(report, encoding))


# -- the parts of a report -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The parts of a report as lines of one width, with one set of signs."""

    width: int = USUAL
    signs: Signs = UNICODE

    @property
    def inside(self) -> int:
        """Columns to the right of a label."""
        return self.width - 2 - LABEL

    def report(self, report: Report) -> Iterator[Line]:
        found = verdict(report)
        mark = f"{getattr(self.signs, found.role)} {found.mark}".replace(" ", FIXED)
        head = (Piece(report.target, "strong"), Piece(found.says), Piece(FIXED + mark, found.role))
        yield from flow(head, self.width, hang=2)
        yield from self.reading(told(report))
        for place, finding in enumerate(report.findings, 1):
            yield from self.finding(place, finding)
        if report.laws:
            yield from ((), self.heading("laws"), *self.laws(report.laws))
        for remark in report.remarks:
            yield from ((), *labelled("remark", flow([Piece(remark)], self.inside)))
        if report.seconds:
            yield from ((), (Piece(f"  checked in {number(report.seconds, infinity=self.signs.infinity)} s", "dim"),))

    def heading(self, name: str, mark: str = "", role: str = "dim") -> Line:
        """A rule across the page with a name in it; no name is cut, a long one takes the rule's place."""
        begin = f"{self.signs.rule * 2} {mark}{' ' if mark else ''}"
        rest = self.width - columns(begin) - columns(name) - 1
        return Piece(begin, role), Piece(name, "strong"), Piece(f" {self.signs.rule * rest}", role)

    def reading(self, rows: list[tuple[str, str]]) -> Iterator[Line]:
        """How it was read, and dimly how to say otherwise."""
        if not rows:
            return
        size = max(columns(name) for name, _ in rows) + 2
        yield ()
        for name, value in rows:
            fact, *asides = value.split("\n")
            pieces = [Piece(fact), *(Piece(f"{FIXED}{aside}", "dim") for aside in asides)]
            yield from labelled(name, flow(pieces, self.width - size - 2), size)

    def finding(self, place: int, finding: Finding) -> Iterator[Line]:
        role, sign = ("bad", self.signs.bad) if finding.severity == "error" else ("warning", self.signs.warning)
        yield from ((), self.heading(finding.name, f"{sign} {place}.", role))
        yield from indented(flow([Piece(finding.wrong)], self.width - 2), 2)
        for group in (self._evidence(finding), self._mending(finding), self._elsewhere(finding)):
            for place_in_group, line in enumerate(group):
                yield from ((), line) if not place_in_group else (line,)

    def _evidence(self, finding: Finding) -> Iterator[Line]:
        yield from self._words("measured", finding.evidence)
        yield from self._words("same as", alike(finding))
        if finding.example:
            yield from self.example(finding.example)

    def _mending(self, finding: Finding) -> Iterator[Line]:
        if finding.lines:
            yield from labelled("look at", self._source(finding))
        yield from self._words("mend it", finding.advice)
        yield from labelled("" if finding.advice else "mend it", self._code(finding.mend, self.inside))

    def _elsewhere(self, finding: Finding) -> Iterator[Line]:
        yield from self._words("hidden", finding.hides, "dim")
        if finding.seen:
            yield from self._words("seen", f"{finding.seen.title}, {finding.seen.where}", "dim")

    def _words(self, label: str, text: str, role: str = "") -> Iterator[Line]:
        return labelled(label, flow([Piece(text, role)], self.inside)) if text else iter(())

    def _source(self, finding: Finding) -> Iterator[Line]:
        size = max(len(str(line.number)) for line in finding.lines)
        texts = source(finding)
        for line, text in zip(finding.lines, texts, strict=True):
            for place, code in enumerate(self._code(text or " ", self.inside - size - 1)):
                yield (Piece(f"{'' if place else line.number:>{size}} ", "dim"), *code)

    def _code(self, text: str, width: int) -> Iterator[Line]:
        for line in text.rstrip("\n").split("\n") if text else ():
            for part in folded(line, width - 2):
                yield Piece(f"{self.signs.bar} ", "dim"), Piece(part, "code")

    # -- the example -------------------------------------------------------------------------------------------

    def example(self, example: Example) -> Iterator[Line]:
        """The inputs, then yours and right side by side, or below each other where the page is narrow."""
        inputs = [line for name, value in example.inputs.items() for line in self._input(name, value)]
        told = flow([Piece(caption(example, self.signs.mark))], self.inside)
        yield from labelled("example", [*inputs, *told])
        yield from ((), *self.matrices(example))

    def _input(self, name: str, value: Any) -> Iterator[Line]:
        """On one line, or where that is too long on one for each row."""
        *above, front = folded(f"{name} = ", self.inside // 2)
        yield from ((Piece(part),) for part in above)
        room = self.inside - columns(front)
        for place, part in enumerate(part for row in literals(value, room, self.signs) for part in folded(row, room)):
            yield Piece(" " * columns(front) if place else front), Piece(part)

    def matrices(self, example: Example) -> Iterator[Line]:
        """The first of these that fits: side by side, below each other, below each other with fewer columns."""
        whole = grid(example, infinity=self.signs.infinity)
        left, right = self._matrix(whole, "yours", True), self._matrix(whole, "right", False)
        for indent in (2 + LABEL, 4):
            if indent + _width(left) + BETWEEN + _width(right) <= self.width:
                return indented(map(_joined, left, right), indent)
        below = (self._below(example, most) for most in range(MOST, 1, -1))
        fitting = (stack for stack in below if 4 + _width(stack) <= self.width)
        return indented(next(fitting, self._below(example, 1)), 4)

    def _below(self, example: Example, most: int) -> list[Line]:
        part = grid(example, columns=most, infinity=self.signs.infinity)
        return [*self._matrix(part, "yours", True), (), *self._matrix(part, "right", True)]

    def _matrix(self, grid: Grid, name: str, labels: bool) -> list[Line]:
        """One of the two, all lines equally wide; an entry is followed by its mark, or by a space."""
        first = max(len(row or self.signs.gap) for row in grid.rows) + 2 if labels else 0
        size = max(len(cell.yours) for row in grid.cells for cell in row if cell) + len(self.signs.mark)
        sizes = [len(self.signs.gap) if column is None else max(size, len(column)) for column in grid.columns]
        head = "".join(
            f"{column or self.signs.gap:>{wide}}  " for column, wide in zip(grid.columns, sizes, strict=True)
        )
        made: list[Line] = [(Piece(name.ljust(first + len(head)), "strong"),), (Piece(" " * first + head, "dim"),)]
        for label, cells in zip(grid.rows, grid.cells, strict=True):
            line = [Piece((label or self.signs.gap).ljust(first) if labels else "", "dim")]
            for cell, wide in zip(cells, sizes, strict=True):
                if cell is None:
                    line.append(Piece(f"{self.signs.gap:>{wide}}  ", "dim"))
                    continue
                mark = self.signs.mark if cell.wrong and name == "yours" else " " * len(self.signs.mark)
                role = {"yours": "bad", "right": "good"}[name] if cell.wrong else ""
                shown = (cell.yours if name == "yours" else cell.right) + mark
                line += [Piece(" " * (wide - len(shown))), Piece(shown, role), Piece("  ")]
            made.append(tuple(line))
        return made

    # -- laws --------------------------------------------------------------------------------------------------

    def laws(self, laws: tuple[LawResult, ...]) -> Iterator[Line]:
        """A sign, the law, and what was measured."""
        signs = {True: (self.signs.good, "good"), False: (self.signs.bad, "bad"), None: (self.signs.none, "dim")}
        name, measured = (max(columns(getattr(law, part)) for law in laws) for part in ("name", "measured"))
        size = min(name + 2, max(self.width // 2, self.width - 5 - measured))
        for law in broken_first(laws):
            sign, role = signs[law.holds]
            dim = "dim" if law.holds is None else ""
            names = flow([Piece(law.name, dim)], size - 2)
            numbers = flow([Piece(law.measured, "dim")], self.width - size - 5)
            for place, (left, right) in enumerate(zip_longest(names, numbers, fillvalue=())):
                front = Piece(f"  {'' if place else sign:<{len(self.signs.good)}} ", role)
                yield (front, *left, Piece(" " * (size - length(left))), *right)


def _width(made: list[Line]) -> int:
    return max(map(length, made)) - 2  # the last two are blank


def _joined(left: Line, right: Line) -> Line:
    return (*left, Piece(" " * (BETWEEN - 2)), *right)
