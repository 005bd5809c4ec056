"""Dropout on the weights, by counting: whether a pair is kept is a function of the seed and of its indices alone.

    y_i = Σ_j m_ij w_ij v_j / (1 − p)        m_ij = [mix(row(seed, b, h, i) ⊕ column(seed, j)) > threshold(p)]

so every engine, tiling and backward pass sees the same m, and no m is stored. Z is summed before dropout. `i` is the
position, so a step of decoding drops what the whole call drops. Rows and columns are hashes of 31 bits, one to one in
i and in j; all arithmetic is on int32 that wraps, with shifts that keep the sign, and the same on Python's integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from .._arrays import Library, is_array, library
from ..algebra.errors import CallError

STEPS = ((16, 0x7FEB352D), (15, 0x846CA68B - 2**32))  # `mix`: x ← (x ⊕ (x >> shift)) · factor; of lowbias32
LAST = 16  # a hash that is xored with another also needs good low bits: x ← x ⊕ (x >> LAST)
BITS = 2**31 - 1  # a hash is never negative, so that its first shift brings in zeros
KEY = 0x243F6A88  # so that a seed of 0 does not begin with 0, which every step leaves as it is
COLUMN = 0x3C6EF372  # stands where rows have b, which is never as large


@dataclass(frozen=True)
class Dropout:
    """Which weights are dropped. Indices are integer arrays that broadcast, or Python integers."""

    p: float  # the share that is dropped, above 0 and at most 1
    seed: Any  # an int, or an integer array of rank 0 of the call's library

    @property
    def scale(self) -> float:
        """What a kept weight is multiplied by: 1 / (1 − p), and 0 where nothing is kept."""
        return 0.0 if self.p == 1 else 1.0 / (1.0 - self.p)

    @property
    def threshold(self) -> int:
        """The int32 that the mixed hash of a kept pair is greater than."""
        return max(round(self.p * 2**32) - 2**31 - 1, -(2**31))

    def rows(self, xp: Library, b: Any, h: Any, i: Any) -> Any:
        """The hash of each (b, h, i), as int32; i is the position, start + row."""
        return _absorbed(xp, _key(xp, self.seed), b, h, i)

    def columns(self, xp: Library, j: Any) -> Any:
        """The hash of each j, as int32."""
        return _absorbed(xp, _key(xp, self.seed), COLUMN, j)

    def kept(self, xp: Library, rows: Any, columns: Any) -> Any:
        """Whether each pair is kept; rows and columns broadcast against each other."""
        with xp.quiet():
            return reduce(lambda x, step: _stepped(xp, x, *step), STEPS, rows ^ columns) > self.threshold

    def read(self) -> Dropout:
        """The same with a seed that is a Python integer."""
        return replace(self, seed=int(self.seed))


# -- hashes ----------------------------------------------------------------------------------------------------


def _key(xp: Library, seed: Any) -> Any:
    """A hash of all 64 bits of the seed; where there are fewer, the sign goes on."""
    return _absorbed(xp, KEY, seed, seed >> 31, seed >> 31 >> 31)


def _absorbed(xp: Library, key: Any, *words: Any) -> Any:
    """A hash of the key and of 31 bits of each word, one after the other: one to one in each."""
    with xp.quiet():  # NumPy warns of scalars that wrap
        return reduce(lambda key, word: _hashed(xp, key ^ (_int32(xp, word) & BITS)), words, key)


def _hashed(xp: Library, x: Any) -> Any:
    for shift, factor in STEPS:
        x = _stepped(xp, x, shift, factor) & BITS
    return x ^ (x >> LAST)


def _stepped(xp: Library, x: Any, shift: int, factor: int) -> Any:
    return _int32(xp, (x ^ (x >> shift)) * factor)


def _int32(xp: Library, x: Any) -> Any:
    """The lowest 32 bits, with a sign."""
    if isinstance(x, int):
        return (x + 2**31) % 2**32 - 2**31
    return xp.astype(x, xp.int32, copy=False)


# -- the door --------------------------------------------------------------------------------------------------


def asked(xp: Library, like: Any, p: object, seed: object) -> Dropout | None:
    """What a call asks for by dropout= and seed=; None where nothing is dropped. `like` is q."""
    share, given = _share(p), None if seed is None else _seed(xp, like, seed)
    if share == 0:
        return None
    if xp.is_mapped(like):
        raise CallError(
            "vmap: dropout counts the batch axis, which vmap hides; got both; keep the axis, leave vmap out"
        )
    return Dropout(share, _drawn(xp, like) if given is None else given)


def _share(p: object) -> float:
    number = isinstance(p, int | float | np.integer | np.floating) and not isinstance(p, bool)
    share = float(p) if number else -1.0  # type: ignore[arg-type]
    if not 0 <= share <= 1:
        raise CallError(f"dropout: the share of weights to drop, a number from 0 to 1; got {p!r}; pass 0 to drop none")
    return share


def _seed(xp: Library, like: Any, seed: Any) -> Any:
    """A number as an int of Python; an array of the call's library as it is, so that a compiler may trace it."""
    if isinstance(seed, np.ndarray | np.generic):
        whole = seed.ndim == 0 and seed.dtype.kind in "iu"
    elif is_array(seed):
        return _seed_array(xp, like, seed)
    else:
        whole = isinstance(seed, int) and not isinstance(seed, bool)
    if not whole:
        _refuse(xp, repr(seed))
    if not -(2**63) <= int(seed) < 2**63:
        raise CallError(f"seed: an integer of 64 bits, from −2⁶³ to 2⁶³ − 1; got {seed}; take it modulo 2 ** 63")
    return int(seed)


def _seed_array(xp: Library, like: Any, seed: Any) -> Any:
    kind = str(seed.dtype).rpartition(".")[2]
    if library(seed).name != xp.name or not kind.startswith(("int", "uint")) or seed.ndim:
        _refuse(xp, f"{kind} of shape {tuple(seed.shape)} from {library(seed).name}")
    if xp.device(seed) != xp.device(like):
        raise CallError(f"device: seed lies where q lies, on {xp.device(like)}; got it on {xp.device(seed)}; move it")
    if xp.name == "jax":  # 64 bits are not always there
        return seed if seed.dtype.itemsize >= 4 else xp.astype(seed, xp.int32)
    return xp.astype(seed, xp.int64, copy=False)


def _refuse(xp: Library, got: str) -> NoReturn:
    raise CallError(
        f"seed: an integer, or an integer array of rank 0 from the library of q, {xp.name}; got {got}; "
        "pass an integer, for example seed=0"
    )


def _drawn(xp: Library, like: Any) -> Any:
    """A seed from the library's own random state, so that its manual seed makes the call repeatable."""
    if xp.name == "torch":
        return xp.randint(2**63 - 1, (), device=like.device)
    if xp.name == "numpy":
        return int(np.random.randint(2**63 - 1, dtype=np.int64))  # noqa: NPY002 - lists and NumPy know no other
    raise CallError(
        f"seed: {xp.name} keeps no random state, so dropout needs a seed; got None; "
        "pass seed= to the attention, an integer or an integer array of rank 0"
    )
