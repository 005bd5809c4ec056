"""What one formula computes for a block of pairs in a fused kernel, as expressions: derived once.

    E = c · x            the exponent of ψ = 2^E: c > 0 is one number a head, x is what the running maximum is taken of
    x = q·k + …          so that 2^(E − shift) is one multiplication with addition, and one exp2

Distances and cosines are made of the one product q·k: ‖q−k‖² = ‖q‖² + ‖k‖² − 2 q·k. What depends on (b,h), (b,h,i),
(b,h,j) or (h,i−j) alone is a vector prepared outside; a straight line in i − j, or a bent one such as |i − j|, is
counted inside, from an anchor near the rows, so that it keeps its digits; what cancels under softmax is left out, and
`dropped` gives it to the totals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import sympy

from ...algebra.calculus import derivative
from ...algebra.canonical import canonical, multiplied_out
from ...algebra.fold import fold
from ...algebra.formula import Formula
from ...algebra.functions import Abs, FloorDiv, Interval, Log, Maximum, Minimum, Mod, Where
from ...algebra.intervals import ANY, Intervals
from ...algebra.laws import Hoister, Kind, expanded, kind_of
from ...algebra.nodes import BATCH, HEAD, SCORE, SIZES, I, IsZero, J, Pair, Read, is_integral, is_truth, read, walk

LOG2E = sympy.Float(math.log2(math.e))
LN2 = sympy.Float(math.log(2))
LARGE = 2**20  # sizes up to here are asked whether a unit is positive
LOW, HIGH = -15, 15  # exponents between which ψ needs no maximum taken out: 2^E has a place in every float

VECTORS = (Kind.ROW, Kind.COLUMN)
PRODUCT, DISTANCE = Pair("dot"), Pair("sqdist")  # q·k and ‖q − k‖²
NEAR, NOISE = Pair("near"), sympy.Float(2.0**-20)  # a distance without what rounding leaves of ‖q‖² + ‖k‖²
ROW_STEP, COLUMN_STEP = Pair("row_step"), Pair("column_step")  # i − anchor and j − anchor
POSITIONS = (I, J, ROW_STEP, COLUMN_STEP)
SQUARES = {"q": read("‖q‖²", BATCH, HEAD, I), "k": read("‖k‖²", BATCH, HEAD, J)}
LENGTHS = {"q": read("1/‖q‖", BATCH, HEAD, I), "k": read("1/‖k‖", BATCH, HEAD, J)}
MADE = ("‖q‖²", "‖k‖²", "1/‖q‖", "1/‖k‖")  # names of vectors that q and k make; a metric may follow


@dataclass(frozen=True)
class Term:
    """One r · 2^E of ψ; r alone where E is None."""

    r: Any
    exponent: Any | None


@dataclass(frozen=True)
class Pull:
    """∂ψ/∂leaf = scale · block: `scale` is one number a head, `block` is computed for every pair."""

    leaf: Any
    scale: Any
    block: Any


@dataclass(frozen=True, eq=False)
class Program:
    """The inner loop of a formula, in products (pairs), vectors (symbols) and indices."""

    formula: Formula
    products: tuple[Pair, ...]
    vectors: dict[Any, tuple[Kind, Any]]  # symbol: what it stands for
    unit: Any  # c, an expression of vectors of heads
    height: Any | None  # x; None where ψ is no shared exponential
    terms: tuple[Term, ...]
    mask: Any | None
    dropped: Any  # what E lost, a node of b, h, i (and ROW_STEP)
    doubtful: Any = sympy.S.Zero  # what of it may be no number: −∞, as a table may say, takes every key from the row

    @property
    def is_exponential(self) -> bool:
        """Whether a running maximum is taken out."""
        return self.height is not None

    @property
    def is_softmax_like(self) -> bool:
        """Whether ψ is 2^(c·x) and nothing beside it."""
        return self.is_exponential and len(self.terms) == 1 and self.terms[0].r == 1

    @property
    def is_shared(self) -> bool:
        return self.formula.weight.over is not None

    @cached_property
    def is_bounded(self) -> bool:
        """Whether E stays so small, whatever q and k are, that no running maximum is needed."""
        if not self.is_softmax_like or self.dropped != 0 or self.formula.weight.sink is not None:
            return False
        ((_, exponent),) = self.formula.weight.terms
        ranges = dict.fromkeys(SIZES.values(), (1, math.inf)) | dict.fromkeys((HEAD, BATCH, I, J), (0, math.inf))
        low, high = fold(_in_base_2(exponent.xreplace({SCORE: self.formula.score.node})), Intervals(ranges))
        return bool(low >= LOW and high <= HIGH)

    @cached_property
    def is_settled(self) -> bool:
        """Whether what the first block shows of E serves for all: nothing in it grows with positions by itself."""
        if not self.is_exponential or self.is_bounded:
            return self.is_bounded
        nodes = [self.height, *(node for kind, node in self.vectors.values() if kind in (Kind.COLUMN, Kind.OFFSET))]
        return not any(part in POSITIONS for node in nodes for part in walk(_without_reads(node)))

    @cached_property
    def flags(self) -> dict[str, int]:
        """What a kernel asks of a formula."""
        return {
            "EXPONENTIAL": self.is_exponential,
            "BOUNDED": self.is_bounded,
            "SETTLED": self.is_settled,
            "SHARED": self.is_shared,
            "HAS_MASK": self.mask is not None,
            "HAS_SINK": self.formula.weight.sink is not None,
            "COVERED": self.is_softmax_like,
            "PRODUCTS": len(self.products),
            "SEVERAL": len(self.products) > 1,
        }

    @cached_property
    def leaves(self) -> tuple[Any, ...]:
        """Products, vectors and reads that ψ depends on smoothly."""
        found = {part for term in self.terms for node in (term.r, term.exponent) if node is not None
                 for part in _leaves(node, self.vectors)}  # fmt: skip
        return tuple(sorted(found, key=sympy.default_sort_key))

    def pull(self, leaf: Any) -> Pull | None:
        """∂ψ/∂leaf; None where it is 0."""
        if self.is_softmax_like:
            slope = derivative(self.height, leaf)
            scale, block = self._split(slope)
            return None if slope == 0 else Pull(leaf, LN2 * self.unit * scale, block * PSI)
        total = sympy.Add(*(part for place, term in enumerate(self.terms) for part in _slopes(place, term, leaf)))
        scale, block = self._split(total)
        return None if total == 0 else Pull(leaf, scale, block)

    @cached_property
    def directions(self) -> dict[Any, str]:
        """The vectors a = c/‖q‖ and c/‖k‖, with their side, where ψ sees the direction of that side, not its length.

        So it is where a meets the one product p as its factor, a ∂ψ/∂a = p ∂ψ/∂p, and nothing else knows the length.
        """
        found = {}
        for side, length in LENGTHS.items():
            named = [symbol for symbol, (_, node) in self.vectors.items() if length in walk(node)]
            if len(named) == 1 and self._stretches(named[0], length):
                found[named[0]] = side
        return found

    def _stretches(self, leaf: Any, length: Any) -> bool:
        if len(self.products) != 1 or self.vectors[leaf][1].as_coeff_Mul()[1] != length:
            return False
        (product,) = self.products
        own, other = self.pull(leaf), self.pull(product)
        if own is None or other is None:
            return False
        return bool(sympy.expand(own.scale * own.block * leaf - other.scale * other.block * product) == 0)

    def _split(self, node: Any) -> tuple[Any, Any]:
        """node = one number a head · the rest."""
        heads = {symbol for symbol, (kind, _) in self.vectors.items() if kind == Kind.HEAD}
        factors = sympy.Mul.make_args(node)
        scale = [f for f in factors if f.is_Number or (f.free_symbols and f.free_symbols <= heads)]
        return sympy.Mul(*scale), sympy.Mul(*(f for f in factors if f not in scale))


PSI = sympy.Symbol("psi", real=True)  # 2^(c·x − shift)


def psi(place: int) -> Any:
    """The symbol of 2^(E − shift) of one term."""
    return sympy.Symbol(f"psi{place}", real=True)


@lru_cache(maxsize=512)
def program(formula: Formula, halves: bool = False) -> Program:
    """The inner loop of a formula, derived once. `halves`: q has half precision, so that q M is two matrices."""
    taker = _Taker()
    put = {SCORE: formula.score.node}
    shared = formula.weight.over is not None
    split = formula.weight.terms if shared else ((formula.weight.psi.node, sympy.S.Zero),)
    raw = [(r.xreplace(put), a.xreplace(put)) for r, a in split]
    if halves:
        raw = [(_without_noise(r), _without_noise(a)) for r, a in raw]
    made = _derived(formula, taker, raw)
    return _in_halves(made) if halves else made


def _without_noise(node: Any) -> Any:
    """The node with distances a little shorter, where their slope is not the same everywhere: a root's is steep at 0.

    ‖q‖² + ‖k‖² − 2 q·k of two equal vectors is what rounding leaves, and not 0, which has no slope.
    """
    pairs = {part for part in walk(node) if isinstance(part, Pair) and part == DISTANCE} - _straight_pairs(node)
    return node.xreplace(dict.fromkeys(pairs, NEAR))


def _derived(formula: Formula, taker: _Taker, raw: list[tuple[Any, Any]]) -> Program:
    mask = None if formula.mask is None else _with_vectors(with_products(formula.mask.node), taker)
    if not any(a != 0 for _, a in raw):
        terms = tuple(Term(taker.visit(with_products(r)), None) for r, _ in raw)
        return Program(formula, _products(terms, mask), taker.named, sympy.S.One, None, terms, mask, sympy.S.Zero)
    if len(raw) == 1 and raw[0][0] == 1:
        return _of_one_term(formula, taker, _in_base_2(raw[0][1]), mask)
    terms = tuple(Term(taker.visit(with_products(r)), taker.visit(with_products(_in_base_2(a)))) for r, a in raw)
    height = _highest(terms)
    return Program(formula, _products(terms, mask), taker.named, sympy.S.One, height, terms, mask, sympy.S.Zero)


def _in_halves(made: Program) -> Program:
    """The same with every product of a metric as the sum of two, of the high and the low digits of q M."""
    parts = {pair: pair + Pair(f"low_{pair.word}", pair.metric) for pair in made.products if pair.metric is not None}
    if not parts:
        return made

    def put(node: Any) -> Any:
        return None if node is None else node.xreplace(parts)

    terms = tuple(Term(put(term.r), put(term.exponent)) for term in made.terms)
    height, mask = put(made.height), put(made.mask)
    return replace(made, products=_products(terms, mask), terms=terms, height=height, mask=mask)


def _in_base_2(exponent: Any) -> Any:
    """exp(a) = 2^(a log₂ e), with the factor in every term."""
    return sympy.Add(*(LOG2E * term for term in sympy.Add.make_args(exponent)))


def _of_one_term(formula: Formula, taker: _Taker, exponent: Any, mask: Any | None) -> Program:
    """ψ = 2^(c·x), without the terms of x that cancel."""
    unit, x = _united(with_products(exponent, straight=_straight_pairs(exponent)))
    dropped = doubtful = sympy.S.Zero
    if formula.laws.cancels:
        x, dropped = _without_rows(x)
        rows = (term for term in sympy.Add.make_args(dropped) if kind_of(term) in (Kind.HEAD, Kind.ROW))
        doubtful = sympy.Add(*(term for term in rows if not _is_finite(term)))
    height, c = taker.visit(x), taker.visit(unit)
    terms = (Term(sympy.S.One, c * height),)
    return Program(formula, _products(terms, mask), taker.named, c, height, terms, mask, unit * dropped, doubtful)


def _united(exponent: Any) -> tuple[Any, Any]:
    """E = c · x with c > 0: the slope of the one product, if E is a straight line in it, or a number before all."""
    pairs = {part for part in walk(exponent) if isinstance(part, Pair)}
    if len(pairs) == 1:
        (pair,) = pairs
        slope = derivative(exponent, pair)
        if kind_of(slope) == Kind.HEAD and _is_line(exponent, pair, slope) and _is_positive(slope):
            rest = exponent.xreplace({pair: sympy.S.Zero})
            return slope, pair + sympy.Add(*(term / slope for term in sympy.Add.make_args(rest)))
    number, rest = exponent.as_coeff_Mul()
    if number <= 0 or any(kind_of(factor) in VECTORS for factor in sympy.Mul.make_args(rest)):
        return sympy.S.One, exponent  # a vector that is prepared outside takes the number in
    return number, rest


def _straight_pairs(exponent: Any) -> frozenset[Pair]:
    """The pairs in which the exponent is a straight line: no rounding of theirs leaves a domain."""
    pairs = {part for part in walk(exponent) if isinstance(part, Pair)}
    slopes = {pair: derivative(exponent, pair) for pair in pairs}
    return frozenset(pair for pair, slope in slopes.items()
                     if not pairs & slope.free_symbols and _is_line(exponent, pair, slope))  # fmt: skip


def _is_line(node: Any, pair: Pair, slope: Any) -> bool:
    return pair not in canonical(multiplied_out(node - slope * pair)).free_symbols


def _is_positive(node: Any) -> bool:
    """Whether intervals show that a number of each head is above 0, whatever the sizes."""
    if node.has(Read):
        return False
    low, _ = fold(node, Intervals(dict.fromkeys(SIZES.values(), (1, LARGE)) | dict.fromkeys((HEAD, BATCH), (0, LARGE))))
    return bool(low > 0)


def _without_rows(x: Any) -> tuple[Any, Any]:
    """x without the terms of a row alone, and those terms; straight lines in i − j lose their row's part."""
    terms = [part for term in sympy.Add.make_args(x) for part in _parted(term)]
    free = [term for term in terms if kind_of(term) is not None]
    joint = sympy.Add(*free)
    if kind_of(joint) == Kind.OFFSET and slanted(joint) is not None:  # a (i − j), however its terms were spread
        terms = [joint, *(term for term in terms if term not in free)]
    kept, dropped = [], []
    for term in terms:
        line = slanted(term) if kind_of(term) == Kind.OFFSET else None
        if kind_of(term) in (Kind.HEAD, Kind.ROW):
            dropped.append(term)
        elif line is not None:
            kept.append(-line[0] * COLUMN_STEP)
            dropped.append(line[0] * ROW_STEP + line[1])
        else:
            kept.append(term)
    return sympy.Add(*kept), sympy.Add(*dropped)


