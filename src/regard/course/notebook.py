"""A notebook, read as text and run once: its cells, and what each of them shows.

cells_of(path)      the cells in the order of the page, with their code
run_once(path)      [(cell, value), …];  NotebookError names the cell that failed
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import TracebackType
from typing import Any

from ..algebra.errors import MissingExtra, RegardError


@dataclass(frozen=True)
class Cell:
    """One cell: its place on the page from 1, its name, its code, and whether the page hides it."""

    place: int
    name: str
    code: str
    line: int
    hidden: bool

    def at(self, line: int) -> str:
        """One of its lines, counted as in the file."""
        named = "" if self.name == "_" else f" ({self.name})"
        return f"cell {self.place}{named}, line {line}"

    def holds(self, line: int) -> bool:
        """Whether a line of the file is one of its code."""
        return self.line <= line < self.line + len(self.code.splitlines())


class NotebookError(RegardError):
    """A notebook that cannot be read or run."""


def run_once(path: Path) -> list[tuple[Cell, Any]]:
    """The cells of a notebook with their outputs, as they are before anybody moves anything."""
    path = path.resolve()
    everything = cells_of(path)
    cells = [cell for cell in everything if cell.name != "setup"]
    try:
        outputs, _ = _app(path).run()
    except (KeyboardInterrupt, MissingExtra):
        raise
    except BaseException as error:  # whatever a chapter raises is told with its cell
        raise NotebookError(
            f"{path.name}: {_failed(error, path, everything)}: {type(error).__name__}: {error}"
        ) from error
    if len(outputs) != len(cells):
        raise NotebookError(f"{path.name}: an output of each of {len(cells)} cells; got {len(outputs)}; use no mo.stop")
    return list(zip(cells, outputs, strict=True))


def cells_of(path: Path) -> list[Cell]:
    """The cells of a notebook, its setup among them, read from its text."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        raise NotebookError(f"{path.name}: a notebook; got one that cannot be read: {error}") from None
    lines = text.splitlines()
    return [_cell(place, node, lines) for place, node in enumerate(_nodes(tree), 1)]


# -- reading ---------------------------------------------------------------------------------------------------


def _nodes(tree: ast.Module) -> list[Any]:
    """What marimo takes as a cell: `with app.setup`, and what is decorated by the app."""
    return [node for node in tree.body if any(ast.unparse(one).startswith("app.") for one in _heads(node))]


def _heads(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.With):
        return [node.items[0].context_expr]
    return getattr(node, "decorator_list", [])


def _cell(place: int, node: Any, lines: Sequence[str]) -> Cell:
    options = node.items[0].context_expr if isinstance(node, ast.With) else node.decorator_list[0]
    given = {one.arg: one.value for one in getattr(options, "keywords", [])}
    hidden = isinstance(given.get("hide_code"), ast.Constant) and bool(given["hide_code"].value)
    whole = "app.cell" not in ast.unparse(options) and not isinstance(node, ast.With)  # @app.function: all of it
    body = [node] if whole else [one for one in node.body if not isinstance(one, ast.Return)]
    name = "setup" if isinstance(node, ast.With) else node.name
    code = dedent("\n".join(lines[body[0].lineno - 1 : body[-1].end_lineno])) if body else ""
    return Cell(place, name, code, body[0].lineno if body else node.lineno, hidden)


# -- running ---------------------------------------------------------------------------------------------------


def _app(path: Path) -> Any:
    """The app of a notebook, which is imported under a name of its own."""
    name = f"regard_course_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as missing:
        if missing.name == "marimo":
            raise MissingExtra("marimo", "learn") from None
        raise
    finally:
        del sys.modules[name]
    return module.app


def _failed(error: BaseException, path: Path, cells: Sequence[Cell]) -> str:
    """The cell in which an error arose, and the line.

    marimo runs a cell under the name of the notebook, or under one of its own, where Python shows the code of the cell.
    """
    for file, line in _frames(error.__traceback__):
        code = "".join(linecache.getlines(file)).strip()
        for cell in cells:
            if file == str(path) and cell.holds(line):
                return cell.at(line)
            if code and code == cell.code.strip():
                return cell.at(cell.line + line - 1)
    return "outside of its cells"


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
