"""Progress on long work: a function that is told, or a bar in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from ...algebra.errors import KindError, MissingExtra

PATIENCE = 1.0  # seconds without a bar, where none was asked for


@contextmanager
def shown(progress: bool | Callable[[int, int], None] | None, total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with the rows that were just done."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise KindError(f"progress: True, False, or a function of rows done and in all; got {progress!r}")
    if callable(progress):
        yield _told(progress, total)
    elif progress or (progress is None and sys.stderr.isatty() and _has_rich()):
        yield from _bar(total, patience=0.0 if progress else PATIENCE)
    else:
        yield lambda count: None


def _told(progress: Callable[[int, int], None], total: int) -> Callable[[int], None]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    return advance


def _has_rich() -> bool:
    try:
        import rich.progress  # noqa: F401 - to see whether it is there
    except ImportError:
        return False
    return True


def _bar(total: int, patience: float) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream, once the work has taken longer than `patience`."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        raise MissingExtra("rich", "cli") from None
    columns: tuple[Any, ...] = (TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, began = Console(stderr=True), monotonic()
    bar = Progress(*columns, console=console, transient=console.is_terminal)  # in a file one line stays
    task = bar.add_task("searching", total=total)

    def advance(count: int) -> None:
        bar.update(task, advance=count)
        if not bar.live.is_started and monotonic() - began >= patience:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()
