"""One picture for each entry of the zoo: its weights on sixteen positions, and what else tells it apart.

    weights          row i reads column j; the vectors are of five kinds, and those of one kind are alike
    in the plane     one query (the arrow) and a key anywhere in the plane: which places weigh much?
    positions alone  all vectors equal, so that every score but the positions' part is the same
    nothing          the column beside: what a sink takes of each row

The tables, which would be learned, are filled with what a head may well learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colours import step, style
from regard import Attention, zoo

N, WIDTH, HEADS = 16, 16, 8
FIELD, REACH = 25, 2.4  # cells along a side of the plane, and how far it goes
QUERY = np.array([1.3, 0.75])
SIDE, GAP, FOOT = 144, 28, 22

KINDS = [0, 1, 2, 0, 3, 1, 4, 0, 2, 2, 1, 3, 0, 4, 1, 2]
Tables = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A square of cells, each a weight in 0…1; a column beside it; a caption; whether it is the plane."""

    caption: str
    cells: np.ndarray
    beside: np.ndarray | None = None
    plane: bool = False


@dataclass(frozen=True)
class Example:
    """How an entry is shown: the formula, its tables at two widths, and what the second panel is."""

    formula: Attention
    second: str  # "plane", "alone", "positions" or "heads"
    tables: Tables = field(default_factory=dict)
    flat: Tables = field(default_factory=dict)  # the tables for vectors of the plane
    heads: tuple[int, int] = (0, 3)
    length: float = 1.0  # of the vectors, where positions are the point
    note: str = ""


# -- what is shown ---------------------------------------------------------------------------------------------


def examples() -> dict[str, Example]:
    """Each entry with parameters that can be seen on sixteen positions."""
    offsets = np.arange(-5, 6)
    learned = {"bias": _by_head(-4.0 * (offsets != 1), -0.8 * abs(offsets))}  # the one before; the near ones
    buckets = {"bias": _by_head([2, 1.5, 0, -2, 0, 1, -1, -3], [0, 0, 0, 0, 0, 0.5, 1.5, 3])}
    turned, stretched = np.array([[0.0, -1.0], [1.0, 0.0]]), np.array([[1.9, -1.4], [-1.4, 1.5]])
    shown = {
        "scaled_dot": Example(zoo.scaled_dot(), "plane"),
        "causal_dot": Example(zoo.causal_dot(), "positions"),
        "unscaled_dot": Example(zoo.unscaled_dot(), "plane"),
        "bilinear": Example(zoo.bilinear(), "plane", {"M": _next_kind()}, {"M": turned}, note="M: the next kind"),
        "cosine_similarity": Example(zoo.cosine_similarity(), "plane", {"temperature": 4.0}, {"temperature": 4.0}),
        "euclidean": Example(zoo.euclidean(), "plane"),
        "mahalanobis": Example(zoo.mahalanobis(), "plane", {"P": _blocks(stretched) / 4}, {"P": stretched}),
        "alibi": Example(zoo.alibi(), "heads"),
        "relative_bias": Example(zoo.relative_bias(reach=5), "heads", learned, heads=(0, 1), length=0.7),
        "t5_bias": Example(zoo.t5_bias(buckets=8, reach=12), "heads", buckets, heads=(0, 1), length=0.3),
        "soft_cap": Example(zoo.soft_cap(cap=2), "plane", note="cap = 2"),
        "sliding_window": Example(zoo.sliding_window(5), "positions", note="width = 5"),
        "prefix_lm": Example(zoo.prefix_lm(), "positions", {"prompt": [6]}, note="prompt = 6"),
        "document_packing": Example(zoo.document_packing(), "positions", {"ids": np.repeat([0, 1, 2], [5, 7, 4])}),
        "sigmoid": Example(zoo.sigmoid(), "alone"),
        "relu_over_n": Example(zoo.relu_over_n(), "alone"),
        "squared_relu": Example(zoo.squared_relu(), "plane"),
        "softmax_plus_one": Example(zoo.softmax_plus_one(), "alone"),
        "learned_sinks": Example(zoo.learned_sinks(), "heads", {"sink": _by_head(-1.0, 3.0)}, heads=(0, 1)),
    }
    assert list(shown) == list(zoo.ENTRIES), "an entry of the zoo without an example, or in another place"
    return shown


def pictures() -> dict[str, str]:
    """The SVG of each entry, by its name."""
    return {name: _picture(zoo.ENTRIES[name].title, _panels(example)) for name, example in examples().items()}


def captions() -> dict[str, str]:
    """What the panels of each picture are, for those who cannot see it."""
    return {name: ", ".join(panel.caption for panel in _panels(example)) for name, example in examples().items()}


def kinds() -> np.ndarray:
    """Five directions, (5, WIDTH)."""
    random = np.random.default_rng(11)
    directions: np.ndarray = np.linalg.qr(random.standard_normal((WIDTH, 5)))[0].T
    return directions


def queries_and_keys() -> tuple[np.ndarray, np.ndarray]:
    """Sixteen of each, of five kinds; those of one position are of one kind."""
    noise = 0.3 * np.random.default_rng(12).standard_normal((2, N, WIDTH))
    q, k = 3.4 * kinds()[KINDS] + noise
    return q, k


def _next_kind() -> np.ndarray:
    """M with qᵀ M k large where k is of the kind after that of q."""
    directions = kinds()
    return np.asarray(0.3 * directions.T @ np.roll(directions, -1, axis=0))


