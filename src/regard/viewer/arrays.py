"""Arrays at the door of a lens: of any library and rank, as (batch, heads, positions, width).

    two axes     (positions, width)            one head
    three axes   (heads, positions, width)     one batch item
    four axes    as they are

PyTorch stays PyTorch and NumPy stays NumPy; JAX and nested lists become NumPy. Nothing is copied that need not be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import as_array, library
from ..algebra.errors import CallError, KindError

AXES = "(positions, width), (heads, positions, width) or (batch, heads, positions, width)"


def four_axes(value: Any, name: str, axes: str = AXES) -> Any:
    """An array of real numbers with the axes that are missing in front."""
    array = held(as_array(value, name))
    if not 2 <= array.ndim <= 4:
        raise CallError(f"{name}: {axes}; got shape {tuple(array.shape)}")
    if not library(array).is_real(array):
        raise KindError(f"{name}: real floating numbers; got dtype {array.dtype}; convert it, for example to float32")
    return array[(None,) * (4 - array.ndim)]


def held(array: Any) -> Any:
    """An array that is looked at and not learned: without gradients, and of NumPy where it is of JAX."""
    xp = library(array)
    if xp.name == "torch":
        return array.detach()
    return array if isinstance(array, np.ndarray) else np.asarray(array)


def numpy_of(array: Any) -> Any:
    """The same numbers in NumPy, in the same dtype: bfloat16 as NumPy knows it from ml_dtypes, or as float32."""
    if library(array).name != "torch":
        return np.asarray(array)
    plain = array.detach().cpu()
    if str(plain.dtype) != "torch.bfloat16":
        return plain.numpy()
    import torch

    return from_bfloat16(plain.contiguous().view(torch.int16).numpy().view(np.uint16))


def from_bfloat16(bits: Any) -> Any:
    """bfloat16 numbers from their 16 bits, exact: as a view where ml_dtypes is there, else widened to float32."""
    try:
        import ml_dtypes
    except ImportError:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(ml_dtypes.bfloat16)


def size_of(array: Any) -> int:
    """Bytes of an array."""
    return int(array.dtype.itemsize * np.prod(tuple(array.shape), dtype=np.int64))


def in_words(size: float) -> str:
    """Bytes as people say them.

    >>> in_words(512), in_words(51_200_000), in_words(20e9)
    ('512 B', '51 MB', '20 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.0f} TB" if size >= 10 else f"{size:.1f} TB"
