"""`regard claims`: the ledger in a terminal, as a page, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from json import dumps
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError, MissingExtra
from ..experiments.record import Experiment
from .keeping import measured_and_kept, measured_or_kept
from .record import Claim, Result
from .registry import ledger, select
from .report import as_data, full, row, summary, titles, trouble
from .sources import SOURCES

STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "skipped": "yellow"}


def show(console: Any, ids: Sequence[str] = (), listing: bool = False, experiments: bool = False) -> bool:
    """Print the ledger to a rich console, measured, or with `listing` as it stands. Whether nothing failed.

    ids:         the claims to run, each then with all its numbers; all of them, in short, where none is given
    experiments: whether those that rows ask for are run first, where they were not; such a row is skipped otherwise
    """
    if listing:
        return print_list(console)
    return is_sound(print_results(console, ids, experiments=experiments))


def is_sound(results: Iterable[Result]) -> bool:
    """Whether nothing failed; what was skipped did not."""
    return all(result.passed or result.skipped is not None for result in results)


def print_list(console: Any) -> bool:
    """Every claim without measuring it, and the texts."""
    rows = [(claim.id, " ".join(claim.sources), str(claim.verdict), claim.sentence) for claim in ledger()]
    _print_table(console, ("id", "texts", "verdict", "claim"), rows)
    for source in SOURCES.values():
        console.print(str(source), style="dim", markup=False, highlight=False)
    return True


def print_results(
    console: Any, ids: Sequence[str] = (), experiments: bool = False, fresh: bool = False
) -> list[Result]:
    """Measure, and print each claim as it comes. What is kept from a run of the same code is not measured again.

    fresh: measure all of them
    """
    claims = select(ids or None)
    if experiments:
        _run_experiments(console, {claim.id for claim in claims})
    results, measure = list[Result](), measured_and_kept if fresh else measured_or_kept
    with _bar(console, len(claims)) as tell:
        for place, claim in enumerate(claims):
            tell(claim, place)
            results.append(measure(claim))
            if ids:
                console.print(f"{full(results[-1])}\n", markup=False, highlight=False, soft_wrap=True)
            else:
                _print_entry(console, results[-1])
    console.print(summary(results), highlight=False)
    _note_older(console, {claim.id for claim in claims})
    return results


def _note_older(console: Any, ids: set[str]) -> None:
    """Say which rows rest on outcomes that other code has measured."""
    from ..experiments.store import is_older

    rows = []
    with suppress(ImportError, MissingExtra):  # those rows were skipped, and said why
        rows = [claim for one in _experiments(ids) if is_older(one.name) for claim in one.claims if claim in ids]
    if rows:
        console.print(
            f"{', '.join(rows)}: from outcomes of an earlier code; regard claims --experiments measures them anew",
            style="dim", highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip


def write_page(results: Sequence[Result], path: Path) -> Path:
    """The page of these results, as a file."""
    from .page import html

    return _written(path, html(results), "--html")


def write_json(results: Sequence[Result], path: Path) -> Path:
    """Every number of these results, as a file."""
    return _written(path, dumps([as_data(result) for result in results], ensure_ascii=False, indent=1), "--json")


def _written(path: Path, text: str, option: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise CallError(f"{option}: a file that can be written; got {path} ({reason}); name another") from None
    return path


def _run_experiments(console: Any, ids: set[str]) -> None:
    """Those that the claims ask for and that are not known."""
    from ..experiments.command import run_quietly

    run_quietly(console, [one.name for one in _experiments(ids)])


def _experiments(ids: set[str]) -> list[Experiment]:
    """Those that decide any of these rows."""
    from ..experiments.registry import EXPERIMENTS, find

    return [one for one in map(find, EXPERIMENTS) if ids & set(one.claims)]


@contextmanager
def _bar(console: Any, count: int) -> Iterator[Any]:
    """A bar that tells which claim is being measured."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), words
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=count)

        def tell(claim: Claim, place: int) -> None:
            bar.update(task, description=f"{claim.id} {claim.sentence}", completed=place)

        yield tell


def _print_entry(console: Any, result: Result) -> None:
    """One claim as it is measured: its number and verdict; the sentence and its texts; what went wrong if it did."""
    from rich.padding import Padding
    from rich.text import Text

    name, _, verdict, measured, expected, status, seconds, sentence = row(result)
    marks = ((f"{name:<4}", "bold"), f"{verdict:<22}{measured:>10}  {expected:<18}", (f"{status:<8}", STYLES[status]))
    taken, _, kept = seconds.partition(" ")
    console.print(Text.assemble(*marks, (f"{taken:>6} s {kept}".rstrip(), "dim")))
    below = Text.assemble(sentence, "\n", (titles(result.claim), "dim"))
    if not result.passed:
        below.append(f"\n{trouble(result)}")
    console.print(Padding(below, (0, 0, 0, 4)))


def _print_table(console: Any, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, no_wrap=column == "id", overflow="fold")
    for cells in rows:
        made.add_row(*cells)
    console.print(made)
