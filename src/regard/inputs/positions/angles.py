"""Angles that grow with the place, and how features pair up to be turned by them.

    angle = p · ω        the cosine and sine of it, for every place p and frequency ω

At p = 10⁶ a product in float32 is wrong by tenths, so whole turns are dropped in integers, exactly:

    p · ω / 2π = p · (whole + rest) / 2³²        whole an integer, 0 ≤ rest < 1

and p · whole needs its lowest 32 bits alone, which integers that wrap around keep. The angle is then within ±π, right
to a few units in the last place of any dtype, on any device, and also while a compiler traces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._arrays import Library, library
from ...algebra.errors import CallError

TURN = 2**32  # parts of one turn


def cos_sin(xp: Library, places: Any, frequencies: Sequence[float], dtype: Any) -> tuple[Any, Any]:
    """cos(p · ω) and sin(p · ω), (…, rows, frequencies), for places (…, rows)."""
    device, p = xp.device(places), places[..., None]
    parts = [divmod(ω / (2 * math.pi) * TURN, 1.0) for ω in frequencies]
    whole = xp.asarray([_signed(int(part)) for part, _ in parts], dtype=places.dtype, device=device)
    rest = xp.asarray([part for _, part in parts], dtype=dtype, device=device)
    with xp.quiet():
        wrapped = xp.astype(p * whole, xp.int32)
    angle = (xp.astype(wrapped, dtype) + xp.astype(p, dtype) * rest) * (2 * math.pi / TURN)
    return xp.cos(angle), xp.sin(angle)


def geometric(base: float, width: int) -> list[float]:
    """ω_m = base^(−2m / width): one frequency for each pair of features, from one radian a place down to 1 / base."""
    return [base ** (-2 * m / width) for m in range((width + 1) // 2)]


def _signed(word: int) -> int:
    """The lowest 32 bits of an integer, with a sign."""
    return (word + 2**31) % 2**32 - 2**31


# -- pairs -----------------------------------------------------------------------------------------------------


class Pairs:
    """Which two features make a pair. `split` gives the first and the second of every pair; `join` puts them back."""

    name: str

    def split(self, x: Any) -> tuple[Any, Any]:
        """(…, d) → the first of every pair and the second, (…, d / 2) each."""
        raise NotImplementedError

    def join(self, first: Any, second: Any) -> Any:
        """The inverse of `split`; `first` may have one feature more, as in an odd width."""
        raise NotImplementedError


class Halves(Pairs):
    """(0, d/2), (1, d/2 + 1), …: the first half of the features with the second."""

    name = "halves"

    def split(self, x: Any) -> tuple[Any, Any]:
        half = x.shape[-1] // 2
        return x[..., :half], x[..., half:]

    def join(self, first: Any, second: Any) -> Any:
        return library(first).concat([first, second], axis=-1)


class Interleaved(Pairs):
    """(0, 1), (2, 3), …: neighbours."""

    name = "interleaved"

    def split(self, x: Any) -> tuple[Any, Any]:
        return x[..., 0::2], x[..., 1::2]

    def join(self, first: Any, second: Any) -> Any:
        xp, pairs = library(first), second.shape[-1]
        joined = xp.reshape(xp.stack([first[..., :pairs], second], axis=-1), (*second.shape[:-1], 2 * pairs))
        return joined if first.shape[-1] == pairs else xp.concat([joined, first[..., pairs:]], axis=-1)


PAIRS: dict[str, Pairs] = {pairs.name: pairs for pairs in (Halves(), Interleaved())}


def check_pairs(pairs: object) -> None:
    """Refuse a name that pairs no features."""
    if not isinstance(pairs, str) or pairs not in PAIRS:
        raise CallError(f"pairs: {' or '.join(map(repr, PAIRS))}; got {pairs!r}")
