# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment"
# ruff: noqa: RUF005 - Triton knows no starred tuples
"""What the kernels of the backward pass on Hopper do with a block of pairs, and how they write what they have summed.

    w = ψ 2^(−L)        g = dP − δ            exponential, divided by Z = 2^L
    w = ψ / Z           g = (dP − δ) / Z      shared
    w = ψ               g = dP                each

stats: float32 (B, H, 2, room), room ≥ N: L or 1/Z, and δ; of rows that read nothing such that every weight is 0.
F: the formula's functions and flags.
"""

from .common import LINES
from .names import all_threads, fence_async_shared, gl, jit, store_tile


@jit
def statistics(stats, place, room, r, length, F: gl.constexpr):
    """(L or 1/Z, δ) of rows of one (b, h), its number being `place`; rows outside have the weight 0."""
    at = stats + place * 2 * room + r
    scale = gl.load(at, mask=r < length, other=float("inf") if F.EXPONENTIAL else 0.0)
    return scale, gl.load(at + room, mask=r < length, other=0.0)


@jit
def weighed(scores, shift, known, at, inside, MASKED: gl.constexpr, F: gl.constexpr):
    """(x, w, admitted) of a block; w is 0 where not admitted."""
    product, admitted = (scores,), inside
    if MASKED and F.HAS_MASK:
        admitted = inside & F.admitted(product, known, at)
    if F.EXPONENTIAL:
        x = F.height(product, known, at)
        if MASKED:
            x = gl.where(admitted, x, -float("inf"))
        w = F.weight(x, shift, product, known, at)
    else:
        x = 0.0
        w = F.weight(0.0, 0.0, product, known, at)
        if F.SHARED:
            w = w * shift
    if MASKED and not (F.EXPONENTIAL and F.COVERED):
        w = gl.where(admitted, w, 0.0)
    return x, w, admitted


@jit
def upstream(slanted, shift, spread, F: gl.constexpr):
    """(g, what the pulls take for the shift) of a block, from dP, L or 1/Z, and δ."""
    if F.EXPONENTIAL:
        g = slanted - spread
    elif F.SHARED:
        g, shift = (slanted - spread) * shift, 0.0
    else:
        g = slanted
    return g, shift


@jit
def only(admitted, block, MASKED: gl.constexpr):
    """A block, 0 where not admitted, whatever stands there."""
    return gl.where(admitted, block, 0.0) if MASKED else block


@jit
def zero_sums(NUMBER: gl.constexpr, LAYOUT: gl.constexpr):
    """A sum for each pull that a tile adds up; one at least, since no tuple is empty."""
    sums = (gl.zeros([LINES], gl.float32, gl.SliceLayout(1, LAYOUT)),)
    for _ in gl.static_range(NUMBER - 1):
        sums = sums + (gl.zeros([LINES], gl.float32, gl.SliceLayout(1, LAYOUT)),)
    return sums


@jit
def plus_sums(sums, pulls, admitted, NUMBER: gl.constexpr, MASKED: gl.constexpr):
    """The sums with those of one more block."""
    found = ()
    for n in gl.static_range(NUMBER):
        found = found + (sums[n] + gl.sum(only(admitted, pulls[n], MASKED), 1),)
    return found


@jit
def put_sums(out, sums, place, length, first, lines, NUMBER: gl.constexpr):
    """Writes the sums of 64 rows, or of 64 keys, into out (B, H, NUMBER, length)."""
    for n in gl.static_range(NUMBER):
        at = out + (place * NUMBER + n) * length + first + lines
        gl.store(at, sums[n], mask=first + lines < length)


@jit
def put(memory, gradient, out, b, h, first):
    """Writes 64 rows through shared memory that nobody reads any more; what sticks out of the array is left away."""
    all_threads()
    memory.store(gradient.to(out.dtype))
    fence_async_shared()
    all_threads()
    store_tile(out, [b, h, first, 0], memory.reshape([1, 1, memory.shape[0], memory.shape[1]]))
