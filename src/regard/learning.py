"""The commands `regard train …`: their options are the fields of the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from .algebra.errors import MissingExtra

SAYS = {
    "text": "Learn to write: a GPT on a text, token after token.",
    "images": "Learn to see: a ViT on labelled images.",
    "pairs": "Learn to translate: an encoder and a decoder on pairs of texts.",
}
OUT = Annotated[Path | None, typer.Option(help="The folder of the run; runs/TASK-DATE without.")]
AGAIN = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")]
START = Annotated[Path | None, typer.Option(help="Begin with the best model of this run.")]
FOLDER = Annotated[Path, typer.Argument(help="The folder of a run.")]


def training_app(console: Any, read_formula: Callable[[str], Any]) -> typer.Typer:
    """`train` with its commands; read_formula makes an attention of a text."""
    app = typer.Typer(help="Learn W_Q, W_K, W_V, and the rest, on real data.", no_args_is_help=True)
    for task, says in SAYS.items():
        app.command(task, help=says)(_command(console, task, read_formula))

    @app.command("resume")
    def go_on(
        folder: FOLDER,
        steps: Annotated[int | None, typer.Option(min=1, help="Another number of steps in all.")] = None,
    ) -> None:
        """Go on with a run from its last checkpoint."""
        _package().go_on(console, folder, steps)

    @app.command()
    def repeat(folder: FOLDER, out: OUT = None) -> None:
        """Do a run once more from its first step, with its settings and its data: the same curve."""
        _package().repeat(console, folder, out)

    @app.command("try")
    def try_out(
        folder: FOLDER,
        given: Annotated[list[str] | None, typer.Argument(help="Texts, or image files.")] = None,
        length: Annotated[int, typer.Option(min=1, help="How many tokens to write.")] = 300,
    ) -> None:
        """See what a trained model makes of a text or an image."""
        _package().try_out(console, folder, given or [], length)

    @app.command()
    def toy(
        attention: Annotated[str, typer.Option(help="The formula, or a name of the zoo.")] = "softmax(dot / sqrt(d))",
        steps: Annotated[int, typer.Option(help="How many steps.")] = 400,
        seed: Annotated[int, typer.Option(min=0, help="Of the data and the first matrices.")] = 0,
        out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("toy.png"),
    ) -> None:
        """Three matrices learned in NumPy alone, beside the same in PyTorch: one curve."""
        from .train.toy.report import show

        show(console, out, read_formula(attention), steps, seed)

    return app


def _command(console: Any, task: str, read_formula: Callable[[str], Any]) -> Callable[..., None]:
    """A command whose parameters are the settings of its task."""

    def learn(**given: Any) -> None:
        out, again, parent = (given.pop(name) for name in ("out", "again", "start"))
        if given["attention"] is not None:
            given["attention"] = repr(read_formula(given["attention"]))
        _package().begin(console, task, given, out=out, again=again, parent=parent)

    own = [
        _parameter("out", OUT, None), _parameter("again", AGAIN, False), _parameter("start", START, None),
    ]  # fmt: skip
    learn.__signature__ = inspect.Signature([*_parameters(task), *own])  # type: ignore[attr-defined]
    learn.__annotations__ = {one.name: one.annotation for one in learn.__signature__.parameters.values()}  # type: ignore[attr-defined]
    return learn


def _parameters(task: str) -> list[inspect.Parameter]:
    """The settings of a task as parameters; the source is an argument, all else options."""
    from .train.options import parameters

    return [_shown(one) for one in parameters(task)]


def _shown(one: inspect.Parameter) -> inspect.Parameter:
    """A parameter as typer has it: None where it is not given, so that a run before it can say it instead."""
    kind, says = one.annotation
    if one.name == "source":
        return one.replace(annotation=Annotated[kind, typer.Argument(help=says, show_default=False)])
    if kind == tuple[str, ...]:
        return one.replace(annotation=Annotated[list[str] | None, typer.Option(help=says)], default=None)
    flag, usual = ([f"--{one.name}"], None) if kind is bool else ([], one.default)
    told = says if usual is None else f"{says} [{usual}]"
    return one.replace(annotation=Annotated[kind | None, typer.Option(*flag, help=told)], default=None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _package() -> Any:
    """The command's own module, which needs PyTorch."""
    try:
        from .train import command
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("regard"):
            raise
        raise MissingExtra(missing.name or "torch", "train") from None
    return command
