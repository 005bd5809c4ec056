"""One pass of the kernels, forth or back: the formula's functions, what they read, the blocks and tiles they run on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import sympy
import torch

from ..._arrays import library
from ...algebra.laws import Kind, kind_of
from ...algebra.nodes import BATCH, HEAD, Given, I, J, Read, walk
from ..call import Call
from ..dropout import Dropout
from ..operators import formula_of
from ..vectors import is_constant
from .blocks import Lists, both_lists, lists
from .counting import is_long, rounded_up
from .data import packed
from .functions import TRITON, jitted
from .masks import is_plain
from .options import Options
from .program import PSI, Program, Pull, program
from .sides import mean_of_read
from .source import SINK, Wanted, Written, written
from .templates import launch
from .templates.common import INTERPRETED, Constants
from .tilings import Tiling, tiling

FUNCTIONS = (
    "heads rows columns unit height weight admitted sink product_scales "
    "pull_products pull_rows pull_columns pull_offsets pull_tables places"
).split()


REHEARSED = Tiling(64, 32)  # in the interpreter: small calls have several tiles too
SQUARE = Tiling(64, 64)


class Sizes(NamedTuple):
    """Of a call: numbers of batches, heads, queries and keys, widths of k and q, the highest i − j, and the start."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    query_width: int
    highest: int
    is_known: int  # whether every batch starts at `first`
    first: int
    is_eager: int = 0  # whether no compiler stands between the caller and the kernels


