"""How the columns of q, k and v may lie in one axis of a parameter, and how a parameter of heads has its axes.

q | k | v            (3, H, D)    blocks beside each other, in one of six orders
heads of q | k | v   (H, 3, D)    each head has its own three
(d 3 h), (3 d h), (h d 3)         the same columns counted in another order

hid   w[h, i, d]     a matrix for each head: q[n, h, d] = Σ_i x[n, i] w[h, i, d]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from .places import Slot

SIDE_BY_SIDE = "heads side by side"
IN_HEADS = ("hid", "ihd", "hdi", "idh", "dhi", "dih")  # axes of a parameter of wq, wk, wv with three
OUT_HEADS = ("hdo", "hod", "ohd", "dho", "odh", "doh")  # ... of wo


@dataclass(frozen=True)
class Cut:
    """Which columns of an axis are ours: the axis seen as `shape`, the ranges to keep, and the order to read them."""

    shape: tuple[int, ...]
    keep: tuple[tuple[int, int], ...]
    order: tuple[int, ...]


Cuts = Mapping[str, Cut]  # of each letter


@dataclass(frozen=True)
class Heads:
    """How many heads there are, as far as it is known."""

    query: int | None = None
    key: int | None = None
    width: int | None = None

    @property
    def grouped(self) -> bool:
        """Whether several query heads share one head of keys."""
        return self.query is not None and self.key is not None and self.key != self.query


def whole(size: int) -> Cut:
    """All columns, as they lie."""
    return Cut((size,), ((0, size),), (0,))


def single(letter: str, size: int, heads: int | None) -> Iterator[tuple[str, Cuts]]:
    """The columns of one matrix: heads side by side, or each place of all heads side by side."""
    yield SIDE_BY_SIDE, {letter: whole(size)}
    if heads and heads > 1 and size % heads == 0 and size > heads:
        depth = size // heads
        yield "(d h)", {letter: Cut((depth, heads), ((0, depth), (0, heads)), (1, 0))}


def fused(letters: str, size: int, heads: Heads) -> Iterator[tuple[str, Cuts]]:
    """The ways in which an axis may hold the columns of several matrices, the usual ones first."""
    if heads.grouped and set(letters) == set("qkv"):
        yield from _grouped(letters, size, heads)
    parts = len(letters)
    if size % parts:
        return
    width, count = size // parts, _count(letters, heads)
    orders = _orders(letters)
    for order in orders:
        starts = {letter: at * width for at, letter in enumerate(order)}
        yield _blocks(order), {one: Cut((size,), ((at, at + width),), (0,)) for one, at in starts.items()}
    if not count or width % count or width == count:
        return
    depth = width // count
    for order in orders if count > 1 else ():
        yield f"heads of {_blocks(order)}", _axes(order, {"h": count, "p": parts, "d": depth}, "hpd")
    for axes in ("dph", "pdh", "hdp"):
        yield f"({' '.join(axes).replace('p', str(parts))})", _axes(letters, {"h": count, "p": parts, "d": depth}, axes)


def _grouped(letters: str, size: int, heads: Heads) -> Iterator[tuple[str, Cuts]]:
    """Queries of all heads and keys of fewer, in one axis of (H + 2 K) D columns."""
    query, key = heads.query or 1, heads.key or 1
    if size % (query + 2 * key) or query % key:
        return
    depth, each = size // (query + 2 * key), query // key
    widths, start, blocks = {"q": query * depth, "k": key * depth, "v": key * depth}, 0, {}
    for letter in letters:
        blocks[letter] = Cut((size,), ((start, start + widths[letter]),), (0,))
        start += widths[letter]
    yield _blocks(letters), blocks
    ranges, place = {}, 0
    for letter in letters:
        ranges[letter] = (place, place + (each if letter == "q" else 1))
        place = ranges[letter][1]
    shape = (key, each + 2, depth)
    cuts = {letter: Cut(shape, ((0, key), ends, (0, depth)), (0, 1, 2)) for letter, ends in ranges.items()}
    yield f"groups of {_blocks(letters)}", cuts


def _count(letters: str, heads: Heads) -> int | None:
    return heads.query if "q" in letters else heads.key or heads.query


def _orders(letters: str) -> list[str]:
    """The order that the name says, then all others: which block is which is a matter of convention."""
    return list(dict.fromkeys([letters, *map("".join, permutations(letters))]))


def _blocks(letters: str) -> str:
    return " | ".join(letters)


def _axes(letters: str, sizes: Mapping[str, int], axes: str) -> Cuts:
    shape = tuple(sizes[axis] for axis in axes)
    order = tuple(axes.index(axis) for axis in "hpd")
    ranges = {letter: {"p": (at, at + 1)} for at, letter in enumerate(letters)}
    return {
        letter: Cut(shape, tuple(own.get(axis, (0, sizes[axis])) for axis in axes), order)
        for letter, own in ranges.items()
    }


# -- slots -------------------------------------------------------------------------------------------------------


def slot(path: str, sizes: tuple[int, ...], axes: str, *, cut: Cut | None = None, part: int = 0) -> Slot:
    """The slot of a parameter whose axes have letters: i in, o out (cut if need be), h and d heads, p which part.

    Rows are i, or h and d of an output projection (which has an o, and no i); columns are the rest.
    """
    shape: list[int] = []
    keep: list[tuple[int, int]] = []
    at: dict[str, list[int]] = {}
    for letter, size in zip(axes, sizes, strict=True):
        own = cut if cut is not None and letter == "o" else whole(size)
        at[letter] = [len(shape) + axis for axis in own.order]
        shape += own.shape
        keep += [(part, part + 1)] if letter == "p" else own.keep
    is_out = "o" in axes and "i" not in axes and "h" in axes
    rows = [axis for letter in ("phd" if is_out else "pi") for axis in at.get(letter, ())]
    columns = [axis for letter in ("o" if is_out else "ohd") for axis in at.get(letter, ())]
    return Slot(path, tuple(shape), tuple(keep), (*rows, *columns), len(rows))
