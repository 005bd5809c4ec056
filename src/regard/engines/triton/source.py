"""The functions of one formula, as source: what a template is handed, for Triton and for Gluon.

    heads rows columns     the vectors of a tile, loaded
    unit height weight     E = c·x and ψ · 2^(−shift)
    admitted sink          the mask; what is added to Z
    pull_…                 g · ∂ψ/∂x for every x that wants a gradient, without the numbers in product_scales

`data` is one flat tuple of pointers and numbers; `Layout` says what stands where, here and for the host.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy

from ...algebra.calculus import derivative
from ...algebra.fold import fold
from ...algebra.formula import Formula
from ...algebra.intervals import Intervals
from ...algebra.laws import Kind
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, AtLeastZero, I, IsZero, J, Read
from ..vectors import is_constant
from .masks import ends_in, is_plain, marks_in
from .program import COLUMN_STEP, LOWEST, PSI, ROW_STEP, Program, Pull, psi
from .writing import COLUMNS, ROWS, SINGLE, Writer

PULLS = ("products", "rows", "columns", "offsets", "tables")
SINK = sympy.Symbol("sink", real=True)  # a row vector that the host prepares
SPREADS = {Kind.HEAD: SINGLE, Kind.ROW: ROWS, Kind.COLUMN: COLUMNS}
INTEGERS = frozenset({I, J, HEAD, BATCH, HEADS, KEYS, WIDTH})


@dataclass(frozen=True)
class Slot:
    """Some places of `data`: what stands there, and from which place on."""

    what: str  # number, head, row, column, offset, table, given, start, size
    name: Any  # a symbol of a vector, or the name of a table
    place: int
    count: int


@dataclass(frozen=True)
class Wanted:
    """What the gradients of one call ask for: symbols of vectors, and reads of tables inside the kernel.

    balanced: δ is to be found again, from the weights that the pulls see (`backward.balance` says why)
    """

    vectors: tuple[Any, ...] = ()
    reads: tuple[Any, ...] = ()
    balanced: bool = False


NOTHING = Wanted()


@dataclass(frozen=True, eq=False)
class Written:
    """The source of a formula's functions, and what the host must know of it."""

    formula: Formula
    text: str
    slots: tuple[Slot, ...]
    pulls: dict[str, tuple[Pull, ...]]
    balanced: bool  # whether `pull_rows` gives g · ψ too, and ∂ψ/∂x of every x
    uses_j: bool  # whether a block that is admitted whole needs to know its keys
    staged: int  # how many vectors of columns there are, if all that is known of columns are such vectors

    @property
    def row_pulls(self) -> int:
        """How many numbers `pull_rows` gives."""
        leaves = len(self.pulls["rows"])
        return 2 * leaves + 1 if self.balanced else leaves


@dataclass
class _Layout:
    slots: dict[tuple[str, Any], Slot] = field(default_factory=dict)

    def place(self, what: str, name: Any, count: int) -> int:
        key = (what, name)
        if key not in self.slots:
            self.slots[key] = Slot(what, name, sum(slot.count for slot in self.slots.values()), count)
        return self.slots[key].place


@lru_cache(maxsize=1024)
def written(
    made: Program,
    integer_tables: frozenset[str] = frozenset(),
    wanted: Wanted = NOTHING,
    exact: bool = True,
    covering: frozenset[str] = frozenset(),
    narrow: bool = False,
    long: bool = False,
) -> Written:
    """The functions of a formula.

    integer_tables: those that hold integers in this call
    exact:          no approximate functions
    covering:       tables with a place for each b, h, i and j of this call
    narrow:         pulls are rounded to float16, whose largest number is 65504: where they grow faster than their
                    product, the numbers before them, which may be as small, do not wait for the end
    long:           integers have 64 bits
    """
    return _Module(made, integer_tables, wanted, exact, covering, narrow, long).written()