def _is_finite(term: Any) -> bool:
    """Whether a term of a row surely is a number."""
    ranges = dict.fromkeys(SIZES.values(), (1, LARGE)) | dict.fromkeys((HEAD, BATCH), (0, LARGE))
    ranges |= dict.fromkeys((I, J), (-LARGE, LARGE))
    known = Intervals(ranges, lambda name, _: (0, LARGE) if name.startswith(MADE) else ANY)
    ends: Interval = fold(term, known)
    return all(map(math.isfinite, ends))


def _parted(term: Any) -> tuple[Any, ...]:
    """A term that mixes kinds, multiplied out; others as they are."""
    if kind_of(term) not in (None, Kind.FULL):
        return (term,)
    return tuple(sympy.Add.make_args(sympy.expand_mul(term, deep=False)))


def slanted(node: Any) -> tuple[Any, Any] | None:
    """(slope, base) where node = slope · (i − j) + base, both of a head; None where it is no straight line."""
    step = sympy.Symbol("step", integer=True)
    along = expanded(node.xreplace({I: J + step}))
    slope = derivative(along, step)
    base = canonical(multiplied_out(along - slope * step))
    inside = {step, J}
    return None if inside & (slope.free_symbols | base.free_symbols) or slope == 0 else (slope, base)


# -- pairs as products -----------------------------------------------------------------------------------------


