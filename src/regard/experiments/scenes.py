"""Pictures in which some patches cannot be understood without others, and not the other way round.

    hull    one and the same shape: a boat where there is water, a hut where there is meadow
    ground  waves or blades of grass: water or meadow, whatever else there is
    blank   noise

A picture is a grid of patches in any order: `EACH` hulls, as many of ground, the rest blank. Each patch has a name of
its own, and only the names of hulls ask for another patch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SIDE, PATCH, EACH = 5, 4, 4  # patches a side, pixels a side of each, hulls in a picture
COUNT = SIDE * SIDE
NAMES = ("blank", "water", "meadow", "boat", "hut")
BLANK, GROUND, HULL = range(3)  # kinds of patches
NOISE = 0.35

WAVES = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]).expand(PATCH, PATCH)
SHAPE = torch.tensor([[-1.0, 1, 1, -1], [1, 1, 1, 1], [1, 1, 1, 1], [-1, 1, 1, -1]])


class Scenes(NamedTuple):
    """pixels (pictures, 1, height, width); names and kinds (pictures, patches)."""

    pixels: Tensor
    names: Tensor
    kinds: Tensor


def drawn_scenes(count: int, seed: int, step: int) -> Scenes:
    """So many pictures, a function of seed and step."""
    chance = torch.Generator().manual_seed((seed << 32) + step)
    order = torch.rand(count, COUNT, generator=chance).argsort(1)
    kinds = torch.where(order < EACH, HULL, torch.where(order < 2 * EACH, GROUND, BLANK))
    land = torch.randint(2, (count, 1), generator=chance)
    names = torch.where(kinds == BLANK, 0, torch.where(kinds == GROUND, 1 + land, 3 + land))
    noise = NOISE * torch.randn(count, COUNT, PATCH, PATCH, generator=chance)
    pixels = torch.stack([torch.zeros(PATCH, PATCH), WAVES, WAVES.T, SHAPE, SHAPE])[names] + noise
    return Scenes(laid_out(pixels), names, kinds)


def laid_out(patches: Tensor) -> Tensor:
    """(pictures, patches, h, w) → (pictures, 1, height, width)."""
    rows = patches.reshape(-1, SIDE, SIDE, PATCH, PATCH).transpose(2, 3)
    return rows.reshape(-1, 1, SIDE * PATCH, SIDE * PATCH)
