"""Labelled pictures before they have one size: looked over first, then read one by one as uint8.

looks       height, width and channels of each, without reading it whole
shape       (channels, height, width) for all: the most common size, or the one that was asked for
pixels      (count, channels, height, width), uint8
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...algebra.errors import CallError
from .patching import fitting
from .pictures import fitted
from .skipped import Skipped, counted

Progress = Callable[[int, int], None]  # what is done, and all there is
Shape = tuple[int, int, int]

LARGEST, REDUCED = 256, 224  # pixels: sides beyond the first are reduced to the second, unless a size is asked for
OFTEN = 100  # pictures between two words of progress
MEMORY = 16 * 2**30  # bytes


class Look(NamedTuple):
    """What a picture says of itself."""

    height: int
    width: int
    channels: int


class Unusable(Exception):  # noqa: N818 - never leaves the reader
    """A picture that is left out; its text is the reason."""


class Gallery(ABC):
    """Pictures by row, and the label of each."""

    labels: Any  # (count,), int64

    @abstractmethod
    def look(self, row: int) -> Look:
        """The size of a picture; Unusable if it is none."""

    @abstractmethod
    def picture(self, row: int) -> Any:
        """(height, width) or (height, width, 3), uint8; Unusable if it cannot be read."""

    @abstractmethod
    def name(self, row: int) -> str:
        """What to call a picture."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Wish:
    """What was asked for: a size or None, and how many channels or None."""

    size: tuple[int, int] | None
    channels: int | None


class Hung(NamedTuple):
    """Pictures of one size, and their labels."""

    pixels: Any  # (count, channels, height, width), uint8
    labels: Any  # (count,), int64


def hang(
    galleries: Sequence[Gallery], wish: Wish, skipped: Skipped, progress: Progress | None
) -> tuple[list[Hung], list[str]]:
    """Every gallery in one shape, without the pictures that cannot be used, and notes on what was done to them."""
    tell = _telling(progress, 2 * sum(map(len, galleries)))
    looks = [list(_looked(gallery, skipped, tell)) for gallery in galleries]
    found = [look for each in looks for look in each if look is not None]
    if not found:
        return [Hung(np.zeros((0, 1, 1, 1), np.uint8), np.zeros(0, np.int64)) for _ in galleries], []
    shape = _shape(found, wish)
    _refuse_too_large(len(found), shape)
    hung = [_filled(*both, shape, skipped, tell) for both in zip(galleries, looks, strict=True)]
    return hung, _notes([look for each in looks for look in each if look is not None], shape, wish)


def _looked(gallery: Gallery, skipped: Skipped, tell: Callable[[], None]) -> Iterator[Look | None]:
    for row in range(len(gallery)):
        tell()
        try:
            yield gallery.look(row)
        except Unusable as reason:
            skipped.add(str(reason), gallery.name(row))
            yield None


def _filled(
    gallery: Gallery, looks: list[Look | None], shape: Shape, skipped: Skipped, tell: Callable[[], None]
) -> Hung:
    """The pictures in one shape; the look of one that cannot be read becomes None."""
    pixels = np.zeros((len(gallery), *shape), dtype=np.uint8)
    for row, look in enumerate(looks):
        tell()
        try:
            if look is not None:
                pixels[row] = fitted(gallery.picture(row), shape)
        except Unusable as reason:
            skipped.add(str(reason), gallery.name(row))
            looks[row] = None
    good = np.array([look is not None for look in looks], dtype=bool)
    return Hung(pixels, gallery.labels) if good.all() else Hung(pixels[good], gallery.labels[good])


def _telling(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None and (done % OFTEN == 0 or done == total):
            progress(done, total)

    return tell


# -- one shape for all -----------------------------------------------------------------------------------------


def _shape(looks: list[Look], wish: Wish) -> Shape:
    is_grey = all(look.channels == 1 for look in looks)
    height, width = wish.size or fitting(*_reduced(*_common(looks)))
    return wish.channels or (1 if is_grey else 3), height, width


def _common(looks: list[Look]) -> tuple[int, int]:
    """The most common size; of equals, the smallest."""
    sizes = Counter((look.height, look.width) for look in looks)
    return min(sizes, key=lambda size: (-sizes[size], size))


def _notes(looks: list[Look], shape: Shape, wish: Wish) -> list[str]:
    """What was done to the pictures that are left."""
    grey, size = sum(look.channels == 1 for look in looks), shape[1:]
    resized = sum((look.height, look.width) != size for look in looks)
    notes = []
    if wish.channels is None and 0 < grey < len(looks):
        rest = counted(len(looks) - grey, "image")
        notes.append(f"{counted(grey, 'image')} in grey and {rest} in colour: all as colour")
    if resized:
        kinds = counted(len({(look.height, look.width) for look in looks}), "size")
        notes.append(
            f"{counted(resized, 'image')} resized to {by(size)}, {_why(looks, wish, size)}; the images have {kinds}"
        )
    return notes


def _why(looks: list[Look], wish: Wish, size: tuple[int, int]) -> str:
    common = _common(looks)
    if wish.size:
        return "as asked"
    return "the most common size" if size == common else f"near the most common, {by(common)}"


def _reduced(height: int, width: int) -> tuple[int, int]:
    """The size with a longer side of at most LARGEST, its shape kept."""
    longer = max(height, width)
    if longer <= LARGEST:
        return height, width
    return max(1, round(height * REDUCED / longer)), max(1, round(width * REDUCED / longer))


def natural(name: str) -> list[tuple[int, int | str]]:
    """The order in which −3 comes before 2, and 2 before 10."""
    pieces = re.split(r"(^-\d+|\d+)", name)
    return [(0, int(piece)) if piece.lstrip("-").isdecimal() else (1, piece) for piece in pieces if piece]


def by(size: tuple[int, int]) -> str:
    """A size in words: 28 × 28, height first."""
    return f"{size[0]} × {size[1]}"


def _refuse_too_large(count: int, shape: Shape) -> None:
    total = count * shape[0] * shape[1] * shape[2]
    if total > MEMORY:
        raise CallError(
            f"size: images that take at most {MEMORY >> 30} GiB of memory; got {counted(count, 'image')} of "
            f"{by(shape[1:])}, {total / 2**30:.0f} GiB; pass a smaller size, such as size=64"
        )
