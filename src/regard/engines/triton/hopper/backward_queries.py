# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""dq_i on Hopper, of what the kernel that holds keys has written down: dQ = Σ_t dS_t K_t, one product and no formula.

Each warpgroup holds 64 · PARTS rows. One warp loads 64 keys and, transposed, dS of the tile's rows with them; the keys
are shared by all rows, dS is read once. What bounds it is the memory of the chip.

F: the formula's functions and flags.    S: LISTED, STAGES, PARTS, REGISTERS, LOADER,
ONE_SCALE (otherwise dS has the scale of its head already).
"""

from .backward_common import put, statistics
from .common import LINES, block_layout, block_of, list_of, make_barriers, make_tiles, matrix, place_of, turn
from .names import gl, jit, load_tile, mbarrier, wait_stores, warpgroup_mma, warpgroup_mma_wait

WARPGROUPS = gl.constexpr(2)


@jit
def backward_queries(
    right,  # descriptors of arrays (B, heads, length, width), tiles (1, 1, 64, width): k, dq
    out,
    slants,  # dSᵀ: backward_keys
    stats,  # float32 (B, H, 2, room): backward_common
    data,
    places,  # int32, as the indices of the lists: where dS of the tile's rows stands among that of a block of keys
    lists,  # (indices, counts, five strides) of blocks of 64 keys: common.list_of
    order,  # the tiles by falling work
    sizes,  # (H, H / G, N, n, room, blocks of keys of a head in `slants`)
    launch,  # common.place_of, pairs (b, h)
    F: gl.constexpr,
    S: gl.constexpr,
):
    """One tile of rows: 128 · PARTS rows, all blocks of keys that the mask lets through."""
    ring = (
        make_tiles(right, S.STAGES),
        make_tiles(slants, S.STAGES * WARPGROUPS * S.PARTS),
        make_barriers(S.STAGES, 1),
        make_barriers(S.STAGES, WARPGROUPS),
    )
    room = make_tiles(out, WARPGROUPS)
    walk = (lists, order, sizes, launch)
    given = (out, stats, data)
    gl.warp_specialize(
        [
            (gather, (0, ring, room, walk, given, F, S)),
            (gather, (1, ring, room, walk, given, F, S)),
            (load_slants, (right, slants, places, ring, walk, F, S)),
        ],
        [4, 1],
        [S.REGISTERS, S.LOADER],
    )


@jit
def load_slants(right, slants, places, ring, walk, F: gl.constexpr, S: gl.constexpr):
    """The warp that loads: 64 keys and dS of the tile's rows with them, block after block."""
    keys, parts, ready, empty = ring
    lists, order, sizes, launch = walk
    BLOCKS: gl.constexpr = WARPGROUPS * S.PARTS  # of 64 rows, of all warpgroups
    b, h, tile = place_of(0, launch, sizes[0], order, S.LISTED)
    named, _some, blocks = list_of(lists, b, h, tile, sizes[3], LINES, S.LISTED, F.HAS_MASK)
    slot = (b * sizes[0] + h - launch[5]) * sizes[5]
    written, _some, _blocks = list_of(
        (places, lists[1], lists[2], lists[3], lists[4], lists[5], lists[6]),
        b, h, tile, sizes[3], LINES, S.LISTED, F.HAS_MASK,
    )  # fmt: skip
    for place in range(blocks):
        block = block_of(named, place, blocks, S.LISTED)
        down = tile
        if S.LISTED:
            down = gl.load(written + place)
        stage, parity = turn(place, S.STAGES)
        mbarrier.wait(empty.index(stage), parity ^ 1)
        mbarrier.expect(ready.index(stage), right.block_type.nbytes + BLOCKS * slants.block_type.nbytes)
        for part in gl.static_range(BLOCKS):
            at = [slot + block, down * BLOCKS + part, 0, 0]
            load_tile(slants, at, ready.index(stage), parts.index(stage * BLOCKS + part))
        load_tile(right, [b, h // sizes[1], block * LINES, 0], ready.index(stage), keys.index(stage))


@jit
def gather(W: gl.constexpr, ring, room, walk, given, F: gl.constexpr, S: gl.constexpr):
    """A warpgroup: 64 · PARTS rows, from the first block of keys to dq."""
    keys, parts, ready, empty = ring
    lists, order, sizes, launch = walk
    DEEP: gl.constexpr = keys.shape[4]
    gl.static_assert(S.PARTS <= 2)
    b, h, tile = place_of(0, launch, sizes[0], order, S.LISTED)
    _named, _some, blocks = list_of(lists, b, h, tile, sizes[3], LINES, S.LISTED, F.HAS_MASK)
    upper = gl.zeros([LINES, DEEP], gl.float32, block_layout(DEEP))
    lower = upper
    for place in range(blocks):
        stage, parity = turn(place, S.STAGES)
        key, part = matrix(keys.index(stage)), (stage * WARPGROUPS + W) * S.PARTS
        mbarrier.wait(ready.index(stage), parity)
        upper = warpgroup_mma(matrix(parts.index(part)).permute((1, 0)), key, upper, is_async=True)
        if S.PARTS == 2:
            lower = warpgroup_mma(matrix(parts.index(part + 1)).permute((1, 0)), key, lower, is_async=True)
            upper, lower = warpgroup_mma_wait(0, deps=(upper, lower))
        else:
            upper = warpgroup_mma_wait(0, deps=(upper,))
        mbarrier.arrive(empty.index(stage), count=1)
    first = (tile * WARPGROUPS + W) * S.PARTS * LINES
    finish(W, upper, b, h, first, room, sizes, given, F, S)
    if S.PARTS == 2:
        wait_stores(pendings=0)
        finish(W, lower, b, h, first + LINES, room, sizes, given, F, S)
    wait_stores(pendings=0)


@jit
def finish(W: gl.constexpr, dq, b, h, first, room, sizes, given, F: gl.constexpr, S: gl.constexpr):
    """Writes 64 rows of dq; those that read nothing get 0, for 0 times a key is not always 0."""
    out, stats, data = given
    if F.SHARED:
        r = (first + gl.arange(0, LINES, gl.SliceLayout(1, block_layout(dq.shape[1]))))[:, None]
        shift, _spread = statistics(stats, b.to(gl.int64) * sizes[0] + h, sizes[4], r, sizes[2], F)
        dq = gl.where(shift != (float("inf") if F.EXPONENTIAL else 0.0), dq, 0.0)
    if S.ONE_SCALE:
        dq = dq * F.product_scales((F.heads(data, b, h), (0.0,), (0.0,), data))[0]
    put(matrix(room.index(W)), dq, out, b, h, first)
