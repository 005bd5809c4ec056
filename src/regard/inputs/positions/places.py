"""Where the rows of an array stand: `at`, said in one of three ways, as one array of integers.

at = 5            row r stands at 5 + r                  an integer
at = [0, -2]      row r of entry b at at[b] + r          one for each entry of the batch; −2: two rows of padding
at = [[0, 1, 7]]  row r of entry b at at[b][r]           (batch, rows), or (1, rows) for all entries
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._arrays import Library, is_array, library
from ...algebra.errors import CallError, KindError

RULE = "at: an integer, or integers: one for each entry of the batch, or (batch, rows)"


def real_rows(x: Any, argument: str = "x") -> Library:
    """The library of x, if x has rows of real numbers."""
    xp = library(x)
    if not xp.is_real(x):
        raise KindError(f"{argument}: real floating numbers; got dtype {x.dtype}; convert it, for example to float32")
    if x.ndim < 2:
        raise CallError(f"{argument}: at least two axes, (…, positions, width); got shape {tuple(x.shape)}")
    return xp


def handed_back(array: Any, given: object) -> Any:
    """The array as the caller's kind: lists for lists."""
    return array if is_array(given) else array.tolist()


def places(xp: Library, x: Any, at: object, *, heads: bool = False) -> Any:
    """The place of every row of x, as integers that broadcast against (…, rows).

    With `heads`, axis −3 of x is the head where x has four axes or more, and all heads stand at the same places.
    """
    heads = heads and x.ndim >= 4
    count, batch_axes = int(x.shape[-2]), tuple(int(size) for size in x.shape[: -3 if heads else -2])
    if (first := as_integer(at)) is not None:
        return xp.arange(first, first + count, device=xp.device(x))
    values = _spread(xp, _integers(xp, x, at), count, batch_axes)
    return values[..., None, :] if heads and values.ndim > 1 else values


def length(xp: Library, x: Any, at: object) -> int | None:
    """How long a text is that ends with the last of these rows; None where numbers cannot be looked at."""
    if (first := as_integer(at)) is not None:
        return first + int(x.shape[-2])
    found = places(xp, x, at, heads=True)
    if not xp.known(found):
        return None
    return int(xp.max(found)) + 1 if math.prod(found.shape) else 0


def as_integer(value: Any) -> int | None:
    """A number as an int of Python; None for arrays and all else."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if whole else None


def _integers(xp: Library, x: Any, at: Any) -> Any:
    """`at` as an integer array of the library of x, where x lies."""
    own = is_array(at) and library(at).name == xp.name
    if is_array(at) and not own and not isinstance(at, np.ndarray):
        raise KindError(f"at: comes from NumPy or from the library of x, {xp.name}; got {library(at).name}")
    try:
        values = at if own else np.asarray(at)
    except ValueError:
        raise KindError(f"{RULE}; got rows of different lengths") from None
    if not (xp.is_integer(values) if own else values.dtype.kind in "iu"):
        raise KindError(f"{RULE}; got {f'dtype {values.dtype}' if is_array(at) else repr(at)}")
    values = values if own else xp.asarray(values, device=xp.device(x))
    if xp.device(values) != xp.device(x):
        raise CallError(f"device: at lies where x lies, on {xp.device(x)}; got it on {xp.device(values)}; move it")
    return xp.astype(values, xp.arange(1).dtype, copy=False)


def _spread(xp: Library, values: Any, count: int, batch_axes: tuple[int, ...]) -> Any:
    """Starts as starts + rows; places of every row as they are."""
    if values.ndim >= 2:
        whole, shape = (*(batch_axes or (1,)), count), tuple(values.shape)
        if not _fits(shape, whole):
            raise CallError(f"at: the place of every row is (batch, rows), here {whole}; got shape {shape}")
        return values if batch_axes else values[0, :]
    if values.ndim == 1:
        entries = math.prod(batch_axes)
        if values.shape[0] != entries:
            raise CallError(
                f"at: one integer for each of {entries} entries of the batch; got shape {tuple(values.shape)}; "
                "the place of every row goes in as at[None, :]"
            )
        values = xp.reshape(values, (*batch_axes, 1))
    return values + xp.arange(count, device=xp.device(values))


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    try:
        return shape[-1] == whole[-1] and np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False
