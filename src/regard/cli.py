"""The command `regard`: the mathematics, the laws, the plan and the matrix of a formula, in a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from .algebra.errors import MissingExtra, RegardError

try:
    import rich.box
    import typer
    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text
except ImportError as missing:
    sys.exit(f"regard: {MissingExtra(missing.name or 'typer', 'cli')}")

if TYPE_CHECKING:
    from .attention import Attention

app = typer.Typer(
    help="Attention, written once: y_i = Σ_j w_ij v_j,  w_ij = ψ(s_ij) / Z_i,  s_ij = score(q_i, k_j, i, j, h, b).",
    no_args_is_help=False, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
console = Console()
SHADES = ((59, 76, 192), (221, 221, 221), (180, 4, 38))


def main() -> None:
    """Run the command; a mistake in its arguments ends in a sentence, not in a traceback."""
    try:
        app()
    except RegardError as problem:
        Console(stderr=True).print(f"regard: {problem}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def overview(context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Without a command: five formulas, their mathematics, and what they attend to in a sentence."""
    from . import __version__

    if version:
        console.print(f"regard {__version__}", highlight=False)
    elif context.invoked_subcommand is None:
        from .tour import tour

        tour(console)


@app.command()
def formula(
    text: Annotated[str, typer.Argument(help='A formula, as in "softmax(dot / sqrt(d), mask=j <= i)", or a name of the zoo.')],
    code: Annotated[str | None, typer.Option(help="Print stand-alone source and nothing else: python, numpy or torch.")] = None,
    form: Annotated[str, typer.Option(help="With --code: attention, or self_attention.")] = "attention",
    n: Annotated[int, typer.Option(min=1, max=32, help="Size of the example.")] = 6,
    shape: Annotated[str, typer.Option(help="Batch, heads, positions, width for the plan.")] = "1,8,1024,64",
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX and nothing else.")] = False,
    mathml: Annotated[bool, typer.Option("--mathml", help="Print MathML and nothing else.")] = False,
) -> None:
    """Print a formula as mathematics, its laws in words, its plan and cost, and its matrix on a small example."""
    attention = read_formula(text)
    plain = attention.code(code, form) if code else attention.latex() if latex else attention.mathml() if mathml else None
    if plain is not None:
        sys.stdout.write(plain.rstrip("\n") + "\n")
        return
    show_mathematics(attention)
    show_laws(attention)
    show_plan(attention, shape)
    show_example(attention, n)


@app.command()
def zoo(name: Annotated[str | None, typer.Argument(help="Which one to show; all are listed without.")] = None) -> None:
    """List the attentions with names and papers, or show one."""
    from .zoo import ENTRIES

    if name is not None:
        entry = ENTRIES[_zoo_name(name)]
        console.print(f"[bold]{entry.title}[/bold]   {entry.paper}, {entry.year}   {entry.link}", highlight=False)
        console.print((entry.make.__doc__ or "").split(">>>")[0].strip() + "\n", highlight=False, markup=False)
        show_mathematics(entry.formula)
        show_laws(entry.formula)
        show_example(entry.formula, 6)
        return
    table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False)
    for column in ("name", "formula", "paper"):
        table.add_column(column, overflow="fold")
    for entry in ENTRIES.values():
        table.add_row(entry.name, Text(repr(entry.formula)), f"{entry.paper}, {entry.year}")
    console.print(table)


@app.command()
def claims(
    ids: Annotated[list[str] | None, typer.Argument(help="Which claims to run; all without.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the claims without running them.")] = False,
) -> None:
    """Run the ledger: what texts claim about attention, each with a verdict and a measured number."""
    from .claims.report import show

    if not show(console, ids or [], listing):
        raise typer.Exit(1)


# -- parts of the page -------------------------------------------------------------------------------------------


def read_formula(text: str) -> Attention:
    """A formula as text, or a name of the zoo; a bare expression is the score of a softmax."""
    from .algebra.expressions import Expression
    from .attention import Attention, parse
    from .zoo import ENTRIES

    if text.strip().isidentifier() and text.strip() in ENTRIES:
        return ENTRIES[text.strip()].formula
    value = parse(text)
    if isinstance(value, Expression):
        hint = "Read as the score of a softmax; write each(sigmoid(s))(…) or share(relu(s))(…) for another weight."
        console.print(hint + "\n", style="dim", highlight=False)
        return Attention(score=value)
    if not isinstance(value, Attention):
        raise RegardError(f"formula: an attention, as in softmax(dot / sqrt(d), mask=j <= i); got {value!r}")
    return value


def show_mathematics(attention: Attention) -> None:
    """The equation in Unicode, and as text."""
    lines = attention.unicode().split(",  ")
    console.print(Panel(Text("\n".join(lines)), title=Text(repr(attention)), title_align="left", expand=False))


def show_laws(attention: Attention) -> None:
    """The laws in words."""
    for sentence in attention.laws.words():
        name, _, rest = sentence.partition(":")
        console.print(Text.assemble((f"{name}:", "bold"), rest))
    console.print()


def show_plan(attention: Attention, shape: str) -> None:
    """The plan and cost for arrays of the given shape."""
    batch, heads, length, width = _sizes(shape)
    from .example import example

    call = example(attention, batch=batch, heads=heads, n=length, width=width, values=False)
    console.print(str(attention.plan(call.q, call.k, call.v, **call.tables)), highlight=False, markup=False)
    console.print()


def show_example(attention: Attention, n: int) -> None:
    """The weights of a small random example as a coloured matrix."""
    from .example import example

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
    largest = max(float(abs(weights).max()), 1e-12)
    signed = bool((weights < 0).any())
    table = Table(box=None, padding=(0, 0), show_edge=False)
    table.add_column("", style="dim", justify="right")
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


def _sizes(shape: str) -> list[int]:
    parts = shape.replace("x", ",").split(",")
    if len(parts) != 4 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise RegardError(f"--shape: batch, heads, positions, width, as in 1,8,1024,64; got {shape!r}")
    return [int(part) for part in parts]


def _zoo_name(name: str) -> str:
    from difflib import get_close_matches

    from .zoo import ENTRIES

    if name in ENTRIES:
        return name
    near = get_close_matches(name, ENTRIES, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`regard zoo` lists them"
    raise RegardError(f"zoo: there is no {name!r}; {hint}")
