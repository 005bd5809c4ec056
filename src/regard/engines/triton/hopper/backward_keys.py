# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, possibly-undefined"
"""dk_j and dv_j on Hopper: each warpgroup holds 64 keys and meets every block of rows that reads them.

    Sᵀ = K Q_tᵀ    Pᵀ = w(Sᵀ)    dPᵀ = V dY_tᵀ    dSᵀ = ∂w(Sᵀ) ∘ (dPᵀ − δ)        dV = Σ_t Pᵀ dY_t    dK = Σ_t dSᵀ Q_t

Products are transposed, so that Pᵀ and dSᵀ go into their sums from the registers where they were made. One warp loads
Q_t and dY_t, and lays L (or 1/Z) and δ of their rows beside them. Heads that share keys come one after another, blocks
of a head in the order of its list: every sum is taken in one order, by one warpgroup.

A block's products are issued in one of two orders (| stands for what the registers do meanwhile):

    BEHIND = False    Sᵀ dPᵀ | w | dV | dSᵀ | dK            w is made under dPᵀ, dSᵀ under dV
    BEHIND = True     Sᵀ dK₋₁ dPᵀ | w | dV | dSᵀ            w is made under two products; dSᵀ waits in shared memory

KEPT: dSᵀ is written down too, in tiles of 64 keys × 64 rows, for the kernel that makes dQ of it (backward_queries).

F: the formula's functions and flags.    S: LISTED, STAGES, WARPGROUPS, REGISTERS, LOADER, IN_TURN, BEHIND, KEPT,
ONE_SCALE (whether heads that share keys share the product's scale too).
"""

