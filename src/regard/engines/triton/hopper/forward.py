# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment"
# ruff: noqa: RUF005 - Triton knows no starred tuples
"""y_i = Σ_j w_ij v_j on Hopper: one warp loads tiles, warpgroups of 64 rows multiply and weigh them.

    S_t = Q K_tᵀ        P_t = ψ(S_t)        Y = Σ_t P_t V_t

The products of one block run under the weights of another: S_(t+1) and P_t V_t are issued together, the weights of
block t+1 are made as soon as S_(t+1) is there, and P goes into its product from the registers where it was made.

Vectors of columns alone (F.STAGED of them) are laid beside a block by the warp that loads, so that no register holds
them while products are awaited.

F: the formula's functions and flags.    S: LISTED, STAGES, WARPGROUPS, REGISTERS, IN_TURN, OWN_OUT (tilings.Tiling).
"""

from .common import (
    ANCHORED,
    LINES,
    await_block,
    block_in,
    block_layout,
    block_of,
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
from .weights import begin, finish, look, weigh


@jit(do_not_specialize=["lists", "sizes", "launch"])
def forward(
    left,  # descriptors of arrays (B, heads, length, width), tiles (1, 1, rows, width)
    right,
    value,
    out,
    total,  # float32 (B, H, N_q)
    start,  # int64 (B): the position of row 0
    data,
    lists,  # (indices, counts, five strides): common.list_of
    order,  # the tiles by falling work
    sizes,  # (H, H / G, N_q, n)
    launch,  # common.place_of
    F: gl.constexpr,
    S: gl.constexpr,
):
    """One tile of rows after another: 64 · WARPGROUPS rows, all blocks of keys that the mask lets through."""
    held = make_tiles(left, S.WARPGROUPS)
    kept = make_tiles(out, S.WARPGROUPS) if S.OWN_OUT else held
    keys = make_ring(right, S.STAGES, S.WARPGROUPS)
    values = make_ring(value, S.STAGES, S.WARPGROUPS)
    whole = (held, kept, make_barriers(1, 1), make_barriers(1, S.WARPGROUPS))
    memory = (whole, keys, values, make_columns(right, F, S), make_barriers(S.WARPGROUPS, 1))
    walk = (lists, order, sizes, launch)
    given = (out, total, start, data)
    if S.WARPGROUPS == 2:
        gl.warp_specialize(
            [
                (attend, (0, memory, walk, given, F, S)),
                (attend, (1, memory, walk, given, F, S)),
                (load, (left, right, value, data, memory, walk, F, S)),
            ],
            [4, 1],
            [S.REGISTERS, S.LOADER],
        )
    else:
        gl.static_assert(S.WARPGROUPS == 3)
        gl.warp_specialize(
            [
                (attend, (0, memory, walk, given, F, S)),
                (attend, (1, memory, walk, given, F, S)),
                (attend, (2, memory, walk, given, F, S)),
                (load, (left, right, value, data, memory, walk, F, S)),
            ],
            [4, 4, 1],
            [S.REGISTERS, S.REGISTERS, S.LOADER],
        )


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


@jit
def load(left, right, value, data, memory, walk, F: gl.constexpr, S: gl.constexpr):
    """The warp that loads: the rows of a tile, then each of its blocks of keys and of values."""
    whole, keys, values, columns = memory[0], memory[1], memory[2], memory[3]
    held, ready, empty = whole[0], whole[2], whole[3]
    lists, order, sizes, launch = walk
    BLOCK: gl.constexpr = right.block_shape[2]
    count = 0
    for step in range(rounds_of(launch)):
        b, h, tile = place_of(step, launch, sizes[0], order, S.LISTED)
        named, _some, blocks = list_of(lists, b, h, tile, sizes[3], BLOCK, S.LISTED, F.HAS_MASK)
        block = block_of(named, 0, blocks, S.LISTED)
        mbarrier.wait(empty.index(0), (step & 1) ^ 1)
        mbarrier.expect(ready.index(0), S.WARPGROUPS * left.block_type.nbytes)
        for w in gl.static_range(S.WARPGROUPS):
            load_tile(left, [b, h, (tile * S.WARPGROUPS + w) * LINES, 0], ready.index(0), held.index(w))
        group = h // sizes[1]
        for place in range(gl.maximum(blocks, 1)):  # one at least, also for rows that read nothing
            first = block * BLOCK
            block = block_of(named, place + 1, blocks, S.LISTED)
            fill(keys, right, count, b, group, first, S.STAGES)
            if F.STAGED > 0:
                lay_columns(columns, data, b, h, first, count, sizes[3], BLOCK, F, S)
            fill(values, value, count, b, group, first, S.STAGES)
            count += 1


@jit
def attend(W: gl.constexpr, memory, walk, given, F: gl.constexpr, S: gl.constexpr):
    """A warpgroup: 64 rows of each tile, from the first block to y and the total."""
    whole, keys, values, columns, turns = memory
    held, kept, ready, empty = whole
    lists, order, sizes, launch = walk
    out, total, start, data = given
    BLOCK: gl.constexpr = keys[0].shape[3]
    WIDE: gl.constexpr = values[0].shape[4]
    SCORES: gl.constexpr = block_layout(BLOCK)
    lines = gl.arange(0, LINES, gl.SliceLayout(1, SCORES))
    count = 0
    for step in range(rounds_of(launch)):
        b, h, tile = place_of(step, launch, sizes[0], order, S.LISTED)
        named, some, blocks = list_of(lists, b, h, tile, sizes[3], BLOCK, S.LISTED, F.HAS_MASK)
        first = (tile * S.WARPGROUPS + W) * LINES
        r = (first + lines)[:, None]
        position = gl.load(start + b).to(gl.int32)
        anchor = position + first // ANCHORED * ANCHORED
        head = F.heads(data, b, h)
        row = F.rows(data, head, b, h, r, r < sizes[2])
        known = (head, row, (0.0,), data)
        unit = F.unit(known) if F.EXPONENTIAL else 1.0
        m, l = begin(known, unit, SCORES, F)
        acc = gl.zeros([LINES, WIDE], gl.float32, block_layout(WIDE))
        here = (b, h, r + position, anchor, unit, head, row, data, sizes[3], blocks)

        mbarrier.wait(ready.index(0), step & 1)
        ring = (matrix(held.index(W)), keys, values, columns, turns)
        block, later = block_of(named, 0, blocks, S.LISTED), block_of(named, 1, blocks, S.LISTED)
        p, m, l = first_weights(W, block, m, l, count, ring, here, BLOCK, F, S)
        left = as_left(p, values, WIDE)
        for place in range(1, blocks):
            block = later
            later = block_of(named, place + 1, blocks if F.USES_J else some, S.LISTED)
            acc, left, m, l = advance(
                W, acc, left, m, l, block, place < some, count + place, ring, here, BLOCK, WIDE, F, S
            )
        count += gl.maximum(blocks, 1)
        if S.OWN_OUT:
            mbarrier.arrive(empty.index(0), count=1)
        mixed = warpgroup_mma(left, block_in(values, count - 1, S.STAGES), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(mixed,))
        release_block(values, count - 1, S.STAGES)
        y, z = finish(acc, m, l, unit, blocks, WIDE, F)
        if F.SHARED:
            at = total + (b.to(gl.int64) * sizes[0] + h) * sizes[2] + first + lines
            gl.store(at, z, mask=first + lines < sizes[2])
        if S.OWN_OUT:
            wait_stores(pendings=0)
        matrix(kept.index(W)).store(y.to(out.dtype))
        fence_async_shared()
        store_tile(out, [b, h, first, 0], kept.index(W))
        if not S.OWN_OUT:
            wait_stores(pendings=0)
            mbarrier.arrive(empty.index(0), count=1)
    wait_stores(pendings=0)


@jit
def first_weights(
    W: gl.constexpr, block, m, l, count, ring, here, BLOCK: gl.constexpr, F: gl.constexpr, S: gl.constexpr
):
    """P of a tile's first block, always with the mask, and (m, l) after it; its values are awaited."""
    query, keys, values, columns, turns = ring
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    key = await_block(keys, count, S.STAGES)
    if S.IN_TURN:
        take_turn(turns, count, W)
    scores = warpgroup_mma(query, key.permute((1, 0)), zero, use_acc=False, is_async=True)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)
    scores = warpgroup_mma_wait(0, deps=(scores,))
    release_block(keys, count, S.STAGES)
    column = look(block, here, BLOCK, True, F)
    if F.STAGED > 0:
        column = columns_laid(columns, count, BLOCK, F, S)
    p, m, l, _fade = weigh(scores, block, column, m, l, here, BLOCK, True, values[0].dtype, F)
    if F.STAGED > 0:
        release_block(columns, count, S.STAGES)
    await_block(values, count, S.STAGES)
    return p, m, l


