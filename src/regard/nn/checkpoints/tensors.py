"""Safetensors files: read with a reason for every refusal, written whole or not at all. No pickle is ever loaded."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ...algebra.errors import CallError, KindError, MissingExtra

PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
ZIP, PROTOCOLS = b"PK\x03\x04", tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
LENGTH = 8  # bytes that tell the length of the header


# -- reading ---------------------------------------------------------------------------------------------------


def read(path: Path, name: str = "path") -> tuple[dict[str, str], dict[str, Tensor]]:
    """The metadata of a file and its tensors, in memory of their own: the file may change afterwards."""
    safetensors = _package()
    check(path, name)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {}), {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise KindError(f"{name}: a safetensors file; got {str(path)!r}, which is none: {error}") from None


def check(path: Path, name: str = "path") -> None:
    """Refuse what is no whole safetensors file, and say what it is."""
    if path.is_dir():
        raise KindError(f"{name}: a safetensors file; got {str(path)!r}, a folder; name the file in it")
    if not path.exists():
        raise CallError(f"{name}: a safetensors file; got {str(path)!r}, which is not there")
    problem = _problem(path)
    if problem is not None:
        raise KindError(f"{name}: a safetensors file; got {str(path)!r}, {problem}")


def _problem(path: Path) -> str | None:
    """What is wrong with a file, in words."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(LENGTH)
        if first.startswith((ZIP, *PROTOCOLS)):
            return (
                "a pickle, which may run any code and is never loaded; "
                "where it comes from, write it with safetensors.torch.save_file"
            )
        if first.startswith(b"GGUF"):
            return "a GGUF file; let transformers read it, with gguf_file=…, and pass its model to from_hugging_face"
        length = int.from_bytes(first, "little")
        if size < LENGTH or file.read(1) != b"{":
            return "which is empty" if size == 0 else "which begins like none"
        if LENGTH + length > size:
            return _cut(size, LENGTH + length)
        file.seek(LENGTH)
        data = _data(file.read(length))
    if data is None:
        return "whose header is damaged; copy it again"
    return _cut(size, LENGTH + length + data) if LENGTH + length + data > size else None


def _cut(size: int, told: int) -> str:
    return f"which is cut short: it has {size} bytes, its header tells of {told} or more; copy it again"


def _data(header: bytes) -> int | None:
    """How many bytes of data a header tells of; None if it is no header."""
    try:
        entries = json.loads(header)
        return max((int(entry["data_offsets"][1]) for name, entry in entries.items() if name[:2] != "__"), default=0)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


# -- writing ---------------------------------------------------------------------------------------------------


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str], name: str = "path") -> None:
    """Tensors as a file. A reader finds the old file or the new one, never a part of it."""
    _package()
    from safetensors.torch import save_file

    if path.is_dir():
        raise KindError(f"{name}: the file to write; got {str(path)!r}, a folder; name a file in it")
    if not path.parent.is_dir():
        raise CallError(f"{name}: in a folder that is there; got {str(path)!r}; make {str(path.parent)!r} first")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # a rename must stay on one disk
    try:
        save_file(dict(_apart(tensors)), beside, dict(metadata))
        _settle(beside, os.O_RDWR)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        _settle(path.parent, os.O_RDONLY)


def _apart(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Each tensor in memory that no other shares, as the format asks for."""
    seen: set[int] = set()
    for name, tensor in tensors.items():
        own = tensor.detach().to("cpu").contiguous()
        shared = own.data_ptr() in seen or own.untyped_storage().nbytes() != own.nbytes
        seen.add(own.data_ptr())
        yield name, own.clone() if shared else own


def _settle(path: Path, mode: int) -> None:
    """Wait until it is on the disk, and not on its way to it."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _package() -> Any:
    try:
        import safetensors
    except ModuleNotFoundError:
        raise MissingExtra("safetensors", "hf") from None
    return safetensors