from .backward_common import only, plus_sums, put, put_sums, statistics, upstream, weighed, zero_sums
from .common import (
    ANCHORED,
    LINES,
    block_layout,
    block_of,
    columns_from,
    left_layout,
    list_of,
    make_barriers,
    make_tiles,
    matrix,
    pass_turn,
    place_of,
    rounds_of,
    take_turn,
    turn,
)
from .names import (
    all_threads,
    fence_async_shared,
    gl,
    jit,
    load_tile,
    mbarrier,
    store_tile,
    wait_stores,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@jit
def backward_keys(
    left,  # descriptors of arrays (B, heads, length, width), tiles (1, 1, rows, width): q, k, v, dy, dk, dv
    right,
    value,
    slope,
    out_right,
    out_value,
    slants,  # dSᵀ in tiles (64, 64): (heads · blocks of keys, blocks of rows or places of a list, 64, 64)
    stats,  # float32 (B, H, 2, room): backward_common
    sums,  # float32 (B, H, COLUMN_PULLS, n)
    start,  # int64 (B): the position of row 0
    data,
    lists,  # (indices, counts, five strides) of row blocks for each tile of keys: common.list_of
    order,  # the tiles by falling work
    sizes,  # (H, H / G, N, n, room, blocks of keys of a head in `slants`)
    launch,  # common.place_of, pairs (b, g)
    F: gl.constexpr,
    S: gl.constexpr,
):
    """One tile of keys: 64 · WARPGROUPS keys, all blocks of rows that the mask lets through."""
    held = (make_tiles(right, S.WARPGROUPS), make_tiles(value, S.WARPGROUPS), make_barriers(1, 1))
    ring = make_row_ring(left, slope, F, S)
    turns = make_barriers(S.WARPGROUPS, 1)
    walk = (lists, order, sizes, launch)
    given = (out_right, out_value, slants, make_waiting(left, S), sums, start, data)
    if S.WARPGROUPS == 2:
        gl.warp_specialize(
            [
                (collect, (0, held, ring, turns, walk, given, F, S)),
                (collect, (1, held, ring, turns, walk, given, F, S)),
                (load_rows, (left, right, value, slope, stats, held, ring, walk, F, S)),
            ],
            [4, 1],
            [S.REGISTERS, S.LOADER],
        )
    else:
        gl.static_assert(S.WARPGROUPS == 3)
        gl.warp_specialize(
            [
                (collect, (0, held, ring, turns, walk, given, F, S)),
                (collect, (1, held, ring, turns, walk, given, F, S)),
                (collect, (2, held, ring, turns, walk, given, F, S)),
                (load_rows, (left, right, value, slope, stats, held, ring, walk, F, S)),
            ],
            [4, 4, 1],
            [S.REGISTERS, S.REGISTERS, S.LOADER],
        )


@jit
def make_row_ring(left, slope, F: gl.constexpr, S: gl.constexpr):
    """(Q, dY, L, δ, ready, empty): what a block of rows brings stands in one place, behind one barrier."""
    LAYOUT: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    BLOCK: gl.constexpr = left.block_shape[2]
    shifts = gl.allocate_shared_memory(gl.float32, [S.STAGES, BLOCK], LAYOUT)
    spreads = gl.allocate_shared_memory(gl.float32, [S.STAGES, BLOCK], LAYOUT)
    ready = make_barriers(S.STAGES, 2 if F.SHARED else 1)  # the bytes, and the warp that lays down the vectors
    empty = make_barriers(S.STAGES, S.WARPGROUPS)
    return make_tiles(left, S.STAGES), make_tiles(slope, S.STAGES), shifts, spreads, ready, empty


@jit
def make_waiting(left, S: gl.constexpr):
    """dSᵀ of this block and of the one before: two places for each warpgroup; none where it stays in registers."""
    BLOCK: gl.constexpr = left.block_shape[2]
    LAYOUT: gl.constexpr = gl.NVMMASharedLayout.get_default_for([1, 1, LINES, BLOCK], left.dtype)
    waiting = left
    if S.BEHIND or S.KEPT:
        waiting = gl.allocate_shared_memory(left.dtype, [2 * S.WARPGROUPS, 1, 1, LINES, BLOCK], LAYOUT)
    return waiting


@jit
def load_rows(left, right, value, slope, stats, held, ring, walk, F: gl.constexpr, S: gl.constexpr):
    """The warp that loads: k and v of the tile's keys, then each block of rows with its L and δ."""
    keys, values, held_ready = held
    queries, slopes, shifts, spreads, ready, empty = ring
    lists, order, sizes, launch = walk
    BLOCK: gl.constexpr = left.block_shape[2]
    lanes = gl.arange(0, BLOCK, gl.BlockedLayout([BLOCK // 32], [32], [1], [0]))
    count = 0
    for step in range(rounds_of(launch)):  # once, but in a loop: else its numbers take registers of the warpgroups
        b, g, tile = place_of(step, launch, sizes[0] // sizes[1], order, S.LISTED)
        mbarrier.expect(held_ready.index(0), S.WARPGROUPS * (right.block_type.nbytes + value.block_type.nbytes))
        for w in gl.static_range(S.WARPGROUPS):
            load_tile(right, [b, g, (tile * S.WARPGROUPS + w) * LINES, 0], held_ready.index(0), keys.index(w))
            load_tile(value, [b, g, (tile * S.WARPGROUPS + w) * LINES, 0], held_ready.index(0), values.index(w))
        for h in range(g * sizes[1], (g + 1) * sizes[1]):
            named, _some, blocks = list_of(lists, b, h, tile, sizes[2], BLOCK, S.LISTED, F.HAS_MASK)
            number = b.to(gl.int64) * sizes[0] + h
            for place in range(blocks):
                first = block_of(named, place, blocks, S.LISTED) * BLOCK
                stage, parity = turn(count, S.STAGES)
                if F.SHARED:  # asked for before the place is empty
                    shift, spread = statistics(stats, number, sizes[4], first + lanes, sizes[2], F)
                mbarrier.wait(empty.index(stage), parity ^ 1)
                mbarrier.expect(ready.index(stage), left.block_type.nbytes + slope.block_type.nbytes)
                load_tile(left, [b, h, first, 0], ready.index(stage), queries.index(stage))
                load_tile(slope, [b, h, first, 0], ready.index(stage), slopes.index(stage))
                if F.SHARED:
                    shifts.index(stage).store(shift)
                    spreads.index(stage).store(spread)
                    all_threads()
                    mbarrier.arrive(ready.index(stage), count=1)
                count += 1


@jit
def collect(W: gl.constexpr, held, ring, turns, walk, given, F: gl.constexpr, S: gl.constexpr):
    """A warpgroup: 64 keys, from the first block of rows of their first head to dk and dv."""
    keys, values, held_ready = held
    lists, order, sizes, launch = walk
    out_right, out_value, slants, waiting, sums, start, data = given
    BLOCK: gl.constexpr = ring[0].shape[3]
    DEEP: gl.constexpr = keys.shape[4]
    WIDE: gl.constexpr = values.shape[4]
    b, g, tile = place_of(0, launch, sizes[0] // sizes[1], order, S.LISTED)
    first = (tile * S.WARPGROUPS + W) * LINES
    lines = gl.arange(0, LINES, gl.SliceLayout(1, block_layout(BLOCK)))
    j = (first + lines)[:, None]
    position = gl.load(start + b).to(gl.int32)
    dk = gl.zeros([LINES, DEEP], gl.float32, block_layout(DEEP))
    dv = gl.zeros([LINES, WIDE], gl.float32, block_layout(WIDE))
    sides = (matrix(keys.index(W)), matrix(values.index(W)), turns, waiting, slants)
    done, before, scale = 0, 0, 1.0
    if S.BEHIND:
        none = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK)).to(out_right.dtype)
        lay_down(waiting.index(2 * W + 1), none, S)
    mbarrier.wait(held_ready.index(0), 0)
    for h in range(g * sizes[1], (g + 1) * sizes[1]):
        named, some, blocks = list_of(lists, b, h, tile, sizes[2], BLOCK, S.LISTED, F.HAS_MASK)
        if S.KEPT:  # what stands beyond the last key must be 0 in what is kept
            some = gl.where(first + LINES > sizes[3], blocks, some)
        head = F.heads(data, b, h)
        column = F.columns(data, head, b, h, j, j < sizes[3])
        scale = F.product_scales((head, (0.0,), column, data))[0]
        slot = (b * sizes[0] + h - launch[5] * sizes[1]) * sizes[5] + tile * S.WARPGROUPS + W
        here = (b, h, j, position, head, column, data, scale, sizes[2], sizes[3], slot)
        added = zero_sums(F.COLUMN_PULLS, block_layout(BLOCK))
        for place in range(some):
            block = block_of(named, place, blocks, S.LISTED)
            numbers = (done, before, place)
            dk, dv, added = advance(W, dk, dv, added, block, numbers, sides, ring, here, True, F, S)
            before, done = done, done + 1
        for place in range(some, blocks):
            block = block_of(named, place, blocks, S.LISTED)
            numbers = (done, before, place)
            dk, dv, added = advance(W, dk, dv, added, block, numbers, sides, ring, here, False, F, S)
            before, done = done, done + 1
        put_sums(sums, added, b.to(gl.int64) * sizes[0] + h, sizes[3], first, lines, F.COLUMN_PULLS)
    if S.BEHIND:
        behind = before % S.STAGES
        ds = matrix(waiting.index(2 * W + before % 2))
        dk = warpgroup_mma(ds, matrix(ring[0].index(behind)), dk, is_async=True)
        dk = warpgroup_mma_wait(0, deps=(dk,))
        mbarrier.arrive(ring[5].index(behind), count=1, pred=done > 0)
        dk = gl.where(done > 0, dk, 0.0)  # without blocks it met whatever stood in the memory
    if S.ONE_SCALE:
        dk = dk * scale
    put(matrix(keys.index(W)), dk, out_right, b, g, first)
    put(matrix(values.index(W)), dv, out_value, b, g, first)
    wait_stores(pendings=0)


@jit
def lay_down(memory, block, S: gl.constexpr):
    """A block into shared memory, for products and for the copy engine.

    What stood there, the block before the last, has left: its copy was awaited here when the last one was laid down.
    """
    matrix(memory).store(block)
    if S.KEPT:
        wait_stores(pendings=0)
    fence_async_shared()
    all_threads()


@jit
def advance(
    W: gl.constexpr,
    dk,
    dv,
    added,
    block,
    numbers,  # of this block, and of the one before (of a tile's first block its own), and its place in the list
    sides,
    ring,
    here,
    MASKED: gl.constexpr,
    F: gl.constexpr,
    S: gl.constexpr,
):
    """One block of rows. In front of the first one dS is 0 and meets that block's own rows, which stay."""
    count, before, place = numbers
    key, value, turns, waiting, slants = sides
    queries, slopes, shifts, spreads, ready, empty = ring
    BLOCK: gl.constexpr = queries.shape[3]
    ALONG: gl.constexpr = gl.SliceLayout(0, block_layout(BLOCK))
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    stage, parity = turn(count, S.STAGES)
    behind = before % S.STAGES
    query, slope = matrix(queries.index(stage)), matrix(slopes.index(stage))
    mbarrier.wait(ready.index(stage), parity)
    if S.IN_TURN:
        take_turn(turns, 0, W)
    scores = warpgroup_mma(key, query.permute((1, 0)), zero, use_acc=False, is_async=True)
    if S.BEHIND:
        ds = matrix(waiting.index(2 * W + (count + 1) % 2))
        dk_sum = warpgroup_mma(ds, matrix(queries.index(behind)), dk, is_async=True)
    slanted = warpgroup_mma(value, slope.permute((1, 0)), zero, use_acc=False, is_async=True)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)

    known, at, inside = seen(block, here, BLOCK, F, S)
    scores = warpgroup_mma_wait(2 if S.BEHIND else 1, deps=(scores,))
    shift, spread = 0.0, 0.0
    if F.SHARED:
        shift = shifts.index(stage).load(ALONG)[None, :]
    x, w, admitted = weighed(scores, shift, known, at, inside, MASKED, F)
    p = gl.convert_layout(w.to(slopes.dtype), left_layout(dv.shape[1]))
    if S.IN_TURN:
        take_turn(turns, 1, W)
    dv_sum = warpgroup_mma(p, slope, dv, is_async=True)  # before dP is awaited: so w is made under dP
    if S.BEHIND:
        if S.IN_TURN:
            pass_turn(turns, W, S.WARPGROUPS)
        dk, slanted = warpgroup_mma_wait(1, deps=(dk_sum, slanted))
        mbarrier.arrive(empty.index(behind), count=1, pred=before != count)
    else:
        slanted = warpgroup_mma_wait(1, deps=(slanted,))
    if F.SHARED:  # this late, since it takes registers
        spread = spreads.index(stage).load(ALONG)[None, :]
    g, shift = upstream(slanted, shift, spread, F)
    pull = only(admitted, F.pull_products(g, x, shift, (scores,), known, at)[0], MASKED)
    if F.COLUMN_PULLS > 0:
        pulls = F.pull_columns(g, x, shift, (scores,), known, at)
        added = plus_sums(added, pulls, admitted, F.COLUMN_PULLS, MASKED)
    if not S.ONE_SCALE:
        pull = pull * here[7]
    ds = pull.to(queries.dtype)
    if S.BEHIND or S.KEPT:
        own = waiting.index(2 * W + count % 2)
        lay_down(own, ds, S)
        if S.KEPT:
            store_tile(slants, [here[10], place if S.LISTED else block, 0, 0], own)
    if S.BEHIND:
        mbarrier.wait(ready.index(stage), parity)  # a branch: so dS is made before dV is awaited (common.py)
        dv = warpgroup_mma_wait(0, deps=(dv_sum,))
    else:
        dk_sum = warpgroup_mma(gl.convert_layout(ds, left_layout(dk.shape[1])), query, dk, is_async=True)
        if S.IN_TURN:
            pass_turn(turns, W, S.WARPGROUPS)
        dv, dk = warpgroup_mma_wait(0, deps=(dv_sum, dk_sum))
        mbarrier.arrive(empty.index(stage), count=1)
    return dk, dv, added


@jit
def seen(block, here, BLOCK: gl.constexpr, F: gl.constexpr, S: gl.constexpr):
    """(known, at, is r a row, and j a key where that matters) of a block: asked for before its products are awaited."""
    b, h, j, position, head, column, data, _scale, rows, keys, _slot = here
    r = columns_from(block * BLOCK, BLOCK)
    inside = r < rows
    row = F.rows(data, head, b, h, r, inside)
    anchor = position + block * BLOCK // ANCHORED * ANCHORED
    if S.KEPT:
        inside = inside & (j < keys)
    return (head, row, column, data), (b, h, r + position, j, anchor), inside