@jit
def advance(
    W: gl.constexpr,
    acc,
    left,
    m,
    l,
    block,
    masked,
    count,
    ring,
    here,
    BLOCK: gl.constexpr,
    WIDE: gl.constexpr,
    F: gl.constexpr,
    S: gl.constexpr,
):
    """S of this block beside P V of the block before, then the weights of this block under P V."""
    query, keys, values, columns, turns = ring
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    key = await_block(keys, count, S.STAGES)
    if S.IN_TURN:
        take_turn(turns, count, W)
    scores = warpgroup_mma(query, key.permute((1, 0)), zero, use_acc=False, is_async=True)
    mixed = warpgroup_mma(left, block_in(values, count - 1, S.STAGES), acc, is_async=True)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)
    if not F.HAS_MASK:
        column = look(block, here, BLOCK, False, F)
    elif masked:
        column = look(block, here, BLOCK, True, F)
    else:
        column = look(block, here, BLOCK, False, F)
    scores = warpgroup_mma_wait(1, deps=(scores,))
    release_block(keys, count, S.STAGES)
    if F.STAGED > 0:
        column = columns_laid(columns, count, BLOCK, F, S)
    if not F.HAS_MASK:
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, False, values[0].dtype, F)
    elif masked:
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, True, values[0].dtype, F)
    else:
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, False, values[0].dtype, F)
    if F.STAGED > 0:
        release_block(columns, count, S.STAGES)
    await_block(values, count, S.STAGES)  # for the next P V, and the branch of common.py's last paragraph
    acc = warpgroup_mma_wait(0, deps=(mixed,))
    release_block(values, count - 1, S.STAGES)
    if F.SCALED or (F.EXPONENTIAL and not F.BOUNDED):
        acc = acc * gl.convert_layout(fade, gl.SliceLayout(1, block_layout(WIDE)))[:, None]
    return acc, as_left(p, values, WIDE), m, l


@jit
def as_left(p, values, WIDE: gl.constexpr):
    """The weights as the left side of P V: they stay in the registers where they are."""
    return gl.convert_layout(p.to(values[0].dtype), left_layout(WIDE))
