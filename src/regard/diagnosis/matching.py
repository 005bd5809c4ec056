"""Which formula the target computes, and with which mistakes: level by level, the simplest first.

0   a formula that was asked for, as it is
    another formula of the zoo, as it is
1   one mistake in a formula that was asked for
    a formula with free numbers: the zoo in any temperature, softmax in any scale
2   two mistakes; or one in another formula
3   three
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import monotonic

from ..algebra.masks import causal, window
from ..algebra.symbols import i, j
from ..attention import Attention
from ..inputs import Rotary
from ..zoo import ENTRIES
from .families import Family, Fitted, families, fitted
from .search import Explanation, Observation, Search, variants
from .steps import State, Steps, Turn, on_inputs, on_vectors

PLAIN, CAUSAL = Attention(), Attention(mask=causal)
WITH_TABLES = ("bilinear", "mahalanobis", "learned_sinks")
KNOWN = ("euclidean", "alibi", "sigmoid", "relu_over_n", "squared_relu", "softmax_plus_one")
CAPS = (30, 50, 20, 10, 15)
WINDOWS = range(1, 5)
PATIENCE = 5.0  # seconds for all levels but the first
READINGS = (64, 4, 8, 2, 4, 2, 2)  # how many are looked at on each level


@dataclass(frozen=True)
class Match:
    """What was found: the chain, its mistakes, and the name of the formula where it is not the one asked for."""

    explanation: Explanation
    recognised: str = ""  # the name in the zoo
    fitted: Fitted | None = None
    at: int = 0  # which of the observed readings

    @property
    def steps(self) -> Steps:
        """The chain that predicts the target."""
        return self.explanation.steps

    @property
    def text(self) -> str:
        """The formula that the target computes."""
        formula = self.explanation.base.formula
        return self.fitted.text if self.fitted is not None else "" if formula is None else repr(formula)


@dataclass(frozen=True)
class Residual:
    """The input is added to the output."""

    out: object

    def __call__(self, state: State) -> State:
        made: State = self.out(state)  # type: ignore[operator]
        return replace(made, y=made.y + state.problem["x"])


def bases(form: str, formulas: Sequence[Attention]) -> list[Steps]:
    """Right chains for these formulas, the plainest first."""
    make = on_vectors if form == "vectors" else on_inputs
    return [make(formula) for formula in formulas]


def manners(chains: Sequence[Steps], form: str) -> Iterator[Steps]:
    """The same chains in other right manners: with rotary positions, with the input added."""
    for rotary in rotaries():
        yield from (replace(chain, place=Turn(rotary)) for chain in chains)
    if form == "inputs":
        yield from (replace(chain, out=Residual(chain.out)) for chain in chains)


@lru_cache(maxsize=1)
def rotaries() -> tuple[Rotary, ...]:
    """Rotary positions as they are met: both ways to pair features, three bases."""
    return tuple(Rotary(base=base, pairs=pairs) for base in (1e4, 5e5, 1e6, 1e3) for pairs in ("halves", "interleaved"))


@lru_cache(maxsize=1)
def others() -> tuple[tuple[str, Attention], ...]:
    """Formulas that are right, though not what most people mean: of the zoo, without free numbers."""
    found = [(name, ENTRIES[name].formula) for name in KNOWN]
    found += [("soft_cap", ENTRIES["soft_cap"].make(cap)) for cap in CAPS]
    found += [("learned_sinks", Attention(weight=ENTRIES["learned_sinks"].formula.weight))]
    masked = [(name, Attention(score=f.score, weight=f.weight, mask=causal)) for name, f in found if f.mask is None]
    tables = [(name, ENTRIES[name].formula) for name in WITH_TABLES]
    windows = [("sliding_window", Attention(mask=window(width))) for width in WINDOWS]
    sides = [("sliding_window", Attention(mask=(i - j <= width) & (j - i <= width))) for width in WINDOWS]
    return (*found, *masked, *tables, *windows, *sides)


class Matcher:
    """One search for each reading that works; the first that explains everything at the lowest level wins."""

    def __init__(self, observed: Sequence[tuple[str, Sequence[Observation]]], formulas: Sequence[Attention]) -> None:
        self.forms = [form for form, _ in observed]
        self.searches = [Search(observations) for _, observations in observed]
        self.asked = formulas

    def match(self) -> Match | None:
        """The simplest explanation; None where nothing in the catalogue fits."""
        until = monotonic() + PATIENCE
        levels = (self._as_asked, self._another, self._one, self._free, self._two, self._one_in_another, self._three)
        for level, readings in zip(levels, READINGS, strict=True):
            for at in range(min(len(self.searches), readings)):
                if (found := level(at, until)) is not None:
                    return replace(found, at=at)
        return None

    def roughly(self) -> Match | None:
        """With wide tolerances: no more than one mistake, and no free numbers."""
        until = monotonic() + PATIENCE
        for level in (self._as_asked, self._one):
            for at in range(len(self.searches)):
                if (found := level(at, until)) is not None:
                    return replace(found, at=at)
        return None

    def _bases(self, at: int) -> list[Steps]:
        return bases(self.forms[at], self.asked)

    def _first(self, at: int, chains: Sequence[Steps], bugs: int, until: float = float("inf")) -> Match | None:
        found = self.searches[at].first(chains, bugs, until)
        return None if found is None else Match(found)

    def _as_asked(self, at: int, until: float) -> Match | None:
        chains = self._bases(at)
        return self._first(at, [*chains, *manners(chains, self.forms[at])], 0)

    def _another(self, at: int, until: float) -> Match | None:
        for name, formula in others():
            if (found := self._first(at, bases(self.forms[at], [formula]), 0)) is not None:
                return replace(found, recognised=name)
        return None

    def _one(self, at: int, until: float) -> Match | None:
        chains = self._bases(at)
        rotated = [replace(chain, place=Turn(rotary)) for rotary in rotaries()[:2] for chain in chains]
        return self._first(at, chains, 1, until) or self._first(at, rotated, 1, until)

    def _free(self, at: int, until: float) -> Match | None:
        return self._fitted(at, self._bases(at)[0], (), until)

    def _two(self, at: int, until: float) -> Match | None:
        chains = self._bases(at)
        rotated = [replace(chain, place=Turn(rotary)) for rotary in rotaries()[:2] for chain in chains]
        return self._first(at, chains, 2, until) or self._first(at, rotated, 2, until)

    def _one_in_another(self, at: int, until: float) -> Match | None:
        for name, formula in others():
            if (found := self._first(at, bases(self.forms[at], [formula]), 1, until)) is not None:
                return replace(found, recognised=name)
        base = self._bases(at)[0]
        for names, steps in variants(base, 1):
            if steps.formula == base.formula:
                found = self._fitted(at, steps, names, until)
                if found is not None:
                    return found
        return None

    def _three(self, at: int, until: float) -> Match | None:
        return self._first(at, self._bases(at), 3, until)

    def _fitted(self, at: int, chain: Steps, names: tuple[str, ...], until: float) -> Match | None:
        for family in families():
            if monotonic() > until:
                return None
            made = fitted(self.searches[at], chain, family)
            if made is not None:
                return _of_family(made, family, names)
        return None


def _of_family(made: Fitted, family: Family, names: tuple[str, ...]) -> Match:
    bugs = (*names, family.bug) if family.bug else names
    return Match(Explanation(made.steps, made.steps, bugs), "" if family.bug else family.zoo or family.title, made)
