"""Labelled images to learn from, and images held out of it.

    pixels (count, channels, height, width), uint8          labels (count,), int64, from 0          one name a class

From a folder of class folders, MNIST's idx files, an .npz, or scikit-learn's digits. They stay bytes in memory; a
batch makes floats of what it needs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...algebra.errors import CallError, KindError, MissingExtra
from .gallery import Gallery, Hung, Progress, Wish, by, hang
from .holding_out import check_share, stratified
from .image_arrays import Arrays, galleries, idx_files, read_idx, read_npz
from .image_files import read_folder
from .normal import Normal
from .patching import fitting, patch_for
from .pictures import read_image
from .skipped import Skipped, counted, listed

__all__ = ["Images", "Normal", "Part", "patch_for", "read_image", "read_images"]

COLOURS = {"keep": None, "grey": 1, "colour": 3}
LEVELS = 16  # of scikit-learn's digits


@dataclass(frozen=True, eq=False)
class Part:
    """Images and their labels: pixels (count, channels, height, width), uint8, and labels (count,), int64."""

    pixels: Any
    labels: Any

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: Any) -> Part:
        """The same on a device."""
        return Part(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True, eq=False)
class Images:
    """Images to learn from and images held out, the names of the classes, and notes on what was done to them."""

    training: Part
    held_out: Part
    classes: tuple[str, ...]
    name: str
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        channels, height, width = self.training.pixels.shape[1:]
        return channels, height, width

    @property
    def patch(self) -> int:
        """The side of a patch that suits them."""
        return patch_for(*self.shape[1:])

    @cached_property
    def normal(self) -> Normal:
        """Their mean and deviation, of those to learn from."""
        return Normal.of(self.training.pixels)

    def to(self, device: Any) -> Images:
        """The same on a device."""
        return replace(self, training=self.training.to(device), held_out=self.held_out.to(device))

    def __repr__(self) -> str:
        channels, height, width = self.shape
        return (
            f"Images({self.name!r}: {len(self.training)} and {len(self.held_out)} held out, "
            f"{len(self.classes)} classes, {channels} × {height} × {width})"
        )


def read_images(
    source: str | os.PathLike[str] | None = None,
    *,
    size: int | tuple[int, int] | None = None,
    colour: str = "keep",
    held_out: float = 0.2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Images:
    """Images from a folder, an .npz file or, without a source, scikit-learn's digits.

    source:    a folder with a folder of images for each class, or with train/ and test/ that hold such;
               a folder with MNIST's idx files, packed or not; an .npz with x_train, y_train, x_test, y_test, or
               with images and labels
    size:      in pixels, (height, width) or one number for both; else the most common, or one near it that patches
               fill, and at most 256 on the longer side
    colour:    "keep", "grey" or "colour"; where grey and colour are mixed, "keep" gives colour
    held_out:  the share of every class that is held out, where the source does not say; drawn from the seed
    progress:  called now and then with what is done and all there is to do

    Files that are no images, or are damaged, are skipped and counted in the notes; if they are most, that is an error.

    >>> images = read_images()
    >>> images
    Images('digits': 1438 and 359 held out, 10 classes, 1 × 8 × 8)
    >>> images.patch
    2
    """
    share, wish, skipped = check_share(held_out), _wish(size, colour), Skipped("file")
    found, classes, name = _open(source, skipped)
    total = sum(map(len, found)) + len(skipped)
    hung, notes = hang(found, wish, skipped, progress)
    skipped.refuse_most(total, repr(name), "name a folder of images, or convert them to PNG")
    _refuse_few(hung, classes, name)
    training, held = hung if len(hung) == 2 else _divided(hung[0], share, seed)
    parts = [Part(torch.from_numpy(part.pixels), torch.from_numpy(part.labels)) for part in (training, held)]
    told = (*skipped.notes(), *notes, *_missing(held, classes), *_shared(training, held))
    return Images(parts[0], parts[1], classes, name, told)


# -- sources ---------------------------------------------------------------------------------------------------


def _open(source: Any, skipped: Skipped) -> tuple[Sequence[Gallery], tuple[str, ...], str]:
    """Galleries, one or two, the names of the classes, and what to call it all."""
    if source is None:
        return [_digits()], tuple(map(str, range(10))), "digits"
    if not isinstance(source, str | os.PathLike):
        raise KindError(f"source: a folder, an .npz file, or None for digits; got {type(source).__name__}")
    path = Path(source)
    if not path.exists():
        raise CallError(f"source: a folder or an .npz file; got {str(path)!r}, which is not there")
    if path.is_file():
        return *galleries(_npz(path), repr(str(path))), path.stem
    name, files = path.resolve().name, idx_files(path)
    return (*galleries(read_idx(files), repr(str(path))), name) if files else (*read_folder(path, skipped), name)


def _npz(path: Path) -> Any:
    if path.suffix != ".npz":
        hint = "; unpack it first" if path.suffix in (".zip", ".gz", ".tar", ".tgz", ".7z", ".xz", ".bz2") else ""
        raise KindError(f"source: a folder of images or an .npz file; got the file {str(path)!r}{hint}")
    return read_npz(path)


def _digits() -> Arrays:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn", "train") from None
    digits = load_digits()
    return Arrays(np.rint(digits.images * 255 / LEVELS).astype(np.uint8), digits.target.astype(np.int64))


def _wish(size: Any, colour: Any) -> Wish:
    if colour not in COLOURS:
        raise CallError(f"colour: one of {', '.join(map(repr, COLOURS))}; got {colour!r}")
    if size is None:
        return Wish(None, COLOURS[colour])
    both = (size, size) if isinstance(size, int) else size
    if not (isinstance(both, tuple | list) and len(both) == 2 and all(_is_side(side) for side in both)):
        raise CallError(f"size: one number of pixels, or (height, width), each at least 1; got {size!r}")
    high, wide = both
    if fitting(high, wide) != (high, wide):
        raise CallError(
            f"size: one that 16 to 64 square patches fill; got {by((high, wide))}; the nearest is "
            f"{by(fitting(high, wide))}"
        )
    return Wish((high, wide), COLOURS[colour])


def _is_side(side: object) -> bool:
    return isinstance(side, int) and not isinstance(side, bool) and side >= 1


# -- parts -----------------------------------------------------------------------------------------------------


def _divided(hung: Hung, held_out: float, seed: int) -> tuple[Hung, Hung]:
    training, held = (Hung(hung.pixels[rows], hung.labels[rows]) for rows in stratified(hung.labels, held_out, seed))
    return training, held


def _refuse_few(hung: Sequence[Hung], classes: tuple[str, ...], name: str) -> None:
    """Two classes at least, and in each an image to learn from; and one to hold out if it is to be drawn."""
    if len(classes) < 2:
        raise CallError(f"source: images of at least two classes; got {listed(classes) or 'none'} in {name!r}")
    least = 1 if len(hung) == 2 else 2
    counts = np.bincount(hung[0].labels, minlength=len(classes))
    few = [f"{classes[label]!r} with {count}" for label, count in enumerate(counts) if count < least]
    if few:
        why = "one to learn from and one to hold out" if least == 2 else "to learn from"
        raise CallError(
            f"source: at least {counted(least, 'image')} of each class, {why}; got {listed(few)} in {name!r}; "
            "add images, or remove the class"
        )
    if len(hung) == 2 and not len(hung[1].labels):
        raise CallError(f"source: images to hold out; got none in the test part of {name!r}; add some, or remove it")


def _missing(held: Hung, classes: tuple[str, ...]) -> list[str]:
    without = [classes[label] for label in range(len(classes)) if label not in set(np.unique(held.labels).tolist())]
    return [f"no image held out of {counted(len(without), 'class', 'classes')}: {listed(without)}"] if without else []


def _shared(training: Hung, held: Hung) -> list[str]:
    """A note if images are on both sides: what is held out is then easier than what is new."""
    learned = {_print(image) for image in training.pixels}
    both = sum(_print(image) in learned for image in held.pixels)
    return [f"{counted(both, 'held-out image')} equal to one that is learned from"] if both else []


def _print(image: Any) -> bytes:
    return blake2b(np.ascontiguousarray(image).data, digest_size=16).digest()
