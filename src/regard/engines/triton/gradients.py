"""The way back: what the kernels sum, as the gradients of matrices, vectors, the sink and tables.

dleft, dright, dv              two kernels: one holds rows, one holds keys; or one holds keys and keeps dS, one reads it
rows, columns                  sums over keys and over rows, in the same kernels
directions                     what of dq is along q, where ψ sees q/‖q‖ alone, is taken out; and the same of dk
δ                              found again from the sums of rows, where what is wanted would add up its roundings
i − j                          sums of dS where it is kept; otherwise a third kernel
(i, j)                         a third kernel, where a table is wanted that varies with both
log₂ sink                      −δ · sink / Z · ln 2
"""

from __future__ import annotations

from typing import Any

import torch

from ...algebra.fold import fold
from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, I, J, Read
from ..reading import Reading
from ..vectors import constant
from .choice import pull as pulled
from .passes import Pass, offsets_of
from .program import LN2, Pull
from .source import SINK
from .starting import hint, together
from .templates import launch
from .templates import tables as kernels
from .templates.directions import across

Sums = dict[Any, tuple[Pull, Any]]  # by symbol of a vector


def back(the: Pass, y: Any, total: Any, dy: Any, dtotal: Any | None) -> list[Any]:
    """The gradients of lefts, rights, v, and of the vectors and tables that are wanted, in this order."""
    if dtotal is not None and the.made.is_exponential:
        dtotal = whole_of(dtotal) / float(LN2)  # of ln Z, where that of log₂ Z came
    done = (y, total if the.made.is_shared else None)
    widths = (x.shape[3] for x in (*the.rights, the.v))
    with together((the.launched().formula, the.v.dtype, the.options, *widths, *hint(the.launched().sizes))):
        stats = launch.row_stats(the.launched(), *done, dy, dtotal)
        found = pulled(the, stats, dy, lambda sums: launch.balance(the.launched(), stats, sums, total, dtotal),
                       of_total=dtotal is not None)  # fmt: skip
        offsets = {} if found.diagonals is not None else _offsets(the, stats, dy)
        tables = _tables(the, stats, dy)
        for side in the.made.directions.values():
            across(*((the.lefts[0], found.lefts[0]) if side == "q" else (the.rights[0], found.rights[0])))
    rows, columns = the.text.pulls["rows"], the.text.pulls["columns"]
    pulls = zip((*rows, *columns), (*found.rows[: len(rows)], *found.columns), strict=True)
    sums: Sums = {pull.leaf: (pull, x) for pull, x in pulls}
    sums |= {leaf: (pull, parts.sum((1, 2))) for leaf, (pull, parts) in offsets.items()}
    sums |= {} if found.diagonals is None else _of_diagonals(the, found.diagonals.sum(2))
    by_table: dict[str, Any] = {}
    for name, gradient in tables:
        by_table[name] = by_table[name] + gradient if name in by_table else gradient
    vectors = [_of_vector(the, symbol, sums, whole_of(total), stats) for symbol in the.vectors if symbol in the.wanted]
    read = [by_table.get(name, torch.zeros_like(x)) for name, x in the.tables.items() if name in the.wanted]
    return [*found.lefts, *found.rights, found.v, *vectors, *read]


def whole_of(total: Any) -> Any:
    """L or Z, (B, H, N), without what its rounding left."""
    return total[0] if total.ndim == 4 else total


# -- vectors ---------------------------------------------------------------------------------------------------


def _of_vector(the: Pass, symbol: Any, sums: Sums, total: Any, stats: Any) -> Any:
    """The gradient of a vector, in its own shape."""
    like = the.vectors[symbol]
    if symbol == SINK:
        return fitted(_of_sink(the, like, total, stats), like)
    pull, found = sums[symbol]
    found = found * _scale(the, pull)
    return fitted(found.sum(2, keepdim=True) if the.made.vectors[symbol][0] == Kind.HEAD else found, like)


