"""The host's side of the kernels: tensors in, tensors out. It knows sizes and strides, and nothing of the formula.

forward(call, lists, tiling)                 → y (B, H, N, E), total (B, H, N)
of_rows(call, stats, dy, lists, tiling)      → dlefts, and sums of row terms (B, H, pulls, N)
of_keys(call, stats, dy, lists, tiling)      → drights, dv, and sums of column terms, each (B, H, n)

stats: `row_stats`, what the way back takes from the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from ..starting import Known, sixteens, start, steps
from ..tilings import Tiling
from . import backward as back
from . import forward as ahead
from .common import INTERPRETED, Constants

PRODUCTS = 3  # that a kernel has arguments for
FAR = 2**31 // 256  # a stride from which offsets inside a tile need more than 32 bits


@dataclass(frozen=True)
class Drop:
    """Dropout: a seed on the device (int64, one number), the threshold of the hash, 1 / (1 − p)."""

    seed: Any
    threshold: int
    scale: float


@dataclass(frozen=True)
class Call:
    """What every kernel of a call reads."""

    formula: Constants  # the functions and flags
    lefts: tuple[Any, ...]  # (B, H, N, D) of each product
    rights: tuple[Any, ...]  # (B, G, n, D)
    v: Any  # (B, G, n, E)
    shape: tuple[int, int, int]  # B, H, N
    start: Any  # (B) int64: the position of the first query
    data: tuple[Any, ...] = ()
    precision: str = "ieee"  # of products in float32; or "tf32", "tf32x3"
    drop: Drop | None = None
    descriptors: bool | None = None  # None: where the chip has them
    exact: bool = False  # for float32: L is kept to twice as many digits, so that weights are as exact going back

    @property
    def group(self) -> int:
        return self.shape[1] // int(self.v.shape[1])

    @property
    def sizes(self) -> tuple[int, int, int]:
        rows, keys = sixteens(self.shape[2], int(self.v.shape[2]))
        return self.shape[1], rows, keys


@dataclass(frozen=True)
class Gradients:
    """Of the sides of each product, of v, and the sums that vectors of rows and of columns receive, each (B, H, ·)."""

    lefts: tuple[Any, ...]
    rights: tuple[Any, ...]
    v: Any
    columns: tuple[Any, ...]
    rows: tuple[Any, ...] = ()
    diagonals: Any | None = None  # Σ dS over i − j, (B, H, 2, length), where dS was kept


# -- the passes ------------------------------------------------------------------------------------------------


def forward(call: Call, lists: Any | None, tiling: Tiling) -> tuple[Any, Any | None]:
    """y, and L = log₂ Z or Z of each row; None where no weight is shared."""
    _, heads, rows = call.shape
    y = rows_like(call)
    total = totals(call)
    _launch(
        ahead.forward, rows, tiling.rows, heads, call, lists, tiling,
        *sides(call, tiling), matrix(call.v, tiling.columns, call), strided(y), total,
    )  # fmt: skip
    return y, total


def totals(call: Call) -> Any | None:
    """Room for L or Z, (B, H, N), or for L and what its rounding left, (2, B, H, N)."""
    return numbers(call, *(2,) * is_exact(call), *call.shape) if call.formula.SHARED else None


def is_exact(call: Call) -> bool:
    return call.exact and bool(call.formula.EXPONENTIAL)


def row_stats(call: Call, y: Any, total: Any | None, dy: Any, dtotal: Any | None) -> Any | None:
    """L or 1 / Z, and δ, (B, H, 2, N rounded up to whole tiles); None where no weight is shared.

    y and total of the forward pass, dy, and the gradient of ln Z (or of Z), (B, H, N). A third line is 2^(−rest).
    """
    if total is None:
        return None
    batch, heads, rows = call.shape
    room, tiling = triton.cdiv(rows, 128) * 128, Tiling(64, 64)
    stats = numbers(call, batch, heads, 2 + is_exact(call), room)
    sums = None if dtotal is None else dtotal.float().contiguous()
    start(
        back.row_terms, (batch * heads * room // tiling.rows,), strided(y), strided(near(dy)), total, sums, stats,
        (heads, *sixteens(rows), Known(room)), call.formula, constants(call, None, tiling), num_warps=4,
    )  # fmt: skip
    return stats


def balance(call: Call, stats: Any, sums: Any, total: Any, dtotal: Any | None) -> None:
    """δ in `stats` and the sums of rows, (B, H, ROW_PULLS, N), without what roundings left in them."""
    (batch, heads, rows), tiling = call.shape, Tiling(128, 64)
    slopes = None if dtotal is None else dtotal.float().contiguous()
    start(
        back.balance, (triton.cdiv(rows, tiling.rows) * batch * heads,), stats, sums, total, slopes, call.data or (0,),
        (heads, *sixteens(rows), Known(stats.shape[3])), call.formula, constants(call, None, tiling), num_warps=4,
    )  # fmt: skip


def of_rows(call: Call, stats: Any | None, dy: Any, lists: Any | None, tiling: Tiling) -> tuple[tuple[Any, ...], Any]:
    (batch, heads, rows), pulls = call.shape, int(call.formula.ROW_PULLS)
    dlefts = tuple(map(room_like, call.lefts))
    sums = numbers(call, batch, heads, pulls, rows)
    if dlefts or pulls:
        _launch(
            back.rows_backward, rows, tiling.rows, heads, call, lists, tiling,
            *sides(call, tiling), matrix(call.v, tiling.columns, call), matrix(dy, tiling.rows, call),
            *three([strided(x) for x in dlefts]), stats_matrix(stats, tiling, call), sums,
        )  # fmt: skip
    return dlefts, sums


def of_keys(
    call: Call, stats: Any | None, dy: Any, lists: Any | None, tiling: Tiling
) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
    drights, dv, sums, run = keys_run(call, stats, dy, lists, tiling)
    run(0, call.shape[0] * call.shape[1])
    return drights, dv, sums


def keys_run(
    call: Call,
    stats: Any | None,
    dy: Any,
    lists: Any | None,
    tiling: Tiling,
    slants: Any | None = None,
    across: int = 0,
) -> tuple[tuple[Any, ...], Any, tuple[Any, ...], Callable[[int, int], None]]:
    """drights, dv, the sums of columns, and what makes them, for so many heads of the batch from one on.

    slants: room for dS of these heads, (heads · across, places, columns, rows)
    """
    (batch, heads, _), pulls, keys = call.shape, int(call.formula.COLUMN_PULLS), int(call.v.shape[2])
    drights, dv = tuple(map(room_like, call.rights)), room_like(call.v)
    sums = numbers(call, batch, heads, pulls, keys)
    matrices = (
        *sides(call, tiling), matrix(call.v, tiling.columns, call), matrix(dy, tiling.rows, call),
        *three([strided(x) for x in drights]), strided(dv),
        None if slants is None else matrix(slants, tiling.columns, call), stats_matrix(stats, tiling, call), sums,
    )  # fmt: skip

    def run(first: int, count: int) -> None:
        tiles = triton.cdiv(keys, tiling.columns) * (count // call.group)
        _start(back.keys_backward, tiles, call, lists, tiling, matrices, (first, across))

    return drights, dv, sums.unbind(2), run


# -- arguments of a kernel -------------------------------------------------------------------------------------


def _launch(
    kernel: Any, length: int, size: int, heads: int, call: Call, lists: Any | None, tiling: Tiling, *matrices: Any
) -> None:
    """Run a kernel with one program for each tile of each (b, head)."""
    _start(kernel, triton.cdiv(length, size) * heads * call.shape[0], call, lists, tiling, matrices)


def _start(
    kernel: Any, programs: int, call: Call, lists: Any | None, tiling: Tiling, matrices: tuple[Any, ...], *more: Any
) -> None:
    drop = None if call.drop is None else (call.drop.seed, call.drop.threshold, call.drop.scale)
    start(
        kernel, (programs,), *matrices, call.start, call.data or (0,), listed(lists), call.sizes, *more, drop,
        call.formula, constants(call, lists, tiling), num_warps=tiling.warps, num_stages=tiling.stages,
        enable_fp_fusion=not is_exact(call),
    )  # fmt: skip


def constants(call: Call, lists: Any | None, tiling: Tiling) -> Constants:
    widths = tuple(int(x.shape[3]) for x in call.rights)
    drops = call.drop is not None
    flags = lists is not None, drops, is_exact(call)
    return _sized(tiling, widths, int(call.v.shape[3]), call.group, call.precision, *flags)


@lru_cache(maxsize=4096)
def _sized(
    tiling: Tiling, widths: tuple[int, ...], value: int, group: int, precision: str, listed: bool, drops: bool,
    exact: bool,
) -> Constants:  # fmt: skip
    return Constants(
        ROWS=tiling.rows,
        COLUMNS=tiling.columns,
        WIDTHS=widths,
        PADDED=tuple(map(padded, widths)),
        VALUE=value,
        VALUE_PADDED=padded(value),
        GROUP=group,
        LISTED=listed,
        DROPS=drops,
        EXACT=exact,
        PRECISION=precision,
    )


def padded(width: int) -> int:
    """The width of a tile: a power of two, and 16 at least."""
    return max(16, int(triton.next_power_of_2(width)))


def listed(lists: Any | None) -> tuple[Any, ...] | None:
    """Pointers to lists, their steps from batch to batch and head to head, their length, the step of the order."""
    if lists is None:
        return None
    batch, heads, tiles, width = lists.indices.shape
    by_batch, by_head = tiles * heads if batch > 1 else 0, tiles if heads > 1 else 0
    ordered = tiles if lists.order.shape[0] > 1 else 0
    return lists.indices.contiguous(), lists.counts.contiguous(), lists.order, by_batch, by_head, width, ordered


# -- matrices --------------------------------------------------------------------------------------------------


def sides(call: Call, tiling: Tiling) -> tuple[Any, ...]:
    lefts = three([matrix(x, tiling.rows, call) for x in call.lefts])
    return (*lefts, *three([matrix(x, tiling.columns, call) for x in call.rights]))


def three(matrices: Sequence[Any]) -> tuple[Any, ...]:
    return (*matrices, *(None,) * (PRODUCTS - len(matrices)))


def matrix(x: Any, size: int, call: Call) -> Any:
    """A descriptor of tiles of `size` rows where the copy engine can read them, otherwise pointer and strides."""
    if not _described(x, call):
        return strided(near(x))
    strides = [step if count > 1 else 16 for count, step in zip(x.shape[:3], x.stride()[:3], strict=True)]
    return TensorDescriptor(x, list(x.shape), [*strides, 1], [1, 1, size, padded(x.shape[3])])


def stats_matrix(stats: Any | None, tiling: Tiling, call: Call) -> Any:
    if stats is None or not _described(stats, call):
        return None if stats is None else strided(stats)
    return TensorDescriptor(stats, list(stats.shape), list(stats.stride()), [1, 1, 1, tiling.rows])


def _described(x: Any, call: Call) -> bool:
    return bool(has_descriptors(x.device) if call.descriptors is None else call.descriptors) and _is_aligned(x)


def strided(x: Any) -> tuple[Any, ...]:
    """Pointer and strides, of which a compiled kernel knows what it can use."""
    pointer, *strides = plain(x)
    return (pointer, *steps(*strides))


def plain(x: Any) -> tuple[Any, ...]:
    """Pointer and strides."""
    far = [step if count > 1 else 0 for count, step in zip(x.shape[:3], x.stride()[:3], strict=True)]
    return (x, *far, x.stride(3))


def near(x: Any) -> Any:
    """x, copied where its rows or columns lie so far apart that offsets inside a tile would wrap."""
    return x if max(x.stride()[2:]) < FAR else x.contiguous()


def _is_aligned(x: Any) -> bool:
    """Whether rows begin at multiples of 16 bytes, none twice, and their numbers lie side by side."""
    steps = [step * x.element_size() for count, step in zip(x.shape[:3], x.stride()[:3], strict=True) if count > 1]
    return x.stride(3) == 1 and x.data_ptr() % 16 == 0 and all(step > 0 and step % 16 == 0 for step in steps)


@lru_cache
def has_descriptors(device: torch.device) -> bool:
    """Whether the chip copies tiles by descriptor: from Hopper on."""
    return not INTERPRETED.value and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def rows_like(call: Call, step: int = 1) -> Any:
    """Room for y, (B, H, N, E)."""
    first, v = (*call.lefts, call.v)[0], call.v
    return room_like(first, step, shape=(*call.shape, int(v.shape[3])), dtype=v.dtype)


def room_like(x: Any, step: int = 1, *, shape: tuple[int, ...] | None = None, dtype: Any = None) -> Any:
    """An empty array (B, heads, length, width), its axes ordered in memory as those of x, vectors at multiples of step.

    Compilers are told of the operators' results by this function too, and count on how these lie.
    """
    batch, heads, length, width = x.shape if shape is None else shape
    room, dtype = -(-width // step) * step, x.dtype if dtype is None else dtype
    if 0 < x.stride(1) < x.stride(2):
        return x.new_empty((batch, length, heads, room), dtype=dtype).transpose(1, 2)[..., :width]
    return x.new_empty((batch, heads, length, room), dtype=dtype)[..., :width]


def without_gaps(x: Any) -> Any:
    """What `room_like` made, its vectors side by side."""
    is_dense = x.is_contiguous() or x.transpose(1, 2).is_contiguous()
    return x if is_dense else room_like(x).copy_(x)


def numbers(call: Call, *shape: int) -> Any:
    return torch.empty(shape, dtype=torch.float32, device=call.v.device)
