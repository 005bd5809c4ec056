# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined"

"""y_i = Σ_j w_ij v_j on Hopper: one warp loads tiles, warpgroups of 64 rows multiply and weigh them.

    S_t = Q K_tᵀ        P_t = ψ(S_t)        Y = Σ_t P_t V_t

The products of one block run under the weights of another: S_(t+1) and P_t V_t are issued together, the weights of
block t+1 are made as soon as S_(t+1) is there, and P goes into its product from the registers where it was made.

F: the formula's functions and flags.    S: LISTED, STAGES, WARPGROUPS, REGISTERS, IN_TURN, OWN_OUT (tilings.Tiling).
"""

from .columns import columns_laid, lay_columns, make_columns
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
)
from .names import (
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


@jit
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
    held, kept, _ready, empty = whole
    out, total, sizes = given[0], given[1], walk[2]
    BLOCK: gl.constexpr = keys[0].shape[3]
    WIDE: gl.constexpr = values[0].shape[4]
    lines = gl.arange(0, LINES, gl.SliceLayout(1, block_layout(BLOCK)))
    ring = (matrix(held.index(W)), keys, values, columns, turns)
    count = 0
    for step in range(rounds_of(walk[3])):
        first, listed, here = tile_of(W, step, walk, given, BLOCK, F, S)
        block, later, named, some = listed
        b, h, unit, blocks = here[0], here[1], here[4], here[9]
        acc = gl.zeros([LINES, WIDE], gl.float32, block_layout(WIDE))
        left, m, l = opened(W, step, count, block, here, memory, BLOCK, WIDE, F, S)
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
def tile_of(W: gl.constexpr, step, walk, given, BLOCK: gl.constexpr, F: gl.constexpr, S: gl.constexpr):
    """A round's tile: its first row; its first two blocks, where all are named, how many need the mask; `here`."""
    lists, order, sizes, launch = walk
    _out, _total, start, data = given
    b, h, number = place_of(step, launch, sizes[0], order, S.LISTED)
    named, some, blocks = list_of(lists, b, h, number, sizes[3], BLOCK, S.LISTED, F.HAS_MASK)
    first = (number * S.WARPGROUPS + W) * LINES
    r = (first + gl.arange(0, LINES, gl.SliceLayout(1, block_layout(BLOCK))))[:, None]
    position = gl.load(start + b).to(gl.int32)
    anchor = position + first // ANCHORED * ANCHORED
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, r < sizes[2])
    unit = F.unit((head, row, (0.0,), data)) if F.EXPONENTIAL else 1.0
    block, later = block_of(named, 0, blocks, S.LISTED), block_of(named, 1, blocks, S.LISTED)
    here = (b, h, r + position, anchor, unit, head, row, data, sizes[3], blocks)
    return first, (block, later, named, some), here


@jit
def opened(
    W: gl.constexpr,
    step,
    count,
    block,
    here,
    memory,
    BLOCK: gl.constexpr,
    WIDE: gl.constexpr,
    F: gl.constexpr,
    S: gl.constexpr,
):
    """P of a tile's first block, always with the mask, as the left side of P V, and (m, l) after it."""
    whole, keys, values, columns, turns = memory
    held, _kept, ready, _empty = whole
    mbarrier.wait(ready.index(0), step & 1)
    scores = scores_of(W, matrix(held.index(W)), keys, turns, count, BLOCK, S)
    if S.IN_TURN:
        pass_turn(turns, W, S.WARPGROUPS)
    scores = warpgroup_mma_wait(0, deps=(scores,))
    release_block(keys, count, S.STAGES)
    m, l = begin((here[5], here[6], (0.0,), here[7]), here[4], block_layout(BLOCK), F)
    column = look(block, here, BLOCK, True, F)
    if F.STAGED > 0:
        column = columns_laid(columns, count, BLOCK, F, S)
    p, m, l, _fade = weigh(scores, block, column, m, l, here, BLOCK, True, True, values[0].dtype, F)
    if F.STAGED > 0:
        release_block(columns, count, S.STAGES)
    await_block(values, count, S.STAGES)
    return as_left(p, values, WIDE), m, l


@jit
def scores_of(W: gl.constexpr, query, keys, turns, count, BLOCK: gl.constexpr, S: gl.constexpr):
    """S of block number `count`, once its keys are there."""
    zero = gl.zeros([LINES, BLOCK], gl.float32, block_layout(BLOCK))
    key = await_block(keys, count, S.STAGES)
    if S.IN_TURN:
        take_turn(turns, count, W)
    return warpgroup_mma(query, key.permute((1, 0)), zero, use_acc=False, is_async=True)


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
    scores = scores_of(W, query, keys, turns, count, BLOCK, S)
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
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, False, False, values[0].dtype, F)
    elif masked:
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, False, True, values[0].dtype, F)
    else:
        p, m, l, fade = weigh(scores, block, column, m, l, here, BLOCK, False, False, values[0].dtype, F)
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
