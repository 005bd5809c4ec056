"""Which formula the target computes, and with which mistakes: level by level, the simplest first.

0   a formula that was asked for, as it is
    another formula of the zoo, as it is
1   one mistake in a formula that was asked for
    a formula with free numbers: the zoo in any temperature, softmax in any scale
2   two mistakes; or one in another formula
3   three
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..algebra.masks import causal, window
from ..algebra.symbols import i, j
from ..attention import Attention
from ..inputs import Rotary
from ..zoo import ENTRIES
from .families import Family, Fitted, families, fitted
from .search import NAMES, Explanation, Observation, Search, variants
from .steps import Steps, Turn, add_input, on_inputs, on_vectors

PLAIN, CAUSAL = Attention(), Attention(mask=causal)
NOTHING = 10  # times the tolerance: outputs below are 0
WITH_TABLES = ("bilinear", "mahalanobis", "learned_sinks")
KNOWN = ("euclidean", "alibi", "sigmoid", "relu_over_n", "squared_relu", "softmax_plus_one")
CAPS = (30, 50, 20, 10, 15)
WINDOWS = range(2, 5)  # a window of 1 is no attention
COMMON = (
    "inverted mask",
    "strict mask",
    "shifted mask",
    "softmax over queries",
    "softmax over heads",
    "mask after the weights",
    "no root of d",
    "d for its root",
    "0/1 mask added",
    "no mask",
    "heads split without transpose",
    "heads merged without transpose",
    "values from the input",
    "values from the keys",
    "queries and keys swapped",
    "output projection forgotten",
)
"""The mistakes that are met most often."""


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


def bases(form: str, formulas: Sequence[Attention]) -> list[Steps]:
    """Right chains for these formulas, the plainest first."""
    make = on_vectors if form == "vectors" else on_inputs
    return [make(formula) for formula in formulas]


def manners(chains: Sequence[Steps], form: str) -> Iterator[Steps]:
    """The same chains in other right manners: with rotary positions, with the input added."""
    for rotary in rotaries():
        yield from (replace(chain, place=Turn(rotary)) for chain in chains)
    if form == "inputs":
        yield from (replace(chain, add=add_input) for chain in chains)


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
    plain = [("scaled_dot", PLAIN), ("causal_dot", CAUSAL)]  # where another formula was asked for
    return (*found, *masked, *tables, *windows, *sides, *plain)


class Matcher:
    """One search for each reading that works; the first that explains everything at the lowest level wins.

    ahead:    whether the first query reads the last key, of which a causal formula knows nothing
    residual: whether the input is added to the output
    """

    def __init__(
        self,
        observed: Sequence[tuple[str, Sequence[Observation]]],
        formulas: Sequence[Attention],
        ahead: bool | None = None,
        residual: bool = False,
    ) -> None:
        self.forms = [form for form, _ in observed]
        self.searches = [Search(observations) for _, observations in observed]
        self.asked = formulas
        self.ahead = ahead
        self.residual = residual

    def match(self) -> Match | None:
        """The simplest explanation; None where nothing in the catalogue fits, or there is nothing to explain."""
        return None if self._is_nothing() else self._first_of(LEVELS)

    def _is_nothing(self) -> bool:
        """Whether every output is 0, which any small enough weights would predict."""
        seen = [one for search in self.searches for one in search.observations]
        return all(float(np.nanmax(np.abs(one.y), initial=0.0)) <= NOTHING * one.tolerance for one in seen)

    def roughly(self) -> Match | None:
        """With wide tolerances: no more than one mistake, and no free numbers."""
        return self._first_of(((Matcher.as_asked, KEPT), (Matcher.one, KEPT)))

    def _first_of(self, levels: Sequence[tuple[Callable[[Matcher, int], Match | None], int]]) -> Match | None:
        for level, readings in levels:
            for at in range(min(len(self.searches), readings)):
                if (found := level(self, at)) is not None:
                    return replace(found, at=at)
        return None

    # -- levels ----------------------------------------------------------------------------------------------------

    def as_asked(self, at: int) -> Match | None:
        """A formula that was asked for, in any right manner."""
        chains = self._bases(at)
        return self._first(at, [*chains, *manners(chains, self.forms[at])], 0)

    def another(self, at: int) -> Match | None:
        """Another formula of the zoo."""
        return self._in_another(at, 0)

    def one(self, at: int) -> Match | None:
        """One mistake."""
        return self._first(at, self._bases(at), 1) or self._first(at, self._turned(at), 1)

    def two(self, at: int) -> Match | None:
        """Two mistakes, without positions that turn."""
        return self._first(at, self._bases(at), 2)

    def free(self, at: int) -> Match | None:
        """A formula with free numbers."""
        return self._fitted(at, self._bases(at)[0], ())

    def two_turned(self, at: int) -> Match | None:
        """Two mistakes with rotary positions."""
        return self._first(at, self._turned(at), 2)

    def one_in_another(self, at: int) -> Match | None:
        """One mistake in another formula of the zoo, with or without free numbers."""
        return self._in_another(at, 1) or self._fitted_with_one(at)

    def three(self, at: int) -> Match | None:
        """Three of the mistakes that are met most often."""
        return self._first(at, self._bases(at), 3, COMMON)

    # -- what they are made of -------------------------------------------------------------------------------------

    def _bases(self, at: int) -> list[Steps]:
        return self._made(at, self.asked)

    def _made(self, at: int, formulas: Sequence[Attention]) -> list[Steps]:
        """Right chains for these formulas, with the input added where the target adds it."""
        chains = bases(self.forms[at], formulas)
        return [replace(chain, add=add_input) for chain in chains] if self.residual else chains

    def _turned(self, at: int) -> list[Steps]:
        return [replace(chain, place=Turn(rotary)) for rotary in rotaries()[:2] for chain in self._bases(at)]

    def _first(self, at: int, chains: Sequence[Steps], bugs: int, names: Sequence[str] = NAMES) -> Match | None:
        found = self.searches[at].first(chains, bugs, names)
        return None if found is None else Match(found)

    def _in_another(self, at: int, bugs: int) -> Match | None:
        for name, formula in others():
            if (self._may_be(formula) or bugs) and not self._is_meant(formula):
                found = self._first(at, self._made(at, [formula]), bugs)
                if found is not None:
                    return replace(found, recognised=name)
        return None

    def _fitted_with_one(self, at: int) -> Match | None:
        base = self._bases(at)[0]
        for names, steps in variants(base, 1, COMMON):
            if steps.formula == base.formula and (found := self._fitted(at, steps, names)) is not None:
                return found
        return None

    def _fitted(self, at: int, chain: Steps, names: tuple[str, ...]) -> Match | None:
        for family in families():
            if self._may_be(family.formula) or family.bug == "finite mask value":
                made = fitted(self.searches[at], chain, family)
                if made is not None:
                    return _of_family(made, family, names)
        return None

    def _is_meant(self, formula: Attention) -> bool:
        """Softmax with another mask than the one asked for is a mistake of the mask, and no other formula."""
        return formula in (PLAIN, CAUSAL) and not {PLAIN, CAUSAL}.isdisjoint(self.asked)

    def _may_be(self, formula: Attention) -> bool:
        """Whether the formula reads ahead as the target does."""
        return self.ahead is None or self.ahead == (formula.mask is None)


KEPT = 8  # readings that are looked at closely
LEVELS: tuple[tuple[Callable[[Matcher, int], Match | None], int], ...] = (
    (Matcher.as_asked, KEPT),
    (Matcher.another, 4),
    (Matcher.one, KEPT),
    (Matcher.two, 2),
    (Matcher.free, 2),
    (Matcher.two_turned, 1),
    (Matcher.one_in_another, 1),
    (Matcher.three, 1),
)
"""The levels in their order, and how many readings are looked at on each."""


def _of_family(made: Fitted, family: Family, names: tuple[str, ...]) -> Match:
    bugs = (*names, family.bug) if family.bug else names
    return Match(Explanation(made.steps, made.steps, bugs), "" if family.bug else family.zoo or family.title, made)