@dataclass(frozen=True)
class Pass:
    """All that one run of the kernels reads."""

    made: Program
    lefts: tuple[Any, ...]
    rights: tuple[Any, ...]
    v: Any
    vectors: dict[Any, Any]  # by symbol, the sink too
    tables: dict[str, Any]
    start: Any
    seed: Any | None
    sizes: Sizes
    p: float
    options: Options
    wanted: frozenset[Any]  # symbols of vectors, and names of tables

    @classmethod
    def of(
        cls, lefts: Any, rights: Any, v: Any, vectors: Any, given: Any, start: Any, seed: Any | None,
        sizes: Sequence[int], formula: str, p: float, options: str, wanted: Sequence[bool] = (),
    ) -> Pass:  # fmt: skip
        """From the arguments of the operators."""
        made = program(formula_of(formula), v.dtype != torch.float32)
        symbols = vector_symbols(made)
        named = (*symbols, *made.formula.ranks)
        asked = frozenset(name for name, wants in zip(named, wanted, strict=False) if wants)
        by_symbol, by_name = dict(zip(symbols, vectors, strict=True)), dict(zip(made.formula.ranks, given, strict=True))
        return cls(made, tuple(lefts), tuple(rights), v, by_symbol, by_name, start, seed, Sizes(*sizes), p,
                   Options.read(options), asked)  # fmt: skip

    # -- the formula's functions ----------------------------------------------------------------------------------

    @cached_property
    def text(self) -> Written:
        whole = frozenset(name for name, table in self.tables.items() if not table.is_floating_point())
        exact = self.options.exact or self.v.dtype == torch.float32 or bool(INTERPRETED.value)
        reads = tuple(leaf for leaf in self.made.leaves if isinstance(leaf, Read) and leaf.table in self.wanted)
        vectors = tuple(s for s in self.made.vectors if s in self.wanted)
        named = frozenset(name for name in self.wanted if isinstance(name, str))
        nodes = (*(self.made.vectors[symbol][1] for symbol in vectors), *reads)
        sink = self.made.formula.weight.sink if SINK in self.wanted else None
        adds_up = any(gathers(node, named, J) for node in nodes) or (sink is not None and gathers(sink.node, named, I))
        wanted = Wanted(vectors, reads, adds_up)
        sizes, narrow = self.sizes, self.v.dtype == torch.float16
        last = sizes.queries + (sizes.first if sizes.is_known else sizes.keys)
        long = is_long(self.made, rounded_up(max(last, sizes.keys)), sizes.batch, sizes.heads)
        return written(self.made, whole, wanted, exact, self._covering, narrow, long)

    @cached_property
    def _covering(self) -> frozenset[str]:
        """The tables that a mask reads at places of its own, each of which the table has."""
        sizes = self.sizes
        ends = {BATCH: sizes.batch, HEAD: sizes.heads, J: sizes.keys}
        ends |= {I: sizes.first + sizes.queries} if sizes.is_known else {}
        reads = marks_of(self.made)
        return frozenset(
            name
            for name in {read.table for read in reads}
            if all(
                ends.get(index, math.inf) <= size
                for read in reads
                if read.table == name
                for index, size in zip(read.indices, self.tables[name].shape, strict=True)
            )
        )

    @cached_property
    def centred(self) -> Any | None:
        """The keys without their mean, where distances alone are asked for under softmax; otherwise None.

        Rows of dS sum to 0 there, and dq is the same; what dS lost when it was rounded is not multiplied by the mean.
        """
        if not is_of_distance(self.made):
            return None
        (k,) = self.rights
        return (k - mean_of_read(replace(self.call, k=k))).to(k.dtype)

    def launched(self, head: str = TRITON) -> launch.Call:
        """The call as the host's side of the kernels sees it, its functions jitted for Triton or for Gluon."""
        if head != TRITON:
            return replace(self._launched, formula=self._functions(head))
        return self._launched

    def _functions(self, head: str) -> Constants:
        scaled = self.v.dtype == torch.float16 and self.made.is_shared and not self.made.is_exponential
        rounded = self.v.dtype != torch.float32 and self.made.is_shared and not self.made.is_softmax_like
        return constants(self.made, self.text, head, scaled, rounded)

    @cached_property
    def _launched(self) -> launch.Call:
        sizes, drop = self.sizes, None
        if self.seed is not None:
            dropout = Dropout(self.p, self.seed)
            drop = launch.Drop(self.seed.reshape(1).long(), dropout.threshold, dropout.scale)
        return launch.Call(
            self._functions(TRITON), self.lefts, self.rights, self.v,
            (sizes.batch, sizes.heads, sizes.queries), self.start, self._data, precision(), drop,
            exact=self.v.dtype == torch.float32,
        )  # fmt: skip

    @cached_property
    def _data(self) -> tuple[Any, ...]:
        return packed(self.made, self.text, self.vectors, self.tables, self.start, self.sizes, self.sizes.highest)

    # -- blocks and tiles -----------------------------------------------------------------------------------------

    @cached_property
    def call(self) -> Call:
        """The call as the mask's algebra sees it: shapes, tables and positions."""
        sizes, like = self.sizes, self.v[:, :1, :1, :1]
        q = like.expand(sizes.batch, sizes.heads, sizes.queries, sizes.query_width)
        k = like.expand(sizes.batch, self.v.shape[1], sizes.keys, sizes.width)
        given = {"q": q, "k": k, "v": self.v, **self.tables}
        first = sizes.first if sizes.is_known else None
        return Call(self.made.formula, library(self.v), q, k, self.v, self.tables, self.start, first,
                    (sizes.batch, sizes.heads), given, False)  # fmt: skip

    def tiling(self, which: str) -> Tiling:
        """The tiles of one kernel of Triton's: forward, rows, keys, or keys where dS is kept."""
        if INTERPRETED.value:
            return SQUARE if which == "kept" else REHEARSED
        capability = torch.cuda.get_device_capability(self.v.device)
        width = max(16, sum(launch.padded(int(x.shape[3])) for x in self.lefts))
        sizes = width, int(self.v.shape[3]), self.v.element_size()
        made = self.made
        return tiling(capability, *sizes, which, loads(made), beside(made), marked=is_marked(made))

    def lists(self, rows: int, columns: int, held: Any) -> Lists | None:
        """The tiles that the mask lets through; None where there is no mask."""
        return None if self.made.mask is None else lists(self.call, rows, columns, held, bool(self.sizes.is_eager))

    def both_lists(self, rows: int, columns: int, part: int) -> tuple[Lists | None, Lists | None]:
        """Those of rows and those of keys, what is met in parts."""
        if self.made.mask is None:
            return None, None
        return both_lists(self.call, rows, columns, part, bool(self.sizes.is_eager))