def with_products(node: Any, *, straight: frozenset[Pair] = frozenset()) -> Any:
    """The node with products of matrices in place of distances and cosines; those `straight` are not clipped."""
    pairs = {part for part in walk(node) if isinstance(part, Pair)}
    return node.xreplace({pair: _as_products(pair, pair in straight) for pair in pairs})


def _as_products(pair: Pair, straight: bool) -> Any:
    match pair.word, pair.metric:
        case "sqdist", None:
            distance = SQUARES["q"] + SQUARES["k"] - 2 * PRODUCT
            return distance if straight else Maximum(sympy.S.Zero, distance)
        case "near", None:
            return Maximum(sympy.S.Zero, (1 - NOISE) * (SQUARES["q"] + SQUARES["k"]) - 2 * PRODUCT)
        case "sqdist", metric:
            squares = (read(f"{SQUARES[side].table} {metric}", *SQUARES[side].indices) for side in "qk")
            return sympy.Add(*squares) - Pair("cross", metric)
        case "cosine", _:
            angle = PRODUCT * LENGTHS["q"] * LENGTHS["k"]
            return angle if straight else Minimum(sympy.S.One, Maximum(-sympy.S.One, angle))
    return pair


def _with_vectors(mask: Any, taker: _Taker) -> Any:
    """The mask with symbols in place of the vectors that q and k make; tables it reads itself."""
    own = {part for part in walk(mask) if isinstance(part, Read) and part.table.startswith(MADE)}
    return mask.xreplace({part: taker.visit(part) for part in own})


