"""One picture as bytes of a given shape: whatever its numbers were, 0 is black and 255 is white.

truths           0, 255                      uint16    x · 255 / 65535, rounded
uint8            as they are                 floats    x · 255 if all are from 0 to 1, x if all are from 0 to 255
other integers   as uint8 if from 0 to 255, as uint16 if from 0 to 65535
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from ...algebra.errors import CallError
from ...inputs.images import pixels
from ...inputs.pillow import picture

BYTE, WORD = 255, 65535


def read_image(path: str | os.PathLike[str], shape: tuple[int, int, int]) -> Any:
    """An image file as a tensor (channels, height, width) of uint8, as the images of a training were read."""
    found = as_bytes(pixels(os.fspath(path)))
    if found is None:
        raise CallError(f"path: an image with numbers from 0 to 1, 255 or 65535; got others in {os.fspath(path)!r}")
    return torch.from_numpy(fitted(found, shape))


def as_bytes(array: Any) -> Any | None:
    """The numbers of one image, or of many, as uint8; None if their range is not known."""
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(BYTE)
    if array.size == 0 or array.min() < 0:
        return None
    return _scaled(array, array.max())


def _scaled(array: Any, most: Any) -> Any | None:
    if array.dtype.kind in "ui":
        word = array.dtype == np.uint16 or most > BYTE
        if most > WORD:
            return None
        return ((array.astype(np.uint32) * BYTE + WORD // 2) // WORD if word else array).astype(np.uint8)
    if array.dtype.kind != "f" or not most <= BYTE:  # as NaN is not
        return None
    return np.rint(array * BYTE if most <= 1 else array).astype(np.uint8)


def fitted(image: Any, shape: tuple[int, int, int]) -> Any:
    """A picture (height, width) or (height, width, 3) of bytes as (channels, height, width), stretched if need be."""
    channels, *size = shape
    flat = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    if list(flat.shape[:2]) != size or (flat.ndim == 2) != (channels == 1):
        drawn = picture(flat).convert("L" if channels == 1 else "RGB")
        flat = np.asarray(drawn.resize((size[1], size[0]), _bilinear()))
    return np.array(flat[None] if channels == 1 else flat.transpose(2, 0, 1))


def _bilinear() -> Any:
    from PIL.Image import Resampling  # `picture` has said so if there is no Pillow

    return Resampling.BILINEAR  # smooths where it makes smaller, and invents no brightness beyond the neighbours'
