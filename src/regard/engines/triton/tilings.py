"""Tile sizes by chip and head width: rows and keys of a block, warps of a program, blocks in flight.

Those of Hopper in widths 64 and 128 are the fastest of a sweep (bench/gpu_sweep.py). The others were found by compiling
for the chip without it: blocks that are admitted whole spill few registers (float32 some more), and shared memory stays
within its limit.
Where wide values or several products need more room, a tiling is cut until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Tiling:
    """How a kernel cuts its matrices. Rows divide 128, so that no tile straddles a multiple of it."""

    rows: int
    columns: int
    warps: int = 4
    stages: int = 2


KERNELS = ("forward", "rows", "keys")  # the forward pass; backward with rows held (dq), with keys held (dk, dv)
HOPPER = {
    64: (Tiling(64, 64, 4, 4), Tiling(128, 64, 8, 3), Tiling(64, 128, 8, 2)),
    128: (Tiling(64, 64, 4, 3), Tiling(128, 64, 8, 3), Tiling(64, 64, 4, 2)),
    256: (Tiling(128, 64, 8, 2), Tiling(64, 64, 8, 2), Tiling(32, 64, 8, 2)),
}
AHEAD = {64: Tiling(64, 128, 4, 2), 128: Tiling(64, 64, 4, 2)}  # forward, with loads, or where a mask reads tables
LOADED = Tiling(32, 64, 4, 3)  # Hopper, width 128, keys held, with numbers for each pair
KEPT = Tiling(64, 64, 4, 2)  # keys held, with dS written down
WIDEST = 256  # of one product
AMPERE = {
    64: (Tiling(128, 64, 8, 2), Tiling(128, 64, 8, 2), Tiling(32, 64, 4, 2)),
    128: (Tiling(64, 64, 4, 2), Tiling(64, 64, 8, 2), Tiling(64, 64, 8, 2)),
    256: (Tiling(64, 32, 8, 2), Tiling(64, 32, 8, 2), Tiling(32, 32, 8, 2)),
}
FLOAT32 = {  # whose products take more registers
    64: (Tiling(64, 32, 4, 2), Tiling(64, 32, 4, 2), Tiling(32, 32, 4, 2)),
    128: (Tiling(64, 32, 8, 2), Tiling(64, 32, 8, 2), Tiling(32, 32, 8, 2)),
    256: (Tiling(32, 32, 8, 2), Tiling(32, 32, 8, 2), Tiling(32, 32, 8, 2)),
}


def tiling(
    capability: tuple[int, int],
    width: int,
    value_width: int,
    dtype_bytes: int,
    which: str,
    loads: int = 0,
    vectors: int = 0,
    *,
    marked: bool = False,
) -> Tiling:
    """The tiling of a kernel. `width` is that of all products together; dtype_bytes those of the widest operand.

    loads:  numbers that are read from tables for each pair; the compiler brings them ahead into shared memory too
    vectors: numbers that are read for each row, or for each key, of a block; brought ahead as well
    marked:  whether a mask reads tables for each row or key; they take the place that a third stage would
    """
    table = FLOAT32 if dtype_bytes == 4 else HOPPER if _has_large_memory(capability) else AMPERE
    wide = max(_padded(width), _padded(value_width))
    found = KEPT if which == "kept" else table[64 if wide <= 64 else 128 if wide <= 128 else 256][KERNELS.index(which)]
    if table is HOPPER:
        if which == "forward" and (loads or marked):
            found = AHEAD.get(max(64, wide), found)
        elif which == "keys" and wide == 128 and loads:
            found = LOADED

    def fits(tiles: Tiling) -> bool:
        used = shared_bytes(tiles, capability, width, value_width, dtype_bytes, which)
        ahead = loads * tiles.rows * tiles.columns + vectors * max(tiles.rows, tiles.columns)
        return used + 4 * (tiles.stages + 1) * ahead <= shared_limit(capability)

    while not fits(found):
        found = _smaller(found)
    return found


def shared_limit(capability: tuple[int, int]) -> int:
    """The bytes of shared memory that a program may use."""
    if _has_large_memory(capability):
        return 227 * 1024
    return {(8, 0): 163, (8, 7): 163}.get(capability, 99 if capability >= (8, 0) else 64) * 1024


def shared_bytes(
    tiling: Tiling, capability: tuple[int, int], width: int, value_width: int, dtype_bytes: int, which: str
) -> int:
    """The bytes that a kernel needs: the tile it holds, blocks in flight, on older chips also room to rearrange p.

    There products of float32 read copies of what they multiply. Several wide products together take a quarter more.
    """
    row = (_padded(width) + _padded(value_width)) * dtype_bytes
    held, read = (tiling.columns, tiling.rows) if which in ("keys", "kept") else (tiling.rows, tiling.columns)
    tile = held * (_padded(width) * dtype_bytes if which == "forward" else row)
    if _has_large_memory(capability):
        used = tile + tiling.stages * read * row + 2048
    else:
        used = tile + max(1, tiling.stages - 1) * read * row + tiling.rows * (tiling.columns + 2) * dtype_bytes + 1024
        used += 3 * read * max(_padded(width), _padded(value_width)) * 2 if dtype_bytes == 4 else 0
    return used if width <= WIDEST else used * 5 // 4


def _has_large_memory(capability: tuple[int, int]) -> bool:
    """Hopper, and Blackwell's chips for data centres."""
    return (9, 0) <= capability < (12, 0)


def _smaller(tiling: Tiling) -> Tiling:
    if tiling.stages > 2:
        return replace(tiling, stages=tiling.stages - 1)
    if tiling.columns >= tiling.rows and tiling.columns > 16:
        return replace(tiling, columns=tiling.columns // 2)
    if tiling.rows > 16:
        return replace(tiling, rows=tiling.rows // 2)
    raise ValueError(f"no tiling fits into this chip's shared memory; {tiling} is the smallest")


def _padded(width: int) -> int:
    return max(16, 1 << (width - 1).bit_length())
