"""Where the files of a saved lens are: in a folder, or stored in one file. They stay there until they are read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .mapped import StoreError


class Place(Protocol):
    """Where the files of a lens are."""

    def bytes(self, name: str) -> Any:
        """The bytes of a file, uint8, on the disk until they are read."""

    def has(self, name: str) -> bool:
        """Whether there is such a file."""


class Folder:
    """Files in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def bytes(self, name: str) -> Any:
        if not self.has(name):
            raise StoreError(f"path: a lens with {name}; got {str(self.path)!r}, which has none; save it again")
        return _mapped(self.path / name, 0, (self.path / name).stat().st_size)


class Zip:
    """Files that are stored in one, uncompressed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.files = {one.filename: one for one in archive.infolist()}
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise StoreError(
                f"path: a folder that a lens saved, or a .zip of one; got {str(path)!r}: {error}"
            ) from None

    def has(self, name: str) -> bool:
        return name in self.files

    def bytes(self, name: str) -> Any:
        if not self.has(name) or self.files[name].compress_type != zipfile.ZIP_STORED:
            raise StoreError(f"path: a lens with {name}, stored uncompressed; got {str(self.path)!r}; save it again")
        one = self.files[name]
        head = bytes(_mapped(self.path, one.header_offset, 30))
        lengths = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        return _mapped(self.path, one.header_offset + 30 + lengths, one.file_size)


def _mapped(path: Path, first: int, size: int) -> Any:
    if first + size > path.stat().st_size:
        raise StoreError(f"path: a whole file; got {path.name!r}, which is cut off")
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "r", offset=first, shape=(size,)))
