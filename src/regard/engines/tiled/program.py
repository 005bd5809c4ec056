"""What one formula computes for a block of pairs, as expressions: derived once, run for every block.

    u = f · pair                     a product of two matrices, with its constant factor f taken into the left one
    E, r of ψ = Σ r · 2^E            exponents in base 2, whose function is the fastest there is
    ∂ψ/∂x = c · R(x)                 for every x that the block reads, with the number c left for the end

All are expressions of the symbols u, of the vectors that were hoisted, and of ψ's own terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sympy

from ...algebra.calculus import derivative, leaves
from ...algebra.canonical import canonical, multiplied_out
from ...algebra.formula import Formula
from ...algebra.laws import Hoister, Kind, kind_of
from ...algebra.nodes import SCORE, Pair, Read, dependencies, is_truth, walk

LOG2E = sympy.Float(math.log2(math.e))
LN2 = sympy.Float(math.log(2))


@dataclass(frozen=True)
class Scaled:
    """u = factor · pair, with a factor that depends on (b, h) at most."""

    pair: Pair
    factor: Any  # a node of Kind.HEAD


@dataclass(frozen=True)
class Term:
    """One r · 2^E of ψ; E is None where ψ is no exponential. `psi` names 2^(E − m), or r where there is no E."""

    r: Any
    exponent: Any | None
    psi: Any

    @property
    def value(self) -> Any:
        return self.psi if self.exponent is None or self.r == 1 else self.r * self.psi

    @property
    def vanishes(self) -> bool:
        """Whether r may be 0, so that E does not count there."""
        return self.exponent is not None and not self.r.is_Number


@dataclass(frozen=True)
class Late:
    """A read whose place, or the pairs for which it counts, the score decides; as expressions of the block."""

    read: Read
    indices: tuple[Any, ...]
    guard: Any


@dataclass(frozen=True)
class Slope:
    """∂ψ/∂leaf = coefficient · node."""

    coefficient: float
    node: Any


@dataclass(frozen=True)
class Program:
    """The inner loop of a formula."""

    formula: Formula
    vectors: dict[Any, tuple[Kind, Any]]  # symbol: what it stands for
    truths: dict[Any, Any]  # symbol: a truth that is free of vectors
    pairs: dict[Any, Scaled]  # symbol u: what it stands for
    terms: tuple[Term, ...]
    mask: Any | None
    guards: tuple[Late, ...]

    @cached_property
    def cancelling(self) -> dict[Any, float]:
        """The u whose row terms change no weight, with their slopes in E: those of softmax that it is linear in.

        Left out, they take their rounding with them, which is large where distances are.
        """
        (term, *others), uses = self.terms, [g.guard for g in self.guards]
        if not self.formula.laws.cancels or others or term.exponent is None or term.r != 1:
            return {}
        elsewhere = set().union(*(node.free_symbols for node in (*uses, self.mask) if node is not None))
        slopes = {symbol: derivative(term.exponent, symbol) for symbol in self.pairs if symbol not in elsewhere}
        return {u: float(slope) for u, slope in slopes.items() if slope.is_Number and _is_line(term.exponent, u, slope)}

    @property
    def psi(self) -> Any:
        """ψ · 2^(−m)."""
        return sympy.Add(*(term.value for term in self.terms))

    @property
    def is_shifted(self) -> bool:
        """Whether a running maximum is taken out: ψ is exponential, and shared."""
        return self.formula.weight.is_exponential

    def slope(self, leaf: Any) -> Slope | None:
        """∂ψ/∂leaf · 2^(−m) of a symbol or a read; None where it is 0."""
        total = sympy.Add(*(part for term in self.terms for part in _slopes(term, leaf)))
        if total == 0:
            return None
        coefficient, node = total.as_coeff_Mul()
        return Slope(float(coefficient), node)

    @property
    def late_reads(self) -> tuple[Read, ...]:
        """Reads of tables at places that the score decides, in the block's symbols."""
        found = {leaf for term in self.terms for node in (term.r, term.exponent) if node is not None
                 for leaf in leaves(node) if isinstance(leaf, Read)}  # fmt: skip
        return tuple(sorted(found, key=sympy.default_sort_key))


