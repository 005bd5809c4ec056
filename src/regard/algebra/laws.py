"""What follows from a formula, as values: nothing here rewrites the formula itself.

    symmetry    is s_ij = s_ji when queries and keys are the same vectors, and if not, why
    row_term    what depends on the query alone cancels under softmax
    affine      s = slope · pair + rest;  ‖q−k‖² = ‖q‖² − 2 q·k + ‖k‖² makes a dot product with row and column terms
    hoisted     what depends on (b,h,i), (b,h,j) or (h,i−j) alone, taken out of the inner loop
    causal      whether y_i reads no key after i, whatever the tables hold
    block       what the mask says of a block of pairs: all, none or some

Engines act on them; people read them in words.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from .calculus import derivative
from .canonical import canonical, multiplied_out
from .errors import FormulaError, KindError
from .expressions import Expression
from .fold import fold
from .formula import Formula
from .functions import Interval
from .intervals import ANY, Intervals, TableRange
from .nodes import BATCH, HEAD, SCORE, SIZES, Given, I, J, Pair, Read, dependencies, is_truth, symbols, walk

AHEAD = sympy.Symbol("t", integer=True, nonnegative=True)  # j = i + 1 + t


@dataclass(frozen=True)
class Symmetry:
    """Whether s_ij = s_ji for equal queries and keys. `given` names the matrices that must be symmetric for it."""

    holds: bool
    why: str
    given: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Affine:
    """s = slope · pair + rest, with slope and rest free of vectors."""

    pair: Expression
    slope: Expression
    rest: Expression


class Kind(enum.StrEnum):
    """What a hoisted value depends on."""

    HEAD = "head"  # (b, h)
    ROW = "row"  # (b, h, i)
    COLUMN = "column"  # (b, h, j)
    OFFSET = "offset"  # (h, i − j)
    FULL = "full"  # (b, h, i, j)


@dataclass(frozen=True)
class Hoisted:
    """The score with its vectors taken out: `rest` holds a symbol for each of `vectors`."""

    rest: Expression
    vectors: dict[Expression, tuple[Kind, Expression]]

    def of(self, kind: Kind) -> list[Expression]:
        """The hoisted expressions of one kind."""
        return [value for found, value in self.vectors.values() if found == kind]


class Admits(enum.StrEnum):
    """What a mask says of a block of pairs."""

    ALL = "all"
    NONE = "none"
    SOME = "some"


@dataclass(frozen=True)
class Laws:
    """The laws of one formula."""

    formula: Formula

    @cached_property
    def symmetry(self) -> Symmetry:
        """s_ij = s_ji when queries and keys are the same vectors, as one shared projection makes them."""
        node = self.formula.score.node
        masks = sorted({part.table for part in walk(node) if isinstance(part, Given)})
        if masks:
            return Symmetry(False, f"exchanging the pair transposes {' and '.join(masks)}")
        changed = [term for term in sympy.Add.make_args(node) if not _same(term, exchanged(term))]
        if not _same(node, exchanged(node)):
            shown = "; ".join(f"{Expression(term)!r} becomes {Expression(exchanged(term))!r}" for term in changed)
            return Symmetry(False, f"exchanging the pair, {shown}")
        dots = [pair for pair in self.formula.pairs if pair.word == "dot"]
        metrics = tuple(sorted({pair.metric.table for pair in dots if pair.metric is not None}))
        if metrics:
            named = " and ".join(metrics)
            return Symmetry(False, f"exchanging the pair transposes {named}: symmetric exactly if {named} is", metrics)
        return Symmetry(True, "exchanging the pair changes no part of the score")

    @cached_property
    def row_term(self) -> Expression:
        """The part of the score that depends on the query's place alone: it cancels in softmax; 0 if there is none."""
        terms = [part for term in sympy.Add.make_args(self.formula.score.node) for part in _spread(term)]
        return Expression(canonical(sympy.Add(*(term for term in terms if kind_of(term) in (Kind.HEAD, Kind.ROW)))))

    @cached_property
    def cancels(self) -> bool:
        """Whether row terms change no weight: ψ = exp, shared over keys, without a sink."""
        return self.formula.weight.is_softmax

    @cached_property
    def affine(self) -> Affine | None:
        """The score as slope · pair + rest, where it has one pair and is a straight line in it."""
        node = self.formula.score.node
        pairs = {part for part in walk(node) if isinstance(part, Pair)}
        if len(pairs) != 1:
            return None
        (pair,) = pairs
        slope = derivative(node, pair)
        rest = canonical(multiplied_out(node - slope * pair))
        if pair in slope.free_symbols or pair in rest.free_symbols:
            return None
        return Affine(Expression(pair), Expression(slope), Expression(rest))

    @cached_property
    def hoisted(self) -> Hoisted:
        """The score as vectors outside the inner loop and an elementwise rest."""
        return hoist(self.formula.score.node)

    @cached_property
    def causal(self) -> bool:
        """Whether y_i depends on no key after i, whatever the tables hold: the mask fails for every j = i + 1 + t."""
        weight = self.formula.weight
        masks = [self.formula.mask, *([] if weight.among is None else [weight.among])]
        shared = "" if weight.over is None else weight.over.node.name
        return shared not in ("i", "b") and all(mask is not None and not _looks_ahead(mask.node) for mask in masks)

    def block(
        self,
        rows: tuple[int, int],
        columns: tuple[int, int],
        *,
        sizes: Mapping[str, int] | None = None,
        heads: tuple[int, int] | None = None,
        batch: tuple[int, int] | None = None,
        tables: Mapping[str, Any] | TableRange | None = None,
    ) -> Admits:
        """What the mask says of the pairs with i in [rows) and j in [columns).

        sizes:  H, d, n where they are known; heads, batch: the ranges of h and b where they are known
        tables: arrays, of which the lowest and highest entry in the block are looked up, or a function that does so
        """
        if rows[0] >= rows[1] or columns[0] >= columns[1]:
            return Admits.NONE
        if self.formula.mask is None:
            return Admits.ALL
        ranges: dict[Any, Interval] = {I: (rows[0], rows[1] - 1), J: (columns[0], columns[1] - 1)}
        ranges |= dict.fromkeys(SIZES.values(), (1, math.inf))
        ranges |= {_size(name): (size, size) for name, size in (sizes or {}).items()}
        ranges |= {s: (r[0], r[1] - 1) if r else (0, math.inf) for s, r in ((HEAD, heads), (BATCH, batch))}
        sure, possible = fold(
            self.formula.mask.node, Intervals(ranges, tables if callable(tables) else table_ranges(tables or {}))
        )
        if sure:
            return Admits.ALL
        return Admits.SOME if possible else Admits.NONE

    def words(self) -> list[str]:
        """The laws in words, one sentence each."""
        about_score = [self._symmetry_words(), *self._cancel_words(), *self._affine_words(), self._hoist_words()]
        return [*about_score, self._mask_words()]

    def _symmetry_words(self) -> str:
        verdict = "Symmetric" if self.symmetry else "Not symmetric"
        return f"{verdict}: with one projection for queries and keys, {self.symmetry.why}."

    def _cancel_words(self) -> list[str]:
        if self.row_term.node == 0:
            return []
        effect = "cancels under softmax" if self.cancels else f"does not cancel: the weight is {self.formula.weight!r}"
        return [f"Row term: {self.row_term!r} depends on the query alone and {effect}."]

    def _affine_words(self) -> list[str]:
        law = self.affine
        if law is None or law.pair.node.word != "sqdist":
            return []
        metric = law.pair.node.metric
        name = "" if metric is None else metric.table
        row, cross, column = "‖q‖²", "2 q·k", "‖k‖²"
        if name:
            row, cross, column = f"qᵀ{name}q", f"qᵀ({name} + {name}ᵀ)k", f"kᵀ{name}k"
        cancelled = f"; {row} cancels under softmax" if self.cancels else ""
        shown = f"{law.pair!r} = {row} − {cross} + {column}"
        return [f"Distance: {shown}, so the score is a dot product with a row term and a column term{cancelled}."]

    def _hoist_words(self) -> str:
        if not self.hoisted.vectors:
            return f"Inner loop: nothing to hoist; each pair computes {self.hoisted.rest!r}."
        named = "; ".join(f"{name!r} = {value!r} ({kind})" for name, (kind, value) in self.hoisted.vectors.items())
        return f"Inner loop: each pair computes {self.hoisted.rest!r}, with {named} prepared outside."

    def _mask_words(self, n: int = 1024, size: int = 128) -> str:
        if self.formula.mask is None:
            return "Mask: none; every query reads every key."
        starts = range(0, n, size)
        said = [self.block((r, r + size), (c, c + size), sizes={"n": n}) for r in starts for c in starts]
        counts = ", ".join(f"{said.count(verdict)} {verdict}" for verdict in Admits)
        return f"Mask: of {len(said)} blocks of {size} × {size} at n = {n}, {counts}."


