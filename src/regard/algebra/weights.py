"""From score to weight: w_ij = ψ(s_ij) / Z_i with `share`, or ψ(s_ij) alone with `each`.

    share(ψ)              Z_i = Σ_j ψ(s_ij)        over the admitted keys of row i
    share(ψ, sink=c)      Z_i = c + Σ_j ψ(s_ij)    part of the weight goes nowhere
    share(ψ, over=i)      Z_j = Σ_i ψ(s_ij)        another index shares
    share(ψ, among=m)     Z_i sums over m instead of the formula's own mask
    each(ψ)               w_ij = ψ(s_ij)           no sum at all

softmax is share(exp). A sum of exponentials r·exp(a) is computed with the largest a of its row taken out; `terms`
finds the r and a wherever ψ is such a sum, so that no weight needs stability code of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NoReturn

import sympy

from .calculus import derivative
from .canonical import canonical, multiplied_out
from .errors import FormulaError, KindError
from .expressions import Expression, Mask, expression, mask, operand
from .fold import fold
from .functions import FUNCTIONS, Exp, Log, Where
from .intervals import Intervals
from .nodes import SCORE, SIZES, Index, Pair, Read, symbols, walk
from .symbols import exp, j, s

Term = tuple[Any, Any]  # (r, a): the node r · exp(a)
PROBES = (-40.0, -3.0, -1.0, -0.75, -0.1, 0.0, 0.1, 0.75, 1.0, 3.0, 40.0)


@dataclass(frozen=True)
class Weight:
    """ψ, and how it is shared. `over` is None where nothing is."""

    psi: Expression
    over: Expression | None = None
    sink: Expression | None = None
    among: Mask | None = None

    def __repr__(self) -> str:
        from .printing.text import weight_text

        return weight_text(self)

    def __call__(self, *arguments: object, **options: object) -> NoReturn:
        raise KindError(f"{self!r}: a weight stands in an attention, as in Attention(score=…, weight={self!r}, mask=…)")

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Weight, (self.psi, self.over, self.sink, self.among)  # without what is cached, which SymPy cannot pickle

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """ψ(s) = Σ r · exp(a)."""
        return exponential_terms(self.psi.node)

    @cached_property
    def slope_terms(self) -> tuple[Term, ...]:
        """ψ'(s) in the same form."""
        return exponential_terms(derivative(self.psi.node, SCORE))

    @cached_property
    def sink_terms(self) -> tuple[Term, ...]:
        """The sink in the same form; none where there is no sink."""
        return () if self.sink is None else exponential_terms(self.sink.node)

    @property
    def is_softmax(self) -> bool:
        """Whether this is share(exp) over keys, without a sink."""
        return self == softmax

    @property
    def is_exponential(self) -> bool:
        """Whether ψ grows like an exponential: totals are then log Z, otherwise Z."""
        return self.over is not None and any(a != 0 for _, a in self.terms)


def share(psi: object, *, sink: object = None, over: Expression = j, among: Mask | None = None) -> Weight:
    """ψ(s) divided by its row's total: share(exp) is softmax, share(lambda s: relu(s) ** 2) another.

    psi:    a function of the score with values ≥ 0
    sink:   what is added to the total: a number or an expression of b, h, i and tables
    over:   the index that shares; keys unless said otherwise
    among:  the pairs that the total counts; those that the formula's mask admits unless said otherwise
    """
    curve = _curve(psi, "share")
    _refuse_negative(curve)
    if not isinstance(over, Expression) or not isinstance(over.node, Index):
        raise KindError(f"over: one of the indices i, j, h, b; got {over!r}")
    return Weight(curve, over, _sink(sink, over), None if among is None else mask(among, "among"))


def each(psi: object) -> Weight:
    """ψ(s) as the weight itself, without a sum: each(sigmoid)."""
    return Weight(_curve(psi, "each"))


def as_weight(value: object) -> Weight:
    """What a person gave as weight: a `Weight`, or a function of the score for `each`."""
    return value if isinstance(value, Weight) else Weight(_curve(value, "weight"))


@lru_cache(maxsize=1024)
def exponential_terms(node: Any) -> tuple[Term, ...]:
    """node = Σ r · exp(a), with every exponential of the score that can be taken out in an a."""
    if not node.has(Exp, sympy.Pow):
        return _collected(node)
    spread = _collected(multiplied_out(node, powers=True))
    cancels = any(r.could_extract_minus_sign() for r, _ in spread)  # (eˢ − 1)² multiplied out would lose its digits
    return _collected(node) if cancels else spread


