# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""What the kernels for Hopper share: layouts, rings of stages, turns, the order of tiles and of blocks.

A ring has STAGES places in shared memory. Block number c of a program stands in place c mod STAGES; `ready` of that
place completes when its bytes have come, `empty` when every warpgroup has read them, once for every turn of the ring:

    loader        wait(empty, turn − 1)   load    → ready
    consumers     wait(ready, turn)       multiply, arrive(empty)

A barrier that has never completed counts as complete for turn −1, so the first loads wait for nothing.

The assembler moves a wait for products ahead of arithmetic that does not touch them, and with it the overlap is gone.
It does not move one over a branch: a wait for a barrier, or an `if`, behind the arithmetic keeps the order as written.
"""

from .names import constexpr_function, gl, jit, load_tile, mbarrier

LINES = gl.constexpr(64)  # rows of one warpgroup: the height of wgmma
ANCHORED = gl.constexpr(128)  # rows that share an anchor
LOWEST = gl.constexpr(-120.0)  # log₂ of what is taken out of weights at least: nothing of float32 overflows by it


@constexpr_function
def block_layout(columns):
    """Who holds what of a product with 64 rows: wgmma's own order."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, columns, 16])


@constexpr_function
def left_layout(columns):
    """The same registers as the left side of a product whose result has `columns` columns."""
    return gl.DotOperandLayout(0, block_layout(columns), 2)


@jit
def columns_from(first, COLUMNS: gl.constexpr):
    """first, first + 1, … as (1, COLUMNS), of an even first.

    A thread's columns, 2 l and 2 l + 1 of every 8, differ by constants, which cost no registers; pairs load together.
    """
    offset = gl.arange(0, COLUMNS, gl.SliceLayout(0, block_layout(COLUMNS)))
    j = ((first + (offset & 6)) + (offset & -7))[None, :]
    return gl.max_contiguous(gl.multiple_of(j, [1, 2]), [1, 2])


@jit
def make_barriers(NUMBER: gl.constexpr, ARRIVALS: gl.constexpr):
    """NUMBER barriers, each complete after ARRIVALS arrivals."""
    barriers = gl.allocate_shared_memory(gl.int64, [NUMBER, 1], mbarrier.MBarrierLayout())
    for place in gl.static_range(NUMBER):
        mbarrier.init(barriers.index(place), count=ARRIVALS)
    return barriers


@jit
def make_ring(descriptor, STAGES: gl.constexpr, READERS: gl.constexpr):
    """(memory, ready, empty) for tiles of a descriptor that READERS warpgroups read."""
    memory = make_tiles(descriptor, STAGES)
    return memory, make_barriers(STAGES, 1), make_barriers(STAGES, READERS)


@jit
def make_tiles(descriptor, NUMBER: gl.constexpr):
    """Shared memory for NUMBER tiles of a descriptor."""
    return gl.allocate_shared_memory(
        descriptor.dtype, [NUMBER, 1, 1, descriptor.block_shape[2], descriptor.block_shape[3]], descriptor.layout
    )


@jit
def matrix(tile):
    """A tile (1, 1, rows, width) of shared memory as (rows, width)."""
    return tile.reshape([tile.shape[2], tile.shape[3]])


@jit
def turn(count, STAGES: gl.constexpr):
    """(place, parity) of block number `count` of a ring."""
    return count % STAGES, (count // STAGES) & 1


@jit
def fill(ring, descriptor, count, b, h, first, STAGES: gl.constexpr):
    """Loads the tile that begins at row `first` as block number `count` of a ring, once its place is empty."""
    memory, ready, empty = ring
    place, parity = turn(count, STAGES)
    mbarrier.wait(empty.index(place), parity ^ 1)
    mbarrier.expect(ready.index(place), descriptor.block_type.nbytes)
    load_tile(descriptor, [b, h, first, 0], ready.index(place), memory.index(place))


@jit
def await_block(ring, count, STAGES: gl.constexpr):
    """Block number `count` of a ring as a matrix, once it is there."""
    place, parity = turn(count, STAGES)
    mbarrier.wait(ring[1].index(place), parity)
    return block_in(ring, count, STAGES)


@jit
def block_in(ring, count, STAGES: gl.constexpr):
    """Block number `count` of a ring as a matrix, which is there already."""
    return matrix(ring[0].index(count % STAGES))


@jit
def release_block(ring, count, STAGES: gl.constexpr):
    """Says that this warpgroup has read block number `count`."""
    _, _, empty = ring
    mbarrier.arrive(empty.index(count % STAGES), count=1)


@jit
def take_turn(turns, count, W: gl.constexpr):
    """Waits until the warpgroup before this one has issued its products of round `count`; the first goes ahead."""
    if W == 0:
        mbarrier.wait(turns.index(W), (count & 1) ^ 1)
    else:
        mbarrier.wait(turns.index(W), count & 1)


@jit
def pass_turn(turns, W: gl.constexpr, WARPGROUPS: gl.constexpr):
    """Lets the next warpgroup issue its products."""
    mbarrier.arrive(turns.index((W + 1) % WARPGROUPS), count=1)


@jit
def rounds_of(launch):
    """How many of the call's programs this one runs: one, unless fewer were launched than there are."""
    programs, rounds = launch[0], launch[1]
    return rounds - (_number(rounds - 1) >= programs).to(gl.int32)


@jit
def place_of(step, launch, heads, order, LISTED: gl.constexpr):
    """(b, h, tile) of this program's step-th round.

    launch = (programs, rounds, programs of a section, pairs (b, h) of a section, tiles in the order of a batch, the
    first pair). One section after another, so that the keys of its pairs stay in the cache; within it the tiles with
    most work first.
    """
    programs, together = launch[2], launch[3]
    number = _number(step)
    section = number // programs
    rest = number - section * programs
    tile = rest // together
    pair = launch[5] + section * together + rest - tile * together
    b = pair // heads
    if LISTED:
        tile = gl.load(order + b * launch[4] + tile)
    return b, pair - b * heads, tile


@jit
def _number(step):
    """Rounds go forth and back over the launched programs, so that none always gets the longest."""
    launched, own = gl.num_programs(0), gl.program_id(0)
    return step * launched + gl.where(step % 2 == 0, own, launched - 1 - own)


@jit
def list_of(lists, b, h, tile, length, BLOCK: gl.constexpr, LISTED: gl.constexpr, HAS_MASK: gl.constexpr):
    """(list, some, total) of a tile: where its blocks are named, how many need the mask, how many there are.

    lists = (indices, counts, strides of indices over batch, head and tile, strides of counts over batch and head).
    Without lists blocks are counted down, so that the one which may stick out comes first.
    """
    indices, counts, by_batch, by_head, by_tile, count_by_batch, count_by_head = lists
    if LISTED:
        named = indices + (b * by_batch + h * by_head + tile * by_tile)
        counted = counts + (b * count_by_batch + h * count_by_head + tile * 2)
        some, total = gl.load(counted), gl.load(counted + 1)
    else:
        named, total = indices, gl.cdiv(length, BLOCK)
        some = total if HAS_MASK else 1
    return named, some, total


@jit
def block_of(named, place, total, LISTED: gl.constexpr):
    """The number of the block at a place of a list; 0 behind its end."""
    return gl.load(named + place, mask=place < total, other=0) if LISTED else gl.maximum(total - 1 - place, 0)
