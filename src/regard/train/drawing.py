"""How pictures look: one hand for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..algebra.errors import MissingExtra

COLOURS = ("#1b4965", "#d1495b", "#edae49", "#5fa8a0", "#7b5ea7", "#8d99ae", "#3f7d20", "#b5651d")
STYLE = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#333333",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
}


@contextmanager
def styled() -> Iterator[None]:
    """matplotlib in the style of the project, and as it was afterwards."""
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError as missing:
        raise MissingExtra(missing.name or "matplotlib", "train") from None
    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield


def saved(figure: Any, path: Path) -> Path:
    """A figure as a file, which replaces an older one when it is whole; its ending says which kind."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    beside = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(beside, format=path.suffix[1:])
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path
