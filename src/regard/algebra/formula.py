"""The formula: score, weight, mask. A value: hashable, comparable, picklable, printable."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any

import sympy

from .errors import FormulaError
from .expressions import Expression, Mask, expression, mask, operand
from .functions import FloorDiv, Mod, Where
from .nodes import SCORE, Given, Pair, Read, symbols, walk
from .symbols import d, dot, sqrt
from .weights import Weight, as_weight, softmax

if TYPE_CHECKING:
    from .laws import Laws


@dataclass(frozen=True)
class GuardedRead:
    """A table read, and where its value counts: the pairs for which `guard` holds."""

    read: Read
    guard: Any

    @property
    def needs_score(self) -> bool:
        """Whether it can be told only once the scores are known: ψ may read by s."""
        return SCORE in symbols(self.read) | symbols(self.guard)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Formula:
    """y_i = Σ_j w_ij v_j,  w_ij = ψ(s_ij) / Z_i,  s_ij = score(q_i, k_j, i, j, h, b).

    score:  what compares a query with a key; q·k / √d unless said otherwise
    weight: how a score becomes a weight; softmax unless said otherwise
    mask:   the pairs that are admitted; all unless said otherwise
    """

    score: Expression
    weight: Weight
    mask: Mask | None
    _hash: int = field(init=False)

    def __init__(self, score: object = dot / sqrt(d), weight: object = softmax, mask: object = None) -> None:
        object.__setattr__(self, "score", expression(operand(score, "score")))
        object.__setattr__(self, "weight", as_weight(weight))
        object.__setattr__(self, "mask", _mask(mask))
        object.__setattr__(self, "_hash", hash(self._parts))  # asked for at every call
        _check(self)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Formula) and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        from .printing.text import formula_text

        return formula_text(self)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), (self.score, self.weight, self.mask)

    @property
    def _parts(self) -> tuple[Expression, Weight, Mask | None]:
        return self.score, self.weight, self.mask

    @property
    def key(self) -> str:
        """A name that is the same in every process: SHA-256 of the text and of the versions that shape its code."""
        versions = " ".join(f"{name} {_version(name)}" for name in ("regard", "sympy", "triton"))
        return hashlib.sha256(f"{self!r}\n{versions}".encode()).hexdigest()

    @cached_property
    def laws(self) -> Laws:
        """What follows from the formula: symmetry, what cancels, what can be hoisted, what the mask says of blocks."""
        from .laws import Laws

        return Laws(self)

    def latex(self) -> str:
        """The equation as LaTeX."""
        from .printing.latex import formula_latex

        return formula_latex(self)

    def mathml(self) -> str:
        """The equation as a MathML element for a web page."""
        from .printing.mathml import formula_mathml

        return formula_mathml(self)

    def unicode(self) -> str:
        """The equation as one line of text for a terminal."""
        from .printing.unicode import formula_unicode

        return formula_unicode(self)

    def code(self, flavour: str = "numpy", form: str = "attention") -> str:
        """Source that computes this formula without regard.

        flavour: "python", "numpy" or "torch"
        form:    "attention" takes q, k, v; "self_attention" takes x and its matrices
        """
        from .printing.code import code

        return code(self, flavour, form)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    # -- tables ----------------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """Every tree of the formula: score, ψ, sink, masks."""
        weight = self.weight
        parts = [self.score, weight.psi, weight.sink, self.mask, weight.among]
        return tuple(part.node for part in parts if part is not None)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The dot products, distances and cosines that the formula needs."""
        found = {part for node in self.nodes for part in walk(node) if isinstance(part, Pair)}
        return tuple(sorted(found, key=sympy.default_sort_key))

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The tables that a call must bring, and how many axes each has. −1: a mask that broadcasts."""
        found: dict[str, set[int]] = defaultdict(set)
        metrics = {pair.metric for pair in self.pairs}
        for node in self.nodes:
            for part in walk(node):
                if isinstance(part, Read):
                    found[part.table].add(len(part.indices) + 2 * (part in metrics))
                elif isinstance(part, Given):
                    found[part.table].add(-1)
        for name, ranks in found.items():
            if len(ranks) > 1:
                counts = " and ".join(str(rank) for rank in sorted(ranks))
                raise FormulaError(f'table("{name}"): one number of axes; got reads with {counts}; use two names')
        return {name: rank for name, (rank,) in sorted(found.items())}

    @cached_property
    def integer_tables(self) -> frozenset[str]:
        """The tables that stand where only integers can: in an index, or under // and %."""
        inside = [part for node in self.nodes for part in walk(node) if isinstance(part, Read | FloorDiv | Mod)]
        below = [index for part in inside for index in (part.indices if isinstance(part, Read) else part.args)]
        return frozenset(part.table for node in below for part in walk(node) if isinstance(part, Read))

    @cached_property
    def shared_tables(self) -> frozenset[str]:
        """The tables whose first index is b alone: an array without that axis is shared by the batch."""
        from .nodes import BATCH

        firsts: dict[str, set[Any]] = defaultdict(set)
        for node in self.nodes:
            for part in walk(node):
                if isinstance(part, Read) and part.indices:
                    firsts[part.table].add(part.indices[0])
        return frozenset(name for name, first in firsts.items() if first == {BATCH})

    @property
    def admitted(self) -> Any:
        """The mask as a truth; true where there is none."""
        return sympy.true if self.mask is None else self.mask.node

    @cached_property
    def reads(self) -> tuple[GuardedRead, ...]:
        """Every table read with the pairs for which it counts."""
        weight, everywhere = self.weight, sympy.true
        among = sympy.false if weight.among is None else weight.among.node
        parts: list[tuple[Any, Any]] = [(part, self.admitted | among) for part in (self.score, weight.psi)]
        parts += [(self.mask, self.admitted)]
        parts += [(part, everywhere) for part in (weight.sink, weight.among)]
        found = [read for part, guard in parts if part is not None for read in _guarded(part.node, guard)]
        return tuple(dict.fromkeys(found))

    def uses(self, *names: str) -> bool:
        """Whether any of these indices or sizes stands in the formula."""
        return any(symbol.name in names for node in self.nodes for symbol in symbols(node))


def _mask(value: object) -> Mask | None:
    if value is None:
        return None
    made = mask(value)
    return None if made.node == sympy.true else made


def _check(formula: Formula) -> None:
    if SCORE in symbols(formula.score.node):
        raise FormulaError("score: s is the score itself and stands in the weight only; got it inside score=")
    if formula.mask is not None and SCORE in symbols(formula.mask.node):
        raise FormulaError("mask: s is the score itself and stands in the weight only; got it inside mask=")
    among = formula.weight.among
    if among is not None and SCORE in symbols(among.node):
        raise FormulaError("among: s is the score itself and stands in the weight only; got it inside among=")
    formula.ranks  # noqa: B018 - refuses a table of two ranks now, not at the first call


def _guarded(node: Any, guard: Any) -> list[GuardedRead]:
    """The reads below `node`; inside a `where`, only the branch that is taken counts."""
    if isinstance(node, Where):
        condition, a, b = node.args
        inside = _guarded(condition, guard)
        return inside + _guarded(a, guard & condition) + _guarded(b, guard & ~condition)
    here = [GuardedRead(node, guard)] if isinstance(node, Read) and node.indices else []
    metric = [node.metric] if isinstance(node, Pair) and node.metric is not None else []
    children = [*node.args, *metric] if not isinstance(node, sympy.Symbol) else metric
    return here + [read for child in children for read in _guarded(child, guard)]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"
