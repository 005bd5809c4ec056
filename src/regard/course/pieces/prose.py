r"""Markdown with mathematics, as HTML.

    $x_i$        within a line             $$\sum_j w_{ij} v_j$$        on a line of its own

LaTeX becomes MathML here, so that a page needs no script to show it.
"""

from __future__ import annotations

import re
from inspect import cleandoc

from ...algebra.errors import MissingExtra

PARTS = re.compile(r"(```.*?```|`[^`\n]+`)|\$\$(.+?)\$\$|(?<![\\\w$])\$([^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\d)", re.DOTALL)
HELD = re.compile(r"regardmathematics(\d+)held")
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

    page = str(markdown.markdown(PARTS.sub(hold, cleandoc(text)), extensions=EXTENSIONS))
    return HELD.sub(lambda found: held[int(found[1])], page)


def typeset(latex: str, *, block: bool = False) -> str:
    """LaTeX as MathML."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise MissingExtra("latex2mathml", "learn") from None
    made = str(convert(latex.strip(), display="block" if block else "inline"))
    return made.replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")  # ∞ is no operator: no room around it