def _products(terms: tuple[Term, ...], mask: Any | None) -> tuple[Pair, ...]:
    nodes = [node for term in terms for node in (term.r, term.exponent) if node is not None]
    nodes += [] if mask is None else [mask]
    found = {part for node in nodes for part in walk(node) if isinstance(part, Pair)} - {ROW_STEP, COLUMN_STEP}
    return tuple(sorted(found, key=sympy.default_sort_key))


# -- several terms ---------------------------------------------------------------------------------------------


def _without_reads(node: Any) -> Any:
    """The node with symbols in place of what stands in tables."""
    return node.xreplace({part: sympy.Dummy() for part in walk(node) if isinstance(part, Read)})


def _highest(terms: tuple[Term, ...]) -> Any:
    """The largest exponent; one whose r is 0 does not count."""
    heights = [_height(term) for term in terms]
    total = heights[0]
    for height in heights[1:]:
        total = Maximum(total, height, evaluate=False)
    return total


LOWEST = sympy.Symbol("lowest", real=True)  # −∞, which the algebra's numbers do not have


def _height(term: Term) -> Any:
    """The exponent, raised by that of a large r: weights relative to the highest have a place in float16."""
    size = Maximum(sympy.S.One, Abs(term.r))
    height = (sympy.S.Zero if term.exponent is None else term.exponent) + LOG2E * Log(size)
    return height if term.r.is_Number else Where(IsZero(term.r), LOWEST, height)


