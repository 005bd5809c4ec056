"""The inner loop of a formula, compiled to a tape for one kind of block.

section 0    products of matrices → u;  tape: exponents E, factors r, hidden where the mask says no
             the engine finds the new row maximum m of E
section 1    ψ = Σ r 2^(E − m), and what the mask leaves of it
             the engine adds up ψ and ψ v; going back, it makes g = dy·v − δ
section 2    g · ∂ψ/∂x for every x that wants a gradient
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy
import torch

from ...algebra.formula import Formula
from ...algebra.nodes import IsZero, Read
from .buffers import Compiled, compiled
from .calls import flushed
from .program import Program, program
from .tape import Tape, Value

SHIFT = sympy.Symbol("shift")  # m of each row
MASK = sympy.Symbol("mask")  # bits of the block
GRADIENT = sympy.Symbol("gradient")  # g
LOWEST = {torch.float32: -120.0, torch.float64: -1000.0}  # 2^x below is taken as 0; less would be denormal


@dataclass(frozen=True)
class Variant:
    """One kind of block: what it needs beside the formula itself."""

    masked: bool  # the mask admits some pairs
    shifted: bool  # exponents have no known bound, so that the row's largest is taken out
    backward: bool = False
    wanted: tuple[Any, ...] = ()  # leaves whose gradients are asked for, going back
    dtype: Any = torch.float32


@dataclass(frozen=True)
class Kernel:
    """A compiled variant, and where the engine finds what it reads."""

    code: Compiled
    pairs: dict[Any, int]  # u: its buffer
    exponents: tuple[int, ...]
    psi: int
    mask: int | None  # bits of the pairs that are admitted; None where all are
    gradient: int | None  # the buffer for g
    pulls: dict[Any, tuple[int, float]]  # leaf: (buffer of g · R, coefficient)
    indices: dict[Any, tuple[int, ...]]  # a late read: buffers of its indices
    guards: tuple[tuple[Read, tuple[int, ...], int], ...]  # late reads, their indices, the bits where they count


@lru_cache(maxsize=2048)
def kernel(formula: Formula, variant: Variant) -> Kernel:
    """The tape of a formula for one kind of block."""
    made = program(formula)
    tape = Tape()
    pairs = {symbol: tape.fill(symbol) for symbol in made.pairs}
    backward = variant.backward
    mask = _mask(tape, made) if variant.masked else None
    exponents = _exponents(tape, made, variant, None if backward else mask)
    late = [
        (guarded.read, tuple(_owned(tape, tape.value(index)) for index in guarded.indices), tape.value(guarded.guard))
        for guarded in (() if backward else made.guards)
    ]
    later = [value for _, indices, guard in late for value in (*indices, guard)]
    tape.section(*exponents, *later)
    _terms(tape, made, variant, exponents, mask)
    psi = _owned(tape, tape.value(made.psi))
    if mask is not None and not _is_covered(made, variant):
        psi = tape.masked(psi, mask)
    tape.section(psi, *([] if mask is None else [mask]))
    pulls: dict[Any, tuple[Value, float]] = {}
    known: dict[Any, Value] = {}
    indices: dict[Any, tuple[Value, ...]] = {}
    gradient = tape.fill(GRADIENT) if backward else None
    for leaf in variant.wanted:
        slope = made.slope(leaf)
        if slope is not None:
            if slope.node not in known:
                known[slope.node] = _pull(tape, slope.node, mask)
            pulls[leaf] = (known[slope.node], slope.coefficient)
        if isinstance(leaf, Read):
            indices[leaf] = tuple(_owned(tape, tape.value(index)) for index in leaf.indices)
    tape.keep(*(value for value, _ in pulls.values()), *(value for found in indices.values() for value in found))
    code = compiled(tape)
    return Kernel(
        code, {symbol: code.place(value) for symbol, value in pairs.items()},
        tuple(code.place(value) for value in exponents), code.place(psi),
        None if mask is None else code.place(mask),
        None if gradient is None else code.place(gradient),
        {leaf: (code.place(value), c) for leaf, (value, c) in pulls.items()},
        {leaf: tuple(map(code.place, found)) for leaf, found in indices.items()},
        tuple((read, tuple(map(code.place, found)), code.place(guard)) for read, found, guard in late),
    )  # fmt: skip


def _mask(tape: Tape, made: Program) -> Value:
    """The bits of the mask: brought where it is free of vectors, computed where it is not."""
    return tape.bring(MASK) if made.mask in made.truths else tape.value(made.mask)


def _exponents(tape: Tape, made: Program, variant: Variant, mask: Value | None) -> list[Value]:
    """E of every term, with −∞ where it does not count."""
    if not variant.shifted:
        return []
    found = []
    for term in made.terms:
        if term.exponent is None:
            continue
        height = _owned(tape, tape.value(term.exponent))
        if mask is not None:
            height = tape.hidden(height, mask)
        if term.vanishes:
            zero = tape.value(IsZero(term.r))
            height = tape.hidden(height, tape.negation(zero))
        found.append(height)
    return found


def _terms(tape: Tape, made: Program, variant: Variant, exponents: list[Value], mask: Value | None) -> None:
    """ψ's terms by name: r, or 2^(E − m)."""
    heights = iter(exponents)
    for term in made.terms:
        if term.exponent is None:
            tape.memo[term.psi] = tape.value(term.r)
            continue
        if variant.shifted:
            height = tape.record(torch.sub, next(heights), tape.bring(SHIFT))
            height = tape.record(flushed, height, lowest=LOWEST[variant.dtype])
        else:
            height = _owned(tape, tape.value(term.exponent))
        psi = tape.exp2(height)
        tape.memo[term.psi] = tape.masked(psi, mask) if mask is not None and variant.backward else psi


def _pull(tape: Tape, node: Any, mask: Value | None) -> Value:
    """g · R, 0 where the mask says no."""
    value = _owned(tape, tape.value(GRADIENT * node))
    return value if mask is None else tape.masked(value, mask)


def _is_covered(made: Program, variant: Variant) -> bool:
    """Whether ψ is 0 where the mask says no already: its exponents were −∞, or its terms were masked."""
    plain = all(term.exponent is not None and term.r.is_Number for term in made.terms)
    return plain and (variant.backward or variant.shifted)


def _owned(tape: Tape, value: Value) -> Value:
    """The value as a whole block of its own."""
    return value if value.place in tape.whole_blocks else tape.add(value, 0.0)
