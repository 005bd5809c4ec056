"""The ledger as one page of HTML: nothing is fetched, no script runs, and it prints.

    html(results)   the counts of each verdict with links, every row with its numbers and figures, the texts

A verdict is a sign and a word in a colour; who sees no colours reads the sign. Every text is escaped.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

from .pictures import pictures
from .record import Figure, Measured, Result, Verdict
from .report import summary, took
from .sources import SOURCES, Source

SIGNS = {Verdict.HOLDS: "✓", Verdict.CONDITION: "◐", Verdict.WRONG: "✕", Verdict.ILLUSTRATION: "○"}
CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.CONDITION: "condition",
    Verdict.WRONG: "wrong",
    Verdict.ILLUSTRATION: "shown",
}
MEANS = {
    Verdict.HOLDS: "The sentence is right.",
    Verdict.CONDITION: "Right, if something is added; the numbers show both sides of the condition.",
    Verdict.WRONG: "Not right; the numbers show how far off it is, and what is right instead.",
    Verdict.ILLUSTRATION: "A picture; there is nothing to refute.",
}
POWER = re.compile(r"(\d)e([+-])0*(\d+)")
RAISED = str.maketrans("+-0123456789", " ⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
STATUS = {"failed": "A number breaks its bounds.", "error": "It broke off.", "skipped": "Not measured here."}


def html(results: Sequence[Result]) -> str:
    """The page of these results."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    drawn, first = pictures(results), dict[str, str]()
    rows = [_row(result, _picture(drawn.get(result.claim.id), result.claim.id, first)) for result in results]
    return "\n".join([
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="light dark"><title>The ledger of claims</title><style>{style}</style>',
        "</head><body>", _head(results), _index(results), "<main>", *rows, "</main>", _texts(results), _foot(results),
        "</body></html>\n",
    ])  # fmt: skip


# -- above the rows --------------------------------------------------------------------------------------------


def _head(results: Sequence[Result]) -> str:
    texts = {letter for result in results for letter in result.claim.sources}
    count = "1 sentence" if len(results) == 1 else f"{len(results)} sentences"
    lead = f"{count} from {len(texts)} texts about attention, measured: a claim, a verdict, a number."
    return f'<header class="top"><h1>The ledger of claims</h1><p class="lead">{escape(lead)}</p></header>'


def _index(results: Sequence[Result]) -> str:
    """How many there are of each verdict, and which."""
    parts = []
    for verdict in Verdict:
        found = [result for result in results if result.claim.verdict is verdict]
        links = " ".join(map(_link, found))
        if found:
            parts.append(
                f'<section><p class="count">{len(found)}</p><h2>{_badge(verdict)}</h2>'
                f'<p class="means">{escape(MEANS[verdict])}</p><p class="links">{links}</p></section>'
            )
    return f'<nav class="index" aria-label="Claims by verdict">{"".join(parts)}</nav>'


def _link(result: Result) -> str:
    name, open_one = escape(result.claim.id), "" if result.passed else ' class="open"'
    return f'<a href="#{name}" title="{escape(result.claim.sentence)}"{open_one}>{name}</a>'


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {CLASSES[verdict]}"><i aria-hidden="true">{SIGNS[verdict]}</i> {verdict}</span>'


# -- a row -----------------------------------------------------------------------------------------------------


def _row(result: Result, picture: str) -> str:
    claim, name = result.claim, escape(result.claim.id)
    titles = " · ".join(f'<a href="#text-{letter}">{escape(SOURCES[letter].title)}</a>' for letter in claim.sources)
    figures = "".join(map(_figure, result.figures))
    beside = f'<div class="figures">{figures}</div>' if figures else ""
    return (
        f'<article id="{name}"{" class=pictured" if figures else ""}><header><a class="id" href="#{name}">{name}</a>'
        f"<h2>{escape(claim.sentence)}</h2>{_badge(claim.verdict)}"
        f'<p class="sources">{titles}</p></header><div class="body"><div class="told">'
        f'<p class="formula">{escape(claim.formula)}</p>{_outcome(result)}</div>{beside}</div>'
        f'{picture}<p class="seconds">{escape(took(result))}</p></article>'
    )


def _outcome(result: Result) -> str:
    """The telling number, large; below it the others, or why there are none."""
    note = "" if result.passed else _note(result)
    if result.telling is None:
        return note
    telling = result.telling
    others = "".join(_number(part) for part in result.measurements if part is not telling)
    table = f'<table class="numbers"><tbody>{others}</tbody></table>' if others else ""
    detail = f'<p class="detail">{escape(telling.detail)}</p>' if telling.detail else ""
    return (
        f'{note}<div class="telling"><p class="value">{_value(telling)}</p><p>{escape(telling.what)}'
        f'<span class="bounds">expected {escape(_signed(telling.expected))}</span></p>{detail}</div>{table}'
    )


def _note(result: Result) -> str:
    reason = result.error or result.skipped or ""
    return f'<p class="note {result.status}"><b>{STATUS[result.status]}</b> {escape(reason)}</p>'


def _number(part: Measured) -> str:
    detail = f'<span class="detail">{escape(part.detail)}</span>' if part.detail else ""
    return (
        f'<tr><th scope="row">{escape(part.what)}{detail}</th><td>{_value(part)}</td>'
        f'<td class="bounds">{escape(_signed(part.expected))}</td></tr>'
    )


def _value(part: Measured) -> str:
    shown = escape(_signed(f"{part.value:.4g}"))
    return shown if part.kept else f'<strong class="broken">{shown} ✕</strong>'


def _signed(text: str) -> str:
    """Numbers as they are set: 2.2e-16 as 2.2 × 10⁻¹⁶, with a true minus."""
    raised = POWER.sub(lambda found: f"{found[1]} × 10{found[2].translate(RAISED)}{found[3].translate(RAISED)}", text)
    return re.sub(r"\b1 × (?=10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])", "", raised).replace("-", "−")


def _figure(figure: Figure) -> str:
    return f"<figure>{figure.markup}<figcaption>{escape(figure.caption)}</figcaption></figure>"


def _picture(figure: Figure | None, name: str, first: dict[str, str]) -> str:
    """The picture of the row's experiment; where an earlier row has it, a link there."""
    if figure is None:
        return ""
    where = first.setdefault(figure.caption, name)
    if where != name:
        return f'<p class="see">The picture of its experiment stands at <a href="#{where}">{where}</a>.</p>'
    return f'<div class="experiment">{_figure(figure)}</div>'


# -- below the rows --------------------------------------------------------------------------------------------


def _texts(results: Sequence[Result]) -> str:
    letters = sorted({letter for result in results for letter in result.claim.sources})
    return (
        f'<section class="texts"><h2>The texts</h2><dl>{"".join(_text(SOURCES[one]) for one in letters)}</dl></section>'
    )


def _text(source: Source) -> str:
    made = ", ".join(str(part) for part in (source.author, source.year) if part is not None)
    return (
        f'<dt id="text-{source.letter}">{escape(source.title)}</dt>'
        f"<dd>{escape(source.about)}{f'; {escape(made)}' if made else ''}</dd>"
    )


def _foot(results: Sequence[Result]) -> str:
    day = datetime.now(UTC).date()
    told = f"{summary(results)}; Python {platform.python_version()}, NumPy {version('numpy')}; {day}."
    return f"<footer><p>{escape(told)}</p><p>Measure it yourself: <code>regard claims --fresh</code>.</p></footer>"
