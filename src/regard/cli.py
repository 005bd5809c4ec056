"""The command `regard`: a formula's mathematics, laws, plan and matrix; and what is wrong with an attention."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .algebra.errors import MissingExtra, RegardError

try:
    import rich.box
    import typer
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
except ImportError as missing:
    sys.exit(f"regard: {MissingExtra(missing.name or 'typer', 'cli')}")

from .diagnosis.options import HELP
from .learning import training_app
from .terminal import console, show_example, show_laws, show_mathematics, show_plan

if TYPE_CHECKING:
    from .attention import Attention

app = typer.Typer(
    help="Attention, written once: y_i = Σ_j w_ij v_j,  w_ij = ψ(s_ij) / Z_i,  s_ij = score(q_i, k_j, i, j, h, b).",
    no_args_is_help=False, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


def main() -> None:
    """Run the command; a mistake in its arguments ends in a sentence, not in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without these signs shows others, and no traceback
    try:
        app()
    except (RegardError, MissingExtra) as problem:
        Console(stderr=True).print(f"regard: {problem}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Without a command: five formulas, their mathematics, and what they attend to in a sentence."""
    from . import __version__

    if version:
        console.print(f"regard {__version__}", highlight=False)
    elif context.invoked_subcommand is None:
        from .tour import tour

        tour(console)


@app.command()
def formula(
    text: Annotated[str, typer.Argument(help='As in "softmax(dot / sqrt(d), mask=j <= i)", or a name of the zoo.')],
    code: Annotated[str | None, typer.Option(help="Print source alone: python, numpy, torch or triton.")] = None,
    form: Annotated[str, typer.Option(help="With --code: attention, or self_attention.")] = "attention",
    n: Annotated[int, typer.Option(min=1, max=32, help="Size of the example.")] = 6,
    shape: Annotated[str, typer.Option(help="Batch, heads, positions, width for the plan.")] = "1,8,1024,64",
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX and nothing else.")] = False,
    mathml: Annotated[bool, typer.Option("--mathml", help="Print MathML and nothing else.")] = False,
) -> None:
    """Print a formula as mathematics, its laws in words, its plan and cost, and its matrix on a small example."""
    attention = read_formula(text)
    if code or latex or mathml:
        printed = attention.code(code, form) if code else attention.latex() if latex else attention.mathml()
        sys.stdout.write(printed.rstrip("\n") + "\n")
        return
    sizes = _sizes(shape)
    show_mathematics(attention)
    show_laws(attention)
    show_plan(attention, sizes)
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


@app.command("similarity")
def show_similarity(
    image: Annotated[str | None, typer.Argument(help="An image file; a photograph of a pavilion without.")] = None,
    patch: Annotated[str, typer.Option(help="Size of a patch in pixels, as in 16 or 16,8 (height, width).")] = "16",
    at: Annotated[str | None, typer.Option(help="A pixel of the query patch, as in 150,80 (down, right).")] = None,
    neighbours: Annotated[int, typer.Option(min=1, max=64, help="How many neighbours to mark.")] = 8,
    width: Annotated[int, typer.Option(min=1, help="Width d of queries and keys.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Of the random W_Q and W_K.")] = 0,
    out: Annotated[str, typer.Option(help="Where to write the picture: .png, .svg, .pdf.")] = "similarity.png",
) -> None:
    """From distance to attention on one image: what is similar to a patch, by each measure, in one picture."""
    from .similarity.report import show

    sizes = [_whole(part, "--patch", patch) for part in patch.replace("x", ",").split(",")]
    place = None if at is None else [_whole(part, "--at", at) for part in at.split(",")]
    show(console, image, sizes, place, out, count=neighbours, width=width, seed=seed)


@app.command("claims")
def show_claims(
    ids: Annotated[list[str] | None, typer.Argument(help="Which claims to run; all without.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the claims without running them.")] = False,
    experiments: Annotated[
        bool, typer.Option("--experiments", help="First run the experiments that rows ask for: half an hour for all.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure rows again that are kept from before.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with every number and figure.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every number as JSON.")] = None,
) -> None:
    """Run the ledger: what texts claim about attention, each with a verdict and a measured number."""
    from .claims import command

    if listing:
        command.print_list(console)
        return
    results = command.print_results(console, ids or [], experiments, fresh)
    for path, write in ((html, command.write_page), (json, command.write_json)):
        if path is not None:
            console.print(str(write(results, path)), style="dim", markup=False, highlight=False, soft_wrap=True)
    if not command.is_sound(results):
        raise typer.Exit(1)


@app.command()
def check(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="path.py:function, package.module:Class, lesson.ipynb:function; several, too."),
    ] = None,
    roles: Annotated[str | None, typer.Option("--as", help=HELP["roles"])] = None,
    causal: Annotated[bool | None, typer.Option(help=HELP["causal"])] = None,
    heads: Annotated[int | None, typer.Option(min=1, help=HELP["heads"])] = None,
    groups: Annotated[int | None, typer.Option(min=1, help=HELP["groups"])] = None,
    layout: Annotated[str | None, typer.Option(help=HELP["layout"])] = None,
    library: Annotated[str | None, typer.Option(help=HELP["library"])] = None,
    formula: Annotated[str | None, typer.Option(help=HELP["formula"])] = None,
    mask: Annotated[str | None, typer.Option(help=HELP["mask"])] = None,
    init: Annotated[str | None, typer.Option(help=HELP["init"])] = None,
    projections: Annotated[str | None, typer.Option(help=HELP["projections"])] = None,
    seconds: Annotated[float | None, typer.Option(help=HELP["seconds"])] = None,
    memory: Annotated[str | None, typer.Option(help=HELP["memory"])] = None,
    strict: Annotated[bool, typer.Option("--strict", help=HELP["strict"])] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the report to a page of HTML.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the mistakes that are known by name.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="With --list: all texts, as Markdown.")] = False,
    explain: Annotated[str | None, typer.Option(help="Show one mistake in full, by its name.")] = None,
) -> None:
    """Find and name the bug in your own attention. Ends with 1 where there is one, with 2 where it cannot be read."""
    from .diagnosis.command import Command, show_bug, show_catalogue
    from .diagnosis.options import arguments

    if listing or explain:
        return show_bug(console, explain, library) if explain else show_catalogue(console, markdown)
    options = arguments(
        roles=roles, causal=causal, heads=heads, groups=groups, layout=layout, library=library, formula=formula,
        mask=mask, init=init, projections=projections, seconds=seconds, memory=memory,
    )  # fmt: skip
    raise typer.Exit(Command(console, Console(stderr=True), json, html, strict).run(targets or [], options))