class _Module:
    def __init__(
        self,
        made: Program,
        integer_tables: frozenset[str],
        wanted: Wanted,
        exact: bool,
        covering: frozenset[str],
        narrow: bool,
        long: bool,
    ) -> None:
        self.made, self.integer_tables, self.covering, self.layout = made, integer_tables, covering, _Layout()
        self.long = long
        self.kinds = {symbol: kind for symbol, (kind, _) in made.vectors.items()}
        self.of = {kind: [s for s, found in self.kinds.items() if found == kind] for kind in Kind}
        self.marks = marks_in(made.mask)
        marks = {symbol: read for found in self.marks.values() for read, symbol in found.items()}
        mask = sympy.true if made.mask is None else made.mask
        self.mask = mask.xreplace({read: symbol for symbol, read in marks.items()})
        self.ends = ends_in(self.mask)
        ends = dict.fromkeys(end for _, end in self.ends.values())
        self.bounds = {end: sympy.Symbol(f"bound{place}", integer=True) for place, end in enumerate(ends)}
        names = {symbol: symbol.name for symbol in (*self.kinds, *marks, *self.bounds.values())}
        names |= {I: "i", J: "j", HEAD: "h", BATCH: "b", PSI: "psi", LOWEST: 'float("-inf")'}
        names |= {psi(place): f"psi{place}" for place in range(len(made.terms))}
        names |= {ROW_STEP: "((i - anchor) * 1.0)", COLUMN_STEP: "((j - anchor) * 1.0)"}
        names |= {pair: f"product{place}" for place, pair in enumerate(made.products)}
        spreads = {s: SPREADS[kind] for s, kind in self.kinds.items() if kind in SPREADS}
        spreads |= dict.fromkeys((HEADS, KEYS, WIDTH), SINGLE)
        self.writer = Writer(
            _Sizes(names, self),
            INTEGERS.union(self.bounds.values(), (s for s, read in marks.items() if read.table in integer_tables)),
            spreads,
            self._read,
            self._given,
            "triton" if exact else "triton_fast",
            long=long,
        )
        self.pulls = self._pulls(wanted, narrow)
        self.balanced = made.is_shared and (wanted.balanced or bool(self.pulls["rows"]))

    def written(self) -> Written:
        parts = [self._heads(), self._vectors("rows", Kind.ROW, "r"), self._vectors("columns", Kind.COLUMN, "j")]
        parts += [self._unit(), self._height(), self._weight(), self._admitted(), self._sink(), self._scales()]
        parts += [self._pull(name, pulls) for name, pulls in self.pulls.items()] + [self._places()]
        helpers = [textwrap.dedent(text) for text in self.writer.helpers.values()]
        text = "\n\n\n".join(part.strip() for part in (f'"""{self.made.formula!r}"""', *helpers, *parts)) + "\n"
        uses_j = any(part.name == "j" for node in self._bodies() for part in node.free_symbols)
        uses_j = (
            uses_j
            or bool(self.of[Kind.COLUMN] or self.of[Kind.OFFSET])
            or any(part in node.free_symbols for node in self._bodies() for part in (ROW_STEP, COLUMN_STEP))
        )
        staged = 0 if self.marks[Kind.COLUMN] else len(self.of[Kind.COLUMN])
        slots = tuple(self.layout.slots.values())
        return Written(self.made.formula, text, slots, self.pulls, self.balanced, uses_j, staged)

    def _bodies(self) -> list[Any]:
        return [node for term in self.made.terms for node in (term.r, term.exponent) if node is not None]

    # -- vectors ------------------------------------------------------------------------------------------------

    def _heads(self) -> str:
        lines = []
        for symbol in self.of[Kind.HEAD]:
            if is_constant(self.made.vectors[symbol][1]):
                lines.append(f"{symbol.name} = data[{self.layout.place('number', symbol, 1)}]")
            else:
                p = self.layout.place("head", symbol, 3)
                lines.append(f"{symbol.name} = tl.load(data[{p}] + b * data[{p + 1}] + h * data[{p + 2}])")
        note = "What depends on b and h alone."
        return self._function("heads", "data, b, h", note, _tuple(self.of[Kind.HEAD]), lines)

    def _vectors(self, name: str, kind: Kind, index: str) -> str:
        lines = []
        for symbol in self.of[kind]:
            p = self.layout.place(str(kind), symbol, 3)
            where = f"data[{p}] + b * data[{p + 1}] + h * data[{p + 2}] + {index}"
            lines.append(f"{symbol.name} = tl.load({where}, mask=inside, other=0.0)")
        if kind == Kind.ROW and self.made.formula.weight.sink is not None:
            p = self.layout.place("row", SINK, 3)
            lines.append(
                f"sink = tl.load(data[{p}] + b * data[{p + 1}] + h * data[{p + 2}] + r, mask=inside, other=0.0)"
            )
        if kind == Kind.ROW and self.marks[kind]:
            kind_of_i = "" if self.long else ".to(tl.int32)"
            lines.append(f"i = r + tl.load(data[{self.layout.place('start', 'start', 1)}] + b){kind_of_i}")
        lines += [f"{symbol.name} = {self._mark(read)}" for read, symbol in self.marks[kind].items()]
        note = f"What depends on b, h and {index} alone."
        return self._function(name, f"data, head, b, h, {index}, inside", note, _tuple(self._loaded(kind)), lines)

    def _mark(self, read: Read) -> str:
        """What a mask reads for a row or a column: numbers side by side, where the table has one for each."""
        if read.table not in self.covering or not is_plain(read):
            return fold(read, self.writer).text
        p = self.layout.place("table", read.table, 1 + 2 * len(read.indices))
        steps = (f"{fold(index, self.writer).text} * data[{p + 1 + axis}]" for axis, index in enumerate(read.indices))
        return f"tl.load(data[{p}] + {' + '.join(steps)}, mask=inside, other=0)"

    def _loaded(self, kind: Kind) -> list[Any]:
        """What stands in the tuple of a kind: the formula's vectors, the sink, and what the mask reads."""
        sink = [SINK] if kind == Kind.ROW and self.made.formula.weight.sink is not None else []
        return [*self.of[kind], *sink, *self.marks.get(kind, {}).values()]

    # -- the formula --------------------------------------------------------------------------------------------

    def _unit(self) -> str:
        return self._function("unit", "known", "c of E = c·x.", self.writer.write(self.made.unit))

    def _height(self) -> str:
        node = sympy.S.Zero if self.made.height is None else self.made.height
        return self._function("height", "product, known, at", "x of E = c·x.", self._block(node))

    def _weight(self) -> str:
        note = "ψ · 2^(−shift)." if self.made.is_exponential else "ψ."
        value = self._block(self._psi())
        return self._function("weight", "x, shift, product, known, at", note, value, self._terms())

    def _block(self, node: Any) -> str:
        """The text of a node for every pair, also where it is one number for all."""
        return self._spread(node) if node.is_Number else self.writer.write(node)

    def _psi(self) -> Any:
        if self.made.is_softmax_like:
            return PSI
        return sympy.Add(*(_value(place, term) for place, term in enumerate(self.made.terms)))

    def _terms(self) -> list[str]:
        """The lines that compute 2^(E − shift) of each term."""
        if self.made.is_softmax_like:
            unit = self.writer.write(self.made.unit)
            return [f"psi = tl.exp2({'x' if unit == '1.0' else f'x * {_braced(unit)}'} - shift)"]
        lines = []
        for place, term in enumerate(self.made.terms):
            if term.exponent is not None:
                exponent = self.writer.write(term.exponent)
                if not term.r.is_Number:  # 0 · 2^E is 0, however large E is
                    zero = self.writer.write(sympy.Not(IsZero(term.r)))
                    exponent = f'tl.where({zero}, {exponent}, float("-inf"))'
                lines.append(f"psi{place} = tl.exp2({exponent} - shift)")
        return lines

    def _admitted(self) -> str:
        bounded = {relation: AtLeastZero(sign * (J - self.bounds[end])) for relation, (sign, end) in self.ends.items()}
        node = self.mask.xreplace(bounded)
        lines = [f"{bound.name} = {fold(end, self.writer).text}" for end, bound in self.bounds.items()]
        note = "Whether the mask admits a pair."
        return self._function("admitted", "product, known, at", note, self.writer.write(node), lines)

    def _sink(self) -> str:
        """The row vector that the host prepares behind those of the formula."""
        value = "0.0" if self.made.formula.weight.sink is None else f"row[{self._loaded(Kind.ROW).index(SINK)}]"
        return self._function("sink", "known", "What is added to Z; its log₂ where ψ is exponential.", value)

    # -- gradients ----------------------------------------------------------------------------------------------

    def _pulls(self, wanted: Wanted, narrow: bool) -> dict[str, tuple[Pull, ...]]:
        made = self.made
        kinds = {"rows": (Kind.ROW, Kind.HEAD), "columns": (Kind.COLUMN,), "offsets": (Kind.OFFSET,)}
        found: dict[str, Iterable[Any]] = {"products": made.products, "tables": wanted.reads}
        found |= {name: [s for s in wanted.vectors if self.kinds[s] in some] for name, some in kinds.items()}
        every = {name: [made.pull(leaf) for leaf in found[name]] for name in PULLS}
        zero = {name: [Pull(leaf, sympy.S.One, sympy.S.Zero) for leaf in found[name]] for name in PULLS}
        made_pulls = {n: tuple(p or z for p, z in zip(every[n], zero[n], strict=True)) for n in PULLS}
        for name in ("offsets", "tables"):  # their sums run over batch and heads, which a scale may tell apart
            made_pulls[name] = tuple(map(_taken_in, made_pulls[name]))
        if narrow:
            made_pulls["products"] = tuple(_taken_in(p) if _is_steep(made, p) else p for p in made_pulls["products"])
        return made_pulls

    def _scales(self) -> str:
        scales = [self.writer.write(pull.scale) for pull in self.pulls["products"]]
        return self._function("product_scales", "known", "Numbers that are left for the end.", _tuple(scales))

    def _pull(self, name: str, pulls: tuple[Pull, ...]) -> str:
        texts, note = [self._pulled(pull.block) for pull in pulls], "g · ∂ψ/∂x."
        if name == "rows" and self.balanced:
            texts += [self._pulled(self._psi()), *(self._spread(pull.block) for pull in pulls)]
            note = "g · ∂ψ/∂x of every x; g · ψ; ∂ψ/∂x."
        values, lines = _tuple(texts), self._terms() if texts else []
        lines = [line for line in lines if _uses([values], line.split(" = ")[0])]
        return self._function(f"pull_{name}", "g, x, shift, product, known, at", note, values, lines)

    def _pulled(self, block: Any) -> str:
        text = self.writer.write(block)
        return "g" if text == "1.0" else f"g * {_braced(text)}"

    def _spread(self, block: Any) -> str:
        """The text of a node for every pair, also where it is one number for a row or a column."""
        varying = {*self.made.products, PSI, *map(psi, range(len(self.made.terms)))}
        text = self.writer.write(block)
        return text if block.free_symbols & varying else f"{text} + (i + j) * 0.0"

    def _places(self) -> str:
        reads = [pull.leaf for pull in self.pulls["tables"]]
        texts = [self._offset(read.table, [fold(index, self.writer).text for index in read.indices]) for read in reads]
        return self._function(
            "places", "product, known, at", "Where each gradient of a table goes.", _tuple(texts, "0")
        )

    # -- tables -------------------------------------------------------------------------------------------------

    def _read(self, table: str, indices: list[str]) -> tuple[str, bool]:
        return f"tl.load({self._pointer(table, indices)})", table in self.integer_tables

    def _pointer(self, table: str, indices: list[str]) -> str:
        p = self.layout.place("table", table, 1 + 2 * len(indices))
        return f"data[{p}] + {self._offset(table, indices)}" if indices else f"data[{p}]"

    def _offset(self, table: str, indices: list[str]) -> str:
        """Where an entry stands: indices are kept inside, and counted in 64 bits."""
        rank = len(indices)
        p = self.layout.place("table", table, 1 + 2 * rank)
        self.writer.helpers.setdefault("within", WITHIN)

        def inside(axis: int, index: str) -> str:  # a plain number was checked by the host
            return index if index.isdigit() else f"within({index}, data[{p + 1 + rank + axis}])"

        return " + ".join(f"{inside(axis, index)} * data[{p + 1 + axis}]" for axis, index in enumerate(indices)) or "0"

    def _given(self, name: str) -> str:
        p, q = self.layout.place("given", name, 7), self.layout.place("start", "start", 1)
        self.writer.helpers.setdefault("within", WITHIN)
        row = f"within(i - tl.load(data[{q}] + b), data[{p + 5}])"
        column = f"within(j, data[{p + 6}])"
        offset = f"b * data[{p + 1}] + h * data[{p + 2}] + {row} * data[{p + 3}] + {column} * data[{p + 4}]"
        return f"(tl.load(data[{p}] + {offset}) != 0)"

    # -- functions ----------------------------------------------------------------------------------------------

    def _function(self, name: str, arguments: str, note: str, value: str, lines: Iterable[str] = ()) -> str:
        """A function, with the lines that name what it reads."""
        body = [*lines, f"return {value}"]
        given = set(arguments.split(", "))
        body = [*self._named(body, Kind.OFFSET, given), *body]
        if "product" in given:
            places = enumerate(self.made.products)
            body = [*(f"product{p} = product[{p}]" for p, _ in places if _uses(body, f"product{p}")), *body]
        for kind in (Kind.COLUMN, Kind.ROW, Kind.HEAD) if "known" in given else ():
            body = [*self._named(body, kind, given), *body]
        if self.long:
            body = [*self._long(body, ("b", "h", "i", "j") if "at" in given else given & {"b", "h", "j"}), *body]
        if "at" in given and any(_uses(body, word) for word in ("b", "h", "i", "j", "anchor")):
            body = ["b, h, i, j, anchor = at", *body]
        if "known" in given and any(_uses(body, word) for word in ("head", "row", "column", "data")):
            body = ["head, row, column, data = known", *body]
        return "".join([f"@jit\ndef {name}({arguments}):\n", *(f"    {line}\n" for line in [f'"""{note}"""', *body])])

    def _long(self, body: list[str], words: Iterable[str]) -> Iterator[str]:
        """The indices that a function uses, in 64 bits."""
        return (f"{word} = tl.cast({word}, tl.int64)" for word in sorted(words) if _uses(body, word))

    def _named(self, body: list[str], kind: Kind, given: set[str]) -> Iterator[str]:
        for place, symbol in enumerate(self._loaded(kind)):
            if not _uses(body, symbol.name):
                continue
            if kind == Kind.OFFSET:
                p = self.layout.place("offset", symbol, 3)
                yield f"{symbol.name} = tl.load(data[{p}] + h * data[{p + 1}] + (data[{p + 2}] - i + j))"
            else:
                yield f"{symbol.name} = {kind}[{place}]"


