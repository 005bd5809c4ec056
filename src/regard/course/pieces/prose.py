r"""Markdown with mathematics, as HTML.

    $x_i$        within a line             $$\sum_j w_{ij} v_j$$        on a line of its own

LaTeX becomes MathML here, so that a page needs no script to show it. Numbers outside of code are set as `numbers` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from inspect import cleandoc

from ...algebra.errors import MissingExtra
from .numbers import as_set

PARTS = re.compile(r"(```.*?```|`[^`\n]+`)|\$\$(.+?)\$\$|(?<![\\\w$])\$([^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\d)", re.DOTALL)
HELD = re.compile(r"regardmathematics(\d+)held")
CODE = re.compile(r"`([^`]+)`")
EXTENSIONS = ["tables", "fenced_code", "sane_lists", "attr_list"]


def prose(text: str) -> str:
    """Markdown as HTML.

    >>> prose("a *b*")
    '<p>a <em>b</em></p>'
    """
    try:
        import markdown
    except ImportError:
        raise MissingExtra("markdown", "learn") from None
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        code, block, line = found.groups()
        if code:
            return str(code)
        held.append(typeset(block or line, block=bool(block)))
        return f"regardmathematics{len(held) - 1}held"

    page = str(markdown.markdown(_apart(PARTS, cleandoc(text), hold, as_set), extensions=EXTENSIONS))
    return HELD.sub(lambda found: held[int(found[1])], page)


def words(text: str) -> str:
    """A few words as HTML: `code` is code, and all else is as it stands.

    >>> words("a < -1, as `x[-1]`")
    'a &lt; −1, as <code>x[-1]</code>'
    """
    return _apart(CODE, text, lambda found: f"<code>{escape(found[1])}</code>", lambda plain: escape(as_set(plain)))


def _apart(pattern: re.Pattern[str], text: str, inside: Callable[[re.Match[str]], str],
           between: Callable[[str], str]) -> str:  # fmt: skip
    """A text changed in one way where a pattern is found, and in another between."""
    made, at = "", 0
    for found in pattern.finditer(text):
        made, at = made + between(text[at : found.start()]) + inside(found), found.end()
    return made + between(text[at:])


def typeset(latex: str, *, block: bool = False) -> str:
    """LaTeX as MathML."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise MissingExtra("latex2mathml", "learn") from None
    made = str(convert(latex.strip(), display="block" if block else "inline"))
    return made.replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")  # ∞ is no operator: no room around it
