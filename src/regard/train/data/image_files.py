"""A folder with a folder of image files for each class.

    source/cat/1.png, source/dog/2.jpg, …                            a share of every class is held out
    source/train/cat/1.png, …, source/test/cat/3.png, …              as it is; val/ stands for test/ if there is none

Hidden files and those that systems leave behind are passed over. Classes are in the order of their names, numbers in
that of their values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...algebra.errors import CallError, MissingExtra
from ...inputs.images import pixels
from ...inputs.pillow import UNREADABLE
from .gallery import Gallery, Look, Unusable, natural
from .pictures import as_bytes
from .skipped import Skipped, listed

TRAINING, HELD_OUT = ("train", "training"), ("test", "testing", "val", "valid", "validation")
LEFT_BEHIND = {"thumbs.db", "desktop.ini", "__macosx"}
GREY = ("1", "L", "LA", "La", "I", "F")  # and every I;16
ORIENTATION, SIDEWAYS = 0x0112, (5, 6, 7, 8)
LAYOUT = "a folder of images for each class, such as {0}/cat/1.png and {0}/dog/2.png, or {0}/train and {0}/test of such"


@dataclass(frozen=True, eq=False)
class Files(Gallery):
    """Image files, and the label of each."""

    paths: tuple[Path, ...]
    labels: Any
    root: Path

    def look(self, row: int) -> Look:
        """The size that the file's first bytes tell."""
        pillow = _pillow()
        try:
            with pillow.open(self.paths[row]) as image:
                grey = image.mode in GREY or image.mode.startswith("I;16")
                high, wide = (image.width, image.height) if _is_sideways(image) else (image.height, image.width)
                return Look(high, wide, 1 if grey else 3)
        except (*UNREADABLE, pillow.DecompressionBombError) as error:
            raise Unusable(_reason(error)) from error

    def picture(self, row: int) -> Any:
        """Alpha laid over white, turned as its EXIF orientation says."""
        try:
            found = as_bytes(pixels(self.paths[row]))
        except CallError as error:
            raise Unusable(_reason(error.__cause__ or error)) from error
        if found is None:
            raise Unusable("with numbers of an unknown range")
        return found

    def name(self, row: int) -> str:
        """The path inside the folder."""
        return self.paths[row].relative_to(self.root).as_posix()


def read_folder(folder: Path, skipped: Skipped) -> tuple[list[Files], tuple[str, ...]]:
    """The training files, those held out if the folder says so, and the names of the classes."""
    training, held_out = _parts(folder)
    _refuse_no_classes(folder, training)
    classes = tuple(sorted((found.name for found in _folders(training)), key=natural))
    parts = [part for part in (training, held_out) if part is not None]
    for part in parts:
        for stray in _files(part, deep=False):
            skipped.add("outside the folders of the classes", stray.relative_to(folder).as_posix())
    return [_labelled(part, classes, folder) for part in parts], classes


def _parts(folder: Path) -> tuple[Path, Path | None]:
    found = {path.name.lower(): path for path in _folders(folder) if _folders(path)}  # a class may be called train, too
    training = next((found[name] for name in TRAINING if name in found), None)
    if training is None:
        return folder, None
    return training, next((found[name] for name in HELD_OUT if name in found), None)


def _labelled(part: Path, classes: tuple[str, ...], root: Path) -> Files:
    unknown = [found.name for found in _folders(part) if found.name not in classes]
    if unknown:
        raise CallError(
            f"source: the classes of {part.name!r} among those to learn, {listed(classes)}; got {listed(unknown)} "
            f"in {str(part)!r}; add images of it to learn from, or remove it"
        )
    paths = [(path, label) for label, name in enumerate(classes) for path in _files(part / name, deep=True)]
    return Files(tuple(path for path, _ in paths), np.array([label for _, label in paths], dtype=np.int64), root)


def _refuse_no_classes(folder: Path, training: Path) -> None:
    classes, loose = _folders(training), _files(training, deep=False)
    if len(classes) >= 2:
        return
    if classes:
        got = f"one class only, {classes[0].name!r}"
    elif loose:
        got = f"{len(loose)} files and no folders"
    else:
        got = "nothing"
    inside = next(filter(_is_source, chain(classes, *map(_folders, classes))), None)
    hint = f"; did you mean {str(inside)!r}?" if inside else ""
    raise CallError(f"source: {LAYOUT.format(folder.name)}; got {got} in {str(training)!r}{hint}")


def _is_source(folder: Path) -> bool:
    return len(_folders(folder)) >= 2 or any("idx3-ubyte" in file.name for file in _files(folder, deep=False))


# -- files and folders -----------------------------------------------------------------------------------------


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in _shown(folder.iterdir()) if path.is_dir())


def _files(folder: Path, *, deep: bool) -> list[Path]:
    """The files of a folder, and of those in it if deep; in the order of their names."""
    if not folder.is_dir():
        return []
    if not deep:
        return sorted(path for path in _shown(folder.iterdir()) if path.is_file())
    here = [path for path in _shown(folder.iterdir()) if not path.is_dir()]
    return sorted([*here, *(path for inside in _folders(folder) for path in _files(inside, deep=True))])


def _shown(paths: Iterable[Path]) -> Iterable[Path]:
    return (path for path in paths if not path.name.startswith(".") and path.name.lower() not in LEFT_BEHIND)


# -- Pillow ----------------------------------------------------------------------------------------------------


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow", "train") from None
    return Image


def _is_sideways(image: Any) -> bool:
    if "exif" not in image.info:  # to look further, Pillow would read a PNG whole; and a TIFF's size is turned
        return False
    return image.getexif().get(ORIENTATION) in SIDEWAYS


def _reason(error: BaseException) -> str:
    """Why a file is left out, in words that many share."""
    match type(error).__name__:
        case "UnidentifiedImageError":
            return "no image that Pillow knows"
        case "FileNotFoundError":
            return "not there: a link that leads nowhere"
        case "PermissionError":
            return "that may not be read"
        case "DecompressionBombError":
            return "too large to be safe"
    return "damaged"
