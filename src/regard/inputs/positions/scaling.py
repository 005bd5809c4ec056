"""Frequencies for texts longer than those a rotary model was trained on. Each scaling is a value.

    ω_m = base^(−2m / w)        m = 0 … w/2 − 1: as trained        λ_m = 2π / ω_m: the length of its wave
    ω'_m                        as turned; cos and sin are multiplied by `gain`, so scores by gain²

f is the factor by which texts grow, L the original length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..._checks import check_count, check_number
from ...algebra.errors import CallError, KindError
from .angles import geometric


@dataclass(frozen=True)
class Scaling:
    """ω' = ω: no scaling. The base of the others.

    >>> Scaling().frequencies(10000.0, 4)
    [1.0, 0.01]
    """

    dynamic: ClassVar[bool] = False  # whether the frequencies depend on the length of the text

    def frequencies(self, base: float, width: int) -> list[float]:
        """ω', one for each pair of features."""
        return geometric(base, width)

    @property
    def gain(self) -> float:
        """What cos and sin are multiplied by."""
        return 1.0

    def settled(self, length: int) -> Scaling:
        """The scaling of texts of that length, which then does not depend on it."""
        return self


@dataclass(frozen=True)
class Linear(Scaling):
    """ω' = ω / f: positions squeezed into the original length (Chen et al.: Position Interpolation, 2023).

    >>> Linear(4).frequencies(10000.0, 4)
    [0.25, 0.0025]
    """

    factor: float

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 1)

    def frequencies(self, base: float, width: int) -> list[float]:
        return [ω / self.factor for ω in geometric(base, width)]


@dataclass(frozen=True)
class NTK(Scaling):
    """base' = base · f^(w / (w − 2)): the slowest wave is f times as long, the fastest stays (bloc97, 2023).

    >>> NTK(4).frequencies(10000.0, 4)
    [1.0, 0.0025]
    """

    factor: float

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 1)

    def frequencies(self, base: float, width: int) -> list[float]:
        if width < 4:
            raise CallError(f"NTK: at least two pairs, a width of 4; got {width}; Linear scales a single pair")
        return geometric(base * self.factor ** (width / (width - 2)), width)


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """NTK with f' = f · l / L − (f − 1) for a text of length l > L, and no scaling up to L (emozilla, 2023).

    The length is one more than the last position of a call. Keys that were turned at another length do not fit, so a
    cache holds keys that are not turned yet, or the text is `settled` at a length beforehand.

    >>> DynamicNTK(2, original=1024).settled(2048)
    NTK(factor=3.0)
    """

    factor: float
    original: int
    dynamic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 1)
        check_count("original", self.original, 1)

    def settled(self, length: int) -> Scaling:
        if length <= self.original:
            return Scaling()
        return NTK(self.factor * length / self.original - (self.factor - 1))


@dataclass(frozen=True)
class YaRN(Scaling):
    """Slow waves are squeezed, fast ones stay, those between mix (Peng et al.: YaRN, 2023).

        ω'_m = (1 − r_m) ω_m + r_m ω_m / f       r_m = clip((m − low) / (high − low), 0, 1)
        m(β) = w ln(L / 2πβ) / (2 ln base)       the pair whose wave turns β times within L
        low = ⌊m(beta_fast)⌋,  high = ⌈m(beta_slow)⌉        gain = 1 + ln(f) / 10

    attention_factor: another gain
    truncate:         whether low and high are whole numbers
    """

    factor: float
    original: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 1)
        check_count("original", self.original, 1)
        check_number("beta_slow", self.beta_slow, 0, above=True)
        check_number("beta_fast", self.beta_fast, self.beta_slow)
        if self.attention_factor is not None:
            check_number("attention_factor", self.attention_factor, 0, above=True)

    def frequencies(self, base: float, width: int) -> list[float]:
        low, high = self._between(base, width)
        mixed = []
        for m, ω in enumerate(geometric(base, width)):
            r = min(max((m - low) / (high - low), 0.0), 1.0)
            mixed.append((1 - r) * ω + r * ω / self.factor)
        return mixed

    @property
    def gain(self) -> float:
        return growth(self.factor) if self.attention_factor is None else self.attention_factor

    def _between(self, base: float, width: int) -> tuple[float, float]:
        """The pairs between which waves mix."""
        if base == 1:
            raise CallError("YaRN: waves of different lengths, a base other than 1; got 1")
        low, high = (
            width * math.log(self.original / (2 * math.pi * β)) / (2 * math.log(base))
            for β in (self.beta_fast, self.beta_slow)
        )
        if self.truncate:
            low, high = float(math.floor(low)), float(math.ceil(high))
        low, high = max(low, 0.0), min(high, width - 1.0)
        return (low, high) if low != high else (low, high + 0.001)  # as in the published code


