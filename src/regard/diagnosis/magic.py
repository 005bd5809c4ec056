"""%%check: run a notebook's cell, then check the attention that it defines.

    %load_ext regard

    %%check --causal                  the last function or class of the cell
    %%check attend --heads 4          the one that is named
    %check attend                     one that is there already

The report is the value of the cell, so that a notebook shows it as a page and `_` holds it.
"""

from __future__ import annotations

import ast
import shlex
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction
from typing import Any, NoReturn

from ..algebra.errors import KindError, MissingExtra, RegardError
from .checking import check
from .options import HELP, arguments
from .report import Report
from .sandbox.loading import label

KINDS = {"heads": int, "groups": int, "seconds": float}
LEFT_OUT = ("strict",)  # a report of a notebook has no status to end with


def load(shell: Any) -> None:
    """Give the shell %check and %%check; what `%load_ext regard` does."""

    def check_cell(line: str, cell: str | None = None) -> Report | None:
        """Check an attention: %%check [name] [options] in front of the cell that defines it, or %check name.

        Options are those of `regard check`: --causal, --heads 4, --as "q,k,v,mask", --formula "…", --init "…" …
        """
        try:
            return run(shell, line, cell)
        except (RegardError, MissingExtra) as problem:
            raise _said(problem) from None

    shell.register_magic_function(check_cell, magic_kind="line_cell", magic_name="check")


def run(shell: Any, line: str, cell: str | None) -> Report | None:
    """Run the cell in the shell and check what it defines; None where the cell itself fails, which the shell tells."""
    given = vars(_parser().parse_args(_words(line)))
    name, options = given.pop("name", None), arguments(**given)
    if cell is not None:
        name = name or _last_defined(shell, cell)
        if not shell.run_cell(cell).success:
            return None
    return check(_found(shell, name), **options)


def _found(shell: Any, name: str | None) -> Any:
    names = [key for key, value in shell.user_ns.items() if callable(value) and not key.startswith("_")]
    if name is None:
        raise KindError(f"%check: the name of a function or class; got none; as in %check {(names or ['attend'])[-1]}")
    first, *rest = name.split(".")
    if first not in shell.user_ns:
        raise KindError(f"%%check: a name that is defined; got {name!r}; run the cell that defines it first")
    value = shell.user_ns[first]
    for part in rest:
        if not hasattr(value, part):
            raise KindError(f"%%check: a name that is defined; got {name!r}; {label(value)} has no {part!r}")
        value = getattr(value, part)
    return value


def _last_defined(shell: Any, cell: str) -> str | None:
    """The last function or class at the top of the cell, public where there is one."""
    try:
        tree = ast.parse(shell.transform_cell(cell))
    except SyntaxError:
        return None  # the shell will tell
    made = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if not made:
        raise KindError("%%check: a cell that defines a function or a class; got none; name one, as in %%check attend")
    return next((name for name in reversed(made) if not name.startswith("_")), made[-1])


# -- the first line ------------------------------------------------------------------------------------------------


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise KindError(f"%%check: {message}; options are {' '.join(map(_flag, _options()))}")


def _parser() -> ArgumentParser:
    parser = _Parser(prog="%%check", add_help=False, argument_default=SUPPRESS, allow_abbrev=False)
    parser.add_argument("name", nargs="?")
    for name in _options():
        if name == "causal":
            parser.add_argument(_flag(name), action=BooleanOptionalAction, help=HELP[name])
        else:
            parser.add_argument(_flag(name), dest=name, type=KINDS.get(name, str), help=HELP[name])
    return parser


def _options() -> list[str]:
    return [name for name in HELP if name not in LEFT_OUT]


def _flag(name: str) -> str:
    return "--as" if name == "roles" else f"--{name}"


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as problem:
        raise KindError(f"%%check: options as in a terminal; got {line!r}: {problem}") from None


def _said(problem: Exception) -> Exception:
    """An error that the shell shows as a sentence, without a traceback."""
    try:
        from IPython.core.error import UsageError
    except ImportError:
        return problem
    refused: Exception = UsageError(str(problem))
    return refused
