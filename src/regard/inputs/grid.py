"""Where the patches of an image stand, with image → vectors, vectors → image, and numbers → a map of the image.

    vectors[r·columns + c, (y·w + x)·channels + z] = image[r·h + y, c·w + x, z]
    map[y, x] = weights[(y // h)·columns + x // w]

A patch is h × w pixels; r and c count rows and columns of patches from the top left. Axes in front are batches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._arrays import Library, as_array, library
from ..algebra.errors import CallError, KindError
from .layouts import CHANNELS_LAST, LAID_OUT, moved

RESTS: dict[str, Callable[[int, int], int]] = {  # how many patches of a side go into a length
    "pad": lambda length, side: -(-length // side),
    "crop": lambda length, side: length // side,
    "refuse": lambda length, side: length // side,
}


@dataclass(frozen=True)
class Grid:
    """How an image was cut. `size` is (height, width) of a patch; `height`, `width` and `channels` are the image's.

    `layout` names the last axes of the image: "hw", "hwc" or "chw". `rest` says what becomes of pixels at the right
    and at the bottom that fill no patch: "pad" repeats the last column and row until they do, "crop" drops them,
    "refuse" is an error. The patches of two images with equal grids correspond one by one.

    >>> grid = Grid((16, 16), height=224, width=224)
    >>> grid.rows, grid.columns, grid.shape
    (14, 14, (196, 768))
    >>> grid.place(17), grid.box(17), grid.at(31, 50)
    ((1, 3), (16, 48, 16, 16), 17)
    """

    size: tuple[int, int]
    height: int
    width: int
    channels: int = 3
    layout: str = "hwc"
    rest: str = "pad"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", pair(self.size))
        for name in ("height", "width", "channels"):
            object.__setattr__(self, name, at_least(1, getattr(self, name), name))
        _choice("layout", self.layout, list(LAID_OUT))
        _choice("rest", self.rest, list(RESTS))
        if self.layout == "hw" and self.channels != 1:
            raise CallError(f"channels: 1 in the layout 'hw'; got {self.channels}; pass layout='hwc' or 'chw'")
        self._check_rest()

    def _check_rest(self) -> None:
        image, patch = (f"{height} × {width}" for height, width in ((self.height, self.width), self.size))
        if self.rest == "refuse" and (self.height % self.size[0] or self.width % self.size[1]):
            raise CallError(f"size: patches that fill the image's {image}; got {patch}; pass rest='pad' or rest='crop'")
        if not len(self):
            raise CallError(f"size: at most the image's {image}; got {patch}; pass rest='pad' or a smaller size")

    # -- where a patch is ----------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """How many patches stand one below the other."""
        return RESTS[self.rest](self.height, self.size[0])

    @property
    def columns(self) -> int:
        """How many patches stand side by side."""
        return RESTS[self.rest](self.width, self.size[1])

    def __len__(self) -> int:
        return self.rows * self.columns

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D): how many vectors there are, and how wide they are."""
        return len(self), self.size[0] * self.size[1] * self.channels

    def place(self, index: int) -> tuple[int, int]:
        """The (row, column) of a patch."""
        return divmod(_below(index, len(self), "index"), self.columns)

    def index(self, row: int, column: int) -> int:
        """The index of the patch at a row and column."""
        return _below(row, self.rows, "row") * self.columns + _below(column, self.columns, "column")

    def at(self, y: int, x: int) -> int:
        """The index of the patch that holds the pixel y rows down and x columns to the right."""
        row, column = _below(y, self.height, "y") // self.size[0], _below(x, self.width, "x") // self.size[1]
        if row >= self.rows or column >= self.columns:
            raise CallError(
                f"y, x: a pixel that a patch holds; got {y}, {x}, which rest='crop' dropped; use rest='pad'"
            )
        return self.index(row, column)

    def box(self, index: int) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a patch in pixels, without what lies outside of the image."""
        row, column = self.place(index)
        top, left = row * self.size[0], column * self.size[1]
        return top, left, min(self.size[0], self.height - top), min(self.size[1], self.width - left)

    # -- arrays --------------------------------------------------------------------------------------------------

    def vectors(self, image: Any) -> Any:
        """(…, N, D) from an array of this size and layout, or from a batch of them."""
        image = as_array(image, "image")
        xp, (h, w) = library(image), self.size
        lengths = {"h": self.height, "w": self.width, "c": self.channels}
        _check(image, "image", tuple(lengths[axis] for axis in self.layout), "resize it, or make a grid for its size")
        pixels = CHANNELS_LAST[self.layout](xp, image)  # (…, height, width, channels)
        pixels = _picked(xp, pixels, -3, [min(y, self.height - 1) for y in range(self.rows * h)])
        pixels = _picked(xp, pixels, -2, [min(x, self.width - 1) for x in range(self.columns * w)])
        batch = pixels.shape[:-3]
        patches = moved(xp, xp.reshape(pixels, (*batch, self.rows, h, self.columns, w, self.channels)), -4, -3)
        return xp.reshape(patches, (*batch, *self.shape))  # from (…, rows, columns, h, w, channels)

    def image(self, vectors: Any) -> Any:
        """The image that vectors (…, N, D) stand for, in the layout of the grid; or a batch of them.

        What "pad" added is cut off again; what "crop" dropped stays dropped. Any vectors of this shape will do, such
        as what attention makes of them.
        """
        vectors = as_array(vectors, "vectors")
        xp, (h, w) = library(vectors), self.size
        more = vectors.shape[-2] - len(self) if vectors.ndim > 1 else 0
        hint = f"take vectors[..., {more}:, :] if {more} stand in front of them" if more > 0 else "pass one per patch"
        _check(vectors, "vectors", self.shape, hint)
        batch = vectors.shape[:-2]
        patches = xp.reshape(vectors, (*batch, self.rows, self.columns, h, w, self.channels))
        pixels = xp.reshape(moved(xp, patches, -4, -3), (*batch, self.rows * h, self.columns * w, self.channels))
        return LAID_OUT[self.layout](xp, pixels[..., : self.height, : self.width, :])

    def paint(self, weights: Any, *, skip: int = 0) -> Any:
        """A map (…, height, width) in which each pixel has the number of its patch, from weights (…, N).

        `skip` numbers in front belong to no patch: pass 1 where a class token stands first. The map is as large as
        the image that was cut: pixels that "crop" dropped have 0.

        >>> Grid((2, 2), height=3, width=5, rest="crop").paint([0.25, 0.75])
        array([[0.25, 0.25, 0.75, 0.75, 0.  ],
               [0.25, 0.25, 0.75, 0.75, 0.  ],
               [0.  , 0.  , 0.  , 0.  , 0.  ]])
        """
        weights, skip = as_array(weights, "weights"), at_least(0, skip, "skip")
        xp, more = library(weights), weights.shape[-1] - len(self) if weights.ndim else -1
        hint = f"pass skip={more} if {more} stand in front of them" if more >= 0 else "pass one number per patch"
        _check(weights, "weights", (skip + len(self),), hint)
        numbers = xp.reshape(weights[..., skip:], (*weights.shape[:-1], self.rows, self.columns))
        numbers = _spread(xp, numbers, -2, [y // self.size[0] for y in range(self.height)])
        return _spread(xp, numbers, -1, [x // self.size[1] for x in range(self.width)])


def _picked(xp: Library, array: Any, axis: int, places: Sequence[int]) -> Any:
    """The entries at these places along an axis."""
    if list(places) == list(range(array.shape[axis])):
        return array
    return xp.take(array, xp.asarray(places, device=xp.device(array)), axis=axis)


def _spread(xp: Library, numbers: Any, axis: int, places: Sequence[int]) -> Any:
    """The numbers at these places along an axis; 0 at the place after the last, which only "crop" asks for."""
    none = xp.zeros_like(_picked(xp, numbers, axis, [0]))
    return _picked(xp, xp.concat([numbers, none], axis=axis), axis, places)


# -- the door ------------------------------------------------------------------------------------------------------


def pair(size: object) -> tuple[int, int]:
    """(height, width) from one whole number, or from two."""
    sides = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(sides) != 2:
        raise CallError(f"size: one whole number, or a height and a width; got {size!r}; pass 16 or (16, 16)")
    return at_least(1, sides[0], "size"), at_least(1, sides[1], "size")


def at_least(least: int, value: Any, argument: str) -> int:
    """A whole number that is not too small, as an int of Python."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise KindError(f"{argument}: a whole number; got {value!r}; pass an int")
    if number < least:
        raise CallError(f"{argument}: {least} or more; got {number}")
    return number


def _below(value: Any, end: int, argument: str) -> int:
    """A whole number from 0 to below the end; negative ones do not count from the end."""
    number = at_least(0, value, argument)
    if number >= end:
        raise CallError(f"{argument}: from 0 to {end - 1}; got {number}")
    return number


def _choice(argument: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CallError(f"{argument}: one of {', '.join(map(repr, choices))}; got {value!r}")


def _check(array: Any, argument: str, shape: tuple[int, ...], hint: str) -> None:
    if tuple(array.shape[-len(shape) :]) != shape:
        expected, given = ", ".join(map(str, shape)), tuple(array.shape)
        raise CallError(f"{argument}: of shape (…, {expected}) on this grid; got {given}; {hint}")
