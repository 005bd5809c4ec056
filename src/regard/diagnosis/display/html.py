"""A report in a notebook: one piece of HTML with its styles inside, and no script.

Colours are mixed with the colour of the text around them, so that the page is legible on light and on dark. Every text
is escaped; a wrong entry is marked by a sign, bold type and a background, and says both numbers when pointed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from .matrices import Cell, Grid, grid, literals, number
from .words import UNICODE, alike, broken_first, caption, counted, legible, source, told, verdict

if TYPE_CHECKING:
    from ..report import Example, Finding, LawResult, Report

HUES = {"good": "#16a34a", "bad": "#e5484d", "warning": "#d97706", "unknown": "#d97706", "dim": "#888888"}
ROOM = 84  # signs of code on a line
LINE = "1px solid rgba(128,128,128,.28)"
MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px"
FAINT = "opacity:.68"
CELL = "border:0;text-align:right;white-space:pre;background:none"
ADDRESS = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,}(?:/[^\s\"'<>]*)?)")  # of the web, and nothing that runs
SIGNS = {True: ("good", UNICODE.good), False: ("bad", UNICODE.bad), None: ("dim", UNICODE.none)}


def report_page(report: Report) -> str:
    """The report as HTML."""
    report = legible(report)
    parts = [_head(report), _reading(told(report))]
    parts += [_finding(place, finding) for place, finding in enumerate(report.findings, 1)]
    parts += [_laws(report.laws), *(_tag("div", escape(remark), "margin-top:10px") for remark in report.remarks)]
    if report.seconds:
        parts.append(_tag("div", f"checked in {number(report.seconds)} s", f"margin-top:10px;font-size:12px;{FAINT}"))
    style = "font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:14px;line-height:1.5;max-width:920px"
    return _tag("div", "".join(parts), f"{style};margin:4px 0;text-align:left")


# -- pieces ----------------------------------------------------------------------------------------------------


def _tag(name: str, inside: str, style: str = "", more: str = "") -> str:
    styled = f' style="{style}"' if style else ""
    return f"<{name}{styled}{more}>{inside}</{name}>"


def _ink(role: str) -> str:
    """The colour of a role: plain for old browsers, then mixed with that of the text around it."""
    hue = HUES[role]
    return f"color:{hue};color:color-mix(in srgb,{hue} 78%,currentColor)"


def _wash(role: str, percent: int = 14) -> str:
    """The colour of a role as a thin layer over whatever lies behind."""
    red, green, blue = (int(HUES[role][place : place + 2], 16) for place in (1, 3, 5))
    return f"background:rgba({red},{green},{blue},.{percent:02d})"


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """Names beside what they name; the second is HTML."""
    cells = "".join(_tag("div", escape(name), FAINT) + _tag("div", inside, "min-width:0") for name, inside in rows)
    style = "display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 16px;align-items:baseline"
    return _tag("div", cells, style) if cells else ""


def _block(lines: Iterable[str], role: str = "dim") -> str:
    """Code, line by line; the lines are HTML."""
    frame = f"margin:0;padding:6px 10px;border:0;border-left:3px solid {HUES[role]};border-radius:4px;color:inherit"
    return _tag("pre", "\n".join(lines), f"{frame};{_wash(role, 10)};{MONO};line-height:1.55;overflow-x:auto")


# -- parts of a report -----------------------------------------------------------------------------------------


def _head(report: Report) -> str:
    found = verdict(report)
    badge = f"{getattr(UNICODE, found.role)} {found.mark}"
    style = "display:inline-block;padding:1px 10px;border-radius:999px;font-weight:600;white-space:nowrap"
    target = _tag("code", escape(report.target), f"{MONO};font-size:14px;font-weight:700;background:none;color:inherit")
    mark = _tag("span", escape(badge), f"{style};{_wash(found.role)};{_ink(found.role)}")
    return _tag("div", f"{target} {escape(found.says)} &nbsp;{mark}", "font-size:15px;margin-bottom:8px")


def _reading(rows: list[tuple[str, str]]) -> str:
    shown = []
    for name, value in rows:
        fact, *asides = map(escape, value.split("\n"))
        shown.append((name, fact + "".join(_tag("span", f" &nbsp;{aside}", FAINT) for aside in asides)))
    return _tag("div", _rows(shown), "font-size:13px;margin-bottom:10px") if shown else ""


def _finding(place: int, finding: Finding) -> str:
    """A finding that opens and closes; an error stands open."""
    is_error = finding.severity == "error"
    role, sign = ("bad", UNICODE.bad) if is_error else ("warning", UNICODE.warning)
    name = _tag("span", f"{sign} {place}.", f"{_ink(role)};font-weight:700") + f" {_tag('b', escape(finding.name))}"
    kind = "" if is_error else _tag("span", " &nbsp;warning", f"{_ink(role)};font-size:12px")
    summary = _tag("summary", name + kind, "cursor:pointer;padding:8px 12px;font-size:15px")
    body = _tag("div", escape(finding.wrong), "margin-bottom:10px") + _rows(_details(finding))
    frame = f"border:{LINE};border-left:4px solid {HUES[role]};border-radius:6px;margin:10px 0"
    inside = summary + _tag("div", body, "padding:2px 14px 12px 14px")
    return _tag("details", inside, frame, " open" if is_error else "")


def _details(finding: Finding) -> Iterable[tuple[str, str]]:
    if finding.evidence:
        yield "measured", _tag("b", escape(finding.evidence), "font-weight:600")
    if finding.also:
        yield "same as", escape(alike(finding))
    if finding.example:
        yield "example", _example(finding.example)
    if finding.lines:
        size = max(len(str(line.number)) for line in finding.lines)
        numbers = [_tag("span", f"{line.number:>{size}}  ", f"{FAINT};user-select:none") for line in finding.lines]
        texts = map(escape, source(finding))
        yield "look at", _block([number + text for number, text in zip(numbers, texts, strict=True)], "bad")
    code = _block([escape(finding.mend.rstrip())], "good") if finding.mend else ""
    if finding.advice or code:
        yield "mend it", _tag("div", escape(finding.advice), "margin-bottom:4px") + code
    if finding.hides:
        yield "hidden", _tag("span", escape(finding.hides), FAINT)
    if finding.seen:
        yield "seen", _tag("span", f"{escape(finding.seen.title)}, {_link(finding.seen.where)}", FAINT)


def _link(where: str) -> str:
    address = ADDRESS.fullmatch(where)
    if not address:
        return escape(where)
    reference = f' href="https://{escape(address[1])}" target="_blank" rel="noopener noreferrer"'
    return _tag("a", escape(where), "color:inherit;text-decoration:underline", reference)


def _laws(laws: tuple[LawResult, ...]) -> str:
    """All laws, folded away behind how many hold; broken ones leave them open."""
    if not laws:
        return ""
    counts = {holds: sum(law.holds is holds for law in laws) for holds in SIGNS}
    words = {True: "hold", False: "broken", None: "not applicable"}
    say = ", ".join(f"{counts[holds]} {word}" for holds, word in words.items() if counts[holds])
    head = ' style="border:0;background:none"'
    rows = [
        f"<tr{head}>{_data(sign, _ink(role) + ';font-weight:700')}{_data(law.name)}{_data(law.measured, FAINT)}</tr>"
        for law in broken_first(laws)
        for role, sign in [SIGNS[law.holds]]
    ]
    table = _tag("table", _tag("tbody", "".join(rows)), "border-collapse:collapse;border:0;font-size:13px;margin:0")
    summary = _tag("summary", f"{counted(len(laws), 'law')}: {say}", "cursor:pointer;padding:6px 12px")
    frame = f"border:{LINE};border-radius:6px;margin:10px 0"
    return _tag("details", summary + _tag("div", table, "padding:0 8px 8px"), frame, " open" if counts[False] else "")


def _data(text: str, style: str = "") -> str:
    return _tag("td", escape(text), f"border:0;background:none;text-align:left;padding:1px 10px 1px 6px;{style}")


# -- the example -----------------------------------------------------------------------------------------------


def _example(example: Example) -> str:
    inputs = []
    for name, value in example.inputs.items():
        front = f"{name} = "
        inputs.append(escape(front + f"\n{' ' * len(front)}".join(literals(value, ROOM))))
    shown = grid(example)
    tables = _matrix(shown, "yours") + _matrix(shown, "right")
    parts = [_block(inputs)] if inputs else []
    parts.append(_tag("div", escape(caption(example, UNICODE.mark)), "margin:6px 0 4px"))
    parts.append(_tag("div", tables, "display:flex;flex-wrap:wrap;gap:10px 24px;overflow-x:auto"))
    return "".join(parts)


def _matrix(grid: Grid, name: str) -> str:
    head = "".join(_label(column) for column in (name, *grid.columns))
    rows = [_label(label) + "".join(_entry(cell, name) for cell in row) for label, row in _labelled(grid)]
    lines = [_tag("tr", line, "border:0;background:none") for line in (head, *rows)]
    style = f"border-collapse:separate;border-spacing:2px;border:0;margin:0;width:auto;table-layout:auto;{MONO}"
    return _tag("table", _tag("tbody", "".join(lines)), style)


def _labelled(grid: Grid) -> Iterable[tuple[str | None, list[Cell | None]]]:
    return zip(grid.rows, grid.cells, strict=True)


def _label(text: str | None) -> str:
    named = text in ("yours", "right")
    look = "font-weight:700;text-align:left" if named else f"font-weight:400;{FAINT}"
    return _tag("th", escape(text or UNICODE.gap), f"{CELL};padding:1px 8px 1px 2px;{look}")


def _entry(cell: Cell | None, name: str) -> str:
    if cell is None:
        return _tag("td", UNICODE.gap, f"{CELL};padding:1px 4px;{FAINT}")
    yours, right = cell.yours.strip(), cell.right.strip()
    role, mark = ("bad", UNICODE.mark) if name == "yours" else ("good", " ")
    text = escape((cell.yours if name == "yours" else cell.right) + (mark if cell.wrong else " "))
    if not cell.wrong:
        return _tag("td", text, f"{CELL};padding:1px 4px")
    look = f"{CELL};padding:1px 4px;border-radius:3px;{_wash(role, 22)};{_ink(role)}"
    look += ";font-weight:700" if name == "yours" else ""
    return _tag("td", text, look, f' title="{escape(f"yours {yours}, right {right}")}"')
