"""The door of geometry: vectors of one library, real, of one width."""

from __future__ import annotations

from typing import Any

from .._arrays import Library, as_array, library
from ..algebra.errors import CallError, KindError


def together(**arrays: Any) -> tuple[Library, list[Any]]:
    """The library, and the arrays in one real dtype of at least float32; integers count as real numbers."""
    found = {name: as_array(array, name) for name, array in arrays.items()}
    (first, xp), *rest = ((name, library(array)) for name, array in found.items())
    for name, other in rest:
        if other.name != xp.name:
            raise KindError(f"{name}: comes from the library of {first}, {xp.name}; got {other.name}; convert it")
        ours, theirs = xp.device(found[first]), xp.device(found[name])
        if ours != theirs:
            raise CallError(f"{name}: lies where {first} lies, on {ours}; got {theirs}; move it")
    real = {name: _real(xp, name, array) for name, array in found.items()}
    dtype = xp.result_type(*(array.dtype for array in real.values()))
    return xp, [xp.astype(array, dtype, copy=False) for array in real.values()]


def _real(xp: Library, name: str, array: Any) -> Any:
    if xp.is_real(array):
        return xp.astype(array, xp.working_dtype(array.dtype), copy=False)
    if xp.is_integer(array) or xp.is_bool(array):
        return xp.astype(array, xp.widest[1])
    raise KindError(f"{name}: real numbers; got dtype {array.dtype}; convert it")


def pair(x: Any, y: Any) -> tuple[Library, Any, Any]:
    """Two arrays of vectors of one width, which broadcast against each other."""
    xp, (x, y) = together(x=x, y=y)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise CallError(f"x, y: vectors of one width along the last axis; got {tuple(x.shape)} and {tuple(y.shape)}")
    return xp, x, y


def cloud(x: Any, name: str = "x", *, least: int = 1) -> tuple[Library, Any]:
    """A matrix with one vector in each row, all finite, and no fewer rows than `least`."""
    xp, (x,) = together(**{name: x})
    if x.ndim != 2:
        raise CallError(f"{name}: a matrix, one vector in each row; got {x.ndim} axes, {tuple(x.shape)}")
    if x.shape[0] < least or x.shape[1] < 1:
        raise CallError(f"{name}: at least {least} rows and one column; got {tuple(x.shape)}")
    refuse_wild(xp, x, name)
    return xp, x


def symmetric(matrix: Any, name: str) -> tuple[Library, Any]:
    """A symmetric matrix; what rounding left of an asymmetry is averaged away."""
    xp, (matrix,) = together(**{name: matrix})
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise CallError(f"{name}: a square matrix; got {tuple(matrix.shape)}")
    refuse_wild(xp, matrix, name)
    mirrored = xp.matrix_transpose(matrix)
    largest, apart = (xp.constant(xp.max(xp.abs(part))) for part in (matrix, matrix - mirrored))
    if xp.is_true(apart > 1e3 * xp.finfo(matrix.dtype).eps * largest):
        raise CallError(
            f"{name}: a symmetric matrix; got entries that differ from their mirror image by {float(apart):.3g}; "
            f"BilinearForm holds a matrix that is not symmetric"
        )
    return xp, (matrix + mirrored) / 2


def refuse_wild(xp: Library, x: Any, name: str) -> None:
    """NaN and infinities have no place among axes and variances: every result would be NaN."""
    finite = xp.isfinite(x)
    if xp.is_true(~xp.all(finite)):
        row = int(xp.argmin(xp.astype(xp.all(finite, axis=-1), xp.int8)))
        raise CallError(f"{name}: finite numbers; got NaN or infinity in row {row}; drop such rows or fill them")
