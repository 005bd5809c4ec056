"""The leaves of a formula, and the base of its functions, as SymPy nodes.

Nothing outside `algebra` sees these: people write `Expression` and `Mask`, which hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import sympy
from sympy.core.symbol import Str
from sympy.logic.boolalg import Boolean, BooleanFunction

# -- symbols ---------------------------------------------------------------------------------------------------


class Index(sympy.Symbol):
    """An integer that runs: i over queries, j over keys, h over heads, b over the batch."""

    def __new__(cls, name: str) -> Index:
        made: Index = super().__new__(cls, name, integer=True)
        return made


class Size(sympy.Symbol):
    """A positive integer that the shapes fix: H query heads, d key width, n keys."""

    def __new__(cls, name: str) -> Size:
        made: Size = super().__new__(cls, name, integer=True, positive=True)
        return made


class Pair(sympy.Symbol):
    """A number made of one query and one key: their dot product, squared distance or cosine.

    With a metric, a table of two further axes stands between them: qᵀ M k, or (q−k)ᵀ P (q−k).
    """

    word: str
    metric: Read | None

    def __new__(cls, word: str, metric: Read | None = None) -> Pair:
        name = word if metric is None else f"{word}({metric})"
        bound = word == "sqdist" and metric is None
        made: Pair = super().__new__(cls, name, **({"nonnegative": True} if bound else {"real": True}))
        made.word, made.metric = word, metric
        return made


I, J, HEAD, BATCH = Index("i"), Index("j"), Index("h"), Index("b")
HEADS, WIDTH, KEYS = Size("H"), Size("d"), Size("n")
SCORE = sympy.Symbol("s", real=True)
INDICES = {symbol.name: symbol for symbol in (I, J, HEAD, BATCH)}
SIZES = {symbol.name: symbol for symbol in (HEADS, WIDTH, KEYS)}


# -- functions -------------------------------------------------------------------------------------------------


class Node(sympy.Function):
    """A function of real arguments with real values. SymPy never turns it into a number by itself."""

    keeps_integers: ClassVar[bool] = False  # integer arguments give an integer, computed as one
    gives_integers: ClassVar[bool] = False  # the value is an integer whatever the arguments

    @classmethod
    def _should_evalf(cls, arg: Any) -> int:
        return -1

    def _eval_is_real(self) -> bool:
        return True

    def _eval_is_commutative(self) -> bool:
        return True


class Read(Node):
    """One entry of a table: `table("bias")[h, i - j]`."""

    @property
    def table(self) -> str:
        return str(self.args[0].name)

    @property
    def indices(self) -> tuple[Any, ...]:
        return tuple(self.args[1:])


def read(name: str, *indices: Any) -> Read:
    made: Read = Read(Str(name), *indices)
    return made


# -- truths ----------------------------------------------------------------------------------------------------


class AtLeastZero(BooleanFunction):
    """x ≥ 0. Every order relation is this one, or its negation."""


class IsZero(BooleanFunction):
    """x = 0."""


class Given(BooleanFunction):
    """A boolean array over the queries and keys of this very call, broadcast from the right."""

    @property
    def table(self) -> str:
        return str(self.args[0].name)


# -- questions about a tree ------------------------------------------------------------------------------------


def walk(node: Any) -> Iterator[Any]:
    """Every node of the tree, also those inside the metrics of pairs."""
    yield node
    below = (node.metric,) if isinstance(node, Pair) and node.metric is not None else node.args
    for child in below:
        yield from walk(child)


@lru_cache(maxsize=16384)
def measure(node: Any) -> tuple[int, int]:
    """How deep the tree is, and how many parts it has."""
    below = [measure(child) for child in node.args]
    return 1 + max((depth for depth, _ in below), default=0), 1 + sum(size for _, size in below)


def symbols(node: Any) -> set[Any]:
    """The symbols that stand in the tree; a pair counts as itself."""
    return {part for part in walk(node) if isinstance(part, sympy.Symbol)}


def dependencies(node: Any) -> set[Any]:
    """The symbols that the value depends on: those that stand in it, and all indices where a mask of the call does."""
    masked = any(isinstance(part, Given) for part in walk(node))
    return symbols(node) | (set(INDICES.values()) if masked else set())


def is_integral(node: Any, *, reads: bool = False) -> bool:
    """Whether the node is computed in integers. `reads=True` grants that tables hold integers."""
    return _integers(node, lambda leaf: isinstance(leaf, Read) and reads)


def is_whole(node: Any) -> bool:
    """Whether the node's value is an integer, however it is computed: floors count too."""
    return _integers(node, lambda leaf: isinstance(leaf, Read) or getattr(leaf, "gives_integers", False))


def _integers(node: Any, grants: Callable[[Any], bool]) -> bool:
    if isinstance(node, sympy.Integer | Index | Size) or grants(node):
        return True
    if node.is_Pow:
        return bool(node.exp.is_Integer and node.exp > 0) and _integers(node.base, grants)  # i · i is i²
    if not isinstance(node, sympy.Add | sympy.Mul) and not getattr(node, "keeps_integers", False):
        return False
    return all(_integers(arg, grants) for arg in node.args if not is_truth(arg))


def is_truth(node: Any) -> bool:
    """Whether the node is true or false rather than a number. (SymPy's symbols are Boolean too.)"""
    return isinstance(node, Boolean) and not isinstance(node, sympy.Symbol)