def _collected(node: Any) -> tuple[Term, ...]:
    """The terms of a sum, those with one exponent together."""
    terms: dict[Any, Any] = {}
    for r, a in (part for term in sympy.Add.make_args(node) for part in _split(term)):
        terms[a] = canonical(terms.get(a, sympy.S.Zero) + r)
    return tuple((r, a) for a, r in terms.items() if r != 0)


def _split(term: Any) -> list[Term]:
    """One term as r · exp(a); a choice between exponentials as several."""
    factors = sympy.Mul.make_args(term)
    for choice in factors:
        if isinstance(choice, Where) and choice.has(Exp):  # where(c, x, y) = where(c, r, 0) exp(a) + …
            condition, *branches = choice.args
            rest = sympy.Mul(*(factor for factor in factors if factor != choice))
            parts = [
                (place, r, a) for place, x in enumerate(branches) for r, a in exponential_terms(canonical(x * rest))
            ]
            return [(Where(condition, *((0, r) if place else (r, 0))), a) for place, r, a in parts]
    split = [_exponent(factor) for factor in factors]
    r = sympy.Mul(*(r for r, _ in split))
    if r.has(Exp):  # an exponential that stays inside would make r vanish where the whole does not
        return [(term, sympy.S.Zero)]
    return [(r, canonical(sympy.Add(*(a for _, a in split))))]


def _exponent(factor: Any) -> Term:
    """One factor as r · exp(a)."""
    base, power = factor.as_base_exp()
    if isinstance(base, Exp):
        return sympy.S.One, power * base.args[0]
    if base.is_Number and base > 0 and not power.is_Number:
        return sympy.S.One, power * Log(base)
    return factor, sympy.S.Zero


def _curve(psi: object, place: str) -> Expression:
    """ψ as an expression in s, whatever the person called its variable."""
    if isinstance(psi, Weight):
        raise KindError(f"{place}: a function of the score, such as exp; got the weight {psi!r}")
    if callable(psi) and not isinstance(psi, Expression):
        psi = _called(psi, place)
    curve = expression(operand(psi, place))
    for part in walk(curve.node):
        if isinstance(part, Pair):
            raise FormulaError(
                f"{place}: ψ takes the score s, indices, sizes and tables; got {part}; move it to score="
            )
    return curve


def _called(psi: Callable[[Expression], object], place: str) -> object:
    try:
        return psi(s)
    except (TypeError, AttributeError) as problem:
        if isinstance(problem, KindError):
            raise
        known = ", ".join(FUNCTIONS)
        raise KindError(f"{place}: ψ is made of regard's functions ({known}); got {psi!r}: {problem}") from problem


def _refuse_negative(curve: Expression) -> None:
    """`share` divides by a sum of ψ, so ψ must not be negative; a few scores tell."""
    sizes = dict.fromkeys(SIZES.values(), (1, math.inf))
    if symbols(curve.node) - {SCORE, *sizes} or any(isinstance(part, Read) for part in walk(curve.node)):
        return
    for score in PROBES:
        _, high = fold(curve.node, Intervals({SCORE: (score, score), **sizes}))
        if high < 0:
            raise FormulaError(
                f"share: ψ must not be negative; got ψ(s) = {curve!r}, which is at most {high:.3g} at s = {score:g}; "
                "take exp, relu, softplus or a square of it, or each(…) to leave it unshared"
            )


def _sink(value: object, over: Expression) -> Expression | None:
    if value is None:
        return None
    sink = expression(operand(value, "sink"))
    outside = symbols(sink.node) & {SCORE, over.node} | {part for part in walk(sink.node) if isinstance(part, Pair)}
    if outside:
        named = ", ".join(sorted(symbol.name for symbol in outside))
        raise FormulaError(
            f"sink: one number a row, of b, h, i, sizes and tables; got {sink!r}, which depends on {named}"
        )
    if over.node.name == "b" and any(symbol.name == "i" for symbol in symbols(sink.node)):
        raise FormulaError(f"sink: i depends on b, over which the weight is shared; got {sink!r}; leave i out")
    if sink.node.is_Number and sink.node < 0:
        raise FormulaError(
            f"sink: must not be negative; got {sink!r}; a sink lives beside ψ: exp(…) makes one of a score"
        )
    return None if sink.node == 0 else sink


softmax = share(exp)