@app.command("experiment")
def run_experiment(
    names: Annotated[list[str] | None, typer.Argument(help="Which to run; they are listed without.")] = None,
    out: Annotated[Path, typer.Option(help="Where tables and pictures go.")] = Path("experiments"),
    share: Annotated[float, typer.Option(help="How much of it, from 0 to 1: a first look.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of data and parameters.")] = 0,
    again: Annotated[bool, typer.Option("--again", help="Run it even if its outcome is known.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
) -> None:
    """Answer a question about attention by training: a table, a picture, and rows of the ledger."""
    try:
        from .experiments.command import list_all, run_all
        from .experiments.record import Scale

        if not names and not everything:
            return list_all(console)
        return run_all(console, names or [], out, Scale(share, seed), again=again)
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "torch", "train") from None


@app.command()
def lens(
    text: Annotated[str | None, typer.Argument(help="What the model reads; a sentence of ours without.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file of text to read instead.")] = None,
    image: Annotated[Path | None, typer.Option(help="An image to see.")] = None,
    model: Annotated[str | None, typer.Option(help="minilm, smollm2, a folder, a .gguf file, or a run.")] = None,
    saved: Annotated[Path | None, typer.Option("--open", help="A lens that was saved.")] = None,
    gallery: Annotated[bool, typer.Option("--gallery", help="What ships with the package; needs no PyTorch.")] = False,
    port: Annotated[int | None, typer.Option(help="Of the server; a free one without.")] = None,
    host: Annotated[str, typer.Option(help="Where the server is bound; this machine alone without.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    half: Annotated[bool, typer.Option("--half", help="Keep q, k and v in half precision.")] = False,
    layers: Annotated[str | None, typer.Option(help="Which to keep, as in 0,3,5; all without.")] = None,
    save: Annotated[Path | None, typer.Option(help="Also write the lens here.")] = None,
    patch: Annotated[
        int | None, typer.Option(min=1, max=512, help="Cut --image into raw patches of so many pixels.")
    ] = None,
) -> None:
    """See what a model attends to, in the browser; a server on this machine alone, until Ctrl-C."""
    from .viewer.command import Asked, show
    from .viewer.models.live import Kept

    chosen = None if layers is None else tuple(_whole(part, "--layers", layers) for part in layers.split(","))
    asked = Asked(text, file, image, saved, gallery, model, save, Kept(chosen, half, patch))
    show(console, asked, host=host, port=port, browser=browser)


@app.command()
def learn(
    chapter: Annotated[str | None, typer.Argument(help="A number, or a name, as in weight; all without.")] = None,
    edit: Annotated[Path | None, typer.Option(help="Copy the notebooks here, and edit the copies.")] = None,
    copy_only: Annotated[bool, typer.Option("--copy-only", help="With --edit: copy, and start nothing.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the course here, as plain pages of HTML.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the chapters, and what you solved.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete your answers and marks, and begin anew.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --forget: do not ask.")] = False,
    port: Annotated[int | None, typer.Option(help="Of the server; a free one without.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Learn attention in fifteen chapters to read, move and write in; on this machine alone, until Ctrl-C."""
    from .course.command import Wanted, show

    show(console, Wanted(chapter, edit, copy_only, html, listing, forget, yes, port, browser))


def read_formula(text: str) -> Attention:
    """A formula as text, or a name of the zoo; a bare expression is the score of a softmax."""
    from .algebra.expressions import Expression
    from .attention import Attention, parse
    from .zoo import ENTRIES

    name = text.strip()
    if name in ENTRIES or (name.isidentifier() and get_close_matches(name, ENTRIES, n=1)):
        return ENTRIES[_zoo_name(name)].formula
    value = parse(text)
    if isinstance(value, Expression):
        hint = "Read as the score of a softmax; write each(sigmoid(s))(…) or share(relu(s))(…) for another weight."
        console.print(hint + "\n", style="dim", highlight=False)
        return Attention(score=value)
    if not isinstance(value, Attention):
        raise RegardError(f"formula: an attention, as in softmax(dot / sqrt(d), mask=j <= i); got {value!r}")
    return value


app.add_typer(training_app(console, read_formula), name="train")


def _whole(part: str, option: str, given: str) -> int:
    if not part.strip().isdigit():
        raise RegardError(f"{option}: whole numbers, as in 16 or 16,8; got {given!r}")
    return int(part)


def _sizes(shape: str) -> list[int]:
    parts = shape.replace("x", ",").split(",")
    if len(parts) != 4 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise RegardError(f"--shape: batch, heads, positions, width, as in 1,8,1024,64; got {shape!r}")
    return [int(part) for part in parts]


def _zoo_name(name: str) -> str:
    from .zoo import ENTRIES

    if name in ENTRIES:
        return name
    near = get_close_matches(name, ENTRIES, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`regard zoo` lists them"
    raise RegardError(f"zoo: there is no {name!r}; {hint}")
