"""The lesson on one slide: how the loss fell, who read whom before and after, and what the matrices read."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from ..._shapes import Array, Float
from ...algebra.errors import CallError, MissingExtra
from .record import Learned, Matrices, apart
from .task import COLOUR, NAMES

INK, FAINT, HAIR = "#1b1b1f", "#6b6b76", "#d9d9e0"
NUMPY, TORCH, PARTNER = "#9ecae9", "#c2410c", "#e11d48"
WEIGHTS, SIGNED = "Blues", "RdBu_r"
STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.monospace": ["DejaVu Sans Mono"],
    "mathtext.fontset": "cm", "font.size": 12,
    "axes.edgecolor": HAIR, "axes.labelcolor": FAINT, "xtick.color": FAINT, "ytick.color": FAINT,
    "axes.linewidth": 0.8, "text.color": INK, "figure.facecolor": "white", "savefig.facecolor": "white",
}  # fmt: skip
SIZE = (16.0, 9.0)  # inches: a slide
LEFT, SECOND, THIRD = 0.035, 0.5, 0.758  # where the three columns begin, in shares of the width
SQUARE, SMALL = 0.19, 0.135  # the widths of the guests and of the matrices


def save(learned: Learned, twin: Learned | None, path: str | Path, *, dpi: int = 120) -> Path:
    """Draw the lesson, with its twin of PyTorch where there is one; the ending of the path says the format."""
    path = writable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        _draw(figure, learned, twin)
        figure.savefig(path, dpi=dpi)
    return path


def writable(path: str | Path) -> Path:
    """A path to which a picture can be written: of a known format, in a folder that exists."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise MissingExtra("matplotlib", "train") from None
    path, known = Path(path), FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        named = ", ".join(f".{kind}" for kind in ("png", "svg", "pdf", "jpg", "webp") if kind in known)
        raise CallError(f"out: a name that ends in {named}; got {path.name!r}")
    if not path.resolve().parent.is_dir():
        raise CallError(f"out: in a folder that exists; got {str(path)!r}; make it first")
    return path


def _draw(figure: Any, learned: Learned, twin: Learned | None) -> None:
    steps = len(learned.losses)
    figure.text(LEFT, 0.925, "Three matrices learn whom to ask", size=28, weight="bold")
    words = (
        f"{learned.task.guests} guests; each wears a name, seeks a name and holds a colour. "
        "The task: fetch the colour of the guest whom you seek."
    )
    formula = shorten(repr(learned.attention), 64, placeholder=" …")
    figure.text(0.972, 0.93, formula, size=13, color=FAINT, family="monospace", ha="right")
    figure.text(LEFT, 0.876, words, size=15, color=FAINT)
    _curves(figure.add_axes((0.065, 0.09, 0.262, 0.648)), learned, twin)
    _titles(figure, f"… and after {steps} step{'s' * (steps > 1)}", _gathered(learned))
    for left, W in ((SECOND, learned.before), (THIRD, learned.after)):
        _guests(_square(figure, left, 0.4, SQUARE), learned, W, labelled=left == SECOND)
        _products(_square(figure, left + 0.03, 0.04, SMALL), learned, W)
        across = SMALL * COLOUR / learned.task.width  # so that the rows of both matrices have one height
        _values(_square(figure, left + SMALL + 0.045, 0.04, across, SMALL), learned, W)


def _titles(figure: Any, later: str, gathered: str) -> None:
    first, legend = SECOND - 0.125, "rows: who asks\ncolumns: who answers\n$W_V$: what is given"
    figure.text(first, 0.822, "Who reads whom at first", size=16, weight="bold")
    figure.text(THIRD - 0.035, 0.822, later, size=16, weight="bold")
    figure.text(first, 0.332, "What the matrices read", size=16, weight="bold")
    figure.text(first, 0.3, legend, size=11, color=FAINT, va="top", linespacing=1.5)
    figure.text(first, 0.19, gathered, size=11, va="top", linespacing=1.5)


def _gathered(learned: Learned) -> str:
    """How much of the matrices lies where it serves, at first and after."""
    (meets, gives), (meets_later, gives_later) = learned.shares(learned.before), learned.shares(learned.after)
    meeting, giving = f"{meets:.0%} → {meets_later:.0%}", f"{gives:.0%} → {gives_later:.0%}"
    return f"sought × name:\n{meeting}\ncolour in $W_V$:\n{giving}"


def _square(figure: Any, left: float, bottom: float, across: float, high: float | None = None) -> Any:
    """Axes as wide as a share of the figure, and as high as another share of its width."""
    width, height = SIZE
    return figure.add_axes((left, bottom, across, (high or across) * width / height))


# -- the loss ----------------------------------------------------------------------------------------------------


