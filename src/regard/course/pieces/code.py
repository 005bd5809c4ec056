"""Python as coloured HTML; the colours are classes, so that the page's style has the say."""

from __future__ import annotations

from ...algebra.errors import MissingExtra


def coloured(source: str) -> str:
    """A program.

    >>> coloured("x = 1")
    '<pre class="code"><code><span class="n">x</span> <span class="o">=</span> <span class="mi">1</span></code></pre>'
    """
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        raise MissingExtra("pygments", "learn") from None
    inside = highlight(source.strip("\n"), PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
    return f'<pre class="code"><code>{inside}</code></pre>'