# -- symmetry --------------------------------------------------------------------------------------------------


def exchanged(node: Any) -> Any:
    """The node with query and key exchanged: i and j change places; the pairs of vectors themselves are symmetric."""
    return canonical(node.xreplace({I: J, J: I}))


def _spread(term: Any) -> tuple[Any, ...]:
    """The terms of a product of sums, with what stands inside functions left alone."""
    return tuple(sympy.Add.make_args(sympy.expand_mul(term, deep=False)))


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or canonical(multiplied_out(a - b)) == 0)


# -- hoisting --------------------------------------------------------------------------------------------------


def hoist(node: Any) -> Hoisted:
    """Take every largest part that is free of vectors out of the node, with what depends on i − j kept together."""
    hoister = Hoister()
    rest = canonical(hoister.visit(node))
    return Hoisted(Expression(rest), hoister.vectors)


class Hoister:
    """Takes parts that are free of vectors out of one or several nodes; equal parts get one name."""

    def __init__(self) -> None:
        self.vectors: dict[Expression, tuple[Kind, Expression]] = {}

    def visit(self, node: Any) -> Any:
        """The node with a symbol in place of each part that was taken out."""
        kind = kind_of(node)
        if is_truth(node) or (kind is None and not node.args):
            return node
        if not symbols(node) - set(SIZES.values()) and not node.has(Read):
            return node  # a constant of the call
        if kind is not None and (kind != Kind.FULL or isinstance(node, Read)):
            return self.take(node, kind)
        if isinstance(node, sympy.Add | sympy.Mul):
            return self._grouped(node)
        return node.func(*(self.visit(arg) for arg in node.args))

    def _grouped(self, node: Any) -> Any:
        """Terms (or factors) of one kind become one vector; all together if they make an offset."""
        free = [arg for arg in node.args if kind_of(arg) is not None and not arg.is_Number]
        if node.is_Add and free:  # a number goes with what it may cancel: i − j + 2²⁰ keeps its digits
            free += [arg for arg in node.args if arg.is_Number]
        bound = [arg for arg in node.args if arg not in free]
        groups: dict[Kind | None, list[Any]] = {}
        for arg in free:
            groups.setdefault(kind_of(arg), []).append(arg)
        bound += groups.pop(Kind.FULL, [])
        parts = [node.func(*args) for args in groups.values()]
        joint = node.func(*parts)
        if parts and kind_of(joint) != Kind.FULL and joint != node:
            parts = [joint]
        return node.func(*(self.visit(arg) for arg in [*bound, *parts]))

    def take(self, node: Any, kind: Kind) -> Any:
        """The symbol that stands for a part."""
        for name, (_, value) in self.vectors.items():
            if value.node == node:
                return name.node
        symbol = sympy.Symbol(f"{kind}{sum(found == kind for found, _ in self.vectors.values())}", real=True)
        self.vectors[Expression(symbol)] = (kind, Expression(node))
        return symbol


