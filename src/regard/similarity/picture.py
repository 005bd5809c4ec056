"""The chain as one picture: the photograph, three kinds of neighbours, axes, clouds, and attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.errors import CallError, MissingExtra
from .chain import Chain, Neighbours

INK, FAINT, QUERY, FOUND = "#1b1b1f", "#6b6b76", "#ff2d55", "#ffffff"
NEAR, WEIGHT = "viridis", "inferno"
FORMULAS = {
    "Euclidean": r"$\|x - y\|$",
    "cosine": r"$x \cdot y \;/\; \|x\|\,\|y\|$",
    "Mahalanobis": r"$\|A(x - y)\|$ with $A^{\mathsf{T}} A = \Sigma^{-1}$",
}
STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "mathtext.fontset": "cm", "font.size": 9,
    "axes.edgecolor": FAINT, "axes.labelcolor": FAINT, "xtick.color": FAINT, "ytick.color": FAINT,
    "axes.linewidth": 0.6, "text.color": INK, "figure.facecolor": "white", "savefig.facecolor": "white",
}  # fmt: skip
STRIP, EIGENPATCHES = 8, (3, 4)
WIDTH, HEADING, TALLEST = 16.0, 1.3, 5.0  # inches
OFFSET: dict[str, Any] = {"textcoords": "offset points"}
MARGINS, BETWEEN = (0.02, 0.968), 0.16  # shares of the width, and of a panel


def save(chain: Chain, path: str | Path, *, title: str = "", dpi: int = 150) -> Path:
    """Draw the chain and write it; the ending of the path says the format, as .png, .svg or .pdf."""
    path = writable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, _height(chain)))
        _draw(figure, chain, title)
        figure.savefig(path, dpi=dpi)
    return path


def writable(path: str | Path) -> Path:
    """A path to which a picture can be written: of a known format, in a folder that exists."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise MissingExtra("matplotlib", "similarity") from None
    path, known = Path(path), FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        named = ", ".join(f".{kind}" for kind in ("png", "svg", "pdf", "jpg", "webp") if kind in known)
        raise CallError(f"out: a name that ends in {named}; got {path.name!r}")
    if not path.resolve().parent.is_dir():
        raise CallError(f"out: in a folder that exists; got {str(path)!r}; make it first")
    return path


def _draw(figure: Any, chain: Chain, title: str) -> None:
    height, (left, right) = figure.get_figheight(), MARGINS
    top, bottom, between = 1 - HEADING / height, 0.4 / height, 0.95 / _row(chain)
    cells = figure.add_gridspec(2, 4, left=left, right=right, top=top, bottom=bottom, wspace=BETWEEN, hspace=between)
    _heading(figure, chain, title)
    _photograph(figure, cells[0, 0], chain)
    for column, (name, neighbours) in enumerate(chain.neighbours.items(), start=1):
        _neighbours(figure, cells[0, column], chain, name, neighbours)
    _eigenpatches(figure, cells[1, 0], chain)
    _cloud(figure, cells[1, 1], chain)
    _whitened(figure, cells[1, 2], chain)
    _attention(figure, cells[1, 3], chain)


def _cell() -> float:
    """The width of a panel, in inches."""
    left, right = MARGINS
    return WIDTH * (right - left) / (4 + 3 * BETWEEN)


def _image_height(chain: Chain) -> float:
    """The image is as wide as its cell, unless it is very tall."""
    return min(_cell() * chain.grid.height / chain.grid.width, TALLEST)


def _strip_height(chain: Chain) -> float:
    height, across = chain.grid.size
    return min(_cell() / (STRIP + 1) * height / across, TALLEST / 4)


def _row(chain: Chain) -> float:
    """The height of a panel."""
    return _image_height(chain) + _strip_height(chain) + 0.12


def _height(chain: Chain) -> float:
    return HEADING + 2 * _row(chain) + 0.95 + 0.4


def _heading(figure: Any, chain: Chain, title: str) -> None:
    grid, (count, width) = chain.grid, chain.grid.shape
    height, across = grid.size
    facts = (
        f"{f'{title}: ' if title else ''}{grid.height} × {grid.width} pixels, {grid.rows} × {grid.columns} = {count} "
        f"patches of {height} × {across}, each a vector of {width} numbers"
    )
    left, height = MARGINS[0], figure.get_figheight()
    words = "What is similar to this patch? From distance to attention"
    figure.text(left, 1 - 0.42 / height, words, size=19, weight="bold")
    figure.text(left, 1 - 0.68 / height, facts, size=10.5, color=FAINT)


# -- panels ----------------------------------------------------------------------------------------------------


