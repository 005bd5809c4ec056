"""The formula streamed over blocks of keys: any score, any weight, forward and backward, in O(N) memory.

for every band of rows:
    for every block of keys that the mask admits something of:
        E, r    from products of matrices and hoisted vectors
        m ← max(m, E)        Z ← Z + Σ r 2^(E − m)        y ← y + Σ r 2^(E − m) v

program     what a block computes, as expressions            kernel   the same, compiled to a tape of calls
pairs       products of matrices                             tiles    which blocks, in what order
run         one call, ready to stream                        forward, backward, operator
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError
from ...algebra.nodes import J
from .. import costs
from ..call import Call
from ..costs import Cost

GIVES = frozenset({"y", "totals", "gradients"})
BUFFERS = 3  # blocks of numbers that are held at once


@dataclass(frozen=True)
class Steps:
    """What streaming leaves of a call."""

    call: Call
    y: Any
    total: Any  # log Z, or Z where ψ is no exponential: (B, H, N, 1)
    streamed: Any  # y, m and Z for the way back

    @property
    def log_total(self) -> Any:
        weight = self.call.formula.weight
        if weight.over is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {weight!r}")
        return self.total[..., 0]


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    weight = call.formula.weight
    if call.xp.name != "torch":
        return f"it streams tensors of PyTorch; got {call.xp.name}"
    if weight.over is not None and weight.over.node != J:
        return f"it streams over keys; this weight is shared over {weight.over!r}"
    if weight.among is not None:
        return "its totals count the admitted pairs; this weight counts others"
    return None


def cost(call: Call) -> Cost:
    """The cost of one forward pass: of the blocks that the mask lets through, where it can be read."""
    from .tiles import Schedule, chunks, sizes

    size = sizes(call)
    width = 0 if call.v is None else int(call.v.shape[3])
    held = BUFFERS * size.pairs + call.batch * call.heads * call.queries * (width + 2)
    if call.xp.name != "torch" or not call.xp.known(call.q):
        return costs.cost("tiled", call, held=held)
    pairs = 0
    schedule = Schedule(call, size)
    for chunk in chunks(call, size.chunk):
        for band in schedule.bands:
            for block in schedule.blocks(chunk, band):
                pairs += chunk.count * (band.stop - band.start) * (block.last - block.first)
    return costs.cost("tiled", call, held=held, pairs=pairs, passes=_passes(call), looks=schedule.looks)


def _passes(call: Call) -> int:
    """How often a block is gone over beside its products: the steps of its tape, and the sum."""
    from .kernel import Variant, kernel
    from .program import program

    code = kernel(call.formula, Variant(masked=False, shifted=program(call.formula).is_shifted))
    return 1 + sum(map(len, code.code.steps))


def attend(call: Call) -> Steps:
    """y and the totals, part of PyTorch's graph."""
    from .operator import attended

    return Steps(call, *attended(call))


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table."""
    from .operator import gradients

    return gradients(steps.call, steps.streamed, dy)


__all__ = ["GIVES", "Steps", "attend", "cost", "refusal", "vjp"]