def _curves(axes: Any, learned: Learned, twin: Learned | None) -> None:
    axes.figure.text(LEFT, 0.822, "The loss, step by step", size=16, weight="bold")
    axes.figure.text(LEFT, 0.78, r"$L = \mathrm{mean}_i\,\|y_i - t_i\|^2$", size=13, color=FAINT)
    axes.axhline(learned.task.chance, color=INK, lw=1, ls=(0, (5, 4)))
    axes.plot(learned.losses, color=NUMPY, lw=6, solid_capstyle="round", label="NumPy, the algebra's derivative")
    if twin is not None:
        axes.plot(twin.losses, color=TORCH, lw=1.3, label="PyTorch, its own derivative")
    axes.set(yscale="log", xlim=(0, max(1, len(learned.losses) - 1)))
    axes.set_xlabel(
        "step" if twin is None else f"step; the curves differ by {apart(learned, twin):.0e} of the loss at most"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False, loc="lower right", bbox_to_anchor=(1.02, 1), handlelength=1.6, borderaxespad=0, fontsize=11
    )
    chance = f"chance, $1 - 1/{learned.task.guests}$: all are read alike"
    place, below = (1, learned.task.chance), {"xytext": (0, -16), "textcoords": "offset points"}
    axes.annotate(chance, place, xycoords=axes.get_yaxis_transform(), ha="right", color=FAINT, size=11, **below)


# -- the guests --------------------------------------------------------------------------------------------------


def _guests(axes: Any, learned: Learned, W: Matrices, *, labelled: bool) -> None:
    """Whom each guest reads, with the colours that are held, wanted and fetched."""
    x, t, name, partner = (part[0] for part in learned.new(1))
    called, N, weights = [NAMES[number] for number in name], len(name), learned.weights(W, x)
    _shade(axes, weights, least=1.0)
    _numbers(axes, weights)
    axes.set_xticks(range(N), called, size=_fitting(12, N))
    axes.set_yticks(range(N), [f"{called[i]} seeks {called[partner[i]]}" if labelled else "" for i in range(N)])
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False, pad=33, labelcolor=INK)
    for i, fetched in enumerate(learned.answers(W, x)):
        _box(axes, partner[i], i, 0.92, facecolor="none", edgecolor=PARTNER, linewidth=2.2)
        _swatch(axes, i, -1, x[i, learned.task.parts["colour"]])
        _swatch(axes, -1, i, t[i])
        _swatch(axes, N, i, fetched)
    for place, word in ((-1, "wants"), (N, "gets")):
        axes.text(place, -1, word, ha="center", va="center", size=_fitting(11, N), color=FAINT)


def _fitting(size: float, guests: int) -> float:
    """The size of letters: smaller where more than six guests share a row."""
    return size * min(1, 6 / guests)


def _numbers(axes: Any, weights: Float[Array, "N N"]) -> None:
    largest = max(1.0, float(np.abs(weights).max()))
    for i, j in np.ndindex(*weights.shape):
        ink = "white" if abs(weights[i, j]) > 0.55 * largest else INK if abs(weights[i, j]) > 0.05 * largest else FAINT
        axes.text(j, i, f"{weights[i, j]:.2f}", ha="center", va="center", size=_fitting(10, len(weights)), color=ink)


def _swatch(axes: Any, across: float, down: float, colour: Float[Array, " 3"]) -> None:
    _box(axes, across, down, 0.54, facecolor=tuple(np.clip((colour + 1) / 2, 0, 1)), edgecolor="none")


def _box(axes: Any, across: float, down: float, side: float, **paint: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner, shape = (across - side / 2, down - side / 2), "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch(corner, side, side, boxstyle=shape, clip_on=False, zorder=3, **paint))


# -- the matrices ------------------------------------------------------------------------------------------------


def _products(axes: Any, learned: Learned, W: Matrices) -> None:
    """W_Q W_Kᵀ: what each entry of the one who asks makes of each entry of the one who answers."""
    _shade(axes, W.Q @ W.K.T)
    _part(axes.yaxis, axes.axhline, learned)
    _part(axes.xaxis, axes.axvline, learned)
    axes.set_title(r"$W_Q W_K^{\mathsf{T}}$", size=14)


def _values(axes: Any, learned: Learned, W: Matrices) -> None:
    """W_V: what of a guest is handed over."""
    _shade(axes, W.V)
    _part(axes.yaxis, axes.axhline, learned)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title("$W_V$", size=14, pad=21)


def _part(axis: Any, line: Any, learned: Learned) -> None:
    """The parts of a guest along one side of a matrix, with lines between them."""
    parts = learned.task.parts
    axis.set_ticks([(part.start + part.stop - 1) / 2 for part in parts.values()], parts, size=10)
    axis.axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    for part in list(parts.values())[1:]:
        line(part.start - 0.5, color=FAINT, lw=0.7)


def _shade(axes: Any, values: Float[Array, "i j"], least: float = 0.0) -> None:
    """From 0 to the largest, or from −largest to it where some are negative."""
    largest, signed = max(least, float(np.abs(values).max())), bool((values < 0).any())
    shades = {"cmap": SIGNED if signed else WEIGHTS, "vmin": -largest if signed else 0, "vmax": largest}
    axes.imshow(values, aspect="auto", interpolation="nearest", **shades)
