"""How the forward kernel for Hopper cuts its matrices, by width and by what the formula keeps in registers.

Registers of a program: (REGISTERS · warpgroups + LOADER) · 128 ≤ 65 536; the assembler is told their mean, `maxnreg`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROWS = 64  # of a warpgroup


@dataclass(frozen=True)
class Tiling:
    """Keys of a block, blocks in flight, warpgroups that compute, registers of each thread of them."""

    columns: int
    stages: int
    warpgroups: int = 2
    in_turn: bool = False  # the warpgroups issue their products one after another
    persistent: bool = False  # as many programs as the chip runs at once, each for many tiles
    own_out: bool = False  # y leaves from memory of its own: the next rows are loaded meanwhile

    @property
    def rows(self) -> int:
        return ROWS * self.warpgroups

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


def tiling(width: int, wide: int, exponential: bool, pressure: int = 0) -> Tiling:
    """The tiles for keys of `width` and values of `wide` numbers, both powers of two.

    pressure: 0: arithmetic alone. 1: blocks need j, or vectors of columns, be it for the mask. 2: a load for each pair.
    """
    widest = max(width, wide)
    columns = 64 if widest == 256 or not exponential or (pressure == 2) else 128
    three = widest <= 64 and (pressure == 0 or columns == 64)
    return Tiling(columns, 2 if widest == 256 else 3, 3 if three else 2, own_out=width != wide)