def _photograph(figure: Any, cell: Any, chain: Chain) -> None:
    picture = _panel(figure, cell, chain, _around(chain, chain.query), "and those beside it")
    _title(picture, "The query patch", r"$x_n$: one row of $X$")
    picture.imshow(chain.image, cmap="gray", vmin=0, vmax=1)


def _neighbours(figure: Any, cell: Any, chain: Chain, name: str, found: Neighbours) -> None:
    picture = _panel(figure, cell, chain, found.nearest, f"and the {len(found.nearest)} nearest to it", marked=True)
    near = name == "cosine"
    _title(picture, f"{name[0].upper()}{name[1:]}{'' if near else ' distance'}", FORMULAS[name])
    low, high = np.quantile(np.delete(found.values, chain.query), (0.005, 0.995))
    _overlay(figure, picture, chain, found.values, NEAR if near else f"{NEAR}_r", low, high)


def _attention(figure: Any, cell: Any, chain: Chain) -> None:
    most = tuple(int(index) for index in np.argsort(-chain.weights, kind="stable")[:STRIP])
    caption = f"and the {len(most)} it reads most: {chain.weights[list(most)].sum():.1%} of the weight"
    picture = _panel(figure, cell, chain, most, caption, marked=True)
    formula = rf"$\mathrm{{softmax}}(q \cdot k / \sqrt{{{chain.width}}})$, random $W_Q, W_K$"
    _title(picture, "Attention, untrained", formula)
    _overlay(figure, picture, chain, chain.weights, WEIGHT, 0.0, chain.weights.max())


def _eigenpatches(figure: Any, cell: Any, chain: Chain) -> None:
    down, across = EIGENPATCHES
    inner = cell.subgridspec(down, across, wspace=0.06, hspace=0.32)
    shares, vectors = chain.axes.shares, chain.axes.vectors
    for index in range(min(down * across, vectors.shape[1])):
        axis = figure.add_subplot(inner[divmod(index, across)], anchor="NW")
        axis.imshow(_tile(chain, _stretched(vectors[:, index])), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axis.set_xlabel(f"{shares[index]:.1%}", size=8, labelpad=2)
        _bare(axis)
        if not index:
            _title(axis, "Axes of the patches", r"$\Sigma = Q \Lambda Q^{\mathsf{T}}$: eigenvectors, share of variance")


def _cloud(figure: Any, cell: Any, chain: Chain) -> None:
    axis = figure.add_subplot(cell)
    formula = r"$C_j = v_j^{\mathsf{T}} (x - \mu)$, $\mathrm{Var}(C_j) = \lambda_j$"
    _title(axis, "The cloud, along its first two axes", formula)
    _points(axis, chain, chain.coordinates)
    sizes = np.sqrt(np.clip(chain.axes.values[:2], 0, None))
    for number, (size, tip, place) in enumerate(zip(sizes, np.eye(2), ((-6, -14), (6, 2)), strict=False), start=1):
        arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", size * tip, (0, 0), arrowprops=arrow)
        label = axis.annotate(rf"$\sqrt{{\lambda_{number}}} = {size:.2g}$", size * tip, place, **OFFSET, size=10)
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1})
    _ring(axis, *sizes)


def _whitened(figure: Any, cell: Any, chain: Chain) -> None:
    axis = figure.add_subplot(cell)
    _title(axis, "The same, whitened", r"$A(x - \mu)$ with $A \Sigma A^{\mathsf{T}} = I$")
    _points(axis, chain, chain.whitened)
    _ring(axis, 1.0, 1.0)
    note = f"shrinkage {chain.shrinkage:.2g}" if chain.shrinkage else "no shrinkage"
    axis.annotate(note, (0.98, 0.02), xycoords="axes fraction", ha="right", size=8, color=FAINT)


# -- pieces ----------------------------------------------------------------------------------------------------


def _title(axis: Any, words: str, formula: str) -> None:
    for text, height, style in (
        (words, 22, {"size": 11.5, "weight": "bold"}),
        (formula, 6, {"size": 10.5, "color": FAINT}),
    ):
        axis.annotate(text, (0, 1), (0, height), xycoords="axes fraction", annotation_clip=False, **OFFSET, **style)


