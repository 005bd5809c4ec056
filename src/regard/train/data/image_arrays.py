"""Images that are arrays already: idx files as MNIST has them, and NumPy's .npz. No pickle is ever loaded.

idx   0 0 8 r | r lengths of 4 bytes, the highest first | bytes         r = 3 for images, 1 for labels
npz   x_train, y_train, x_test, y_test, or train_images, train_labels, …;  or images, labels
"""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...algebra.errors import CallError, KindError
from ...inputs.images import pixels
from ...inputs.pillow import picture
from .gallery import Gallery, Look, natural
from .pictures import as_bytes

IDX = re.compile(r"^(?P<set>.*?)[-_]?(?P<part>train|t10k|test)[-_](?P<what>images|labels)[-.]idx[13]-ubyte(\.gz)?$")
UNSIGNED = 8  # idx's number for bytes
MOST_CHANNELS = 4  # colours and alpha
NAMES = {  # of images and labels in an .npz, of what is learned from and of what is held out
    "training": (
        ("x_train", "y_train"),
        ("train_images", "train_labels"),
        ("images", "labels"),
        ("x", "y"),
    ),
    "held_out": (("x_test", "y_test"), ("test_images", "test_labels")),
}
DAMAGED = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False)
class Arrays(Gallery):
    """Images of one size (count, height, width) or (count, height, width, channels), bytes, and their labels."""

    images: Any
    labels: Any

    def look(self, row: int) -> Look:
        """The same for all."""
        _, height, width, *channels = self.images.shape
        return Look(height, width, 1 if not channels or channels[0] < 3 else 3)

    def picture(self, row: int) -> Any:
        """Alpha laid over white."""
        image = self.images[row]
        return pixels(picture(image)) if image.ndim == 3 and image.shape[2] in (2, 4) else image

    def name(self, row: int) -> str:
        """Its number."""
        return f"image {row}"


Part = tuple[Any, Any]  # images and labels, as they are in the file


def galleries(parts: list[Part], where: str) -> tuple[list[Arrays], tuple[str, ...]]:
    """Parts as galleries, and the names of the classes of all labels, which count from 0."""
    labels = [_labels(labels, len(images), where) for images, labels in parts]
    names = sorted({str(name) for each in labels for name in np.unique(each)}, key=natural)
    number = {name: label for label, name in enumerate(names)}
    numbered = [np.array([number[str(name)] for name in each.tolist()], dtype=np.int64) for each in labels]
    found = [_images(images, where) for images, _ in parts]
    return [Arrays(*both) for both in zip(found, numbered, strict=True)], tuple(names)


def _images(images: Any, where: str) -> Any:
    is_first = images.ndim == 4 and images.shape[3] > MOST_CHANNELS >= images.shape[1]
    channels_last = np.moveaxis(images, 1, 3) if is_first else images
    if images.ndim not in (3, 4) or channels_last.shape[3:] > (MOST_CHANNELS,) or 0 in images.shape:
        raise CallError(
            f"source: images (count, height, width) or (count, height, width, channels); got shape {images.shape} "
            f"in {where}; reshape them"
        )
    found = as_bytes(channels_last)
    if found is None:
        raise CallError(
            f"source: images of bytes, or floats from 0 to 1 or to 255; got {images.dtype} in {where}; scale them"
        )
    return found


def _labels(labels: Any, count: int, where: str) -> Any:
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim != 1 or flat.dtype.kind not in "iubU":
        hint = "; pass labels.argmax(1)" if flat.ndim == 2 else ""
        raise CallError(
            f"source: one label for each image, integers or names; got {labels.dtype} of shape {labels.shape} "
            f"in {where}{hint}"
        )
    if len(flat) != count:
        raise CallError(f"source: one label for each image; got {len(flat)} labels of {count} images in {where}")
    return flat


# -- npz -------------------------------------------------------------------------------------------------------


def read_npz(path: Path) -> list[Part]:
    """The parts of an .npz file: what is learned from and, if it is there, what is held out."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:  # NumPy leaves a damaged one open
            found = [_named(file, NAMES[part]) for part in ("training", "held_out")]
            held = list(file.keys())
    except DAMAGED as error:
        if "allow_pickle" in str(error):
            raise KindError(
                f"source: arrays of numbers; got a pickle in {str(path)!r}, which is never loaded; save them as numbers"
            ) from None
        raise KindError(f"source: a whole .npz file; got {str(path)!r}, which cannot be read: {error}") from None
    if found[0] is None:
        raise CallError(
            f"source: an .npz with x_train and y_train (and x_test, y_test), or images and labels; "
            f"got {', '.join(held) or 'nothing'} in {str(path)!r}"
        )
    return [part for part in found if part is not None]


def _named(file: Any, names: tuple[tuple[str, str], ...]) -> Part | None:
    return next(((file[x], file[y]) for x, y in names if x in file and y in file), None)


# -- idx -------------------------------------------------------------------------------------------------------


def idx_files(folder: Path) -> dict[str, Path]:
    """The idx files of a folder: train-images, train-labels, test-images, test-labels; unpacked ones are preferred."""
    matched = [(IDX.match(path.name), path) for path in sorted(folder.iterdir(), reverse=True)]
    known = [(match, path) for match, path in matched if match]
    sets = sorted({match["set"] for match, _ in known})
    if len(sets) > 1:
        raise CallError(f"source: idx files of one data set; got {', '.join(sets)} in {str(folder)!r}; move them apart")
    return {f"{'train' if match['part'] == 'train' else 'test'}-{match['what']}": path for match, path in known}


def read_idx(files: dict[str, Path]) -> list[Part]:
    """The parts that the files hold."""
    parts = [part for part in ("train", "test") if any(name.startswith(part) for name in files)]
    missing = [name for part in ("train", *parts) for name in (f"{part}-images", f"{part}-labels") if name not in files]
    if missing:
        where = str(next(iter(files.values())).parent)
        raise CallError(f"source: idx files of images and of labels; got no {missing[0]} in {where!r}; add them")
    return [(_idx(files[f"{part}-images"], 3), _idx(files[f"{part}-labels"], 1)) for part in parts]


def _idx(path: Path, rank: int) -> Any:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except DAMAGED as error:
        raise KindError(f"source: a whole idx file; got {str(path)!r}, which cannot be unpacked: {error}") from None
    start = 4 + 4 * rank
    if data[:4] != bytes([0, 0, UNSIGNED, rank]) or len(data) < start:
        raise KindError(f"source: an idx file of bytes with {rank} axes; got {str(path)!r}, which begins like none")
    lengths = np.frombuffer(data, ">u4", count=rank, offset=4).astype(np.int64)
    if len(data) != start + lengths.prod():
        raise KindError(
            f"source: a whole idx file; got {str(path)!r}, with {len(data)} bytes where its first bytes tell of "
            f"{start + lengths.prod()}; copy it again"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(lengths)