@lru_cache(maxsize=4096)
def loads(made: Program) -> int:
    """How many numbers a block reads for each pair: offsets, tables and masks of i and j."""
    nodes = [node for term in made.terms for node in (term.r, term.exponent) if node is not None]
    parts = {part for node in (*nodes, *([] if made.mask is None else [made.mask])) for part in walk(node)}
    read = [part for part in parts if isinstance(part, Read) and kind_of(part) == Kind.FULL]
    read += [part for part in parts if isinstance(part, Given)]
    return len(read) + sum(kind == Kind.OFFSET for kind, _ in made.vectors.values())


@lru_cache(maxsize=4096)
def beside(made: Program) -> int:
    """How many numbers a block reads for each row, or for each key, whichever are more: vectors, and the mask's."""
    marks = [set(read.indices) & {I, J} for read in marks_of(made)]
    kinds = [kind for kind, _ in made.vectors.values()]
    return max(kinds.count(kind) + marks.count({index}) for kind, index in ((Kind.ROW, I), (Kind.COLUMN, J)))


@lru_cache(maxsize=4096)
def is_of_distance(made: Program) -> bool:
    """Whether ψ is softmax's, and E a straight line in one product, which stands for a distance."""
    if len(made.products) != 1 or not made.formula.laws.cancels:
        return False
    pull = made.pull(made.products[0])
    return {pair.word for pair in made.formula.pairs} == {"sqdist"} and pull is not None and pull.block == PSI


@lru_cache(maxsize=4096)
def is_marked(made: Program) -> bool:
    """Whether the mask reads tables."""
    return made.mask is not None and any(isinstance(part, Read) for part in walk(made.mask))


@lru_cache(maxsize=4096)
def vector_symbols(made: Program) -> tuple[Any, ...]:
    """The vectors that are tensors, in the order in which operators take them: the sink last."""
    found = (s for s, (kind, node) in made.vectors.items() if not (kind == Kind.HEAD and is_constant(node)))
    return (*found, *([] if made.formula.weight.sink is None else [SINK]))


@lru_cache(maxsize=1024)
def marks_of(made: Program) -> tuple[Read, ...]:
    """What the mask reads of tables at places of its own."""
    parts = () if made.mask is None else walk(made.mask)
    return tuple(
        {part for part in parts if isinstance(part, Read) and is_plain(part) and part.table in made.formula.ranks}
    )


@lru_cache(maxsize=1024)
def gathers(node: Any, wanted: frozenset[str], along: Any) -> bool:
    """Whether many keys of a row (along J), or many rows (I), read one number of a wanted table, which adds them up."""
    reads = (part for part in walk(node) if isinstance(part, Read) and part.table in wanted)
    return any(all(along in (x - along).free_symbols & (x + along).free_symbols for x in r.indices) for r in reads)


@lru_cache(maxsize=1024)
def offsets_of(made: Program, text: Written) -> tuple[Pull, ...]:
    """The pulls to what varies with i − j, as dS times one number a head; none where one of them is not."""
    heads = {symbol for symbol, (kind, _) in made.vectors.items() if kind == Kind.HEAD}
    wanted, products = text.pulls["offsets"], text.pulls["products"]
    if len(products) != 1 or products[0].block == 0:  # the mask alone may hold the product
        return ()
    shares = [sympy.cancel(pull.scale * pull.block / products[0].block) for pull in wanted]
    if not all(share.free_symbols <= heads for share in shares):
        return ()
    return tuple(Pull(pull.leaf, share, products[0].block) for pull, share in zip(wanted, shares, strict=True))


@lru_cache(maxsize=1024)
def constants(made: Program, text: Written, head: str, scaled: bool = False, rounded: bool = False) -> Constants:
    """The functions and flags of a formula, as a kernel is handed them; scaled, rounded: see `templates.forward`."""
    module = jitted(text, head)
    return Constants(
        **{name: getattr(module, name) for name in FUNCTIONS},
        **made.flags,
        ROW_PULLS=text.row_pulls,
        COLUMN_PULLS=len(text.pulls["columns"]),
        SCALED=scaled,
        ROUNDED=rounded,
        USES_J=text.uses_j,
        STAGED=text.staged,
    )


def precision() -> str:
    """How products of float32 are rounded, by PyTorch's own choice for its matrices."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
