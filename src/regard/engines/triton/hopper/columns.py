# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment"
# ruff: noqa: RUF005 - Triton knows no starred tuples
"""Vectors of columns alone, F.STAGED of them, laid beside a block by the warp that loads.

So no register holds them while products are awaited. Those of block number c stand in place c mod STAGES, as the block
itself does in its ring.
"""

from .common import block_layout, make_barriers, turn
from .names import all_threads, gl, jit, mbarrier


@jit
def make_columns(right, F: gl.constexpr, S: gl.constexpr):
    """(memory, ready, empty) for the vectors of a block's columns; nothing where there are none."""
    LAYOUT: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    columns = (right, right, right)
    if F.STAGED > 0:
        memory = gl.allocate_shared_memory(gl.float32, [S.STAGES * F.STAGED, right.block_shape[2]], LAYOUT)
        columns = (memory, make_barriers(S.STAGES, 1), make_barriers(S.STAGES, S.WARPGROUPS))
    return columns


@jit
def lay_columns(columns, data, b, h, first, count, length, BLOCK: gl.constexpr, F: gl.constexpr, S: gl.constexpr):
    """Lays the vectors of block number `count` down, asked for before its place is empty."""
    memory, ready, empty = columns
    place, parity = turn(count, S.STAGES)
    j = first + gl.arange(0, BLOCK, gl.BlockedLayout([BLOCK // 32], [32], [1], [0]))
    found = F.columns(data, F.heads(data, b, h), b, h, j, j < length)
    mbarrier.wait(empty.index(place), parity ^ 1)
    for number in gl.static_range(F.STAGED):
        memory.index(place * F.STAGED + number).store(found[number])
    all_threads()
    mbarrier.arrive(ready.index(place), count=1)


@jit
def columns_laid(columns, count, BLOCK: gl.constexpr, F: gl.constexpr, S: gl.constexpr):
    """The vectors of block number `count`, each (1, BLOCK)."""
    memory, ready, _empty = columns
    place, parity = turn(count, S.STAGES)
    mbarrier.wait(ready.index(place), parity)
    found = ()
    for number in gl.static_range(F.STAGED):
        line = memory.index(place * F.STAGED + number).load(gl.SliceLayout(0, block_layout(BLOCK)))
        found = found + (line[None, :],)
    return found
