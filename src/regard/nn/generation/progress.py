"""A bar in the terminal while texts are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from ...algebra.errors import KindError, MissingExtra


@contextmanager
def shown(progress: bool) -> Iterator[Callable[[int, int], None]]:
    """A function to call with the tokens that are written, and with how many there may be in all."""
    if not isinstance(progress, bool):
        raise KindError(f"progress: True or False; got {progress!r}")
    if progress:
        yield from _bar()
    else:
        yield lambda done, most: None


def _bar() -> Iterator[Callable[[int, int], None]]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    except ImportError:
        raise MissingExtra("rich", "cli") from None
    columns: tuple[Any, ...] = (
        TextColumn("writing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    console, began = Console(stderr=True), monotonic()
    bar = Progress(*columns, console=console, transient=console.is_terminal)  # in a file one line stays
    task = bar.add_task("writing", total=None, rate="")

    def tell(done: int, most: int) -> None:
        rate = done / max(monotonic() - began, 1e-9)
        bar.update(task, completed=done, total=most, rate=f"{rate:.0f} tokens/s")

    with bar:
        yield tell
