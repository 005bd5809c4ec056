"""Arguments at the door of a widget: which one, what rule, what was given, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._arrays import as_array
from ...algebra.errors import CallError, KindError
from ...attention import Attention

MOST = 40  # rows that still can be read


def vectors(value: Any, name: str, *, width: int | None = None, rows: int | None = None, least: int = 1) -> Any:
    """A matrix of finite float64 numbers with one vector in each row."""
    array = numbers(value, name)
    if array.ndim != 2:
        raise CallError(f"{name}: a matrix, one vector in each row; got {array.ndim} axes, {array.shape}")
    if width is not None and array.shape[1] != width:
        raise CallError(f"{name}: rows of {width} numbers; got {array.shape}; project them first")
    if rows is not None and array.shape[0] != rows:
        raise CallError(f"{name}: {rows} rows, one for each key; got {array.shape}")
    if not least <= array.shape[0] <= MOST or not array.shape[1]:
        raise CallError(f"{name}: {least} to {MOST} rows, so that they can be read; got {array.shape}; take a part")
    return array


def numbers(value: Any, name: str) -> Any:
    """Finite real numbers, as NumPy float64; tensors are brought over."""
    array = as_array(value, name)
    array = np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
    if array.dtype.kind not in "biuf":
        raise KindError(f"{name}: real numbers; got dtype {array.dtype}; convert it")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise CallError(f"{name}: finite numbers; got {_wild(array)}; replace what is not finite")
    return array


def _wild(array: Any) -> str:
    first = tuple(int(axis) for axis in np.argwhere(~np.isfinite(array))[0])
    return f"{array[first]} at {list(first)}"


def square(value: Any, name: str) -> Any:
    """A 2 × 2 matrix, for rows of the plane: q = x Wq."""
    array = numbers(value, name)
    if array.shape != (2, 2):
        raise CallError(f"{name}: a matrix of 2 × 2, for vectors of the plane; got {array.shape}")
    return array


def point(value: Any, name: str) -> list[float]:
    """A place in the plane."""
    array = numbers(value, name)
    if array.shape != (2,):
        raise CallError(f"{name}: two numbers, a place in the plane; got {array.shape}")
    return [float(one) for one in array]


def names(value: Any, name: str, count: int, otherwise: str = "{}") -> list[str]:
    """One text for each row, split at its spaces where it is one text; numbered from 1 where none are given."""
    if value is None:
        return [otherwise.format(place + 1) for place in range(count)]
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise KindError(f"{name}: a list of texts, one for each row; got {value!r}")
    if len(value) != count:
        raise CallError(f"{name}: {count} texts, one for each row; got {len(value)}")
    return list(value)


def formula(value: Any) -> Attention:
    """The attention that is shown: softmax(q·k / √d) v unless said otherwise."""
    if value is None:
        return Attention()
    if not isinstance(value, Attention):
        raise KindError(f"attention: an Attention, as in Attention(mask=causal); got {value!r}")
    return value


def tables_for(value: Any, attention: Attention) -> dict[str, Any]:
    """The tables that the formula reads, by name."""
    if value is not None and not isinstance(value, Mapping):
        raise KindError(f"tables: a dict of arrays by name; got {value!r}")
    given = dict(value or {})
    if missing := sorted(set(attention.ranks) - set(given)):
        raise CallError(f"tables: one for each that the formula reads, {', '.join(missing)}; give tables={{…}}")
    return {name: given[name] for name in attention.ranks}
