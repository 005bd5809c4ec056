"""The formula as one call of PyTorch's kernel: a value derived from the laws, which prints as that call.

    softmax(slope · pair + bias)        pair      becomes
                                        q·k       q and k themselves
                                        qᵀ M k    q M and k
                                        cosine    unit vectors
                                        ‖q−k‖²    −2 q·k + ‖k‖², a column; ‖q‖² is the row's own and cancels

What varies with (b, h, i) alone cancels under softmax and is dropped. What remains of the bias, and the mask, must
vary with j alone or with i − j alone: then attn_mask is a view of a vector, with −inf where the mask admits nothing.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sympy

from ...algebra.canonical import canonical
from ...algebra.expressions import Expression, Mask
from ...algebra.fold import fold
from ...algebra.formula import Formula
from ...algebra.functions import Where
from ...algebra.intervals import Intervals
from ...algebra.laws import Kind, kind_of
from ...algebra.masks import causal
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, SIZES, WIDTH, Given, I, J, Pair, Read, symbols, walk

FIXED = sympy.Symbol("batch", integer=True)
MATRIX_READS = {(I, J), (HEAD, I, J), (BATCH, I, J), (BATCH, HEAD, I, J)}


class Form(enum.StrEnum):
    """What attn_mask is a view of."""

    NONE = "none"
    CAUSAL = "causal"  # is_causal where the first query is the first key, otherwise as OFFSET
    COLUMN = "column"  # a vector over j
    OFFSET = "offset"  # a vector over i − j
    TABLE = "table"  # the caller's own numbers for every pair
    GIVEN = "given"  # the caller's own truths for every pair


VARIES = {Form.COLUMN: "j", Form.OFFSET: "i - j", Form.TABLE: "i and j", Form.GIVEN: "i and j"}


class Irreducible(Exception):  # noqa: N818 - never leaves this module
    """Why a formula is no call of PyTorch's kernel, in one clause."""


@dataclass(frozen=True)
class Reduction:
    """softmax(slope · pair + bias) over the pairs of `mask`, as one call of PyTorch's kernel."""

    pair: Pair
    slope: Expression
    bias: Expression | None
    row: Expression | None  # what was dropped: it cancels where it is finite
    mask: Mask | None
    form: Form

    @cached_property
    def is_distance(self) -> bool:
        """Whether ‖k‖² makes a column of its own."""
        return self.pair.word == "sqdist"

    @cached_property
    def factor(self) -> Expression:
        """What the kernel's dot product is multiplied by: the slope, or −2 slope for a distance."""
        if not self.is_distance:
            return self.slope
        doubled = self.pair.metric is None  # P + Pᵀ is double already
        return Expression(canonical(-(2 if doubled else 1) * self.slope.node))

    @cached_property
    def is_constant(self) -> bool:
        """Whether the factor is made of numbers and sizes alone, so that it can be scale=."""
        node = self.factor.node
        return not symbols(node) - set(SIZES.values()) and not node.has(Read)

    @cached_property
    def is_plain(self) -> bool:
        """Whether q and k go in as they came."""
        return self.pair.word == "dot" and self.pair.metric is None

    @cached_property
    def mask_tables(self) -> tuple[str, ...]:
        """The arguments from which real numbers of attn_mask are made: PyTorch gives no gradient for them."""
        parts = [] if self.bias is None else [self.bias.node]
        parts += [self.slope.node, self.pair] if self.is_distance else []
        names = {part.table for node in parts for part in walk(node) if isinstance(part, Read)}
        return tuple(sorted(names | ({"k"} if self.is_distance else set())))

    def __str__(self) -> str:
        parts = [self._query_text(), self._key_text(), "v", *self._mask_text()]
        parts += [f"scale={self.factor!r}"] if self.is_constant else []
        return f"F.scaled_dot_product_attention({', '.join(parts)})"

    def _query_text(self) -> str:
        metric = "" if self.pair.metric is None else repr(Expression(self.pair.metric))
        if self.is_distance:
            text = "q - mean(k)" if not metric else f"(q - mean(k)) @ ({metric} + {metric}.mT)"
        else:
            text = "unit(q)" if self.pair.word == "cosine" else f"q @ {metric}" if metric else "q"
        return text if self.is_constant else f"{_bracketed(repr(self.factor))} * {_bracketed(text)}"

    def _key_text(self) -> str:
        return {"dot": "k", "cosine": "unit(k)", "sqdist": "k - mean(k)"}[self.pair.word]

    def _mask_text(self) -> list[str]:
        if self.form in (Form.NONE, Form.CAUSAL):
            return [] if self.form == Form.NONE else ["is_causal=True"]
        if self.form == Form.GIVEN:
            return [f"attn_mask={self.mask!r}"]
        terms = [f"{_bracketed(repr(self.slope))} * {self._norm_text()}"] if self.is_distance else []
        terms += [] if self.bias is None else [repr(self.bias)]
        numbers = " + ".join(terms) or "0"
        barred = "" if self.mask is None else f", −inf where not {self.mask!r}"
        return [f"attn_mask={self.form} view of {numbers}{barred}"]

    def _norm_text(self) -> str:
        metric = self.pair.metric
        return "|k - mean(k)|²" if metric is None else f"(k - mean(k)) @ {Expression(metric)!r} @ (k - mean(k))"


