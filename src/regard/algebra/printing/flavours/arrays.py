"""The body of `attention` on whole arrays, for NumPy and PyTorch: tables, positions, pairs, masks, scores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sympy

from ...formula import Formula
from ...nodes import SCORE, AtLeastZero, IsZero, Pair, Read, symbols, walk
from .array_source import ArraySource, TorchSource
from .page import Page, Writer
from .parts import Part


@dataclass(frozen=True)
class Library:
    """How one array library says what the two say differently."""

    source: type[ArraySource]
    module: str
    axis: str
    along: str
    highest: str
    lowered: str
    clip: str
    arange: str
    table: str
    as_given: str


LIBRARIES = {
    "numpy": Library(
        source=ArraySource,
        module="np",
        axis="axis={}",
        along="axis={}, keepdims=True",
        highest="{}.max({})",
        lowered="np.maximum({}, {})",
        clip="np.clip",
        arange="np.arange({})",
        table="np.asarray({}, dtype=q.dtype)",
        as_given="np.asarray({})",
    ),
    "torch": Library(
        source=TorchSource,
        module="torch",
        axis="dim={}",
        along="dim={}, keepdim=True",
        highest="{}.detach().amax({})",  # the weights do not depend on what is taken out
        lowered="{}.clamp(min={})",
        clip="torch.clamp",
        arange="torch.arange({}, device=q.device)",
        table="torch.as_tensor({}, dtype=q.dtype, device=q.device)",
        as_given="torch.as_tensor({}, device=q.device)",
    ),
}

PAIRS = {
    "dot": "the dot product of every query and key",
    "sqdist": "the squared distance of every query and key",
    "cosine": "the cosine of the angle between every query and key",
}


class Body:
    """What every step writes on: one page, one library, one formula."""

    def __init__(self, formula: Formula, flavour: str, four_axes: bool) -> None:
        self.formula, self.library = formula, LIBRARIES[flavour]
        self.xp = self.library.module
        self.lead = "batch, heads" if four_axes else "..."
        self.kept = kept_tables(formula)
        self.page = Page(formula.ranks)
        self.has_scores = SCORE in symbols(formula.weight.psi.node)
        nodes = [node for node in formula.nodes if self.has_scores or node != formula.score.node]
        used = {part for node in nodes for part in walk(node)}
        self.pairs = {pair: self.page.name(_pair_name(pair)) for pair in formula.pairs if pair in used}
        self.page.names |= {"admitted", "counted", "live", "scores", "weights", "total", "m"}
        self.live: str | None = None  # the name of the pairs that count; None where all do

    @property
    def matrix(self) -> str:
        return f"({self.lead}, queries, n)"

    def source(self) -> ArraySource:
        return self.library.source(self.pairs, self.kept, self.live)

    def assign(self, name: str, node: Any) -> None:
        """`name = node`, a real number for every pair."""
        source = self.source()
        reaches = any(isinstance(part, Pair) or part == SCORE for part in walk(node))
        Writer(self.page, source).assign(f"{name} = ", node, shape=source.real if reaches else source.array)
        if not reaches:
            self.spread(name)

    def spread(self, name: str) -> None:
        """Give `name` an entry for every pair."""
        self.page.line(f"{name} = {self.xp}.broadcast_to({name}, (*q.shape[:-1], k.shape[-2]))")

    def short(self, node: Any, name: str, *, guard: bool = True) -> Part:
        """The node as a real number in few words; under a name where it takes many."""
        source = self.source() if guard else self.library.source(self.pairs, self.kept)
        part = source.real(source.fold(node))
        if len(part.text) <= 32:
            return part
        name = self.page.name(name)
        Writer(self.page, source).assign(f"{name} = ", node, shape=source.real)
        return part.atom(name)

    # -- steps -----------------------------------------------------------------------------------------------------

    def write_pairs(self) -> None:
        for pair, name in self.pairs.items():
            self.page.comment(f"{self.matrix}: {PAIRS[pair.word]}")
            metric = "" if pair.metric is None else self._metric(pair.metric)
            if pair.word == "dot":
                self.page.line(f"{name} = q @ {metric and f'{metric} @ '}k.swapaxes(-1, -2)")
            elif pair.word == "cosine":
                self.page.line(f"{name} = {self.library.clip}(unit(q) @ unit(k).swapaxes(-1, -2), -1.0, 1.0)")
            else:
                self._distance(pair, name, metric)

    def _distance(self, pair: Pair, name: str, metric: str) -> None:
        axis, difference = self.library.axis.format(-1), self.page.name("difference")
        self.page.line(f"{difference} = q[..., :, None, :] - k[..., None, :, :]")
        if pair.metric is None:
            self.page.line(f"{name} = ({difference}**2).sum({axis})")
            return
        matrix = f"{metric}[..., None, :, :]" if symbols(pair.metric) else metric
        self.page.line(f"{name} = ({difference} @ {matrix} * {difference}).sum({axis})")

    def _metric(self, metric: Read) -> str:
        """The matrices of the heads that are there: (d, d), (heads, d, d) or (batch, 1, d, d)."""
        return re.sub(r"(?<![\w.‹])([hb])(?!\w)", r"\1[..., 0, 0]", self.source().fold(metric).text)

    def write_masks(self) -> None:
        """The lines of the masks, and from then on `live`."""
        mask, among = self.formula.mask, self.formula.weight.among
        if mask is not None:
            self._mask("admitted", mask.node, "the pairs that are admitted")
        if among is not None and among.node != sympy.true:
            self._mask("counted", among.node, "the pairs that the total counts")
        if mask is None or (among is not None and among.node == sympy.true):
            return
        if among is not None:
            self.page.line("live = admitted | counted")
        self.live = "admitted" if among is None else "live"

    def _mask(self, name: str, node: Any, meaning: str) -> None:
        self.page.comment(f"{meaning}; broadcasts to {self.matrix}")
        source = self.source()
        Writer(self.page, source).assign(f"{name} = ", node, shape=source.mask)

    def write_scores(self) -> None:
        if self.has_scores:
            self.page.comment(f"{self.matrix}: the score of every pair")
            self.assign("scores", self.formula.score.node)

    def write_mix(self) -> None:
        self.page.comment(f"({self.lead}, queries, d_v): the values, each by its weight")
        self.page.line("return weights @ v")

    # -- what comes first ------------------------------------------------------------------------------------------

    def prelude(self) -> list[str]:
        """Tables, sizes and positions: only those that the lines below speak of."""
        page, arange = Page(self.formula.ranks), self.library.arange
        for name, rank in self.formula.ranks.items():
            if rank >= 0:
                template = self.library.as_given if name in self.kept else self.library.table
                page.line(f"‹{name}› = {template.format(f'‹{name}›')}")
        used = spoken(self.page.lines)
        lines = {
            "H": "H = q.shape[-3]  # heads",
            "n": "n = k.shape[-2]  # keys",
            "d": "d = k.shape[-1]  # width of a key",
            "b": f"b = {arange.format('q.shape[0]')}[:, None, None, None]",
            "h": f"h = {arange.format('H')}[:, None, None]",
            "start": "start = n - q.shape[-2] if start is None else start  # the queries are the last rows of the keys",
            "i": f"i = start + {arange.format('q.shape[-2]')}[:, None]  # (queries, 1)",
            "j": f"j = {arange.format('n')}  # (n)",
        }
        for name, needs in (("h", {"H"}), ("j", {"n"}), ("i", {"n", "start"})):
            used |= needs if name in used else set()
        for name, line in lines.items():
            if name in used:
                page.line(line)
        return [*page.lines, *([""] if page.lines else [])]


def kept_tables(formula: Formula) -> frozenset[str]:
    """The tables that may hold integers: in an index, under // and %, or in a comparison."""
    relations = [part for node in formula.nodes for part in walk(node) if isinstance(part, AtLeastZero | IsZero)]
    compared = {part.table for relation in relations for part in walk(relation) if isinstance(part, Read)}
    return formula.integer_tables | compared


def _pair_name(pair: Pair) -> str:
    return pair.word if pair.metric is None else f"{pair.word}_{pair.metric.table}"


def spoken(lines: list[str]) -> set[str]:
    """The names that lines of code use, but for attributes."""
    return {name for line in lines for name in re.findall(r"(?<![\w.])[^\W\d]\w*", line.split("#")[0])}
