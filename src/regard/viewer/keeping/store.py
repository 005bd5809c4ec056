"""A lens on the disk: a folder that anyone may open, since nothing in it is ever run.

    animal.lens/lens.json                  what is kept: see `about`
    animal.lens/0000.safetensors           q, k, v and tables of the first layer
    animal.lens/0000.totals.safetensors    log Z of its rows, (batch, heads, rows), where they are shared along one axis
    animal.lens/image.png                  the image, where there is one

The same files stored in one `animal.lens.zip`, uncompressed, are a lens too. Arrays stay on the disk until they are
read. Names of files are counted, never read from the JSON, so no text in a lens reaches the file system.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._arrays import is_array, numbers
from ...algebra.errors import RegardError
from ..arrays import numpy_of
from ..record import Captured
from ..weighing.totals import Totals, totals
from . import about, mapped
from .mapped import StoreError
from .place import Folder, Place, Zip

if TYPE_CHECKING:
    from ..lenses import Lens

ABOUT, IMAGE = "lens.json", "image.png"
MOST = {ABOUT: 2**28, IMAGE: 2**26}  # bytes
ALONG_ONE_AXIS = ("columns", "rows")

PathLike = str | os.PathLike[str]


# -- writing ---------------------------------------------------------------------------------------------------------


def save(lens: Lens, path: PathLike) -> Path:
    """Write a lens, whole or not at all: a folder, or one file where the path ends in .zip."""
    target = Path(path)
    _refuse_other(target)
    with _beside(target) as folder:
        for index, captured in enumerate(lens.layers):
            write_layer(folder, index, captured)
            write_totals(folder, index, captured)
        write_about(folder, lens)
        _put(_packed(folder) if target.suffix == ".zip" else folder, target)
    return target


def begin(folder: PathLike) -> Path:
    """A folder for layers that come one after another; what an earlier lens left there goes."""
    target = Path(folder)
    _refuse_other(target)
    if target.exists():
        for old in [target / ABOUT, target / IMAGE, *target.glob("[0-9]*.safetensors")]:
            old.unlink(missing_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    return target


def write_layer(folder: PathLike, index: int, captured: Captured) -> Captured:
    """Write the arrays of one layer; the same call comes back with arrays that stay on the disk."""
    arrays = {"q": captured.q, "k": captured.k} | ({} if captured.v is None else {"v": captured.v})
    named = {f"table.{name}": _array(table, name) for name, table in captured.tables.items()}
    path = Path(folder) / f"{index:04}.safetensors"
    with path.open("wb") as file:
        mapped.write(file, arrays | named)
    read = mapped.read(Folder(path.parent).bytes(path.name))
    tables = {name: read[f"table.{name}"] for name in captured.tables}
    start = captured.start if type(captured.start) is int or captured.start is None else _array(captured.start, "start")
    return replace(captured, q=read["q"], k=read["k"], v=read.get("v"), tables=tables, start=start, known={})


def write_totals(folder: PathLike, index: int, captured: Captured) -> None:
    """Find the totals that are not known yet, and write them: one for each row of each head."""
    if captured.parts.shared not in ALONG_ONE_AXIS:
        return
    batches, heads, *_ = captured.shape
    found = [[numpy_of(totals(captured, batch, head)) for head in range(heads)] for batch in range(batches)]
    with (Path(folder) / f"{index:04}.totals.safetensors").open("wb") as file:
        mapped.write(file, {"totals": np.asarray(found)})


def write_about(folder: PathLike, lens: Lens) -> None:
    """What makes a folder with layers a lens: written last, so that a folder without it is not finished."""
    if lens.image is not None:
        (Path(folder) / IMAGE).write_bytes(lens.image)
    new = Path(folder) / f".{ABOUT}.tmp"
    new.write_text(json.dumps(about.told(lens), ensure_ascii=False, indent=1), encoding="utf-8", newline="\n")
    new.replace(Path(folder) / ABOUT)


def _array(value: Any, name: str) -> Any:
    return numpy_of(value) if is_array(value) else numbers(value, name)


def _refuse_other(target: Path) -> None:
    """Only a lens is written over."""
    if target.is_dir():
        ours = (target / ABOUT).is_file() or not any(target.iterdir())
    else:
        ours = not target.exists() or (target.suffix == ".zip" and zipfile.is_zipfile(target) and _holds_lens(target))
    if not ours:
        raise StoreError(f"path: a new name, or a lens to write over; got {str(target)!r}, which holds something else")


def _holds_lens(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return ABOUT in archive.namelist()


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder on the same disk, which is gone afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _packed(folder: Path) -> Path:
    path = folder / "packed.zip"
    names = sorted(one.name for one in folder.iterdir())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            archive.write(folder / name, name)
    return path


def _put(new: Path, target: Path) -> None:
    """Rename; what stood there is removed after the new one stands."""
    if not target.is_dir():
        new.replace(target)
        return
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


# -- reading ---------------------------------------------------------------------------------------------------------


def load(path: PathLike) -> dict[str, Any]:
    """What a saved lens is made of: layers, axes, title, model, notes, missing, image."""
    target = Path(path)
    if not target.exists():
        raise StoreError(f"path: a folder that a lens saved; got {str(target)!r}, which does not exist")
    place: Place = Folder(target) if target.is_dir() else Zip(target)
    said = mapped.read_json(bytes(_bounded(place, ABOUT)), ABOUT)
    about.check_version(said)
    layers = [_layer(place, index, one) for index, one in enumerate(about.several(said, "layers", about.LAYERS))]
    image = bytes(_bounded(place, IMAGE)) if said.get("image") is True else None
    return {"layers": layers, "axes": about.axes(said), "image": image, **about.words(said)}


def _bounded(place: Place, name: str) -> Any:
    raw = place.bytes(name)
    if len(raw) > MOST[name]:
        raise StoreError(f"{name}: at most {MOST[name]} bytes; got {len(raw)}")
    return raw


def _layer(place: Place, index: int, said: Any) -> Captured:
    """One layer, its arrays checked against its formula and each other."""
    name = f"{index:04}.safetensors"
    captured = about.layer(about.entry(said, "layers"), mapped.read(place.bytes(name)))
    try:
        shared, shape = captured.parts.shared, captured.shape
    except RegardError as error:
        raise StoreError(f"{name}: arrays that fit the formula; got others: {error}") from error
    name = f"{index:04}.totals.safetensors"
    if shared in ALONG_ONE_AXIS and place.has(name):
        found = mapped.read(place.bytes(name)).get("totals")
        size = shape[2] if shared == "columns" else shape[3]
        if found is None or found.shape != (*shape[:2], size) or found.dtype not in (np.float32, np.float64):
            raise StoreError(
                f"{name}: totals of shape {(*shape[:2], size)}; got {found if found is None else found.shape}"
            )
        _know(captured, found)
    return captured


def _know(captured: Captured, found: Any) -> None:
    done = np.ones(found.shape[2], bool)
    for batch, head in np.ndindex(found.shape[:2]):
        captured.known[captured.formula.text, batch, head] = Totals(found[batch, head], done)
