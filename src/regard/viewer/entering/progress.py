"""A bar while a long input is captured: layers, bytes, and how many there will be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...algebra.errors import KindError
from ..arrays import in_words

LONG = 2**28  # bytes from which on a bar is shown unasked

Said = Callable[[int, int], None]


@contextmanager
def shown_progress(model: Any, tokens: int, options: Mapping[str, Any], progress: Any) -> Iterator[Said | None]:
    """A function for `capture` to call: the one that was given, or one that moves a bar.

    progress: a function of the calls and the bytes that were kept so far; True or False for a bar or none; without, a
              bar is shown where much will be kept and rich is there to draw it
    """
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, bool):
        raise KindError(f"progress: True, False, or a function of calls and bytes; got {progress!r}")
    size = foreseen_bytes(model, tokens, options)
    if progress is False or (progress is None and (size or 0) < LONG):
        yield None
        return
    with _bar(size) as said:
        yield said


def foreseen_bytes(model: Any, tokens: int, options: Mapping[str, Any]) -> int | None:
    """What a capture will keep, where the model's config tells."""
    from ..capturing import foreseen

    if not tokens:
        return None
    found: int | None = foreseen(
        model, tokens, values=bool(options.get("values", True)), half=bool(options.get("half", False))
    )
    return found


@contextmanager
def _bar(size: int | None) -> Iterator[Said | None]:
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield None
        return
    columns: tuple[Any, ...] = (BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    whole = "" if size is None else f" of {in_words(size)}"
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("capture", total=size, told=f"0 B{whole}")

        def said(calls: int, kept: int) -> None:
            bar.update(task, completed=kept, told=f"{calls} calls, {in_words(kept)}{whole}")

        yield said