def _bracketed(text: str) -> str:
    return f"({text})" if any(sign in text for sign in (" + ", " - ", " / ")) else text


@lru_cache(maxsize=1024)
def reduction(formula: Formula) -> Reduction | str:
    """The formula as a call of PyTorch's kernel, or the reason why it is none."""
    try:
        return _reduced(formula)
    except Irreducible as why:
        return str(why)


@lru_cache(maxsize=1024)
def constant(factor: Expression, heads: int, width: int, keys: int) -> float | None:
    """A factor of numbers and sizes as one number; None where intervals cannot tell it."""
    sizes: dict[Any, Any] = {HEADS: (heads, heads), WIDTH: (width, width), KEYS: (keys, keys)}
    low, high = fold(factor.node, Intervals(sizes))
    return float(low) if low == high else None


def pattern(node: Any) -> Kind | None:
    """What a node varies with in one matrix: b is fixed there, so that it may stand beside i − j."""
    return kind_of(node.xreplace({BATCH: FIXED}))


# -- the derivation --------------------------------------------------------------------------------------------


def _reduced(formula: Formula) -> Reduction:
    if not formula.weight.is_softmax:
        raise Irreducible(f"its kernel is softmax; the weight is {formula.weight!r}")
    law = formula.laws.affine
    if law is None:
        raise Irreducible("the score is not slope · pair + bias with one pair of q and k")
    pair, slope = law.pair.node, law.slope
    _check_slope(pair, slope)
    rest = canonical(formula.score.node.xreplace({pair: sympy.S.Zero}))  # as it was written
    bias, row, bias_form = _bias(rest)
    mask_form = _mask_form(formula.mask)
    forms = {bias_form, mask_form, Form.COLUMN if pair.word == "sqdist" else Form.NONE} - {Form.NONE}
    if len(forms) > 1:
        varies = " and ".join(f"with {VARIES[form]}" for form in sorted(forms))
        raise Irreducible(f"bias and mask vary {varies}: together N × n numbers")
    form = next(iter(forms), Form.NONE)
    if bias is None and pair.word != "sqdist" and formula.mask == causal:
        form = Form.CAUSAL
    return Reduction(pair, slope, bias, row, formula.mask, form)


def _check_slope(pair: Pair, slope: Expression) -> None:
    """A slope that varies with the query goes into q; beside ‖k‖² it would make a matrix."""
    kind = pattern(slope.node)
    if kind not in (Kind.HEAD, Kind.ROW) or (kind == Kind.ROW and pair.word == "sqdist"):
        raise Irreducible(f"the slope {slope!r} varies with {'i' if kind == Kind.ROW else 'j'}")


def _bias(rest: Any) -> tuple[Expression | None, Expression | None, Form]:
    """What remains of the bias when row terms are dropped, those terms, and what the remainder varies with."""
    whole = (rest, sympy.S.Zero)  # i − j stays whole: it is exact
    for node, row in (whole, _parted(rest), _parted(sympy.expand_mul(rest))):
        kind, dropped = pattern(node), None if row == 0 else Expression(row)
        if kind in (Kind.HEAD, Kind.ROW):
            return None, Expression(rest) if rest.free_symbols or rest.has(Read) else None, Form.NONE
        if kind in (Kind.COLUMN, Kind.OFFSET):
            return Expression(node), dropped, Form.COLUMN if kind == Kind.COLUMN else Form.OFFSET
        if isinstance(node, Read) and node.indices in MATRIX_READS:
            return Expression(node), dropped, Form.TABLE
    raise Irreducible(f"the bias {Expression(_parted(rest)[0])!r} is no vector over j or over i - j")


def _parted(node: Any) -> tuple[Any, Any]:
    """The terms that stay, and those of the row."""
    rows = [term for term in sympy.Add.make_args(node) if pattern(term) in (Kind.HEAD, Kind.ROW)]
    kept = [term for term in sympy.Add.make_args(node) if term not in rows]
    return canonical(sympy.Add(*kept)), canonical(sympy.Add(*rows))


def _mask_form(mask: Mask | None) -> Form:
    if mask is None:
        return Form.NONE
    if isinstance(mask.node, Given):
        return Form.GIVEN
    kind = pattern(Where(mask.node, sympy.S.One, sympy.S.Zero))
    if kind is None:
        raise Irreducible(f"the mask {mask!r} depends on q and k")
    if kind in (Kind.HEAD, Kind.COLUMN):
        return Form.COLUMN
    if kind == Kind.OFFSET:
        return Form.OFFSET
    raise Irreducible(f"the mask {mask!r} is no vector over j or over i - j")
