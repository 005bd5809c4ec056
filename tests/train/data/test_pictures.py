"""One picture as bytes: black is 0 and white is 255, whatever the numbers were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from regard.algebra.errors import CallError
from regard.train.data.pictures import as_bytes, fitted, read_image

KINDS: dict[str, tuple[Any, list[int]]] = {
    "truths": (np.array([False, True]), [0, 255]),
    "uint8": (np.array([0, 7, 255], np.uint8), [0, 7, 255]),
    "uint16": (np.array([0, 257, 65535], np.uint16), [0, 1, 255]),
    "uint16, dark": (np.array([0, 128, 129], np.uint16), [0, 0, 1]),
    "int32 of bytes": (np.array([0, 7, 255], np.int32), [0, 7, 255]),
    "int32 of words": (np.array([0, 257 * 7, 65535], np.int32), [0, 7, 255]),
    "floats to 1": (np.array([0, 0.5, 1]), [0, 128, 255]),
    "floats to 255": (np.array([0, 7.4, 255], np.float32), [0, 7, 255]),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_numbers(name: str) -> None:
    array, expected = KINDS[name]
    found = as_bytes(array)
    assert found is not None
    assert found.dtype == np.uint8
    assert found.tolist() == expected


@pytest.mark.parametrize("numbers", [[-1.0, 1], [0.0, 256], [np.nan, 1], [-1, 3], [0, 65536], []])
def test_numbers_of_an_unknown_range(numbers: list[float]) -> None:
    assert as_bytes(np.array(numbers)) is None


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3)])
@pytest.mark.parametrize("size", [(5, 7), (3, 11)])
def test_any_picture_fits_any_shape(channels: int, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    found = fitted(np.full(shape, 77, np.uint8), (channels, *size))
    assert found.shape == (channels, *size)
    assert found.dtype == np.uint8
    assert (found == 77).all()


def test_channels_and_axes_keep_their_places() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    found = fitted(image, (3, 5, 7))
    assert all(found[c, y, x] == image[y, x, c] for c in range(3) for y in range(5) for x in range(7))
    left = np.zeros((4, 6), np.uint8)
    left[:, :3] = 255
    small = fitted(left, (1, 2, 2))[0]
    assert small[0].tolist() == small[1].tolist()
    assert small[0, 0] > 200
    assert small[0, 1] < 55


def test_one_image_as_the_others_were(tmp_path: Path) -> None:
    Image.new("RGB", (4, 6), (255, 255, 255)).save(tmp_path / "white.png")
    found = read_image(tmp_path / "white.png", (1, 8, 8))
    assert torch.equal(found, torch.full((1, 8, 8), 255, dtype=torch.uint8))
    Image.fromarray(np.array([[-1.0, 7]], np.float32)).save(tmp_path / "odd.tiff")
    with pytest.raises(CallError, match=r"path: an image with numbers from 0 to 1, 255 or 65535; got others in '.*odd"):
        read_image(tmp_path / "odd.tiff", (1, 8, 8))
