"""How work is dealt out over the chip: into how many shares, and what a mask leaves of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

NONE, SOME, WHOLE = 0, 1, 2  # what a mask admits of a tile
ACROSS = 65535  # programs along the second and the third axis of a grid, at the most
NEARLY = 1.05  # times the least time is good enough: more shares make more to join


def kinds_of(lists: Any, tiles: int) -> Any:
    """What the mask admits of every tile, (B or 1, H or 1, row tiles, key tiles) int8."""
    place = torch.arange(lists.indices.shape[-1], device=lists.indices.device)
    some, total = lists.counts[..., :1], lists.counts[..., 1:]
    kind = torch.where(place < some, SOME, WHOLE).to(torch.int8)
    index = torch.where(place < total, lists.indices, tiles).long()  # those behind the end go to a tile too many
    return kind.new_zeros((*index.shape[:3], tiles + 1)).scatter_(-1, index, kind)[..., :tiles].contiguous()


@lru_cache(maxsize=1024)
def shares_for(sets: int, items: int, places: int) -> int:
    """Into how many shares the items of each set are dealt: the fewest that take nearly the least time.

    `places` is how many programs run at once; time is rounds of the chip times the items of a share.
    """
    most = max(1, min(items, max(8, places // sets)))
    time = [-(-sets * z // places) * -(-items // z) for z in range(1, most + 1)]
    return next(z for z, found in enumerate(time, 1) if found <= NEARLY * min(time))


@lru_cache
def multiprocessors(device: torch.device) -> int:
    """Of the chip; in the interpreter a few, so that work is shared out there too."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 4
