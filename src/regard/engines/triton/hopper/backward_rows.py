# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""dq_i on Hopper: each warpgroup holds 64 rows and meets every block of keys that they read.

    S = Q K_tᵀ    dP = dY V_tᵀ    dS = ∂w(S) ∘ (dP − δ)        dQ = Σ_t dS K_t

S and dP of a block are issued beside dS K of the block before, which runs under the weights of this one. What is
pulled to a row alone (a scale, a bias, a norm) is summed over the keys on the way.

F: the formula's functions and flags.    S: LISTED, STAGES, WARPGROUPS, REGISTERS, LOADER, IN_TURN.
"""

from .backward_common import only, plus_sums, put, put_sums, statistics, upstream, weighed, zero_sums
from .common import (
    ANCHORED,
    LINES,
    await_block,
    block_in,
    block_layout,
    block_of,
    columns_from,
    fill,
    left_layout,
    list_of,
    make_barriers,
    make_ring,
    make_tiles,
    matrix,
    pass_turn,
    place_of,
    release_block,
    take_turn,
)
from .names import gl, jit, load_tile, mbarrier, wait_stores, warpgroup_mma, warpgroup_mma_wait


@jit
def backward_rows(
    left,  # descriptors of arrays (B, heads, length, width), tiles (1, 1, rows, width): q, k, v, dy, dq
    right,
    value,
    slope,
    out,
    stats,  # float32 (B, H, 2, room): backward_common
    sums,  # float32 (B, H, ROW_PULLS, N)
    start,  # int64 (B): the position of row 0
    data,
    lists,  # (indices, counts, five strides): common.list_of
    order,  # the tiles by falling work
    sizes,  # (H, H / G, N, n, room)
    launch,  # common.place_of
    F: gl.constexpr,
    S: gl.constexpr,
):
    """One tile of rows: 64 · WARPGROUPS rows, all blocks of keys that the mask lets through."""
    queries, slopes = make_tiles(left, S.WARPGROUPS), make_tiles(slope, S.WARPGROUPS)
    held = (queries, slopes, make_barriers(1, 1))
    keys = make_ring(right, S.STAGES, S.WARPGROUPS)
    values = make_ring(value, S.STAGES, S.WARPGROUPS)
    rings = (keys, values, make_barriers(S.WARPGROUPS, 1))
    walk = (lists, order, sizes, launch)
    given = (out, stats, sums, start, data)
    if S.WARPGROUPS == 2:
        gl.warp_specialize(
            [
                (descend, (0, held, rings, walk, given, F, S)),
                (descend, (1, held, rings, walk, given, F, S)),
                (load_keys, (left, right, value, slope, held, rings, walk, F, S)),
            ],
            [4, 1],
            [S.REGISTERS, S.LOADER],
        )
    else:
        gl.static_assert(S.WARPGROUPS == 3)
        gl.warp_specialize(
            [
                (descend, (0, held, rings, walk, given, F, S)),
                (descend, (1, held, rings, walk, given, F, S)),
                (descend, (2, held, rings, walk, given, F, S)),
                (load_keys, (left, right, value, slope, held, rings, walk, F, S)),
            ],
            [4, 4, 1],
            [S.REGISTERS, S.REGISTERS, S.LOADER],
        )


@jit
def load_keys(left, right, value, slope, held, rings, walk, F: gl.constexpr, S: gl.constexpr):
    """The warp that loads: q and dy of a tile's rows, then each of its blocks of keys and of values."""
    queries, slopes, ready = held
    lists, order, sizes, launch = walk
    BLOCK: gl.constexpr = right.block_shape[2]
    b, h, tile = place_of(0, launch, sizes[0], order, S.LISTED)
    named, _some, blocks = list_of(lists, b, h, tile, sizes[3], BLOCK, S.LISTED, F.HAS_MASK)
    block = block_of(named, 0, blocks, S.LISTED)
    mbarrier.expect(ready.index(0), S.WARPGROUPS * (left.block_type.nbytes + slope.block_type.nbytes))
    for w in gl.static_range(S.WARPGROUPS):
        load_tile(left, [b, h, (tile * S.WARPGROUPS + w) * LINES, 0], ready.index(0), queries.index(w))
        load_tile(slope, [b, h, (tile * S.WARPGROUPS + w) * LINES, 0], ready.index(0), slopes.index(w))
    group = h // sizes[1]
    for place in range(gl.maximum(blocks, 1)):  # one at least, also for rows that read nothing
        first = block * BLOCK
        block = block_of(named, place + 1, blocks, S.LISTED)
        fill(rings[0], right, place, b, group, first, S.STAGES)
        fill(rings[1], value, place, b, group, first, S.STAGES)


