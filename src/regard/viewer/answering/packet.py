"""Numbers as they travel: a little JSON, then arrays as they lie in memory.

    4 bytes: length of the JSON | {"meta": …, "arrays": [{"dtype", "shape"}, …]}, spaces to 8 | array | array | …

All little-endian; every array begins at a multiple of 8 bytes, so that a page reads it where it lies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...algebra.errors import CallError

DTYPES = {"f2": np.float16, "f4": np.float32, "u1": np.uint8, "i4": np.int32}
STEP = 8


@dataclass(frozen=True, eq=False)
class Packet:
    """One answer: `meta` is what JSON can say, `arrays` are NumPy arrays of the dtypes above."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    arrays: tuple[Any, ...] = ()

    @property
    def nbytes(self) -> int:
        """Of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)


def packed(packet: Packet) -> bytes:
    """The packet as bytes."""
    said = [{"dtype": _dtype(array), "shape": list(array.shape)} for array in packet.arrays]
    # NaN and infinities are no JSON: a page could not read them
    text = json.dumps({"meta": _plain(packet.meta), "arrays": said}, allow_nan=False, separators=(",", ":"))
    head = text.encode()
    head += b" " * (-(len(head) + 4) % STEP)
    parts = [len(head).to_bytes(4, "little"), head]
    for array in packet.arrays:
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        parts += [raw, b"\0" * (-len(raw) % STEP)]
    return b"".join(parts)


def unpacked(data: bytes) -> Packet:
    """The packet again."""
    end = 4 + int.from_bytes(data[:4], "little")
    if len(data) < 4 or end > len(data):
        raise CallError(f"packet: {end} bytes before its arrays; got {len(data)}; it was cut off")
    said = json.loads(data[4:end])
    arrays = []
    for array in said["arrays"]:
        dtype, count = np.dtype(DTYPES[array["dtype"]]).newbyteorder("<"), math.prod(array["shape"])
        arrays.append(np.frombuffer(data, dtype, count, end).reshape(array["shape"]))
        end += count * dtype.itemsize
        end += -end % STEP
    return Packet(said["meta"], tuple(arrays))


def _dtype(array: Any) -> str:
    for name, dtype in DTYPES.items():
        if array.dtype.newbyteorder("=") == dtype:
            return name
    raise CallError(f"packet: arrays of {', '.join(DTYPES)}; got {array.dtype}; convert it")


def _plain(value: Any) -> Any:
    """The value as JSON has it: None for a number that is none, Python's own numbers for NumPy's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(inner) for inner in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