def kind_of(node: Any) -> Kind | None:
    """What the node depends on; None if on vectors or on the score."""
    found = dependencies(node)
    if SCORE in found or any(isinstance(symbol, Pair) for symbol in found):
        return None
    if not found & {I, J}:
        return Kind.HEAD
    if not {I, J} <= found:
        return Kind.ROW if I in found else Kind.COLUMN
    return Kind.OFFSET if BATCH not in found and is_of_difference(node) else Kind.FULL


def is_of_difference(node: Any) -> bool:
    """Whether the node sees i and j through i − j alone."""
    offset = sympy.Symbol("offset", integer=True)
    moved = expanded(node.xreplace({I: J + offset}))
    return J not in moved.free_symbols


def expanded(node: Any) -> Any:
    """Products multiplied out at every level, so that j − (j + x) vanishes wherever it stands."""
    if node.args and not node.is_Symbol:
        inside = (expanded(arg) if isinstance(arg, sympy.Expr | Boolean) else arg for arg in node.args)
        node = node.func(*inside)
    return canonical(multiplied_out(node)) if isinstance(node, sympy.Expr) else canonical(node)


# -- masks -----------------------------------------------------------------------------------------------------


def _looks_ahead(mask: Any) -> bool:
    """Whether some pair with j > i may be admitted."""
    later = expanded(mask.xreplace({J: I + 1 + AHEAD}))
    ranges: dict[Any, Interval] = dict.fromkeys((I, AHEAD, HEAD, BATCH), (0, math.inf))
    _, possible = fold(later, Intervals(ranges | dict.fromkeys(SIZES.values(), (1, math.inf))))
    return bool(possible)


def _size(name: str) -> Any:
    if name not in SIZES:
        raise FormulaError(f"sizes: of {', '.join(SIZES)}; got {name!r}")
    return SIZES[name]


def table_ranges(tables: Mapping[str, Any]) -> TableRange:
    """The lowest and highest entry of an array between indices; the first row of a mask of the call is i = 0."""

    def lookup(name: str, indices: list[Interval]) -> Interval:
        if name not in tables:
            return ANY
        part = tables[name]
        if not hasattr(part, "shape"):
            raise KindError(f"tables: arrays by name; got a {type(part).__name__} for {name}")
        if len(indices) < part.ndim:
            raise FormulaError(f"{name}: {part.ndim} axes are read with {len(indices)} indices")
        slices = []
        for size, (low, high) in zip(part.shape, indices[len(indices) - part.ndim :], strict=True):
            first, last = max(low, 0), min(high, size - 1)
            slices.append(slice(int(min(first, size - 1)), int(max(last, 0)) + 1))
        block = part[tuple(slices)]
        return float(block.min()), float(block.max())

    return lookup
