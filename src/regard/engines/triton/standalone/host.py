"""The host's side of a printed kernel: tables, vectors and matrices in plain PyTorch, and the launch.

What the engine computes from the formula's nodes (see `sides` and `data`) is printed from the same nodes here.
"""

from __future__ import annotations

import math
import re
from typing import Any

import sympy

from ....algebra.functions import Log
from ....algebra.intervals import Intervals
from ....algebra.laws import Kind
from ....algebra.nodes import I, Index, J, Pair, Read, walk
from ....algebra.printing.flavours.array_source import TorchSource
from ....algebra.printing.flavours.arrays import kept_tables, spoken
from ....algebra.printing.flavours.module import signature
from ....algebra.printing.flavours.page import Page, Writer
from ....algebra.printing.flavours.parts import Kind as Sort
from ....algebra.printing.flavours.parts import Part, atom
from ....algebra.printing.flavours.source import RANGES
from ...vectors import is_constant
from ..program import LENGTHS, LOG2E, PRODUCT, SQUARES, Program
from ..source import SINK, Slot, Written
from .kernel import Kernel

DIFFERENCE = Index("difference")  # i − j
SHAPES = {Kind.HEAD: "B, H, 1, 1", Kind.ROW: "B, H, N, 1", Kind.COLUMN: "B, H, 1, n", Kind.OFFSET: "1, H, -1, 1"}
SIZES = {
    "ROWS": "ROWS",
    "COLUMNS": "COLUMNS",
    "WIDTHS": "(d,){times}",
    "PADDED": "(padded(d),){times}",
    "VALUE": "v.shape[3]",
    "VALUE_PADDED": "padded(v.shape[3])",
    "GROUP": "group",
    "PRECISION": '"ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"',
}


class HostSource(TorchSource):
    """PyTorch source for what is prepared outside a kernel: in float64, so that large positions keep their digits."""

    cast = "{}.double()"
    constant = "torch.tensor({}, dtype=torch.float64, device=q.device)"

    def __init__(self, kept: frozenset[str], own: dict[str, str]) -> None:
        super().__init__({}, kept)
        self.intervals = Intervals(RANGES | {DIFFERENCE: (-math.inf, math.inf)})
        self.own = own  # names of the vectors that q and k make

    def read(self, node: Read, indices: list[Part]) -> Part:
        return atom(self.own[node.table], Sort.REAL) if node.table in self.own else super().read(node, indices)


