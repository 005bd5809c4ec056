"""From scores to weights in plain Python: ψ, its total, and the share of each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...nodes import SCORE
from .array_weights import GROUPS, may_be_infinite
from .parts import PRODUCT, SUM, Kind, Part

if TYPE_CHECKING:
    from .python import PythonBody


class PythonWeights:
    """The steps from scores to weights, on the page of a body."""

    def __init__(self, body: PythonBody) -> None:
        self.body, self.page = body, body.page
        self.formula, self.weight = body.formula, body.formula.weight
        self.key, self.is_exponential = body.key, self.weight.is_exponential
        self.pair = self.key if body.by_rows else f"({self.key})"
        self.m = "m" if body.by_rows else f"m[{body.group}]"
        self.group = body.group if "," not in body.group else f"({body.group})"

    def write(self) -> None:
        if self.weight.over is None:
            self.page.comment("each weight by itself; nothing is shared")
            self._psi("weights")
            return
        if self.is_exponential:
            self._largest()
        else:
            self.page.comment("the weight of every pair, before it is shared")
        self._psi("psi")
        self.page.comment("each weight is its share of the total")
        self._total()
        self._share()

    def _each(self, name: str, values: str, part: str, condition: str = "") -> bool:
        """One dictionary made of another in one line; False where that is too long."""
        value, source = values.split(" in ")
        text = f"{name} = {{{self.pair}: {part} for {self.pair}, {value} in {source}.items(){condition}}}"
        if self.page.fits(text):
            self.page.line(text)
        return self.page.fits(text)

    # -- ψ -----------------------------------------------------------------------------------------------------------

    def _psi(self, name: str) -> None:
        part = self._scaled() if self.is_exponential else self.body.source().fold(self.weight.psi.node)
        if self._each(name, "s in scores", part.text):
            return
        self.page.line(f"{name} = {{}}")
        with self.page.inside(f"for {self.pair}, s in scores.items():"):
            if self.is_exponential:
                self.page.add_up(f"{name}[{self.key}]", self._scaled(short=True))
            else:
                self.body.writer().assign(f"{name}[{self.key}] = ", self.weight.psi.node)

    def _scaled(self, *, short: bool = False) -> Part:
        """Σ r exp(a − m)."""
        texts = [self._term(r, a, short=short) for r, a in self.weight.terms]
        return _sum(texts)

    def _term(self, r: Any, a: Any, *, short: bool = False) -> str:
        parts = [self.body.short(x, "part") if short else self.body.source().fold(x) for x in (r, a)]
        power = f"math.exp({_minus(parts[1], self.m)})"
        return power if r == 1 else f"{parts[0].within(PRODUCT)} * {power}"

    def _largest(self) -> None:
        """m, the largest exponent of each total."""
        which = "largest" if self.body.by_rows else f"largest of each {GROUPS[str(self.body.over)]}"
        self.page.comment(f"exp, with the {which} taken out, so that it cannot overflow")
        (r, a), *others = self.weight.terms
        if self.body.by_rows and not others and r.is_Number and a == SCORE:
            sinks = [self.body.source().fold(a).text for _, a in self.weight.sink_terms]
            many = f"max([{', '.join([*sinks, '*scores.values()'])}])"
            self.page.line(f"m = {many if sinks else 'max(scores.values(), default=0.0)'}")
        else:
            self._search()
        if self._needs_lift:
            self._lift()

    @property
    def _needs_lift(self) -> bool:
        """Whether m can stay at −∞."""
        terms, sink = self.weight.terms, self.weight.sink_terms
        empty = may_be_infinite(self.formula) or not all(r.is_Number for r, _ in terms)
        return empty and not any(a.is_Number for _, a in (*terms, *sink))

    def _search(self) -> None:
        first = self._first()
        self.page.line(f"m = {first}" if self.body.by_rows else "m = {}")
        with self.page.inside(f"for {self.pair}, s in scores.items():"):
            known = self.m if self.body.by_rows else f"m.get({self.group}, {first})"
            if not self.body.by_rows and not self.weight.terms[0][0].is_Number:  # the first may not count
                self.page.line(f"m.setdefault({self.group}, {first})")
                known = self.m
            for place, (r, a) in enumerate(self.weight.terms):
                known = self.m if place else known
                line = f"{self.m} = max({known}, {self.body.short(a, 'part').text})"
                if r.is_Number:
                    self.page.line(line)
                else:
                    self.page.line(f"if {self.body.short(r, 'factor').within(SUM)} != 0:")
                    self.page.line(line, 1)

    def _first(self) -> str:
        """Where the search for the largest begins: at what the sink asks for."""
        sinks = [self.body.source().fold(a).text for _, a in self.weight.sink_terms]
        return f"max({', '.join(sinks)})" if len(sinks) > 1 else sinks[0] if sinks else "-math.inf"

    def _lift(self) -> None:
        if self.body.by_rows:
            self.page.line("m = m if m > -math.inf else 0.0")
        else:
            self.page.line("m = {place: x if x > -math.inf else 0.0 for place, x in m.items()}")

    # -- w = ψ / Z ---------------------------------------------------------------------------------------------------

    @property
    def _counted(self) -> str:
        among = self.weight.among
        return "" if among is None or among.node == sympy.true else f" if counted[{self.key}]"

    def _sink(self) -> list[str]:
        if self.weight.sink is None:
            return []
        if not self.is_exponential:
            return [self.body.source().fold(self.weight.sink.node).within(SUM)]
        return [self._term(r, a) for r, a in self.weight.sink_terms]

    def _total(self) -> None:
        if self.body.by_rows:
            values = "psi.values()" if not self._counted else f"p for {self.pair}, p in psi.items(){self._counted}"
            self.page.add_up("total", _sum([f"sum({values})", *self._sink()]))
            return
        self.page.line("total = {}")
        with self.page.inside(f"for {self.pair}, p in psi.items():"):
            first, amount = "0.0", f"(p{self._counted} else 0.0)" if self._counted else "p"
            if self._sink():
                first = "sink"
                self.page.add_up("sink", _sum(self._sink()))
            self.page.line(f"total[{self.body.group}] = total.get({self.group}, {first}) + {amount}")

    def _share(self) -> None:
        total = "total" if self.body.by_rows else f"total[{self.body.group}]"
        remembered = self.weight.among is not None and self.formula.mask is not None
        condition = f"if admitted[{self.key}]" if remembered else ""
        never_zero = self.is_exponential and self.weight.among is None and not self._needs_lift
        part = f"p / {total}" if never_zero else f"p / {total} if {total} != 0 else 0.0"
        if self._each("weights", "p in psi", part, f" {condition}" if condition else ""):
            return
        self.page.line("weights = {}")
        with self.page.inside(f"for {self.pair}, p in psi.items():"):
            if condition:
                self.page.line(f"{condition}:")
            self.page.line(f"weights[{self.key}] = {part}", bool(condition))


def _minus(exponent: Part, m: str) -> str:
    return f"-{m}" if exponent.text == "0" else f"{exponent.within(SUM)} - {m}"


def _sum(texts: list[str]) -> Part:
    first, *rest = texts
    pieces = (first, *(f"- {text[1:]}" if text.startswith("-") else f"+ {text}" for text in rest))
    return Part(" ".join(pieces), SUM, Kind.FLOAT, pieces=pieces)