@jit
def descend(W: gl.constexpr, held, rings, walk, given, F: gl.constexpr, S: gl.constexpr):
    """A warpgroup: 64 rows, from the first block of keys to dq."""
    queries, slopes, ready = held
    lists, order, sizes, launch = walk
    out, stats, sums, start, data = given
    BLOCK: gl.constexpr = rings[0][0].shape[3]
    DEEP: gl.constexpr = rings[0][0].shape[4]
    b, h, tile = place_of(0, launch, sizes[0], order, S.LISTED)
    named, some, blocks = list_of(lists, b, h, tile, sizes[3], BLOCK, S.LISTED, F.HAS_MASK)
    first = (tile * S.WARPGROUPS + W) * LINES
    lines = gl.arange(0, LINES, gl.SliceLayout(1, block_layout(BLOCK)))
    r = (first + lines)[:, None]
    number = b.to(gl.int64) * sizes[0] + h
    shift, spread = 0.0, 0.0
    if F.SHARED:
        shift, spread = statistics(stats, number, sizes[4], r, sizes[2], F)
    position = gl.load(start + b).to(gl.int32)
    anchor = position + first // ANCHORED * ANCHORED
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, r < sizes[2])
    here = (b, h, r + position, anchor, head, row, data, shift, spread, sizes[3])
    dq = gl.zeros([LINES, DEEP], gl.float32, block_layout(DEEP))
    added = zero_sums(F.ROW_PULLS, block_layout(BLOCK))
    mbarrier.wait(ready.index(0), 0)
    sides = (matrix(queries.index(W)), matrix(slopes.index(W)))
    block = block_of(named, 0, blocks, S.LISTED)
    ds, added = begin(W, added, block, blocks > 0, sides, rings, here, BLOCK, DEEP, F, S)
    for place in range(1, some):
        block = block_of(named, place, blocks, S.LISTED)
        dq, ds, added = advance(W, dq, ds, added, block, place, sides, rings, here, BLOCK, DEEP, True, F, S)
    for place in range(gl.maximum(some, 1), blocks):
        block = block_of(named, place, blocks, S.LISTED)
        dq, ds, added = advance(W, dq, ds, added, block, place, sides, rings, here, BLOCK, DEEP, False, F, S)
    count = gl.maximum(blocks, 1)
    last = block_in(rings[0], count - 1, S.STAGES)
    dq = warpgroup_mma_wait(0, deps=(warpgroup_mma(ds, last, dq, is_async=True),))
    release_block(rings[0], count - 1, S.STAGES)
    reads = blocks > 0  # for 0 times a key is not always 0
    if F.SHARED:
        z = gl.convert_layout(shift, block_layout(DEEP))
        reads = reads & (z != float("inf") if F.EXPONENTIAL else z != 0.0)
    dq = gl.where(reads, dq, 0.0)
    put(matrix(queries.index(W)), dq * F.product_scales((head, row, (0.0,), data))[0], out, b, h, first)
    put_sums(sums, added, number, sizes[2], first, lines, F.ROW_PULLS)
    wait_stores(pendings=0)


