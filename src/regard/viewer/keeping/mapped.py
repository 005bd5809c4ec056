"""Files of safetensors as arrays of NumPy that stay on the disk until they are read.

    8 bytes    the length of the header, little-endian
    header     JSON: {"q": {"dtype": "F16", "shape": [1, 12, 18, 64], "data_offsets": [0, 27648]}, …}
    numbers    one array after another; in the header's "__metadata__", {"k": "q"} says that k is q

Whoever opens such a file may not trust it: every number of the header is checked against the file before it is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ...algebra.errors import RegardError
from ..arrays import from_bfloat16, numpy_of

KINDS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in KINDS.items() if name != "BF16"}
HEADER = 2**20  # bytes of a header, at most
BLOCK = 2**24  # entries that are written at once


class StoreError(RegardError):
    """A file or folder that is no lens, or one that a lens cannot be written to."""


def write(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Arrays of NumPy or PyTorch by name, each in its own dtype; one that has two names is written once."""
    first = {id(array): name for name, array in reversed(list(arrays.items()))}
    plain = {name: numpy_of(array) for name, array in arrays.items() if first[id(array)] == name}
    same = {name: first[id(array)] for name, array in arrays.items() if name not in plain}
    header: dict[str, Any] = {"__metadata__": same} if same else {}
    at = 0
    for name, array in plain.items():
        header[name] = {"dtype": _kind(array), "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for array in plain.values():
        _write_numbers(file, array)


def read(raw: Any) -> dict[str, Any]:
    """The arrays in the bytes of a file (uint8, most likely mapped from the disk), as views of them."""
    if len(raw) < 8:
        raise StoreError(f"safetensors: at least 8 bytes; got {len(raw)}; the file is cut off")
    length = int.from_bytes(bytes(raw[:8]), "little")
    if length > min(HEADER, len(raw) - 8):
        raise StoreError(f"safetensors: a header inside of the file, of at most {HEADER} bytes; got one of {length}")
    header = read_json(bytes(raw[8 : 8 + length]), "safetensors")
    numbers = raw[8 + length :]
    same = header.pop("__metadata__", {})
    found = {name: _view(name, entry, numbers) for name, entry in header.items()}
    if not isinstance(same, dict) or not all(isinstance(other, str) and other in found for other in same.values()):
        raise StoreError(f"safetensors: other names of arrays that are there; got {str(same)[:80]}")
    return found | {name: found[other] for name, other in same.items()}


def read_json(text: bytes, name: str) -> dict[str, Any]:
    """A JSON object, or an error that says what else it is."""
    try:
        found = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{name}: JSON in UTF-8; got other bytes: {str(error)[:80]}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{name}: a JSON object; got {type(found).__name__}")
    return found


def _kind(array: Any) -> str:
    if array.dtype.name == "bfloat16":
        return "BF16"
    kind = NAMES.get(array.dtype.newbyteorder("<"))
    if kind is None:
        raise StoreError(f"safetensors: numbers and truths; got dtype {array.dtype}; convert it")
    return kind


def _write_numbers(file: BinaryIO, array: Any) -> None:
    """In pieces along the first two axes, so that nothing large is copied."""
    if array.ndim > 1 and array.size > BLOCK:
        for one in array:
            _write_numbers(file, one)
        return
    one = np.ascontiguousarray(array)
    if one.dtype.byteorder == ">":
        one = one.astype(one.dtype.newbyteorder("<"))
    file.write(one.reshape(-1).view(np.uint8).data if one.size else b"")


def _view(name: str, entry: Any, numbers: Any) -> Any:
    """One array of a file, after its entry was checked."""
    shape, kind, (first, last) = _entry(name, entry)
    size = np.dtype(KINDS[kind]).itemsize * math.prod(shape)
    if not 0 <= first <= last <= len(numbers) or last - first != size:
        raise StoreError(
            f"{name}: {size} bytes inside of the file's {len(numbers)}; got those from {first} to {last}; "
            "the file is cut off or was changed"
        )
    try:
        array = numbers[first:last].view(KINDS[kind]).reshape(shape)
    except ValueError as error:  # nothing along one axis, and more along the others than there are numbers
        raise StoreError(f"{name}: a shape that an array can have; got {shape}: {error}") from None
    return from_bfloat16(array) if kind == "BF16" else array


def _entry(name: str, entry: Any) -> tuple[tuple[int, ...], str, tuple[int, int]]:
    if not isinstance(entry, dict) or entry.get("dtype") not in list(KINDS):
        raise StoreError(f"{name}: an entry with a dtype of {', '.join(KINDS)}; got {str(entry)[:80]}")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    if not _is_whole(shape) or len(shape) > 8 or not _is_whole(offsets) or len(offsets) != 2:
        raise StoreError(f"{name}: an entry with shape and data_offsets, whole numbers from 0; got {str(entry)[:80]}")
    return tuple(shape), entry["dtype"], (offsets[0], offsets[1])


def _is_whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**53 for number in numbers)