class Host:
    """Writes `attention`, line by line."""

    def __init__(self, made: Program, text: Written, kernel: Kernel) -> None:
        self.made, self.text, self.kernel, self.formula = made, text, kernel, made.formula
        self.page = Page(self.formula.ranks)
        self.page.names |= set("B H N n d b h i j group start first difference highest y total data S grid".split())
        self.kept, self.own = kept_tables(self.formula), dict[str, str]()
        nodes = [node for _, node in made.vectors.values()]
        self.named = {part.table for node in nodes for part in walk(node) if isinstance(part, Read)}

    def lines(self) -> list[str]:
        """The whole function."""
        self._moved()
        matrices = [self._matrices(place, pair) for place, pair in enumerate(self.made.products)]
        self._squares()
        if self.made.vectors:
            self.page.comment("what the formula's functions read, prepared in float64")
        for symbol, (kind, node) in self.made.vectors.items():
            self._vector(symbol, kind, node)
        self._sink()
        self._launch(matrices)
        body = self.page.lines
        return [*signature(self.formula, "triton"), *self._prelude(body), *body]

    # -- what comes first ---------------------------------------------------------------------------------------

    def _prelude(self, body: list[str]) -> list[str]:
        """Tables, four axes, sizes and positions: those that the lines below speak of."""
        page, used = Page(self.formula.ranks), spoken(body)
        for name, rank in self.formula.ranks.items():
            kind = ", device=q.device" if rank < 0 or name in self.kept else ", dtype=torch.float32, device=q.device"
            page.line(f"‹{name}› = torch.as_tensor(‹{name}›{kind})")
            if rank < 0:
                page.line(f"‹{name}› = four_axes(‹{name}›.expand(*q.shape[:-1], k.shape[-2]))")
        page.line("lead = q.shape[:-1]")
        page.line("q, k, v = four_axes(q), four_axes(k), four_axes(v)")
        page.line("B, H, N, _ = q.shape")
        page.line("n, d = k.shape[2:]" if page.ours("d") in used else "n = k.shape[2]")
        page.line("group = H // k.shape[1]  # query heads that read one key head")
        if self.formula.uses("i"):
            page.line("start = n - N if start is None else start  # the queries are the last rows of the keys")
        lines = {
            "b": "b = torch.arange(B, device=q.device)[:, None, None, None]",
            "h": "h = torch.arange(H, device=q.device)[:, None, None]",
            "i": "i = start + torch.arange(N, device=q.device)[:, None]",
            "j": "j = torch.arange(n, device=q.device)",
        }
        for name, line in lines.items():
            if page.ours(name) in used:
                page.line(line)
        if page.ours("difference") in used:
            page.line("highest = start + N - 1 + ROWS  # i - j, and what the last tiles add at either end")
            page.line("lowest = start - (n - 1) - COLUMNS")
            page.line("difference = torch.arange(highest, lowest - 1, -1, device=q.device)[:, None]")
        return [*page.lines, ""]

    # -- matrices -----------------------------------------------------------------------------------------------

    def _moved(self) -> None:
        if {pair.word for pair in self.formula.pairs} == {"sqdist"}:
            self.page.comment("distances stay the same if all vectors move, and keep more digits near 0")
            with self.page.inside("if q.dtype == torch.float32:"):
                self.page.line("origin = k.mean(dim=2, keepdim=True)")
                self.page.line("q, k = q - origin.repeat_interleave(group, dim=1), k - origin")

    def _matrices(self, place: int, pair: Pair) -> tuple[str, str]:
        """The names of both sides of a product."""
        if pair == PRODUCT:
            return "q", "k"
        metric = self._metric(pair)
        if pair.word == "cross":
            self.page.comment("(q - k)ᵀ M (q - k) = qᵀ M q + kᵀ M k - qᵀ (M + Mᵀ) k")
            self._metric_squares(pair, metric)
            metric = f"({metric} + {metric}.mT)"
        left = self.page.name(f"left{place}")
        self.page.line(f"{left} = (q.double() @ {metric}.double()).float()")
        return left, "k.float()"

    def _metric(self, pair: Pair) -> str:
        """The matrices of the heads: (d, d), (H, d, d) or (B, 1, d, d)."""
        text = HostSource(self.kept, {}).fold(pair.metric).text
        return re.sub(r"(?<![\w.‹])([hb])(?!\w)", r"\1[..., 0, 0]", text)

    def _metric_squares(self, pair: Pair, metric: str) -> None:
        assert pair.metric is not None
        for side, x in (("q", "q.double()"), ("k", "k.double().repeat_interleave(group, dim=1)")):
            if f"{SQUARES[side].table} {pair.metric}" not in self.named:
                continue  # it cancels
            wide, name = self.page.name(f"wide_{side}"), self.page.name(f"{side}_squares")
            self.page.line(f"{wide} = {x}")
            ends = "keepdim=True)" if side == "q" else "keepdim=True).mT"
            self.page.line(f"{name} = ({wide} @ {metric}.double() * {wide}).sum(dim=-1, {ends}")
            self.own[f"{SQUARES[side].table} {pair.metric}"] = name

    def _squares(self) -> None:
        """‖q‖² and 1 / ‖q‖, (B, H, N, 1), and of keys (B, H, 1, n)."""
        for side, many in (("q", ""), ("k", ".mT.repeat_interleave(group, dim=1)")):
            if not self.named & {SQUARES[side].table, LENGTHS[side].table}:
                continue
            name = self.own[SQUARES[side].table] = self.page.name(f"{side}_squares")
            self.page.line(f"{name} = {side}.double().square().sum(dim=-1, keepdim=True){many}")
            if LENGTHS[side].table in self.named:
                inverse = self.own[LENGTHS[side].table] = self.page.name(f"{side}_inverse")
                self.page.line(f"{inverse} = torch.where({name} == 0, 0.0, {name}.rsqrt())  # 1 / length, 0 for zero")

    # -- vectors ------------------------------------------------------------------------------------------------

    def _vector(self, symbol: Any, kind: Kind, node: Any) -> None:
        source = HostSource(self.kept, self.own)
        if kind == Kind.HEAD and is_constant(node):
            self._assign(symbol.name, node, source, lambda part: part if part.kind is Sort.FLOAT else _float(part))
            return
        moved = node.xreplace({I: DIFFERENCE, J: sympy.S.Zero}) if kind == Kind.OFFSET else node
        part = source.array(source.fold(moved))
        if self.page.fits(f"{symbol.name} = spread({part.text}, {SHAPES[kind]})"):
            self.page.line(f"{symbol.name} = spread({part.text}, {SHAPES[kind]})")
            return
        self._assign(symbol.name, moved, source, source.array)
        self.page.line(f"{symbol.name} = spread({symbol.name}, {SHAPES[kind]})")

    def _sink(self) -> None:
        """What is added to Z; its log₂ where ψ is exponential."""
        weight, source = self.formula.weight, HostSource(self.kept, {})
        if weight.sink is None:
            return
        if not self.made.is_exponential:
            self._assign("sink", weight.sink.node, source, source.array)
        else:
            self.page.comment("log₂ of what is added to Z")
            for place, (r, a) in enumerate(weight.sink_terms):
                logarithm = LOG2E * a if r == 1 else LOG2E * (Log(r, evaluate=False) + a)
                self._assign("another" if place else "sink", logarithm, source, source.array)
                if place:
                    self.page.line("sink = torch.logaddexp2(sink, another)")
        self.page.line(f"sink = spread(sink, {SHAPES[Kind.ROW]})")

    def _assign(self, name: str, node: Any, source: HostSource, shape: Any) -> None:
        Writer(self.page, source).assign(f"{name} = ", node, shape=shape)

    # -- the launch ---------------------------------------------------------------------------------------------

    def _launch(self, matrices: list[tuple[str, str]]) -> None:
        page = self.page
        page.lines += [""] if page.lines else []
        page.line("y = torch.empty((B, H, N, v.shape[3]), dtype=v.dtype, device=q.device)")
        if "total" in self.kernel.parameters:
            page.line("total = torch.empty((B, H, N), dtype=torch.float32, device=q.device)")
        start = "start" if self.formula.uses("i") else "0"
        page.line(f"first = torch.full((B,), {start}, dtype=torch.int64, device=q.device)")
        self._block("data = (", [line for slot in self.text.slots for line in self._read(slot)] or ["0,"])
        times = f" * {len(matrices)}" if len(matrices) != 1 else ""
        sizes = [f"{name}={text.format(times=times)}," for name, text in SIZES.items() if name in self.kernel.sizes]
        self._block("S = Constants(", sizes)
        page.line("grid = (triton.cdiv(N, ROWS) * H * B,)")
        given = {"v": "v"}
        for place, (left, right) in enumerate(matrices):
            given |= {f"left{place}": left, f"right{place}": right}
        arguments = [f"plain(near({given[name]}))" if name in given else KNOWN[name] for name in self.kernel.parameters]
        with page.inside("with torch.cuda.device_of(q):  # Triton starts a kernel on the device that is current"):
            page.call("forward[grid]", [*arguments, "num_warps=WARPS", "num_stages=STAGES"], "")
        page.line("return y.reshape(*lead, v.shape[3])")

    def _block(self, head: str, lines: list[str]) -> None:
        if len(lines) == 1:
            self.page.line(f"{head}{lines[0]})")
            return
        self.page.line(head)
        for line in lines:
            self.page.line(line, 1)
        self.page.line(")")

    def _read(self, slot: Slot) -> list[str]:
        """The part of `data` that a slot holds."""
        name = "sink" if slot.name == SINK else str(slot.name)
        match slot.what:
            case "head" | "row" | "column":
                return [f"{name},", f"*{name}.stride()[:2],"]
            case "offset":
                return [f"{name},", f"{name}.stride(1),", "highest,"]
            case "table":
                return [f"‹{name}›,", f"*‹{name}›.stride(),", f"*‹{name}›.shape,"]
            case "given":
                return [f"‹{name}›,", f"*‹{name}›.stride(),", f"*‹{name}›.shape[2:],"]
        return ["first," if slot.what == "start" else f"{name},"]


KNOWN = {"y": "plain(y)", "total": "total", "start": "first", "data": "data", "sizes": "(H, N, n)", "S": "S"}


def _float(part: Part) -> Part:
    return part.atom(f"float({part.text})", Sort.FLOAT)
