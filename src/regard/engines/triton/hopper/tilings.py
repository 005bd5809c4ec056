"""How the forward kernel for Hopper cuts its matrices, by width and by what the formula asks of a block.

Registers of a program: (REGISTERS · warpgroups + LOADER) · 128 ≤ 65 536; the assembler is told their mean, `maxnreg`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

ROWS = 64  # of a warpgroup
MOST = 227 * 1024  # bytes of shared memory that a program may have
BESIDE = 1024  # bytes for barriers, and for what warps hand each other at the start


@dataclass(frozen=True)
class Tiling:
    """Keys of a block, blocks in flight, warpgroups that compute, registers of each thread of them."""

    columns: int
    stages: int
    warpgroups: int = 2
    in_turn: bool = False  # the warpgroups issue their products one after another
    persistent: bool = False  # as many programs as the chip runs at once, each for many tiles
    own_out: bool = False  # y leaves from memory of its own: the next rows are loaded meanwhile

    def __post_init__(self) -> None:
        if self.stages < 2:
            raise ValueError(
                f"stages: at least 2, since a block is awaited before the last one is released; got {self}"
            )

    @property
    def rows(self) -> int:
        return ROWS * self.warpgroups

    def fits(self, width: int, wide: int, staged: int) -> bool:
        """Whether rows, y, blocks of keys and values in 16 bits, and `staged` vectors of columns fit into a program."""
        held = self.rows * 2 * (width + wide * self.own_out)
        return held + self.stages * self.columns * (2 * (width + wide) + 4 * staged) + BESIDE <= MOST

    @property
    def constants(self) -> dict[str, Any]:
        """What the kernel knows of it when it is compiled."""
        registers, loader = {2: (240, 24), 3: (160, 32)}[self.warpgroups]
        return {
            "STAGES": self.stages,
            "WARPGROUPS": self.warpgroups,
            "REGISTERS": registers,
            "LOADER": loader,
            "IN_TURN": self.in_turn,
            "OWN_OUT": self.own_out,
        }

    @property
    def options(self) -> dict[str, Any]:
        """What the compiler is told."""
        return {"num_warps": 4, "maxnreg": {2: 168, 3: 128}[self.warpgroups], "enable_fp_fusion": True}


@dataclass(frozen=True)
class Traits:
    """What of a formula decides which tiles are the fastest."""

    exponential: bool = True
    masked: bool = False
    even: bool = True  # tiles of rows have about as much work as each other
    rounded: bool = False  # there are two sums of weights, one of them rounded
    uses_j: bool = False  # blocks need to know their keys, be it for the mask
    columns: bool = False  # they load vectors of columns
    offsets: bool = False  # or of i − j
    pairs: bool = False  # or a number for each pair
    curved: bool = False  # the score itself takes special functions


def tiling(width: int, wide: int, traits: Traits, staged: int = 0) -> Tiling:
    """The tiles for keys of `width` and values of `wide` numbers, both powers of two: the fastest of a sweep.

    staged: vectors of columns that are laid beside a block
    """
    widest = max(width, wide)
    columns = 64 if widest == 256 or traits.pairs else 128
    three = widest <= 64 and (columns == 64 or not traits.uses_j)
    persistent = columns == 128 and not (traits.offsets or traits.columns) and (traits.even or three)
    deep = columns == 64 or (not persistent and not traits.exponential)
    stages = 2 if widest == 256 else 3 if deep or widest <= 64 else 2
    found = Tiling(columns, stages, 3 if three else 2, False, persistent, persistent or width != wide)
    while not found.fits(width, wide, staged):
        found = replace(found, stages=found.stages - 1)
    return found