@jit
def begin(
    W: gl.constexpr,
    added,
    block,
    there,
    sides,
    rings,
    here,
    BLOCK: gl.constexpr,
    DEEP: gl.constexpr,
    F: gl.constexpr,
    S: gl.constexpr,
):
    """dS of a tile's first block, always with the mask; 0 where no block is there."""
    keys, values, turns = rings
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    key, value = await_block(keys, 0, S.STAGES), await_block(values, 0, S.STAGES)
    if S.IN_TURN:
        take_turn(turns, 0, W)
    scores = warpgroup_mma(sides[0], key.permute((1, 0)), zero, use_acc=False, is_async=True)
    slanted = warpgroup_mma(sides[1], value.permute((1, 0)), zero, use_acc=False, is_async=True)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)
    known, at, inside = seen(block, here, BLOCK, F)
    scores, slanted = warpgroup_mma_wait(0, deps=(scores, slanted))
    release_block(values, 0, S.STAGES)
    x, _w, admitted = weighed(scores, here[7], known, at, inside & there, True, F)
    return pulled(slanted, x, scores, added, here, known, at, admitted, keys, DEEP, True, F)


@jit
def advance(
    W: gl.constexpr,
    dq,
    ds,
    added,
    block,
    count,
    sides,
    rings,
    here,
    BLOCK: gl.constexpr,
    DEEP: gl.constexpr,
    MASKED: gl.constexpr,
    F: gl.constexpr,
    S: gl.constexpr,
):
    """S and dP of this block beside dS K of the block before, then dS of this block under that sum."""
    keys, values, turns = rings
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    key = await_block(keys, count, S.STAGES)
    if S.IN_TURN:
        take_turn(turns, count, W)
    scores = warpgroup_mma(sides[0], key.permute((1, 0)), zero, use_acc=False, is_async=True)
    value = await_block(values, count, S.STAGES)
    slanted = warpgroup_mma(sides[1], value.permute((1, 0)), zero, use_acc=False, is_async=True)
    summed = warpgroup_mma(ds, block_in(keys, count - 1, S.STAGES), dq, is_async=True)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)

    known, at, inside = seen(block, here, BLOCK, F)
    scores = warpgroup_mma_wait(2, deps=(scores,))
    x, w, admitted = weighed(scores, here[7], known, at, inside, MASKED, F)
    await_block(values, count, S.STAGES)  # a branch: so w is made before dP is awaited (common.py)
    slanted, w = warpgroup_mma_wait(1, deps=(slanted, w))  # the pulls find w made already
    ds, added = pulled(slanted, x, scores, added, here, known, at, admitted, keys, DEEP, MASKED, F)
    await_block(values, count, S.STAGES)  # the same for dS and dQ
    if F.ROW_PULLS > 0:  # dS is whole before dQ is awaited: else, under a mask, every product may be awaited by itself
        dq, ds = warpgroup_mma_wait(0, deps=(summed, ds))
    else:
        dq = warpgroup_mma_wait(0, deps=(summed,))
    release_block(values, count, S.STAGES)
    release_block(keys, count - 1, S.STAGES)
    return dq, ds, added


@jit
def seen(block, here, BLOCK: gl.constexpr, F: gl.constexpr):
    """(known, at, is j a key) of a block: asked for before its products are awaited."""
    b, h, i, anchor, head, row, data, _shift, _spread, length = here
    j = columns_from(block * BLOCK, BLOCK)
    column = F.columns(data, head, b, h, j, j < length)
    return (head, row, column, data), (b, h, i, j, anchor), j < length


@jit
def pulled(
    slanted,
    x,
    scores,
    added,
    here,
    known,
    at,
    admitted,
    keys,
    DEEP: gl.constexpr,
    MASKED: gl.constexpr,
    F: gl.constexpr,
):
    """(dS without its scale, as the left side of dS K; the sums of rows) of a block."""
    g, shift = upstream(slanted, here[7], here[8], F)
    pull = only(admitted, F.pull_products(g, x, shift, (scores,), known, at)[0], MASKED)
    if F.ROW_PULLS > 0:
        pulls = F.pull_rows(g, x, shift, (scores,), known, at)
        added = plus_sums(added, pulls, admitted, F.ROW_PULLS, MASKED)
    return gl.convert_layout(pull.to(keys[0].dtype), left_layout(DEEP)), added
