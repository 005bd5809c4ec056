"""An image as a matrix X with one row for each patch, and back.

    image (…, height, width, channels)  →  X (…, N, D)        N = rows · columns,  D = h · w · channels
    X (…, N, D)  →  [token; X] (…, N + 1, D)                  a class token stands first

`regard.inputs.grid` says where each number goes, and `regard.inputs.pillow` what the numbers of an image file are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import as_array, is_array, library
from ..algebra.errors import CallError, KindError
from .grid import Grid, at_least, pair
from .layouts import layout_of
from .pillow import is_picture, picture_array


@dataclass(frozen=True, eq=False)
class Patches:
    """An image as vectors (…, N, D), and the grid that leads back to it. `len` is N; NumPy reads it as its vectors."""

    vectors: Any
    grid: Grid

    @property
    def shape(self) -> tuple[int, ...]:
        """(…, N, D)."""
        return tuple(self.vectors.shape)

    def __len__(self) -> int:
        return len(self.grid)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        plain = np.asarray(library(self.vectors).constant(self.vectors))  # not every library knows copy=
        return np.array(plain, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Patches({self.vectors.dtype} of shape {self.shape}, {self.grid})"

    def image(self) -> Any:
        """The image in the layout, dtype and library it came in, bit for bit; without what "crop" dropped.

        A Pillow image comes back as its `pixels`; `picture` makes an image of them.
        """
        return self.grid.image(self.vectors)

    def paint(self, weights: Any, *, skip: int = 0) -> Any:
        """A map (…, height, width) of the image in which each pixel has the number of its patch; see `Grid.paint`."""
        return self.grid.paint(weights, skip=skip)


def patches(image: Any, size: int | tuple[int, int], *, rest: str = "pad", layout: str | None = None) -> Patches:
    """Cut an image, or a batch of images of one size, into patches of `size` pixels, or of (height, width).

        vectors[r·columns + c, (y·w + x)·channels + z] = image[r·h + y, c·w + x, z]

    `image` is whatever `pixels` reads. The dtype of an array is kept: `unit` makes numbers from 0 to 1 of it first.
    `rest` says what becomes of pixels at the right and at the bottom that fill no patch:

        "pad"     the last column and row are repeated until they do, so nothing is lost
        "crop"    they are dropped
        "refuse"  an error

    `layout` names the axes of an array: "hw", "hwc" or "chw", with a "b" in front for each axis of a batch. If it is
    not given, two axes are hw, and of more the last is that of the channels if its length is 1 to 4, or the third to
    last is: where both are, or none, it has to be said. The vectors may share memory with the array.

    >>> import numpy as np
    >>> cut = patches(np.arange(10).reshape(2, 5), (2, 3))
    >>> cut
    Patches(int64 of shape (2, 6), Grid(size=(2, 3), height=2, width=5, channels=1, layout='hw', rest='pad'))
    >>> cut.vectors
    array([[0, 1, 2, 5, 6, 7],
           [3, 4, 4, 8, 9, 9]])
    >>> cut.image()
    array([[0, 1, 2, 3, 4],
           [5, 6, 7, 8, 9]])
    >>> cut.paint([0.25, 0.75])
    array([[0.25, 0.25, 0.25, 0.75, 0.75],
           [0.25, 0.25, 0.25, 0.75, 0.75]])
    """
    array, known = _read(image, 255)
    axes = layout_of(tuple(array.shape), layout, known)
    lengths = dict(zip(axes, array.shape[-len(axes) :], strict=True))
    if not all(lengths.values()):
        raise CallError(f"image: at least one pixel and one channel; got shape {tuple(array.shape)}")
    grid = Grid(pair(size), lengths["h"], lengths["w"], lengths.get("c", 1), axes, rest)
    return Patches(grid.vectors(array), grid)


def pixels(image: Any, *, background: int | None = 255) -> Any:
    """The numbers of an image.

    An array is what it is; nested lists are NumPy's float64. A Pillow image, or the path of an image file, is read by
    the rules of its mode (see `regard.inputs.pillow`): grey is (height, width), colours are (height, width, 3), and
    transparent pixels lie on a grey `background` from 0 to 255, or with None keep their alpha as the last channel.
    A list of images of one size, dtype and library is stacked to a batch.
    """
    if background is not None and at_least(0, background, "background") > 255:
        raise CallError(f"background: a grey from 0, black, to 255, white, or None to keep alpha; got {background}")
    return _read(image, background)[0]


def unit(image: Any) -> Any:
    """The numbers of an image from 0 to 1: those of n bits without sign / (2ⁿ − 1) in float32; floats as they are.

    >>> import numpy as np
    >>> unit(np.array([[0, 51, 255]], np.uint8))
    array([[0. , 0.2, 1. ]], dtype=float32)
    """
    array = pixels(image)
    xp = library(array)
    if xp.is_real(array):
        return array
    if xp.is_bool(array):
        return xp.astype(array, xp.float32)
    if not xp.is_integer(array) or xp.iinfo(array.dtype).min < 0:
        raise CallError(
            f"image: floats, truths, or integers without sign, whose range is known; got {array.dtype}; "
            "divide it by its largest value"
        )
    return xp.astype(array, xp.float32) / xp.iinfo(array.dtype).max


def class_token(x: Any, token: Any | None = None) -> Any:
    """[token; x]: vectors (…, N, D) with the token (D,) in front, (…, N + 1, D). Without a token it is zero.

    Gradients flow into both. `Grid.paint(weights, skip=1)` leaves the token out again.

    >>> class_token([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    array([[5., 6.],
           [1., 2.],
           [3., 4.]])
    """
    x = as_array(x, "x")
    if x.ndim < 2:
        raise CallError(f"x: vectors (…, N, D); got shape {tuple(x.shape)}; pass x[None] for one vector")
    xp, shape = library(x), (*x.shape[:-2], 1, x.shape[-1])
    if token is None:
        return xp.concat([xp.zeros(shape, dtype=x.dtype, device=xp.device(x)), x], axis=-2)
    token = as_array(token, "token")
    one, other = (f"{library(a).name} {a.dtype}" for a in (x, token))
    if one != other or tuple(token.shape) != shape[-1:]:
        raise CallError(
            f"token: of x's library, dtype and width, {one} of shape {shape[-1:]}; got {other} of shape "
            f"{tuple(token.shape)}; cast or reshape it"
        )
    return xp.concat([xp.broadcast_to(token, shape), x], axis=-2)


# -- the door ------------------------------------------------------------------------------------------------------


def _read(image: Any, background: int | None) -> tuple[Any, str | None]:
    """The numbers of an image, and the layout if its kind says it."""
    if is_picture(image):
        array = picture_array(image, background)
        return array, "hw" if array.ndim == 2 else "hwc"
    if isinstance(image, list | tuple) and (is_picture(_first(image)) or is_array(_first(image))):
        return _stacked([_read(one, background) for one in image])
    if not is_array(image) and not isinstance(image, list | tuple):
        kind = type(image).__name__
        raise KindError(f"image: an array, nested lists, a Pillow image, a path, or a list of such; got {kind}")
    array = as_array(image, "image")
    if isinstance(array, np.ndarray) and array.dtype.kind in "OSUTmM":
        raise KindError(f"image: numbers or truths; got an array of {array.dtype}")
    return array, None


def _first(image: Any) -> Any:
    while isinstance(image, list | tuple) and image:
        image = image[0]
    return image


def _stacked(images: list[tuple[Any, str | None]]) -> tuple[Any, str | None]:
    """A batch, of images that are of one kind."""
    kinds = {f"{library(one).name} {one.dtype} of shape {tuple(one.shape)}": layout for one, layout in images}
    if len(kinds) > 1:
        raise CallError(
            f"image: a batch has one size, dtype and number of channels; got {' and '.join(list(kinds)[:2])}; "
            "resize or convert them, or cut each by itself"
        )
    arrays, layouts = zip(*images, strict=True)
    return library(arrays[0]).stack(arrays), layouts[0]
