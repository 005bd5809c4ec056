"""How the backward kernels for Hopper cut their matrices, by width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .tilings import Traits

HELD = 64  # rows, or keys, that a warpgroup holds


@dataclass(frozen=True)
class BackwardTiling:
    """What a program holds, rows or keys, meets blocks of `block` keys or rows, which are loaded `stages` ahead."""

    block: int
    stages: int
    warpgroups: int = 2
    in_turn: bool = False  # the warpgroups issue their products one after another
    behind: bool = False  # backward_keys alone: dK of a block is issued with the next one
    kept: bool = False  # backward_keys alone: dS is written down for backward_queries

    @property
    def held(self) -> int:
        return HELD * self.warpgroups

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
            "BEHIND": self.behind,
            "KEPT": self.kept,
        }

    @property
    def options(self) -> dict[str, Any]:
        """What the compiler is told."""
        return {"num_warps": 4, "maxnreg": {2: 168, 3: 128}[self.warpgroups], "enable_fp_fusion": True}


@dataclass(frozen=True)
class GatherTiling:
    """A warpgroup holds `parts` · 64 rows, and meets blocks of 64 keys, which are loaded `stages` ahead."""

    parts: int = 2
    stages: int = 4

    @property
    def held(self) -> int:
        return 2 * HELD * self.parts

    @property
    def constants(self) -> dict[str, Any]:
        return {"STAGES": self.stages, "PARTS": self.parts, "REGISTERS": 240, "LOADER": 24}

    @property
    def options(self) -> dict[str, Any]:
        return {"num_warps": 4, "maxnreg": 168, "enable_fp_fusion": True}


def rows_tiling(width: int, wide: int, traits: Traits) -> BackwardTiling:
    """The tiles of the kernel that holds rows, for keys of `width` and values of `wide` numbers, powers of two."""
    return BackwardTiling(64, 3, _warpgroups(width, wide, traits), in_turn=not traits.columns)


def kept_tiling(traits: Traits) -> BackwardTiling:
    """The tiles of the kernel that holds keys and keeps dS."""
    turns = traits.exponential and not (traits.curved or traits.masked)
    return BackwardTiling(64, 3, in_turn=turns, behind=True, kept=True)


def keys_tiling(width: int, wide: int, traits: Traits) -> BackwardTiling:
    """The tiles of the kernel that holds keys."""
    warpgroups = _warpgroups(width, wide, traits)
    return BackwardTiling(64, 2 if warpgroups == 3 else 3, warpgroups, behind=traits.exponential and width > 64)


def gather_tiling(traits: Traits) -> GatherTiling:
    """The tiles of the kernel that makes dq of dS: where tiles are left out, as tall as those that are kept."""
    return GatherTiling(1, 6) if traits.masked else GatherTiling(2, 4)


def is_kept(width: int, wide: int) -> bool:
    """Whether it is faster to write dS down and read it than to make it twice."""
    return max(width, wide) == 128


def _warpgroups(width: int, wide: int, traits: Traits) -> int:
    """Three where narrow vectors leave them the registers, and the formula needs few."""
    lean = not (traits.uses_j or traits.columns or traits.offsets or traits.pairs)
    return 3 if max(width, wide) <= 64 and lean else 2


def fits(width: int, wide: int) -> bool:
    """Whether dk and dv of 64 keys fit into the registers of a warpgroup."""
    return width + wide <= 256
