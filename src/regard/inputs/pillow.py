"""Pillow images and image files as arrays, and arrays as Pillow images.

    mode                                      array
    1                                         truths (height, width)
    L                                         uint8 (height, width)
    I;16, I;16L, I;16B, I;16N;  I;  F         uint16; int32; float32 (height, width): the numbers as they are
    RGB                                       uint8 (height, width, 3)
    RGBX, CMYK, YCbCr, LAB, HSV, P            as RGB; a palette is looked up
    LA, La;  1, L with a transparent value    grey and alpha
    RGBA, RGBa, PA;  P, RGB with such         RGB and alpha

Alpha α is laid over a grey g, so that a pixel is what one would see: (α c + (255 − α) g) / 255, rounded. An image is
turned as its EXIF orientation says. Of an animated file the first frame is read; of an open image, the present one.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import as_array, library
from ..algebra.errors import CallError, MissingExtra

AS_THEY_ARE = {"1", "L", "RGB", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"}
WITH_ALPHA = {"1": "LA", "L": "LA", "LA": "LA", "La": "LA"} | dict.fromkeys(("RGB", "RGBA", "RGBa", "P", "PA"), "RGBA")
KINDS = {*(("uint8", channels) for channels in (1, 2, 3, 4)), ("bool", 1), ("uint16", 1), ("int32", 1), ("float32", 1)}
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, RuntimeError, struct.error)  # what Pillow raises about bytes


def is_picture(image: object) -> bool:
    """Whether this is a Pillow image or a path."""
    module = sys.modules.get("PIL.Image")  # before that is loaded there is no such image
    return isinstance(image, str | os.PathLike) or (module is not None and isinstance(image, module.Image))


def picture_array(image: Any, background: int | None) -> Any:
    """(height, width) or (height, width, channels) of a Pillow image or a file; without background, with alpha."""
    upright = _upright(image)
    mode = _read_as(upright)
    try:
        array = np.asarray(upright if mode == upright.mode else upright.convert(mode))
    except ValueError as error:
        raise CallError(f"image: mode {upright.mode!r} cannot be read as {mode}: {error}; convert it to RGB") from error
    if mode in WITH_ALPHA.values() and background is not None:
        array = _laid_over(array, background)
    return array.astype(array.dtype.newbyteorder("="))


def picture(array: Any) -> Any:
    """The Pillow image with the numbers of an array (height, width) or (height, width, channels).

    uint8 with 1 to 4 channels gives L, LA, RGB or RGBA; one channel of truths gives 1, of uint16 I;16, of int32 I, of
    float32 F. So it undoes `pixels`.
    """
    array = as_array(array, "array")
    array = np.asarray(library(array).constant(array))
    flat = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    kind = flat.dtype.name, flat.shape[2] if flat.ndim == 3 else 1
    if flat.ndim not in (2, 3) or kind not in KINDS:
        raise CallError(
            "array: (height, width) of truths, uint8, uint16, int32 or float32, or (height, width, channels) of uint8 "
            f"with up to 4 channels; got {array.dtype.name} of shape {array.shape}; cast it, move channels last"
        )
    return _pillow().fromarray(np.ascontiguousarray(flat))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow", "inputs") from None
    return Image


def _upright(image: Any) -> Any:
    """A copy of the image, read to its end and turned as its EXIF orientation says."""
    opened = _pillow().open if isinstance(image, str | os.PathLike) else contextlib.nullcontext
    from PIL.ImageOps import exif_transpose

    with _reading(image), opened(image) as source:
        return exif_transpose(source)


@contextlib.contextmanager
def _reading(image: Any) -> Iterator[None]:
    name = f"{os.fspath(image)!r:.200}" if isinstance(image, str | os.PathLike) else "the Pillow image"
    try:
        yield
    except FileNotFoundError as error:
        raise CallError(f"image: there is no file {name}; check the path, from {str(Path.cwd())!r}") from error
    except (*UNREADABLE, _pillow().DecompressionBombError) as error:
        raise CallError(f"image: {name} cannot be read: {error}; pass an image that Pillow can open") from error


def _read_as(image: Any) -> str:
    """The mode whose numbers the image is given by."""
    palette = image.mode == "P" and image.palette is not None and image.palette.mode.endswith("A")
    transparent = image.mode.lower().endswith("a") or palette or "transparency" in image.info
    if transparent and image.mode in WITH_ALPHA:
        return WITH_ALPHA[image.mode]
    return str(image.mode) if image.mode in AS_THEY_ARE else "RGB"


def _laid_over(array: Any, grey: int) -> Any:
    """(α c + (255 − α) g) / 255, rounded: 255 is odd, so there is no half. One channel loses its axis."""
    colours, alpha = array[..., :-1].astype(np.int32), array[..., -1:].astype(np.int32)
    over = ((alpha * colours + (255 - alpha) * grey + 127) // 255).astype(np.uint8)
    return over[..., 0] if over.shape[-1] == 1 else over