class _Sizes(dict[Any, str]):
    """Names of symbols; a size of the call gets a place in `data` when it is first asked for."""

    def __init__(self, names: dict[Any, str], module: _Module) -> None:
        super().__init__(names)
        self.module = module

    def __missing__(self, symbol: Any) -> str:
        if symbol not in (HEADS, KEYS, WIDTH):
            raise KeyError(symbol)
        found = f"data[{self.module.layout.place('size', symbol.name, 1)}]"
        return f"tl.cast({found}, tl.int64)" if self.module.long else found


WITHIN = '''
@jit
def within(index, size):
    """An index of a table, kept within it."""
    return tl.minimum(tl.maximum(index, 0), size - 1).to(tl.int64)
'''


def _taken_in(pull: Pull) -> Pull:
    """The same with its scale in what is computed for every pair."""
    return Pull(pull.leaf, sympy.S.One, pull.scale * pull.block)


def _is_steep(made: Program, pull: Pull) -> bool:
    """Whether ∂ψ may grow faster than a straight line in its product."""
    powers = dict.fromkeys((PSI, *map(psi, range(len(made.terms)))), (0, 1))
    known = Intervals(powers | dict.fromkeys(made.vectors, (-1, 1)), lambda _name, _indices: (-1, 1))
    low, high = fold(derivative(pull.block, pull.leaf), known)
    return not (math.isfinite(low) and math.isfinite(high))


def _value(place: int, term: Any) -> Any:
    return term.r if term.exponent is None else term.r * psi(place)


def _braced(text: str) -> str:
    return text if text.isidentifier() or text.replace(".", "").isdigit() else f"({text})"


def _tuple(items: Iterable[Any], empty: str = "0.0") -> str:
    texts = [item.name if isinstance(item, sympy.Symbol) else str(item) for item in items]
    return f"({', '.join(texts or [empty])},)"


def _uses(lines: Iterable[str], name: str) -> bool:
    """Whether a name stands in the lines as a word."""
    return any(re.search(rf"(?<![\w.]){name}(?!\w)", line) for line in lines)


__all__ = ["PULLS", "Slot", "Wanted", "Written", "written"]