def _slopes(place: int, term: Term, leaf: Any) -> Iterator[Any]:
    along_r = derivative(term.r, leaf)
    if term.exponent is None:
        yield along_r
        return
    yield along_r * psi(place)
    yield LN2 * term.r * derivative(term.exponent, leaf) * psi(place)


def _leaves(node: Any, vectors: Any) -> set[Any]:
    """Products, vectors and reads below a node, but for those in truths and indices."""
    if isinstance(node, Pair):
        return set() if node in (ROW_STEP, COLUMN_STEP) else {node}
    if isinstance(node, Read) or node in vectors:
        return {node}
    if is_truth(node) or node.is_Symbol:
        return set()
    return set().union(*(_leaves(child, vectors) for child in node.args))


LIGHT = 5  # operations for each pair that are faster than to read a number for it


def _operations(node: Any) -> float:
    """Operations for each pair that a node of i − j takes; ∞ where there are others than sums, products and bends."""
    if kind_of(node) == Kind.HEAD:
        return 0
    if slanted(node) is not None:
        return 2
    if isinstance(node, sympy.Add | sympy.Mul | Abs | Minimum | Maximum):
        varying = [arg for arg in node.args if kind_of(arg) != Kind.HEAD]
        joints = len(varying) - 1 + (len(varying) < len(node.args))  # all numbers of a head are one
        return sum(map(_operations, varying)) + max(1, joints)
    return math.inf


def _apart(node: Any) -> tuple[Any, Any]:
    """A product's factors of a head, and the rest."""
    if not isinstance(node, sympy.Mul):
        return sympy.S.One, node
    heads = [factor for factor in node.args if kind_of(factor) == Kind.HEAD]
    return sympy.Mul(*heads), sympy.Mul(*(factor for factor in node.args if factor not in heads))


class _Taker(Hoister):
    """Takes what is prepared outside; what varies with i and j freely is read and counted inside the kernel."""

    def visit(self, node: Any) -> Any:
        if is_truth(node) or node.is_Number or isinstance(node, Pair):
            return node
        kind = kind_of(node)
        if kind == Kind.OFFSET and (line := slanted(node)) is not None:
            return self.visit(line[0]) * (ROW_STEP - COLUMN_STEP) + self.visit(line[1])
        if kind == Kind.OFFSET and _operations(node) <= LIGHT:
            heads, rest = _apart(node)
            made = rest.func(*(self.visit(arg) for arg in rest.args))
            return made if heads == 1 else self.visit(heads) * made
        if kind == Kind.FULL and (isinstance(node, Read | FloorDiv | Mod) or is_integral(node)):
            return node
        if kind not in (None, Kind.FULL):
            return self.take(node, kind)
        if isinstance(node, sympy.Add | sympy.Mul):
            return self._grouped(node)
        if isinstance(node, Read):  # at a place that the score decides
            return node
        return node.func(*(self.visit(arg) for arg in node.args))

    @property
    def named(self) -> dict[Any, tuple[Kind, Any]]:
        return {name.node: (kind, value.node) for name, (kind, value) in self.vectors.items()}
