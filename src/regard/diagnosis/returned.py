"""What came back, as arrays in the layout of problems.

vectors   (batch, heads, n_q, d_v), or heads side by side: (batch, n_q, heads · d_v)
inputs    (batch, n_q, width), where the width may be that of W_O, of all heads, of one head, or of the input
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .problem import Array, Problem

if TYPE_CHECKING:
    from .reading import Reading


def shapes(reading: Reading, problem: Problem) -> list[tuple[int, ...]]:
    """The shapes that an output may have, that of a right one first."""
    if reading.form == "vectors":
        return [(problem.batch, problem.heads, problem.queries, int(problem["v"].shape[-1]))]
    return [(problem.batch, problem.queries, width) for width in _widths(problem)]


def _widths(problem: Problem) -> list[int]:
    value, out, width = problem.get("wv"), problem.get("wo"), int(problem["x"].shape[-1])
    groups = int(problem["memory"].shape[-1]) if value is None else int(value.shape[-1])
    head = groups // max(problem.groups, 1)
    merged = problem.heads * head
    right = merged if out is None else int(out.shape[-1])
    return list(dict.fromkeys([right, merged, head, width] if problem.heads > 1 else [right, merged, width]))


def canonical(reading: Reading, raw: Array, problem: Problem) -> Array | None:
    """One array that was returned, in the layout of problems; None where it has another shape."""
    wanted = shapes(reading, problem)
    if reading.merged:
        return _unmerged(raw, wanted[0], reading.layout.has("b"))
    layout = reading.layout.queries
    if raw.ndim != len(layout.axes):
        return None
    made = layout.back(raw, "bhnd" if reading.form == "vectors" else "bnd")
    return made if made.shape in wanted else None


def rank(reading: Reading, raw: Array, problem: Problem) -> int | None:
    """How likely an array is the output: 0 for the right shape; None where it cannot be."""
    made = canonical(reading, raw, problem)
    if made is None:
        return None
    return 0 if reading.merged else shapes(reading, problem).index(made.shape)


def is_weights(raw: Array, problem: Problem) -> bool:
    """Whether an array has a row for each query and a column for each key."""
    return bool(raw.ndim >= 2 and raw.shape[-2:] == (problem.queries, problem.keys))


def _unmerged(raw: Array, shape: tuple[int, ...], batched: bool) -> Array | None:
    """(batch, n, heads · d) as (batch, heads, n, d)."""
    batch, heads, n, width = shape
    if raw.shape != ((batch,) if batched else ()) + (n, heads * width):
        return None
    return raw.reshape(batch, n, heads, width).transpose(0, 2, 1, 3)
