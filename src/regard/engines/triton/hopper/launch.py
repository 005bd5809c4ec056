"""The host's side of the forward kernel for Hopper: descriptors, the number of programs, and what it cannot take."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from ..starting import Known, sixteens, start
from ..templates.common import Constants
from ..templates.launch import rows_like
from .forward import forward as kernel
from .names import TensorDescriptor, gl
from .tilings import ROWS, Tiling, Traits, tiling

TYPES = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}
WIDEST = 256
CACHED = 2**25  # bytes of keys and values that stay in the chip's second cache while many programs read them
FARTHEST = 2**31  # elements of a list: its offsets are 32-bit numbers


# -- what it can take ------------------------------------------------------------------------------------------


def refusal(lefts: tuple[Any, ...], rights: tuple[Any, ...], v: Any, *, dropout: bool = False) -> str | None:
    """Why this template cannot run a call, as one clause; None where it can."""
    if len(lefts) != 1:
        return f"it multiplies one pair of matrices, and this formula has {len(lefts)}"
    if dropout:
        return "it has no dropout"
    matrices = {"q": lefts[0], "k": rights[0], "v": v}
    if v.dtype not in TYPES or lefts[0].dtype != rights[0].dtype or lefts[0].dtype not in TYPES:
        return f"it takes float16 and bfloat16, and got {', '.join(str(x.dtype) for x in matrices.values())}"
    widest = max(int(x.shape[3]) for x in matrices.values())
    if widest > WIDEST:
        return f"it takes vectors of up to {WIDEST} numbers, and got {widest}"
    found = (f"{name} {reason}" for name, x in matrices.items() if (reason := unaligned(x)) is not None)
    return next(found, None) or _chip(v.device)


def unaligned(x: Any) -> str | None:
    """Why the chip's copy engine cannot read an array (B, heads, length, width)."""
    steps = [step * x.element_size() for count, step in zip(x.shape[:3], x.stride()[:3], strict=True) if count > 1]
    if x.stride(3) != 1 and x.shape[3] > 1:
        return "has vectors whose numbers do not lie side by side"
    if any(step % 16 for step in steps) or x.data_ptr() % 16:
        return "has vectors that do not begin at multiples of 16 bytes"
    if any(step <= 0 for step in steps):
        return "is one vector repeated"
    return "lies further apart than the copy engine reaches" if any(step >= 2**40 for step in steps) else None


def readable_step(x: Any) -> int:
    """Of how many numbers the places are multiples at which the copy engine reads and writes vectors."""
    return 16 // int(x.element_size())


@lru_cache
def _chip(device: Any) -> str | None:
    if device.type != "cuda":
        return f"it runs on a GPU, and the arrays lie on {device}"
    major, minor = torch.cuda.get_device_capability(device)
    return None if major == 9 else f"it runs on Hopper (9.0), and this chip is {major}.{minor}"


# -- the launch ------------------------------------------------------------------------------------------------


def tiling_of(call: Any, traits: Traits) -> Tiling:
    """The tiles of a call (templates.launch.Call)."""
    widths = padded(int(call.rights[0].shape[3])), padded(int(call.v.shape[3]))
    return tiling(*widths, traits, int(_plain(call.formula.STAGED)))


def forward(call: Any, lists: Any | None, tiles: Tiling) -> tuple[Any, Any | None]:
    """y, and L = log₂ Z or Z of each row; None where no weight is shared.

    call:  templates.launch.Call, its formula's functions jitted for Gluon, with USES_J among its flags
    lists: blocks.Lists of tiles.rows × tiles.columns; None where there is no mask
    """
    _, heads, rows = call.shape
    y = rows_like(call, readable_step(call.v))
    total = torch.empty(call.shape, dtype=torch.float32, device=y.device) if _plain(call.formula.SHARED) else None
    group, length = heads // int(call.v.shape[1]), int(call.v.shape[2])
    launched, launch = _launch(call, lists, tiles)
    start(
        kernel,
        (launched,),
        descriptor(call.lefts[0], ROWS),
        descriptor(call.rights[0], tiles.columns),
        descriptor(call.v, tiles.columns),
        descriptor(y, ROWS),
        call.start if total is None else total,
        call.start,
        call.data or (0,),
        *listed(call.start, lists),
        (heads, Known(group), *sixteens(rows, length)),
        launch,
        call.formula,
        _sized(tiles, lists is not None),
        **tiles.options,
    )
    return y, total


def descriptor(x: Any, rows: int) -> Any:
    """The copy engine's view of an array (B, heads, length, width), in tiles of `rows` vectors, 0 outside of it."""
    strides = [step if count > 1 else 16 for count, step in zip(x.shape[:3], x.stride()[:3], strict=True)]
    shape = [1, 1, rows, padded(int(x.shape[3]))]
    return TensorDescriptor(x, list(x.shape), [*strides, 1], shape, _layout(shape[2], shape[3], x.dtype))


def padded(width: int) -> int:
    """The width of a tile: a power of two, and 16 at least."""
    return max(16, 1 << (width - 1).bit_length())


@lru_cache
def _layout(rows: int, width: int, dtype: Any) -> Any:
    return gl.NVMMASharedLayout.get_default_for([1, 1, rows, width], TYPES[dtype])


@lru_cache
def _sized(tiles: Tiling, listed: bool) -> Constants:
    return Constants(LISTED=listed, **tiles.constants)


def _plain(flag: Any) -> Any:
    return getattr(flag, "value", flag)


def listed(start: Any, lists: Any | None) -> tuple[Any, Any]:
    """(indices, counts, strides), order; where there are none, a pointer that nobody reads."""
    if lists is None:
        return (start, start, 0, 0, 0, 0, 0), start
    indices, counts = lists.indices.contiguous(), lists.counts.contiguous()
    batch, heads, tiles, width = indices.shape
    if indices.numel() >= FARTHEST:
        raise ValueError(f"lists: at most {FARTHEST} blocks; got {indices.numel()}")
    by_batch, by_head = heads * tiles if batch > 1 else 0, tiles if heads > 1 else 0
    return (indices, counts, by_batch * width, by_head * width, width, by_batch * 2, by_head * 2), lists.order


def _launch(call: Any, lists: Any | None, tiles: Tiling) -> tuple[int, tuple[int, ...]]:
    """How many programs are launched, and what `common.place_of` reads."""
    batch, heads, rows = call.shape
    pairs, count = batch * heads, -(-rows // tiles.rows)
    most = None
    if lists is not None:  # a section ends with the tiles of least work: the fewer sections, the fairer the shares
        read = min(int(call.v.shape[2]), lists.indices.shape[3] * tiles.columns)
        held = sum(read * x.shape[3] * x.element_size() for x in (call.rights[0], call.v))
        most = max(1, CACHED // held) * (heads // int(call.v.shape[1]))
    programs, together = pairs * count, section(pairs, most)
    launched = min(programs, _processors(call.v.device)) if tiles.persistent else programs
    rounds = -(-programs // launched) if tiles.persistent else Known(1)
    return launched, (programs, rounds, together * count, together, ordered(lists), 0)


def ordered(lists: Any | None) -> int:
    """How many tiles stand in the order of one batch; 0 where there is one order for all."""
    return 0 if lists is None or lists.order.shape[0] == 1 else int(lists.order.shape[1])


@lru_cache
def section(pairs: int, most: int | None) -> int:
    """How many pairs (b, head) make a section: the largest divisor that is at most `most`; without lists one."""
    if most is None:
        return Known(1)
    return next(part for part in range(min(pairs, most), 0, -1) if pairs % part == 0)


@lru_cache
def _processors(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