def growth(factor: float, scale: float = 1.0) -> float:
    """1 + scale · ln(f) / 10: YaRN's gain."""
    return 1.0 + scale * math.log(factor) / 10 if factor > 1 else 1.0


@dataclass(frozen=True)
class Llama3(Scaling):
    """Waves longer than L / low are squeezed, those shorter than L / high stay, the rest mix (Llama 3.1, 2024).

        ω'_m = (1 − t_m) ω_m / f + t_m ω_m       t_m = clip((L / λ_m − low) / (high − low), 0, 1)

    >>> [round(ω, 6) for ω in Llama3(8, original=8192).frequencies(500000.0, 8)]
    [1.0, 0.037606, 0.000525, 7e-06]
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original: int = 8192

    def __post_init__(self) -> None:
        check_number("factor", self.factor, 1)
        check_number("low", self.low, 0, above=True)
        check_number("high", self.high, self.low, above=True)
        check_count("original", self.original, 1)

    def frequencies(self, base: float, width: int) -> list[float]:
        mixed = []
        for ω in geometric(base, width):
            t = min(max((self.original * ω / (2 * math.pi) - self.low) / (self.high - self.low), 0.0), 1.0)
            mixed.append((1 - t) * ω / self.factor + t * ω)
        return mixed


@dataclass(frozen=True)
class Stretched(Scaling):
    """ω'_m = ω_m / factors_m: each wave by its own factor.

    >>> Stretched((1.0, 2.0)).frequencies(10000.0, 4)
    [1.0, 0.005]
    """

    factors: tuple[float, ...]
    attention_factor: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", _checked("factors", self.factors))
        check_number("attention_factor", self.attention_factor, 0, above=True)

    def frequencies(self, base: float, width: int) -> list[float]:
        if len(self.factors) != width // 2:
            raise CallError(f"factors: one for each of {width // 2} pairs of features; got {len(self.factors)}")
        return [ω / factor for ω, factor in zip(geometric(base, width), self.factors, strict=True)]

    @property
    def gain(self) -> float:
        return self.attention_factor


@dataclass(frozen=True)
class LongRoPE(Scaling):
    """Each wave by its own factor, `short` up to length L and `long` beyond (Ding et al.: LongRoPE, 2024).

        ω'_m = ω_m / short_m or ω_m / long_m        gain = √(1 + ln f / ln L)

    attention_factor: another gain. As with `DynamicNTK`, keys turned at another length do not fit.

    >>> LongRoPE((1.0, 1.0), (1.0, 2.0), factor=4.0, original=16).settled(17)
    Stretched(factors=(1.0, 2.0), attention_factor=1.224744871391589)
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    factor: float
    original: int
    attention_factor: float | None = None
    dynamic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("short", "long"):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        check_number("factor", self.factor, 1)
        check_count("original", self.original, 2)
        if self.attention_factor is not None:
            check_number("attention_factor", self.attention_factor, 0, above=True)

    @property
    def gain(self) -> float:
        given = self.attention_factor
        return math.sqrt(1 + math.log(self.factor) / math.log(self.original)) if given is None else given

    def settled(self, length: int) -> Scaling:
        return Stretched(self.short if length <= self.original else self.long, self.gain)


def _checked(name: str, factors: object) -> tuple[float, ...]:
    """The factors of all pairs, each above 0."""
    if not isinstance(factors, list | tuple):
        raise KindError(f"{name}: a tuple of numbers, one for each pair of features; got {factors!r}")
    for factor in factors:
        check_number(name, factor, 0, above=True)
    return tuple(factors)
