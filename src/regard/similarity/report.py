"""`regard similarity` in a terminal: the nearest patches in a table, and where the picture lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from ..algebra.errors import CallError, MissingExtra
from ..inputs import patches, pixels
from .chain import Chain
from .picture import save, writable

DEFAULT = "china.jpg"
SHOWN = 4  # neighbours in the table


def show(
    console: Console, image: str | None, size: Sequence[int], at: Sequence[int] | None, out: str, **options: int
) -> None:
    """Compute the chain, write the picture, and say what was found."""
    name = DEFAULT if image is None else Path(image).name
    path = writable(out)
    read = photograph() if image is None else pixels(Path(image))
    sides = tuple(size) if len(size) > 1 else size[0]
    if at is not None and len(at) != 2:
        raise CallError(f"--at: a pixel as two numbers, down and to the right; got {len(at)} of them")
    query = None if at is None else patches(read, sides).grid.at(*at)
    with console.status("from distance to attention"):
        chain = Chain.of(read, sides, query=query, **options)
        save(chain, path, title=name)
    console.print(_table(chain))
    console.print(f"Wrote {path}", highlight=False, soft_wrap=True)


def photograph() -> Any:
    """The photograph of a pavilion that scikit-learn carries."""
    try:
        from sklearn.datasets import load_sample_image
    except ImportError:
        raise MissingExtra("scikit-learn", "similarity") from None
    return load_sample_image(DEFAULT)


def _table(chain: Chain) -> Table:
    """The nearest patches of each measure: place and value."""
    grid = chain.grid
    place = "row {}, column {} of {} × {}".format(*grid.place(chain.query), grid.rows, grid.columns)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, title_justify="left", title_style="bold")
    table.title = f"Nearest to the patch in {place}"
    table.add_column("measure")
    for rank in range(1, SHOWN + 1):
        table.add_column(f"{rank}", justify="right")
    for name, found in chain.neighbours.items():
        table.add_row(name, *(_cell(chain, index, found.values[index]) for index in found.nearest[:SHOWN]))
    most = chain.weights.argsort(kind="stable")[::-1][:SHOWN]
    table.add_row("attention", *(_cell(chain, int(index), chain.weights[index]) for index in most))
    return table


def _cell(chain: Chain, index: int, value: float) -> str:
    return "{}, {}: {:.3g}".format(*chain.grid.place(index), value)
