"""How counts of k-grams become probabilities: what is taken from those seen, and given to shorter contexts.

    p_k(w | h) = α_k(hw) + γ_k(h) p_{k−1}(w | h′)          h′ is h without its first id,  p_0 = 1 / V

α_k(hw) = 0 for what was never seen, and γ_k(h) = 1 for a context that was never seen. For every other context
Σ_w α_k(hw) + γ_k(h) = 1, so all p_k sum to one over the vocabulary. With c(hw) how often hw was seen, c(h) = Σ_w c(hw),
and N_1+(h·), N_1+(·hw) how many different ids were seen after h, and before hw:

    Kneser–Ney     α = (a(hw) − D(a(hw))) / Σ_w a(hw)       a = c for the longest context, N_1+(·hw) for all shorter
                   γ = Σ_w D(a(hw)) / Σ_w a(hw)             D(1), D(2), D(3 and more) from the counts of counts
    Witten–Bell    α = c(hw) / (c(h) + N_1+(h·))            γ = N_1+(h·) / (c(h) + N_1+(h·))
    Add-one        α = c(hw) / (c(h) + V)                   γ = V / (c(h) + V), then 1/V at once
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .grams import Level


class Weights(NamedTuple):
    """α for each k-gram and γ for each context."""

    alpha: Any
    gamma: Any


class Smoothing:
    """A way to smooth: `KneserNey()`, `WittenBell()`, `AddOne()`."""

    name: ClassVar[str]

    def weights(self, level: Level, vocabulary_size: int, *, longest: bool) -> Weights:
        """α and γ of a level: of the longest context, or of a shorter one."""
        raise NotImplementedError


@dataclass(frozen=True)
class KneserNey(Smoothing):
    """Interpolated and modified, as Chen and Goodman have it (1998): what a shorter context learns is in how many
    different places an id was seen, not how often.
    """

    name = "Kneser–Ney"

    def weights(self, level: Level, vocabulary_size: int, *, longest: bool) -> Weights:
        a = level.counts if longest else level.before
        taken = discounts(a)[np.minimum(a, 3)]
        total = level.total(a)
        return Weights((a - taken) / total[level.contexts], _share(level.total(taken), total))


@dataclass(frozen=True)
class WittenBell(Smoothing):
    """A new id after h is as probable as it was to be new, each time that something followed h."""

    name = "Witten–Bell"

    def weights(self, level: Level, vocabulary_size: int, *, longest: bool) -> Weights:
        kinds = level.total()
        total = level.total(level.counts) + kinds
        return Weights(level.counts / total[level.contexts], _share(kinds, total))


@dataclass(frozen=True)
class AddOne(Smoothing):
    """(c(hw) + 1) / (c(h) + V): each id once more than it was seen. Simple, and poor."""

    name = "add-one"

    def weights(self, level: Level, vocabulary_size: int, *, longest: bool) -> Weights:
        if not longest:
            return Weights(np.zeros(len(level.codes)), np.ones(level.shorter))
        total = level.total(level.counts) + vocabulary_size
        return Weights(level.counts / total[level.contexts], vocabulary_size / total)


def discounts(a: Any) -> Any:
    """D(0) … D(3): D(n) = n − (n + 1) Y m_{n+1} / m_n, where m_n counts the counts n and Y = m_1 / (m_1 + 2 m_2).

    Where a text has too few rare counts to tell (D(n) outside of 0 to n, or m_n = 0), D(n) = n / 2.

    >>> discounts(np.array([1] * 40 + [2] * 20 + [3] * 10 + [4] * 5)).tolist()
    [0.0, 0.5, 1.25, 2.0]
    """
    m = np.bincount(np.minimum(a, 5), minlength=6).astype(float)
    n = np.arange(1, 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        D = n - (n + 1) * m[1] / (m[1] + 2 * m[2]) * m[n + 1] / m[n]
    return np.concatenate([[0.0], np.where((D > 0) & (n > D), D, n / 2)])  # a comparison with NaN is false


def _share(part: Any, total: Any) -> Any:
    """part / total, and 1 for a context after which nothing was seen."""
    return np.divide(part, total, out=np.ones(len(total)), where=total > 0)
