"""Results to read: a plain table, a claim with all its numbers, and both in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from .record import Result
from .registry import ledger, running, select
from .sources import SOURCES

COLUMNS = ("id", "texts", "verdict", "measured", "expected", "result", "seconds", "claim")
STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "skipped": "yellow"}
Row = tuple[str, ...]


def row(result: Result) -> Row:
    """One cell for each of `COLUMNS`."""
    claim, number = result.claim, result.measured
    return (
        claim.id,
        " ".join(claim.sources),
        str(claim.verdict),
        "" if number is None else f"{number:.4g}",
        result.expected,
        result.status,
        f"{result.seconds:.2f}",
        claim.sentence,
    )


def table(results: Iterable[Result], width: int = 120) -> str:
    """A plain table; the sentences fold into what is left of `width`. Failures are told below, in full."""
    results = list(results)
    rows = [COLUMNS, *map(row, results)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS) - 1)]
    lines = [line for cells in rows for line in _folded(cells, widths, width)]
    return "\n".join([*lines, "", summary(results), *map(trouble, filter(_is_trouble, results))])


def summary(results: Sequence[Result]) -> str:
    """How many passed, failed, were skipped or broke off, and how long it took."""
    counts = {
        word: sum(result.status == word for result in results) for word in ("passed", "failed", "skipped", "error")
    }
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{told or 'no claims'} in {sum(result.seconds for result in results):.1f} s"


def trouble(result: Result) -> str:
    """Why a claim did not pass."""
    return "\n  ".join([f"{result.claim.id} {result.status}", *result.detail.splitlines()])


def full(result: Result) -> str:
    """One claim with its texts, its formula and every number."""
    claim = result.claim
    heading = f"{claim.id}  {claim.sentence}"
    lines = [*(str(SOURCES[letter]) for letter in claim.sources), *claim.formula.splitlines()]
    return "\n  ".join([heading, *lines, f"{claim.verdict}; {result.status}", *result.detail.splitlines()])


# -- in a terminal ---------------------------------------------------------------------------------------------


def show(console: Any, ids: Sequence[str] = (), listing: bool = False, experiments: bool = False) -> bool:
    """Print the ledger to a rich console, measured, or with `listing` as it stands. Whether nothing failed.

    ids:         the claims to run, each then with all its numbers; all of them, in a table, where none is given
    experiments: whether those that rows ask for are run first, where they were not; such a row is skipped otherwise
    """
    if listing:
        rows = [(claim.id, " ".join(claim.sources), str(claim.verdict), claim.sentence) for claim in ledger()]
        _print_table(console, ("id", "texts", "verdict", "claim"), rows)
        return True
    if experiments:
        _run_experiments(console, {claim.id for claim in select(ids or None)})
    results = []
    with console.status("measuring"):
        for result in running(ids or None):
            results.append(result)
            if ids:
                console.print(f"{full(result)}\n", markup=False, highlight=False, soft_wrap=True)
            else:
                _print_entry(console, result)
    console.print(summary(results), highlight=False)
    return all(result.passed or result.skipped is not None for result in results)


def _run_experiments(console: Any, ids: set[str]) -> None:
    """Those that the claims ask for and that are not known."""
    from ..experiments.command import run_quietly
    from ..experiments.registry import EXPERIMENTS, find

    run_quietly(console, [one.name for one in map(find, EXPERIMENTS) if ids & set(one.claims)])


def _print_entry(console: Any, result: Result) -> None:
    """One claim as it is measured: its number and verdict, the sentence below, and what went wrong if it did."""
    from rich.padding import Padding
    from rich.text import Text

    name, texts, verdict, measured, expected, status, seconds, sentence = row(result)
    marks = ((f"{name:<4}", "bold"), f"{verdict:<22}{measured:>10}  {expected:<18}", (f"{status:<8}", STYLES[status]))
    console.print(Text.assemble(*marks, (f"{seconds:>5} s  {texts}", "dim")))
    console.print(Padding(Text(sentence if result.passed else f"{sentence}\n{trouble(result)}"), (0, 0, 0, 4)))


def _print_table(console: Any, columns: Row, rows: Iterable[tuple[Any, ...]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, no_wrap=column == "id", overflow="fold")
    for cells in rows:
        made.add_row(*cells)
    console.print(made)


def _is_trouble(result: Result) -> bool:
    return not result.passed


def _folded(cells: Row, widths: list[int], width: int) -> list[str]:
    """The cells of one row, the last of them on as many lines as it needs."""
    *short, sentence = cells
    head = "  ".join(cell.ljust(size) for cell, size in zip(short, widths, strict=True))
    first, *rest = wrap(sentence, max(20, width - len(head) - 2)) or [""]
    return [f"{head}  {first}".rstrip(), *(" " * (len(head) + 2) + line for line in rest)]
