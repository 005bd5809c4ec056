"""From scores to weights on whole arrays: ψ, its total, and the share of each pair."""

from __future__ import annotations

from typing import Any

import sympy

from ...fold import fold, is_reciprocal
from ...formula import Formula
from ...functions import Log
from ...intervals import Intervals
from ...nodes import SCORE, Read
from ...weights import Term
from .arrays import Body
from .parts import ATOM, PRODUCT, SUM, Kind, Part, atom
from .source import RANGES

AXES = {"j": -1, "i": -2, "h": -3, "b": -4}
GROUPS = {"j": "row", "i": "column", "h": "set of heads", "b": "batch"}


class Weights:
    """The steps from scores to weights, on the page of a body."""

    def __init__(self, body: Body) -> None:
        self.body, self.page, self.xp = body, body.page, body.xp
        self.formula, self.weight = body.formula, body.formula.weight
        self.is_exponential = self.weight.is_exponential

    def write(self) -> None:
        if self.weight.over is None:
            self.page.comment(f"{self.body.matrix}: each weight by itself; nothing is shared")
            self.body.assign("weights", self.weight.psi.node)
            self._keep_admitted()
            return
        zeroed = self._exponentials() if self.is_exponential else self._plain()
        if self.weight.among is None and not zeroed:
            self._keep_admitted()
        self._share()
        if self.weight.among is not None:
            self._keep_admitted()

    def _keep_admitted(self) -> None:
        if self.formula.mask is not None:
            self.page.line(f"weights = {self.xp}.where(admitted, weights, 0.0)")

    def _plain(self) -> bool:
        self.page.comment(f"{self.body.matrix}: the weight of every pair, before it is shared")
        self.body.assign("weights", self.weight.psi.node)
        return False

    # -- ψ = Σ r exp(a) ----------------------------------------------------------------------------------------------

    def _exponentials(self) -> bool:
        """ψ = Σ r exp(a − m); whether that is 0 already where a pair does not count."""
        terms = self.weight.terms
        exponents = [self._exponent(a) for _, a in terms]
        factors = [self.body.short(r, "factor") for r, _ in terms]
        self._largest(factors, exponents)
        self._sum("weights", [self._term(r, a) for r, a in zip(factors, exponents, strict=True)])
        return all(r.is_Number and not a.is_Number for r, a in terms)

    def _exponent(self, a: Any) -> Part:
        """The exponent of one term by its name, −∞ where a pair does not count."""
        if a.is_Number:
            return self.body.source().number(0 if a == 0 else float(a))
        alone = len(self.weight.terms) == 1 and self.weight.terms[0][0].is_Number  # nothing else reads the scores
        raw = name = "scores" if a == SCORE and (alone or self.body.live is None) else self.page.name("exponents")
        if a != SCORE:
            self.page.comment(f"{self.body.matrix}: what exp is taken of")
            self.body.assign(name, a)
        elif not alone:
            raw = "scores"
        if self.body.live is not None:
            self.page.comment("exp(-inf) = 0: no weight for what does not count")
            self.page.line(f"{name} = {self.xp}.where({self.body.live}, {raw}, -{self.xp}.inf)")
        return atom(name, Kind.REAL)

    def _largest(self, factors: list[Part], exponents: list[Part]) -> None:
        """m, one for each total."""
        terms = list(zip(factors, exponents, strict=True))
        heights = [self._height(r, a) for r, a in terms if not (r.is_scalar and a.is_scalar)]
        limits = [a.text for r, a in terms if r.is_scalar and a.is_scalar]
        for _, a in self.weight.sink_terms:
            part = self._sink_exponent(a)
            detached = f"{part.within(ATOM)}.detach()" if self.xp == "torch" else part.text
            (limits if part.is_scalar else heights).append(part.text if part.is_scalar else detached)
        self.page.comment(f"exp, with the largest of each {GROUPS[self._over]} taken out, so that it cannot overflow")
        self.page.line(f"m = {heights[0]}")
        for height in heights[1:]:
            self.page.line(f"m = {self.xp}.maximum(m, {height})")
        for limit in dict.fromkeys(limits):
            self.page.line(f"m = {self.body.library.lowered.format('m', limit)}")
        if not limits and self._may_be_empty:
            self.page.line(f"m = {self.xp}.where(m == -{self.xp}.inf, 0.0, m)  # where nothing counts")

    def _height(self, r: Part, exponent: Part) -> str:
        """The largest exponent of each total; what has a factor of 0 does not count."""
        name = exponent.text
        if not r.is_scalar:
            name, source = self.page.name("heights"), self.body.source()
            counts = f"{r.within(SUM)} != 0"
            if self.body.live is not None and exponent.is_scalar:
                counts = f"{self.body.live} & ({counts})"
            choice = [counts, source.array(exponent).text, f"-{self.xp}.inf"]
            self.page.call(f"{name} = {self.xp}.where", choice, "")
            self.body.spread(name)
        return self.body.library.highest.format(name, self._along)

    def _term(self, r: Part, exponent: Part) -> str:
        """r · exp(a − m)."""
        inner = "-m" if exponent.text == "0" else f"{exponent.within(SUM)} - m"
        power = f"{self.xp}.exp({inner})"
        return power if r.text == "1" else f"{r.within(PRODUCT)} * {power}"

    def _sink_exponent(self, a: Any) -> Part:
        if a.is_Number:
            return self.body.source().number(0 if a == 0 else float(a))
        return self.body.short(a, "sink_score", guard=False)

    # -- w = ψ / Z ---------------------------------------------------------------------------------------------------

    def _share(self) -> None:
        among = self.weight.among
        counted = "weights" if among is None or among.node == sympy.true else f"{self.xp}.where(counted, weights, 0.0)"
        total, sink = f"{counted}.sum({self._along})", self._sink()
        self.page.comment(f"each weight becomes its share of the total of its {GROUPS[self._over]}")
        if self.is_exponential and not sink and not self._may_be_empty:
            self.page.line(f"weights = weights / {total}")
            return
        self._sum("total", [total, *sink])
        self.page.line(f"weights = weights / {self.xp}.where(total == 0, {self.xp}.inf, total)")

    def _sink(self) -> list[str]:
        """What is added to the total, in the same scale."""
        if self.weight.sink is None:
            return []
        if not self.is_exponential:
            return [self.body.short(self.weight.sink.node, "nowhere", guard=False).within(SUM)]
        return [self._sink_term(term) for term in self.weight.sink_terms]

    def _sink_term(self, term: Term) -> str:
        r, a = term
        return self._term(self.body.short(r, "factor", guard=False), self._sink_exponent(a))

    def _sum(self, name: str, texts: list[str]) -> None:
        pieces = (texts[0], *(f"- {text[1:]}" if text.startswith("-") else f"+ {text}" for text in texts[1:]))
        if not self.page.write(f"{name} = ", Part(" ".join(pieces), SUM, Kind.REAL, pieces=pieces)):
            for place, text in enumerate(texts):
                self.page.line(f"{name} = {text}" if place == 0 else f"{name} = {name} + {text}")

    @property
    def _over(self) -> str:
        assert self.weight.over is not None
        return str(self.weight.over.node.name)

    @property
    def _along(self) -> str:
        return self.body.library.along.format(AXES[self._over])

    @property
    def _may_be_empty(self) -> bool:
        return may_be_empty(self.formula)


def may_be_empty(formula: Formula) -> bool:
    """Whether a total can count nothing: by a mask, by scores of −∞, by factors of 0."""
    masked = formula.mask is not None or formula.weight.among is not None
    return masked or may_be_infinite(formula) or not all(r.is_Number for r, _ in formula.weight.terms)


def may_be_infinite(formula: Formula) -> bool:
    """Whether scores of finite vectors can be −∞: by what a table holds, by log 0, by a division by 0."""
    bounds = Intervals(RANGES)
    nodes = formula.score.node, formula.weight.psi.node
    parts = [part for node in nodes for part in sympy.preorder_traversal(node)]  # does not enter metrics
    divisors = [fold(part.base, bounds) for part in parts if is_reciprocal(part)]
    return any(isinstance(part, Read | Log) for part in parts) or any(low <= 0 <= high for low, high in divisors)
