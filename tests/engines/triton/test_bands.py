"""Sums of kept dS over i − j, by the interpreter, beside sums over all pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard as rg
from regard.engines.call import prepare
from regard.engines.triton.blocks import both_lists
from regard.engines.triton.templates.bands import sum_bands

SIZE = 64


def kept(ds: Any, by_keys: Any | None, tile: tuple[int, int]) -> tuple[Any, int]:
    """dS (B, H, N, n) as the kernel that holds keys leaves it, NaN where nothing was written; blocks of keys."""
    batch, heads, rows, keys = ds.shape
    across, down = -(-keys // tile[1]) * (tile[1] // SIZE), -(-rows // tile[0]) * (tile[0] // SIZE)
    room = torch.zeros(batch, heads, down * SIZE, across * SIZE)
    room[:, :, :rows, :keys] = ds
    blocks = room.reshape(batch, heads, down, SIZE, across, SIZE).permute(0, 1, 4, 2, 5, 3).bfloat16()
    if by_keys is not None:
        blocks = listed(blocks, by_keys, tile[1] // SIZE)
    return blocks.reshape(batch * heads * across, blocks.shape[3], SIZE, SIZE).contiguous(), across


def listed(blocks: Any, by_keys: Any, wide: int) -> Any:
    """The blocks of each key tile in the order of its list."""
    batch, heads, across, _, *size = blocks.shape
    found = torch.full((batch, heads, across, by_keys.indices.shape[3], *size), float("nan"), dtype=blocks.dtype)
    for b, h, block in ((b, h, x) for b in range(batch) for h in range(heads) for x in range(across)):
        own = min(b, by_keys.indices.shape[0] - 1), min(h, by_keys.indices.shape[1] - 1), block // wide
        for place in range(int(by_keys.counts[(*own, 1)])):
            found[b, h, block, place] = blocks[b, h, block, by_keys.indices[(*own, place)]]
    return found


MASKS: dict[str, Any] = {
    "none": None, "causal": rg.causal, "window": rg.window(70) & rg.causal, "documents": rg.documents("ids"),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("sizes", [(2, 3, 200, 330), (1, 2, 64, 65), (2, 1, 1, 130)])
def test_diagonals_of_kept_blocks(name, sizes):
    batch, heads, rows, keys = sizes
    torch.manual_seed(1)
    mask = MASKS[name]
    attention = rg.Attention() if mask is None else rg.Attention(mask=mask)
    q, k = (torch.randn(batch, heads, size, 4) for size in (rows, keys))
    ids = torch.arange(keys).mul(3).div(keys, rounding_mode="floor").int().repeat(batch, 1)
    call = prepare(attention, q, k, k, tables={"ids": ids} if "ids" in attention.ranks else {})
    start = int(call.start[0])
    i, j = start + torch.arange(rows)[:, None], torch.arange(keys)
    truth = {
        "none": i > -1, "causal": i >= j, "window": (i >= j) & (i - j < 70), "documents": ids[0][i] == ids[0][j],
    }  # fmt: skip
    ds = torch.where(truth[name], torch.randn(batch, heads, rows, keys).bfloat16().float(), 0.0)

    tile, highest = (128, 128), start + rows + 5
    by_keys = None if mask is None else both_lists(call, *tile, SIZE)[1]
    slants, across = kept(ds, by_keys, tile)
    length = highest + keys + 7
    partial = torch.zeros(batch, heads, 2, length)
    here = SimpleNamespace(start=call.start, shape=(batch, heads, rows), v=k)
    for pairs in (range(1), range(1, batch * heads)):
        part = slants[pairs.start * across : pairs.stop * across]
        if len(pairs):
            sum_bands(here, part, across, by_keys, tile, pairs, highest, partial)

    wanted = torch.zeros(batch, heads, length).index_add_(2, (highest - (i - j)).flatten(), ds.flatten(2))
    torch.testing.assert_close(partial.sum(2), wanted, atol=1e-4, rtol=1e-5)
