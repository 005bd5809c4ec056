"""The formula fused into kernels for the GPU: any score, any weight, forward and backward, in O(N) memory.

On Hopper the way back keeps dS of some heads at a time between two of them, in as much memory as `fused` allows.

program     what a block computes, as expressions       source, writing, masks   printed as small jitted functions
functions   those functions as a module, kept on disk   data                     what they read, as one tuple
sides, measures    matrices and vectors, by PyTorch     blocks                   which blocks the mask lets through
counting    whether integers need 64 bits
templates   the kernels in Triton                       hopper                   the kernels in Gluon, for Hopper
passes      one pass, forth or back                     operator                 both as operators of PyTorch
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError, EngineError
from ...algebra.laws import Kind
from ...algebra.nodes import J
from .. import costs
from ..call import Call
from ..costs import Cost

GIVES = frozenset({"y", "totals", "gradients"})
WIDEST = 256


@dataclass(frozen=True)
class Steps:
    """What the kernels leave of a call."""

    call: Call
    y: Any
    done: Any  # with log₂ Z or Z, for the way back

    @property
    def log_total(self) -> Any:
        weight = self.call.formula.weight
        if weight.over is None:
            raise CallError(f"totals: this weight shares nothing, so there is no Z; got {weight!r}")
        return self.done.log(self.call)


def refusal(call: Call) -> str | None:
    """Why this engine cannot run the call; None where it can."""
    return _kind(call) or _shape(call)


def _kind(call: Call) -> str | None:
    if call.xp.name != "torch":
        return f"its kernels read tensors of PyTorch; got {call.xp.name}"
    if call.q.device.type != "cuda" and not is_interpreted():
        return (
            f"its kernels run on a GPU; q lies on {call.q.device}; move it there, or set TRITON_INTERPRET=1 before "
            "triton is imported, for a slow rehearsal"
        )
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed: pip install 'regard[gpu]'"
    if str(call.dtype) not in ("torch.float16", "torch.bfloat16", "torch.float32"):
        return f"it takes float16, bfloat16 and float32; got {call.dtype}"
    return None


def _shape(call: Call) -> str | None:
    weight = call.formula.weight
    if weight.over is not None and weight.over.node != J:
        return f"it streams over keys; this weight is shared over {weight.over!r}"
    if weight.among is not None:
        return "its totals count the admitted pairs; this weight counts others"
    widths = [int(x.shape[3]) for x in (call.q, call.k, call.v) if x is not None]
    if max(widths) > WIDEST:
        return f"it takes vectors of up to {WIDEST} numbers; got {max(widths)}"
    from .counting import LIMIT
    from .program import program

    made = program(call.formula, str(call.dtype) != "torch.float32")
    if len(made.products) > 3:
        return f"it multiplies at most 3 pairs of matrices; this formula has {len(made.products)}"
    if call.first is not None and abs(call.first) + call.queries >= LIMIT:
        return f"it counts positions in 32 bits; got start={call.first}"
    offsets = any(kind == Kind.OFFSET for kind, _ in made.vectors.values())
    if offsets and call.first is None and not call.xp.known(call.q):
        return "where a compiler traces it, a table over i − j needs a start that is one int; got a tensor"
    if min(call.batch, call.heads, call.queries, call.keys, *widths) == 0:
        return "there is nothing to compute: an axis is empty"
    return None


def reserve(call: Call) -> str | None:
    """Why it runs a call when it is asked for by name alone."""
    if is_interpreted():
        return "its kernels are interpreted here: it runs when it is asked for by name"
    from .operator import gathered

    table = gathered(call)
    return None if table is None else f"the gradient of {table} needs atomic additions: see regard.fused"


def circumstances(call: Call) -> tuple[Any, ...]:
    """What `reserve` and `cost` look at beside formula, library, shapes, dtypes, device, dropout and gradients."""
    from .options import chosen

    arrays = [x for x in (call.q, call.k, call.v) if x is not None] if costs.is_on_gpu(call) else []
    return chosen(), is_interpreted(), *((x.stride(), x.data_ptr() % 16) for x in arrays)


def notes(call: Call) -> tuple[str, ...]:
    """Which template would run, and why not the other."""
    found = _template(call)
    split = "Triton's, with the keys split over the chip"
    words = {"hopper": "Gluon's, for Hopper", "triton": "Triton's", "decode": split}
    return (f"template: {words[found.name]}" + (f", because {found.why}" if found.why else ""),)


def _template(call: Call) -> Any:
    """The template of a call's forward pass (choice.Choice)."""
    from .choice import template
    from .options import chosen
    from .program import program
    from .templates.launch import Call as Launched

    products = program(call.formula, str(call.dtype) != "torch.float32").products
    sides = (call.q,) * len(products), (call.k,) * len(products)
    shape = call.batch, call.heads, call.queries
    v = call.k if call.v is None else call.v
    return template(Launched(None, *sides, v, shape, call.start, drop=call.dropout), chosen())  # type: ignore[arg-type]


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def cost(call: Call) -> Cost:
    """The cost of a call: of the blocks that the mask lets through, where the host can tell."""
    held, rates = call.batch * call.heads * call.queries, "triton"
    if costs.is_on_gpu(call) and call.xp.known(call.q) and refusal(call) is None:
        name = _likely(call)
        rates = "triton's template" if name == "triton" else rates
        held += _kept(call, name) if costs.learns(call) else 0
    if call.xp.name != "torch" or not call.xp.known(call.q) or call.formula.mask is None:
        return costs.cost(rates, call, held=held)
    from .blocks import admitted_pairs

    return costs.cost(rates, call, held=held, pairs=admitted_pairs(call))


def _likely(call: Call) -> str:
    """The name of a call's template; of one that was asked for and is refused, the one that would run without."""
    try:
        return str(_template(call).name)
    except EngineError:
        return "triton"


def _kept(call: Call, template: str) -> int:
    """How many numbers of four bytes dS of some heads takes on the way back, at the most: `kept.way`, `hopper.five`."""
    from .options import chosen
    from .templates.kept import usual_memory
    from .templates.launch import has_descriptors

    widest = call.width if call.v is None else max(call.width, int(call.v.shape[3]))
    usual, room = 64 < widest <= 128 and has_descriptors(call.q.device), chosen().memory
    is_kept = usual if room is None else room > 0 and (usual or template == "triton")
    if not is_kept or str(call.dtype) == "torch.float32":
        return 0
    room = usual_memory(call.q.device) if room is None else room
    return min(room, 2 * call.batch * call.heads * call.queries * call.keys) // 4


def attend(call: Call) -> Steps:
    """y and the totals, part of PyTorch's graph."""
    from .keeping import with_kept_tables
    from .operator import attended

    call = with_kept_tables(call)
    done = attended(call)
    return Steps(call, done.y, done)


def vjp(steps: Steps, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table."""
    from .operator import gradients

    return gradients(steps.call, steps.done, dy)


__all__ = ["GIVES", "Steps", "attend", "circumstances", "cost", "refusal", "reserve", "vjp"]
