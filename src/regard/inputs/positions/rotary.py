"""Positions that turn queries and keys: their dot product then depends on i − j."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..._arrays import Library, as_array, library
from ..._checks import check_count, check_number
from ...algebra.errors import CallError, KindError
from .angles import PAIRS, Pairs, check_pairs, cos_sin
from .base import Position
from .config import base_of, scaling_of, width_of
from .places import handed_back, length, places, real_rows
from .scaling import Scaling


@dataclass(frozen=True)
class Rotary(Position):
    """Each pair of features is turned by an angle that grows with the position (Su et al.: RoFormer).

        (a, b) → (a cos iω_m − b sin iω_m,  b cos iω_m + a sin iω_m)        ω_m = base^(−2m / w)

    so that R_i q · R_j k depends on i − j alone, and lengths stay. Values are not turned.

    base:    the longest wave is 2π · base positions long
    width:   w, how many features are turned: all, or the first `width`
    pairs:   "halves" pairs feature m with m + w/2 (GPT-NeoX; Llama as Hugging Face stores it);
             "interleaved" pairs 2m with 2m + 1 (the paper, GPT-J)
    scaling: what becomes of ω in texts longer than those of training: a value such as Linear(4); None for none

    >>> Rotary(pairs="interleaved").turn([[1.0, 0.0], [1.0, 0.0]])
    [[1.0, 0.0], [0.54030230586..., 0.8414709848...]]
    """

    base: float = 10000.0
    width: int | None = None
    pairs: str = "halves"
    scaling: Scaling = field(default_factory=Scaling)

    def __post_init__(self) -> None:
        check_number("base", self.base, 0, above=True)
        check_pairs(self.pairs)
        if self.scaling is None:
            object.__setattr__(self, "scaling", Scaling())
        if not isinstance(self.scaling, Scaling):
            raise KindError(f"scaling: a value such as Linear(4) or YaRN(4, 4096), or None; got {self.scaling!r}")
        if self.width is not None:
            check_count("width", self.width, 2)
            _even(self.width)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], pairs: str = "halves") -> Rotary:
        """The rotary position of a model of Hugging Face, from its config.json as a dict.

        pairs: that of its weights, which the config does not say; "interleaved" for GPT-J and its like

        >>> Rotary.from_config({"rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}})
        Rotary(base=500000.0, width=None, pairs='halves', scaling=Linear(factor=2.0))
        """
        return cls(base_of(config), width_of(config), pairs, scaling_of(config))

    # -- frequencies -----------------------------------------------------------------------------------------------

    def turned(self, d: int) -> int:
        """How many of d features are turned."""
        width = _even(d) if self.width is None else self.width
        if width > d:
            raise CallError(f"width: at most the width of the vectors, {d}; got {width}")
        return width

    def frequencies(self, d: int) -> list[float]:
        """ω of every pair, for vectors of width d."""
        return self.scaling.frequencies(self.base, self.turned(d))

    @property
    def dynamic(self) -> bool:
        """Whether its scaling asks for the length of the text."""
        return self.scaling.dynamic

    def settled(self, length: int) -> Self:
        """The same for texts of one length: its scaling does not depend on the length any more."""
        check_count("length", length, 0)
        return replace(self, scaling=self.scaling.settled(length)) if self.scaling.dynamic else self

    def _settled(self, *lengths: int | None) -> Rotary:
        """Settled at the largest of these."""
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths):
            kind = type(self.scaling).__name__
            raise CallError(f"at: {kind} asks for the length, which a compiler hides; pass an int, or settled(length)")
        return self.settled(max(0, *known))

    # -- turning ---------------------------------------------------------------------------------------------------

    def turns(self, like: Any, at: Any = 0) -> Turns:
        array = as_array(like, "like")
        xp = real_rows(array, "like")
        if self.scaling.dynamic:
            return self._settled(length(xp, array, at)).turns(array, at)
        where, dtype = places(xp, array, at, heads=True), xp.working_dtype(array.dtype)
        cos, sin = cos_sin(xp, where, self.frequencies(int(array.shape[-1])), dtype)
        gain = self.scaling.gain
        return Turns(cos * gain, sin * gain, PAIRS[self.pairs])

    def turn(self, x: Any, at: Any = 0) -> Any:
        array = as_array(x, "x")
        return handed_back(self.turns(array, at)(array), x)

    def turn_pair(self, q: Any, k: Any, start: Any = None) -> tuple[Any, Any]:
        query, key = as_array(q, "q"), as_array(k, "k")
        first = _first_query(query, key) if start is None else start
        if self.scaling.dynamic:  # queries and keys are of one text
            lengths = length(real_rows(query, "q"), query, first), int(key.shape[-2])
            return self._settled(*lengths).turn_pair(q, k, first)
        return self.turn(q, first), self.turn(k, 0)

    # -- the other pairs -------------------------------------------------------------------------------------------

    @property
    def other(self) -> Rotary:
        """The same with the other pairs."""
        return replace(self, pairs=next(name for name in PAIRS if name != self.pairs))

    def permutation(self, d: int) -> Any:
        """The order of d features in which `other` does what this does: other.turn(x[…, p]) = turn(x)[…, p].

        Rows of W_q and W_k in this order, head by head, take a checkpoint to the other pairs.

        >>> Rotary(pairs="interleaved").permutation(6)
        array([0, 2, 4, 1, 3, 5])
        """
        width, features = self.turned(d), np.arange(d)
        joined = PAIRS[self.other.pairs].join(*PAIRS[self.pairs].split(features[:width]))
        return np.concatenate([joined, features[width:]])


@dataclass(frozen=True, eq=False)
class Turns:
    """The function x → R x for rows whose places are settled: cos and sin are (…, rows, w/2)."""

    cos: Any
    sin: Any
    pairs: Pairs

    def __call__(self, x: Any) -> Any:
        """The rows of x, turned: computed in at least float32, rounded once to the dtype of x."""
        xp, width = real_rows(x), 2 * int(self.cos.shape[-1])
        self._check(xp, x, width)
        first, second = self.pairs.split(xp.astype(x[..., :width], self.cos.dtype, copy=False))
        turned = self.pairs.join(first * self.cos - second * self.sin, second * self.cos + first * self.sin)
        turned = xp.astype(turned, x.dtype, copy=False)
        return turned if x.shape[-1] == width else xp.concat([turned, x[..., width:]], axis=-1)

    def _check(self, xp: Library, x: Any, width: int) -> None:
        made, count = library(self.cos).name, int(self.cos.shape[-2])
        if made != xp.name or xp.working_dtype(x.dtype) != self.cos.dtype:
            raise KindError(f"x: these turns are for {made}, {self.cos.dtype}; got {xp.name}, {x.dtype}; make new ones")
        if x.shape[-2] != count or x.shape[-1] < width:
            raise CallError(f"x: these turns are for {count} rows of width {width}; got shape {tuple(x.shape)}")


def _even(width: int) -> int:
    if width % 2:
        raise CallError(f"width: features are turned in pairs; got {width}; pass an even width=, such as {width - 1}")
    return width


def _first_query(q: Any, k: Any) -> int:
    """The queries are the last rows of the keys."""
    queries, keys = (int(array.shape[-2]) for array in (q, k))
    if queries > keys:
        raise CallError(
            f"start: {queries} queries cannot be the last rows of {keys} keys; "
            "say where the first query stands, for example start=0"
        )
    return keys - queries