@lru_cache(maxsize=512)
def program(formula: Formula) -> Program:
    """The inner loop of a formula, derived once."""
    taker = _Taker()
    put = {SCORE: formula.score.node}
    shared = formula.weight.over is not None
    split = formula.weight.terms if shared else ((formula.weight.psi.node, sympy.S.Zero),)
    raw = [(r.xreplace(put), None if a == 0 else a.xreplace(put)) for r, a in split]
    terms = [(taker.visit(r), None if a is None else taker.visit(_in_base_2(a))) for r, a in raw]
    if any(e is not None for _, e in terms):  # beside exponentials, a plain term is one too
        terms = [(r, sympy.S.Zero if e is None else e) for r, e in terms]
    mask = None if formula.mask is None else taker.visit(formula.mask.node)
    late = [guarded for guarded in formula.reads if guarded.needs_score or _has_pairs(guarded.read)]
    guards = [
        Late(
            g.read,
            tuple(taker.visit(index.xreplace(put)) for index in g.read.indices),
            taker.visit(g.guard.xreplace(put)),
        )
        for g in late
    ]
    parts = [*terms, *((*guarded.indices, guarded.guard) for guarded in guards), (mask,)]
    roots = [node for part in parts for node in part if node is not None]
    pairs, renamed = {}, {}
    for place, pair in enumerate(sorted({p for root in roots for p in _pairs(root)}, key=sympy.default_sort_key)):
        symbol = sympy.Symbol(f"pair{place}", real=True)
        factor = _common_factor(roots, pair, taker.vectors)
        renamed[pair] = (factor, symbol)
        pairs[symbol] = Scaled(pair, _expressed(factor, taker.vectors))

    def put_pairs(node: Any) -> Any:
        return None if node is None else _renamed(node, renamed)

    made = tuple(
        Term(put_pairs(r), put_pairs(e), sympy.Symbol(f"psi{place}", real=True)) for place, (r, e) in enumerate(terms)
    )
    kept = tuple(Late(g.read, tuple(map(put_pairs, g.indices)), put_pairs(g.guard)) for g in guards)
    vectors = {name.node: (kind, value.node) for name, (kind, value) in taker.vectors.items()}
    return Program(formula, vectors, taker.truths, pairs, made, put_pairs(mask), kept)


def _in_base_2(exponent: Any) -> Any:
    """exp(a) = 2^(a log₂ e), with the factor in every term."""
    return sympy.Add(*(LOG2E * term for term in sympy.Add.make_args(exponent)))


def _slopes(term: Term, leaf: Any) -> Iterator[Any]:
    along_r = derivative(term.r, leaf)
    if term.exponent is None:
        yield along_r
        return
    yield along_r * term.psi
    yield LN2 * term.r * derivative(term.exponent, leaf) * term.psi


def _is_line(node: Any, u: Any, slope: Any) -> bool:
    """Whether node = slope · u + something free of u: floor(u) is none, though its slope is a number."""
    return u not in canonical(multiplied_out(node - slope * u)).free_symbols


class _Taker(Hoister):
    """Also takes constants of the call, whole matrices, and truths that are free of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.truths: dict[Any, Any] = {}

    def visit(self, node: Any) -> Any:
        if is_truth(node):
            return self._truth(node)
        if node.is_Number or (not node.args and kind_of(node) is None):
            return node
        kind = kind_of(node)
        if kind is not None:
            return self.take(node, kind)
        if isinstance(node, sympy.Add | sympy.Mul):
            return self._grouped(node)
        if isinstance(node, Read):
            return node.func(node.args[0], *(self.visit(index) for index in node.indices))
        return node.func(*(self.visit(arg) for arg in node.args))

    def _truth(self, node: Any) -> Any:
        found = dependencies(node)
        if node in (sympy.true, sympy.false):
            return node
        if SCORE in found or any(isinstance(symbol, Pair) for symbol in found):
            return node.func(*(self.visit(arg) for arg in node.args))
        for symbol, value in self.truths.items():
            if value == node:
                return symbol
        symbol = sympy.Symbol(f"truth{len(self.truths)}")
        self.truths[symbol] = node
        return symbol


# -- pairs and their factors -----------------------------------------------------------------------------------


def _has_pairs(node: Any) -> bool:
    return any(isinstance(part, Pair) for index in node.indices for part in walk(index))


def _pairs(node: Any) -> set[Pair]:
    if isinstance(node, Pair):
        return {node}
    return set().union(*(_pairs(arg) for arg in node.args)) if not node.is_Symbol else set()


def _common_factor(roots: list[Any], pair: Pair, vectors: Any) -> Any:
    """The factor of (b, h) that stands beside the pair wherever the pair stands; 1 if they differ."""
    heads = {name.node for name, (kind, _) in vectors.items() if kind == Kind.HEAD}
    found = {factor for root in roots for factor in _factors(root, pair, heads)}
    return found.pop() if len(found) == 1 else sympy.S.One


def _factors(node: Any, pair: Pair, heads: set[Any]) -> Iterator[Any]:
    if node == pair:
        yield sympy.S.One
        return
    args = node.args
    if isinstance(node, sympy.Mul) and pair in args:
        alone = not any(isinstance(arg, Pair) for arg in args if arg != pair)  # or two pairs would take one factor
        yield sympy.Mul(*(arg for arg in args if arg.is_Number or arg in heads)) if alone else sympy.S.One
        args = tuple(arg for arg in args if arg != pair)
    for arg in args if not node.is_Symbol else ():
        yield from _factors(arg, pair, heads)


def _renamed(node: Any, names: dict[Any, tuple[Any, Any]]) -> Any:
    """The node with u in place of every factor · pair."""
    if node in names:
        return names[node][1]
    if node.is_Symbol or not node.args:
        return node
    args = list(node.args)
    if isinstance(node, sympy.Mul):
        for pair in [arg for arg in args if arg in names]:
            factor, symbol = names[pair]
            for part in sympy.Mul.make_args(factor):
                if part in args:
                    args.remove(part)
            args[args.index(pair)] = symbol
    return node.func(*(_renamed(arg, names) if isinstance(arg, sympy.Basic) else arg for arg in args))


def _expressed(factor: Any, vectors: Any) -> Any:
    """The factor with what its symbols stand for."""
    return canonical(factor.xreplace({name.node: value.node for name, (_, value) in vectors.items()}))