def _blocks(small: np.ndarray) -> np.ndarray:
    """A matrix of the plane, for each pair of coordinates."""
    return np.kron(np.eye(WIDTH // 2), small)


def _by_head(first: Any, second: Any) -> np.ndarray:
    """A table in which two heads have learned something."""
    rest = [np.zeros_like(np.asarray(first, float))] * (HEADS - 2)
    return np.stack([np.asarray(first, float), np.asarray(second, float), *rest])


# -- panels ----------------------------------------------------------------------------------------------------


def _panels(example: Example) -> list[Panel]:
    weights = _weights(example, *(example.length * x for x in queries_and_keys()))
    if example.second == "heads":
        return [_map(f"weights of head {head + 1}", example, weights[head]) for head in example.heads]
    first = _map(f"weights, {example.note}" if example.note else "weights", example, weights[0])
    second: Callable[[Example], Panel] = {"plane": _plane, "alone": _alone, "positions": _positions}[example.second]
    return [first, second(example)]


def _weights(example: Example, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """(heads, N, N), the same vectors in every head."""
    q, k = (np.broadcast_to(x, (1, HEADS, *x.shape)) for x in (q, k))
    return np.asarray(example.formula.weights(q, k, **example.tables)[0])


def _map(caption: str, example: Example, weights: np.ndarray) -> Panel:
    nothing = None if example.formula.weight.sink is None else 1 - weights.sum(axis=1)
    return Panel(caption, weights, nothing)


def _positions(example: Example) -> Panel:
    same = np.zeros((N, WIDTH))
    return Panel("positions alone", _weights(example, same, same)[0])


def _plane(example: Example) -> Panel:
    """All places of the plane share the weight; the colour is relative to the largest."""
    places = _places()
    weights = np.asarray(example.formula.weights(QUERY[None], places, **example.flat))
    return Panel("a key in the plane", (weights / weights.max()).reshape(FIELD, FIELD), plane=True)


def _alone(example: Example) -> Panel:
    """Each place of the plane as the only key."""
    places = _places()[:, None]
    weights = np.asarray(example.formula.weights(np.broadcast_to(QUERY, places.shape), places, **example.flat))
    return Panel("one key alone", (weights / max(1.0, weights.max())).reshape(FIELD, FIELD), plane=True)


def _places() -> np.ndarray:
    """(FIELD², 2), the uppermost row first."""
    line = np.linspace(-REACH, REACH, FIELD)
    across, up = np.meshgrid(line, -line)
    return np.stack([across.ravel(), up.ravel()], axis=1)


# -- drawing ---------------------------------------------------------------------------------------------------


def _picture(title: str, panels: list[Panel]) -> str:
    levels: set[int] = set()
    drawn = []
    left = 0.5
    for panel in panels:
        drawn.append(_drawn(panel, left, levels))
        left += SIDE + GAP + (0 if panel.beside is None else _cell(panel) + 4)
    width, height = left - GAP + 0.5, SIDE + FOOT + 1
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img"><title>{title}</title>\n{style(levels)}\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _cell(panel: Panel) -> float:
    return SIDE / len(panel.cells)


def _drawn(panel: Panel, left: float, levels: set[int]) -> str:
    size = _cell(panel)
    parts = [_square(panel.cells, left, size, levels)]
    if panel.beside is not None:
        parts.append(_square(panel.beside[:, None], left + SIDE + 4, size, levels))
    if panel.plane:
        parts.append(_arrow(left))
    parts.append(f'<text x="{left:g}" y="{SIDE + FOOT - 4}">{panel.caption}</text>')
    return "\n".join(parts)


def _square(cells: np.ndarray, left: float, size: float, levels: set[int]) -> str:
    """Cells of one colour are one path, in units of a cell; so the file holds steps and no coordinates."""
    rows, columns = cells.shape
    depths = np.vectorize(step)(cells)
    runs: dict[int, list[str]] = {}
    for row in range(rows):
        start = 0
        for column in range(1, columns + 1):
            if column == columns or depths[row, column] != depths[row, start]:
                runs.setdefault(int(depths[row, start]), []).append(f"M{start} {row}h{column - start}v1H{start}z")
                start = column
    levels |= runs.keys() - {0}
    paths = "".join(f'<path class="w{depth}" d="{"".join(runs[depth])}"/>' for depth in sorted(runs) if depth)
    box = f'x="{left:g}" y="0.5" width="{columns * size:g}" height="{rows * size:g}"'
    inside = f'<g transform="translate({left:g} .5) scale({size:g})" shape-rendering="crispEdges">{paths}</g>'
    return f'<rect class="paper" {box}/>{inside}<rect class="rule" {box}/>'


def _arrow(left: float) -> str:
    """From the origin to the query."""
    scale = SIDE / (2 * REACH * (1 + 1 / FIELD))
    x0, y0 = left + SIDE / 2, 0.5 + SIDE / 2
    x1, y1 = x0 + scale * QUERY[0], y0 - scale * QUERY[1]
    line, point = f'd="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"', f'cx="{x1:.1f}" cy="{y1:.1f}"'
    under = f'<path class="halo" {line}/><circle class="paper" {point} r="5.5"/>'
    return f'{under}<path class="mark" {line}/><circle class="point" {point} r="3.5"/>'
