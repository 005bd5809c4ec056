"""The body of `attention` in plain Python: lists and loops, every index visible.

Where each query has a total of its own, everything happens inside the loop over queries, and a pair is known by its
key j. Where another index shares, the pairs of all queries are gathered first, and a pair is known by all its indices.
"""

from __future__ import annotations

from typing import Any

import sympy

from ...formula import Formula
from ...nodes import Given, walk
from .arrays import spoken
from .page import LazyWriter, Page
from .parts import Part
from .python_weights import PythonWeights
from .source import Source


class PythonBody:
    """One page, one formula, and the names of a pair's place."""

    def __init__(self, formula: Formula, four_axes: bool) -> None:
        self.formula, self.four_axes = formula, four_axes
        self.page = Page(formula.ranks)
        self.page.names |= set(
            "admitted counted scores psi weights total m s p w row e y y_i query key queries keys values".split()
        )
        self.over = formula.weight.over.node.name if formula.weight.over is not None else None
        self.by_rows = self.over in (None, "j")
        self.row = "i" if formula.uses("i") else "row"
        self.lead = "[b][h]" if four_axes else ""
        self.q, self.k, self.v = ("queries", "keys", "values") if four_axes else ("q", "k", "v")
        indices = ["b", "h", self.row, "j"] if four_axes else [self.row, "j"]
        self.places = ["j"] if self.by_rows else indices
        place = "i - start" if self.row == "i" else "row"
        self.given_place = f"{self.lead}[{place}][j]"

    def lines(self) -> list[str]:
        page = self.page
        if self.by_rows:
            page.line("y = [[[] for _ in heads] for heads in q]" if self.four_axes else "y = []")
        else:
            self._begin_scores("pair")
        self._over_queries()
        if not self.by_rows:
            PythonWeights(self).write()
            self._mix_all()
        page.line("return y")
        return self._prelude() + page.lines

    # -- loops -----------------------------------------------------------------------------------------------------

    def _over_queries(self) -> None:
        if not self.four_axes:
            self._over_rows()
            return
        heads = "H" if self.formula.uses("H") else "len(q[b])"
        with self.page.inside("for b in range(len(q)):"), self.page.inside(f"for h in range({heads}):"):
            names = "queries, keys, values = q[b][h], k[b][h], v[b][h]"
            self.page.line(names if self.by_rows else "queries, keys = q[b][h], k[b][h]")
            self._over_rows()

    def _over_rows(self) -> None:
        rows = f"enumerate({self.q}, start)" if self.row == "i" else f"enumerate({self.q})"
        by_place = self.row == "i" or not self.by_rows or has_given(self.formula)
        with self.page.inside(f"for {self.row}, query in {rows}:" if by_place else f"for query in {self.q}:"):
            if not self.by_rows:
                self._over_keys()
                return
            self._begin_scores("key")
            self._over_keys()
            PythonWeights(self).write()
            self._mix()

    def _begin_scores(self, what: str) -> None:
        which = " that counts" if self.formula.mask is not None else ""
        self.page.comment(f"the score of every {what}{which}")
        self.page.line("scores = {}")
        if self.formula.weight.among is not None:
            for name in self._masks():
                self.page.line(f"{name} = {{}}")

    def _masks(self) -> dict[str, Any]:
        """The masks that must be remembered, because the total counts other pairs than are admitted."""
        mask, among = self.formula.mask, self.formula.weight.among
        found = {"admitted": mask, "counted": among}
        return {name: value.node for name, value in found.items() if value is not None and value.node != sympy.true}

    def _over_keys(self) -> None:
        with self.page.inside(f"for j, key in enumerate({self.k}):"):
            mask, among = self.formula.mask, self.formula.weight.among
            if among is None and mask is None:
                self._score()
            elif among is None and mask is not None:
                self.writer(clip=True).assign("if ", mask.node, ":")
                self._score(1)
            else:
                self._remembered()

    def _remembered(self) -> None:
        masks = self._masks()
        for name, node in masks.items():
            self.writer(clip=True).assign(f"{name}[{self.key}] = ", node)
        if len(masks) < 2:  # every pair is scored
            self._score()
            return
        self.page.line(f"if admitted[{self.key}] or counted[{self.key}]:")
        self._score(1)

    def _score(self, deeper: int = 0) -> None:
        self.page.depth += deeper
        self.writer().assign(f"scores[{self.key}] = ", self.formula.score.node)
        self.page.depth -= deeper

    # -- values ----------------------------------------------------------------------------------------------------

    def _mix(self) -> None:
        self.page.comment("the values, each by its weight")
        mixed = f"sum(w * {self.v}[j][e] for j, w in weights.items())"
        self.page.line(f"y_i = [{mixed} for e in range(d_v)]")
        self.page.line(f"y{self.lead}.append(y_i)")

    def _mix_all(self) -> None:
        self.page.comment("the values, each by its weight")
        rows = "[[0.0] * d_v for _ in {}]"
        deep = f"[[{rows.format('queries')} for queries in heads] for heads in q]"
        self.page.line(f"y = {deep if self.four_axes else rows.format('q')}")
        row = f"y{self.lead}[{'i - start' if self.row == 'i' else 'row'}]"
        pairs, entries = f"for ({self.key}), w in weights.items():", f"for e, x in enumerate(v{self.lead}[j]):"
        with self.page.inside(pairs), self.page.inside(entries):
            self.page.line(f"{row}[e] += w * x")

    # -- names -----------------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """How a pair is known."""
        return ", ".join(self.places)

    @property
    def group(self) -> str:
        """How a total is known: by all indices but the one that shares."""
        return ", ".join(place for place in self.places if place != (self.row if self.over == "i" else self.over))

    def source(self, *, clip: bool = False) -> Source:
        return Source(self.given_place, clip=clip)

    def writer(self, *, clip: bool = False) -> LazyWriter:
        return LazyWriter(self.page, self.source(clip=clip))

    def short(self, node: Any, name: str) -> Part:
        """The node in few words; under a name where it takes many."""
        part = self.source().fold(node)
        if len(part.text) <= 40:
            return part
        name = self.page.name(name)
        self.writer().assign(f"{name} = ", node)
        return part.atom(name)

    def _prelude(self) -> list[str]:
        """Sizes: only those that the lines below speak of."""
        used, deep = spoken(self.page.lines), "[0][0]" if self.four_axes else ""
        used |= {"n"} if "start" in used else set()
        lines = {
            "H": "H = len(q[0])  # heads",
            "n": f"n = len(k{deep})  # keys",
            "d": f"d = len(k{deep}[0])  # width of a key",
            "d_v": f"d_v = len(v{deep}[0])  # width of a value",
            "start": f"start = n - len(q{deep}) if start is None else start  # the queries are the last rows",
        }
        page = Page(self.formula.ranks)
        for name, line in lines.items():
            if name in used:
                page.line(line)
        return [*page.lines, *([""] if page.lines else [])]


def has_given(formula: Formula) -> bool:
    return any(isinstance(part, Given) for node in formula.nodes for part in walk(node))
