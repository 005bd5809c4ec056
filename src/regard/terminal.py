"""Parts of a page in the terminal: the equation, the laws, the plan, a coloured matrix."""

from __future__ import annotations

import sys
from typing import Any

from .algebra.errors import MissingExtra
from .attention import Attention
from .example import example

try:
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text
except ImportError as missing:
    sys.exit(f"regard: {MissingExtra(missing.name or 'rich', 'cli')}")

console = Console()
SHADES = ((59, 76, 192), (221, 221, 221), (180, 4, 38))  # blue, grey, red


def show_mathematics(attention: Attention) -> None:
    """The equation in Unicode, and as text."""
    lines, text = attention.unicode().split(",  "), repr(attention)
    if len(text) > console.width - 8:  # a title would be cut
        lines, text = [text, "", *lines], ""
    console.print(Panel(Text("\n".join(lines)), title=Text(text) if text else None, title_align="left", expand=False))


def show_laws(attention: Attention) -> None:
    """The laws in words."""
    for sentence in attention.laws.words():
        name, _, rest = sentence.partition(":")
        console.print(Text.assemble((f"{name}:", "bold"), rest))
    console.print()


def show_plan(attention: Attention, shape: list[int]) -> None:
    """The plan and cost for arrays of the given shape."""
    batch, heads, length, width = shape
    call = example(attention, batch=batch, heads=heads, n=length, width=width, values=False)
    console.print(str(attention.plan(call.q, call.k, call.v, **call.tables)), highlight=False, markup=False)
    console.print()


def show_example(attention: Attention, n: int) -> None:
    """The weights of a small random example as a coloured matrix."""
    call = example(attention, n=n)
    weights = attention.weights(call.q, call.k, **call.tables)[0, 0]
    if call.tables:
        shapes = ", ".join(f"{name} {tuple(table.shape)}" for name, table in call.tables.items())
        console.print(f"Weights of head 0 for random vectors of width 4, with tables {shapes}:", highlight=False)
    else:
        console.print("Weights of head 0 for random vectors of width 4:", highlight=False)
    console.print(matrix(weights, [f"q{row}" for row in range(n)], [f"k{column}" for column in range(n)]))


def matrix(weights: Any, rows: list[str], columns: list[str]) -> Table:
    """Weights as a table, coloured from the lowest to the highest; a pair that is not admitted is a dot."""
    shown = max(1, (console.width - max(map(len, rows)) - 1) // 6)
    if shown < len(columns):
        weights, columns = weights[:, :shown], [*columns[: shown - 1], f"{columns[shown - 1]} …"]
    largest = max(float(abs(weights).max()), 1e-12)
    signed = bool((weights < 0).any())
    table = Table(box=None, padding=(0, 0), show_edge=False)
    table.add_column("", style="dim", justify="right", no_wrap=True, min_width=max(map(len, rows)) + 1)
    for name in columns:
        table.add_column(Text(name, style="dim"), justify="center", min_width=6)
    for name, row in zip(rows, weights.tolist(), strict=True):
        table.add_row(name + " ", *(_cell(value, largest, signed) for value in row))
    return table


def _cell(value: float, largest: float, signed: bool) -> Text:
    if value == 0:
        return Text("  ·   ", style="dim")
    height = value / largest if not signed else (value / largest + 1) / 2
    red, green, blue = _shade(height if signed else 0.5 + height / 2)
    ink = "black" if 0.25 < (height if signed else 0.5 + height / 2) < 0.85 else "white"
    return Text(f"{value:^6.2f}", style=f"{ink} on rgb({red},{green},{blue})")


def _shade(height: float) -> tuple[int, ...]:
    first, second = (SHADES[0], SHADES[1]) if height < 0.5 else (SHADES[1], SHADES[2])
    part = height * 2 % 1 if 0 < height < 1 and height != 0.5 else float(height >= 1)
    return tuple(round(a + (b - a) * part) for a, b in zip(first, second, strict=True))