def _of_sink(the: Pass, sink: Any, total: Any, stats: Any) -> Any:
    delta = stats[:, :, 1, : the.sizes.queries]
    if not the.made.is_exponential:
        return torch.where(total == 0, 0.0, -delta / torch.where(total == 0, 1.0, total))
    share = torch.where(total == -torch.inf, 0.0, torch.exp2(sink - total))
    return -delta * share * float(LN2)


def _scale(the: Pass, pull: Pull) -> Any:
    """The number of each head that a pull left out: (B or 1, H or 1, 1), or a float."""
    if pull.scale.is_Number:
        return float(pull.scale)
    sizes = the.sizes
    heads = {s: node for s, (kind, node) in the.made.vectors.items() if kind == Kind.HEAD}
    known = {s: the.vectors[s] if s in the.vectors else constant(node, sizes.heads, sizes.width, sizes.keys)
             for s, node in heads.items()}  # fmt: skip
    return fold(pull.scale, Reading(the.call, known, (), dtype=torch.float32))


def fitted(found: Any, like: Any) -> Any:
    """A sum in the shape of what it is a gradient of, where that is broadcast."""
    while found.ndim > like.ndim:
        found = found.sum(0)
    axes = [axis for axis, size in enumerate(like.shape) if size == 1 and found.shape[axis] != 1]
    return (found.sum(axes, keepdim=True) if axes else found).to(like.dtype).contiguous()


# -- what varies with i and j ----------------------------------------------------------------------------------


def _of_diagonals(the: Pass, diagonals: Any) -> Sums:
    """Sums over all pairs with one i − j, (H, length), of those of dS, (B, H, length)."""
    pulls = zip(offsets_of(the.made, the.text), the.text.pulls["offsets"], strict=True)
    return {pull.leaf: (pull, (diagonals * _scale(the, share)).sum(0)) for share, pull in pulls}


def _offsets(the: Pass, stats: Any, dy: Any) -> Sums:
    """Sums over all pairs with one i − j, in parts (H, shares, lines, length)."""
    pulls = the.text.pulls["offsets"]
    if not pulls:
        return {}
    tiles = kernels.tiling_for(the.launched())
    length = int(the.vectors[pulls[0].leaf].shape[-1])
    found = kernels.offsets_and_tables(
        the.launched(), stats, dy, the.lists(tiles.rows, tiles.columns, "rows"), tiles,
        offsets=len(pulls), highest=the.sizes.highest, length=length,
    )  # fmt: skip
    return {pull.leaf: (pull, parts) for pull, parts in zip(pulls, found, strict=True)}


def _tables(the: Pass, stats: Any, dy: Any) -> list[tuple[str, Any]]:
    """Gradients of tables that kernels read themselves, by name; of one that is read twice, both."""
    found: list[tuple[str, Any]] = []
    pulls = the.text.pulls["tables"]
    tiles = kernels.tiling_for(the.launched())
    blocks = the.lists(tiles.rows, tiles.columns, "rows") if pulls else None
    for place, pull in enumerate(pulls):
        table = the.tables[pull.leaf.table]
        grad = torch.zeros_like(table)
        if is_owned(pull.leaf):
            sizes = {BATCH: the.sizes.batch, HEAD: the.sizes.heads}
            own = zip(pull.leaf.indices, table.shape, strict=True)
            axes = "".join(index.name for index, size in own if size == sizes.get(index))
            aligned = bool(the.sizes.is_known)
            kernels.owned_tables(the.launched(), stats, dy, blocks, tiles, {place: grad}, axes, aligned)
        else:
            kernels.offsets_and_tables(the.launched(), stats, dy, blocks, tiles, grads={place: grad})
        found.append((pull.leaf.table, grad))
    return found


def is_owned(read: Read) -> bool:
    """Whether every entry of the table belongs to one pair (of one batch and head, or of all of them)."""
    places = list(read.indices)
    return {I, J} <= set(places) and len(set(places)) == len(places) and set(places) <= {BATCH, HEAD, I, J}