def _panel(figure: Any, cell: Any, chain: Chain, others: tuple[int, ...], caption: str, *, marked: bool = False) -> Any:
    """Room for the image, with the query outlined, and the others if they are marked; below it the patches."""
    inner = cell.subgridspec(2, 1, height_ratios=(_image_height(chain), _strip_height(chain)), hspace=0.07)
    picture, strip = (figure.add_subplot(inner[row], anchor=anchor) for row, anchor in enumerate(("NW", "SW")))
    for axis in (picture, strip):
        _bare(axis)
    for index in others if marked else ():
        _outline(picture, chain.grid.box(index), FOUND, 1.2)
    _outline(picture, chain.grid.box(chain.query), QUERY, 2.2)
    strip.imshow(_strip(chain, others), cmap="gray", vmin=0, vmax=1)
    _outline(strip, (0, 0, *chain.grid.size), QUERY, 2.2)
    strip.set_xlabel(f"the patch, {caption}", size=8)
    return picture


def _bare(axis: Any) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)


def _overlay(figure: Any, axis: Any, chain: Chain, values: Any, colours: str, low: float, high: float) -> None:
    """The values as colours over the image in grey, and a bar that says what they are."""
    grey = chain.image if chain.image.ndim == 2 else chain.image.mean(axis=-1)
    axis.imshow(grey, cmap="gray", vmin=0, vmax=1)
    painted = axis.imshow(chain.grid.paint(values), cmap=colours, vmin=low, vmax=high, alpha=0.72)
    bar = figure.colorbar(painted, cax=axis.inset_axes((1.015, 0, 0.022, 1)), format=_number(high))
    bar.solids.set_alpha(1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, length=2)


def _number(largest: float) -> Any:
    """Small shares as percentages, anything else as it is."""
    return (lambda value, _: f"{value:.2g}") if largest > 0.5 else (lambda value, _: f"{value:.2%}")


def _outline(axis: Any, box: tuple[int, int, int, int], colour: str, width: float) -> None:
    from matplotlib.patches import Rectangle

    top, left, height, across = box
    for line, shade in ((width + 1.4, INK), (width, colour)):
        corner = (left - 0.5, top - 0.5)
        axis.add_patch(Rectangle(corner, across, height, fill=False, edgecolor=shade, linewidth=line, clip_on=False))


def _tile(chain: Chain, vector: Any) -> Any:
    """One patch as an image."""
    height, across = chain.grid.size
    shape = (height, across) if chain.image.ndim == 2 else (height, across, chain.grid.channels)
    return np.reshape(vector, shape)


def _strip(chain: Chain, others: tuple[int, ...]) -> Any:
    """The query, and the others, side by side on white, with room for `STRIP` of them."""
    height, across = chain.grid.size
    tiles = [np.clip(_tile(chain, chain.vectors[index]), 0, 1) for index in (chain.query, *others[:STRIP])]
    step = across + max(1, across // 8)
    strip = np.ones((height, (STRIP + 1) * step - step + across, *tiles[0].shape[2:]))
    for place, tile in enumerate(tiles):
        strip[:, place * step : place * step + across] = tile
    return strip


def _around(chain: Chain, index: int) -> tuple[int, ...]:
    """The patches that touch a patch, row by row."""
    row, column = chain.grid.place(index)
    places = [(row + y, column + x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    inside = [(y, x) for y, x in places if 0 <= y < chain.grid.rows and 0 <= x < chain.grid.columns]
    return tuple(chain.grid.index(y, x) for y, x in inside)


def _stretched(vector: Any) -> Any:
    """Around middle grey, the largest entry at black or white."""
    return 0.5 + vector / (2 * np.abs(vector).max())


def _points(axis: Any, chain: Chain, points: Any) -> None:
    """Every patch at its place, in its own mean colour."""
    pixels = chain.vectors.reshape(len(chain.vectors), -1, chain.grid.channels).mean(axis=1)
    colours = np.clip(np.repeat(pixels, 3, axis=1) if pixels.shape[1] == 1 else pixels, 0, 1)
    axis.scatter(*points.T, s=16, c=colours, edgecolors=(0, 0, 0, 0.25), linewidths=0.3, zorder=2)
    axis.scatter(*points[chain.query], s=110, facecolors="none", edgecolors=QUERY, linewidths=2, zorder=4)
    axis.axhline(0, color=FAINT, lw=0.4, zorder=1)
    axis.axvline(0, color=FAINT, lw=0.4, zorder=1)
    axis.tick_params(labelsize=7, length=2)
    axis.set_aspect("equal", adjustable="datalim")
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _ring(axis: Any, *radii: float) -> None:
    """One standard deviation, and two."""
    from matplotlib.patches import Ellipse

    width, height = (*radii, 0.0)[:2]
    for times in (1, 2):
        ring = Ellipse((0, 0), 2 * times * width, 2 * times * height, fill=False, linestyle="--", zorder=3)
        ring.set(edgecolor=INK, linewidth=1.1, alpha=0.7 / times)
        axis.add_patch(ring)
