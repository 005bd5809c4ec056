# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, possibly-undefined, assignment"
# ruff: noqa: RUF005 - Triton knows no starred tuples
"""The weights of one block of the forward kernel for Hopper, and what a row keeps from one block to the next.

    m' = max(m, max_j x)        α = 2^(c m − c m')        P = ψ 2^(−c m')        l' = α l + Σ_j P        y = Σ P v / l

Where F.BOUNDED, no exponent is large: c m is what of the highest one of a row's first block is no whole number, so that
the largest weight there is a power of two, which no type rounds; m stays, and α is 1. Where F.SCALED, ψ is no
exponential, and the type of P could not hold it: m' = max(m, max_j log₂ |ψ|), P = ψ 2^(−m'), α = 2^(m − m').

l is (Σ_j P), or, where ψ is more than one exponential (F.ROUNDED), with Σ_j of P as it is rounded, by which y is
divided, so that a row that reads one key gives its value to the last digit.

here = (b, h, i, anchor, c, head, row, data, n, number of blocks): what all blocks of a tile share.
"""

from .common import LINES, LOWEST, block_layout, columns_from
from .names import gl, jit


@jit
def look(block, here, BLOCK: gl.constexpr, MASKED: gl.constexpr, F: gl.constexpr):
    """What is known of a block's columns, asked for before its scores are awaited, where every block needs it."""
    return columns_of(block, here, BLOCK, MASKED, F) if F.USES_J and F.STAGED == 0 else (0.0,)


@jit
def columns_of(block, here, BLOCK: gl.constexpr, MASKED: gl.constexpr, F: gl.constexpr):
    """What is known of the columns of a block."""
    j = columns_from(block * BLOCK, BLOCK)
    inside = j < here[8] if MASKED else gl.full([1, BLOCK], True, gl.int1, block_layout(BLOCK))
    return F.columns(here[7], here[5], here[0], here[1], j, inside)


@jit
def weigh(
    scores,
    block,
    column,
    m,
    l,
    here,
    BLOCK: gl.constexpr,
    FIRST: gl.constexpr,
    MASKED: gl.constexpr,
    DTYPE: gl.constexpr,
    F: gl.constexpr,
):
    """(P, m', l', α) of a block; MASKED: some of its pairs are not admitted, or keys lie outside the array."""
    b, h, i, anchor, unit, head, row, data, length, blocks = here
    j = columns_from(block * BLOCK, BLOCK)
    if not F.USES_J and F.STAGED == 0:
        column = columns_of(block, here, BLOCK, MASKED, F)
    product, known, at = (scores,), (head, row, column, data), (b, h, i, j, anchor)
    if MASKED:
        admitted = (j < length) & (blocks > 0)
        if F.HAS_MASK:
            admitted = admitted & F.admitted(product, known, at)
    if F.EXPONENTIAL:
        x = F.height(product, known, at)
        if MASKED:
            x = gl.where(admitted, x, -float("inf"))
        if F.BOUNDED:
            if FIRST:
                m = gl.max(x, 1)
                m = gl.where(m == -float("inf"), 0.0, m - gl.floor(m * unit + 0.5) / unit)
            fade = m
            p = F.weight(x, (m * unit)[:, None], product, known, at)
        else:
            highest = gl.maximum(m, gl.max(x, 1))
            shift = gl.where(highest == -float("inf"), 0.0, highest * unit)
            fade = gl.exp2(m * unit - shift)
            p = F.weight(x, shift[:, None], product, known, at)
            if MASKED and not F.COVERED:
                p = gl.where(admitted, p, 0.0)
            l = faded(l, fade)
            m = highest
    else:
        fade = m
        p = F.weight(0.0, 0.0, product, known, at)
        if MASKED:
            p = gl.where(admitted, p, 0.0)
        if F.SCALED:
            highest = gl.maximum(m, gl.log2(gl.max(gl.abs(p), 1)))
            fade = gl.exp2(m - highest)
            p = p * gl.exp2(-highest)[:, None]
            l = faded(l, fade)
            m = highest
    if F.SHARED:
        l = plus_weights(l, p, DTYPE, F)
    return p, m, l, fade


@jit
def faded(sums, fade):
    found = ()
    for k in gl.static_range(len(sums)):
        found = found + (sums[k] * fade,)
    return found


@jit
def plus_weights(sums, p, DTYPE: gl.constexpr, F: gl.constexpr):
    """The sums with those of one more block."""
    found = (sums[0] + gl.sum(p, 1),)
    if F.ROUNDED:
        found = found + (sums[1] + gl.sum(p.to(DTYPE).to(gl.float32), 1),)
    return found


@jit
def begin(known, unit, SCORES: gl.constexpr, F: gl.constexpr):
    """(m, l) before the first block: the sink is in the total, and in no sum of values."""
    lowest: gl.constexpr = 0.0 if F.BOUNDED else LOWEST if F.SCALED else -float("inf")
    m = gl.full([LINES], lowest, gl.float32, gl.SliceLayout(1, SCORES))
    l = gl.full([LINES], 0.0, gl.float32, gl.SliceLayout(1, SCORES))
    if F.HAS_SINK:
        sink = gl.max(F.sink(known) + gl.zeros([LINES, 1], gl.float32, SCORES), 1)
        if F.EXPONENTIAL:
            m = sink / unit
            l = gl.where(sink == -float("inf"), 0.0, 1.0)
        elif F.SCALED:
            m = gl.maximum(m, gl.log2(sink))
            l = sink * gl.exp2(-m)
        else:
            l = sink
    return m, (l, l) if F.ROUNDED else (l,)


@jit
def finish(acc, m, l, unit, blocks, WIDE: gl.constexpr, F: gl.constexpr):
    """y = Σ ψ v / Z, 0 where nothing is read, and log2 Z or Z."""
    if F.SHARED:
        z = gl.convert_layout(l[1] if F.ROUNDED else l[0], gl.SliceLayout(1, block_layout(WIDE)))[:, None]
        y = gl.where((z != 0.0) & (blocks > 0), acc / gl.where(z == 0.0, 1.0, z), 0.0)
    else:
        y = gl.where(blocks > 0, acc, 0.0)
    total = l[0]
    if F.SCALED:
        total = total * gl.exp2(m)
    elif F.EXPONENTIAL:
        total = gl.where(total == 0.0, -float("inf"), gl.where(m == -float("inf"), 0.0, m * unit) + gl.log2(total))
    return y, total
