"""The fused kernels as operators of PyTorch, differentiable once.

    fused            y and L (log₂ Z, or Z)            of matrices, vectors and tables
    fused_backward   the gradients of all of them

What makes matrices and vectors of q, k and tables is PyTorch's own (see `sides`), and so is its derivative. The
operators are known to `torch.library` with the shapes that they give, so a compiler keeps them whole; the formula
travels as its text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch

from ...algebra.errors import EngineError
from ...algebra.nodes import I, J, Read
from ..call import Call
from ..operators import define, differentiable_once, formula_of, is_transformed, refuse, text_of
from ..tables import once
from .choice import attend
from .gradients import back, is_owned, whole_of
from .options import chosen
from .passes import Pass
from .program import LOG2E, program
from .ranges import check_ranges
from .sides import Sides, dropped, life, program_of, sides
from .templates.launch import room_like, without_gaps

ARGUMENTS = (
    "Tensor[] lefts, Tensor[] rights, Tensor v, Tensor[] vectors, Tensor[] tables, Tensor start, Tensor? seed, "
    "SymInt[] sizes, str formula, float p, str options"
)
BACKWARD = f"Tensor dy, Tensor? dtotal, Tensor y, Tensor total, {ARGUMENTS}, bool[] wanted"
Once: Any = differentiable_once("triton")


# -- the operators ---------------------------------------------------------------------------------------------


def _forward(*arguments: Any) -> tuple[Any, Any]:
    the = Pass.of(*arguments)
    with torch.no_grad(), torch.cuda.device_of(the.v):  # kernels start on the device that is current
        y, total = attend(the)
        y = without_gaps(y)
        return y, y.new_zeros(y.shape[:3], dtype=torch.float32) if total is None else total


def _backward(dy: Any, dtotal: Any, y: Any, total: Any, *arguments: Any) -> list[Any]:
    the = Pass.of(*arguments)
    with torch.no_grad(), torch.cuda.device_of(the.v):
        found = back(the, y, total, dy, dtotal)
        whole = len(the.lefts) + len(the.rights) + 1  # matrices; the rest are vectors and tables
        return [*map(without_gaps, found[:whole]), *found[whole:]]


def _forward_shapes(lefts: Any, _rights: Any, v: Any, _vectors: Any, _tables: Any, _start: Any, *rest: Any) -> Any:
    batch, heads, queries = rest[1][:3]
    made = program(formula_of(rest[2]), v.dtype != torch.float32)
    lines = (2,) if made.is_exponential and v.dtype == torch.float32 else ()
    y = room_like((*lefts, v)[0], shape=(batch, heads, queries, v.shape[3]), dtype=v.dtype)
    return y, v.new_empty((*lines, batch, heads, queries), dtype=torch.float32)


def _backward_shapes(*arguments: Any) -> list[Any]:
    lefts, rights, v, vectors, tables, *_, wanted = arguments[4:]
    asked = [x for x, wants in zip((*vectors, *tables), wanted, strict=True) if wants]
    return [*map(room_like, (*lefts, *rights, v)), *(x.new_empty(x.shape) for x in asked)]


define("fused", f"({ARGUMENTS}) -> (Tensor, Tensor)", _forward, _forward_shapes)
define("fused_backward", f"({BACKWARD}) -> Tensor[]", _backward, _backward_shapes)


# -- their gradients -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """What no gradient goes to: numbers of lists, and the rest of the operators' arguments."""

    lefts: int
    vectors: int
    rest: tuple[Any, ...]  # start, seed, sizes, formula, p, options

    def split(self, tensors: Any) -> tuple[Any, ...]:
        """lefts, rights, v, vectors, tables."""
        a, b = self.lefts, 2 * self.lefts
        return (
            list(tensors[:a]),
            list(tensors[a:b]),
            tensors[b],
            list(tensors[b + 1 : b + 1 + self.vectors]),
            list(tensors[b + 1 + self.vectors :]),
        )


class Fused(Once):  # type: ignore[misc]  # PyTorch's classes are Any here
    """y and L of a call."""

    @staticmethod
    def forward(fixed: Fixed, *tensors: Any) -> Any:
        return torch.ops.regard.fused(*fixed.split(tensors), *fixed.rest)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.fixed, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*output, *tensors)

    @staticmethod
    def backward(ctx: Any, dy: Any, dtotal: Any) -> Any:
        y, total, *tensors = ctx.saved_tensors
        dy = torch.zeros_like(y) if dy is None else dy
        first = 2 * ctx.fixed.lefts + 1
        wanted = [bool(needs) for needs in ctx.needs_input_grad[1 + first :]]
        pull = Pull.apply if torch.is_grad_enabled() else Pull.forward  # only a graph of its own has a way further back
        found = iter(pull(ctx.fixed, wanted, dy, dtotal, y, total, *tensors))
        return None, *(next(found) for _ in range(first)), *(next(found) if wants else None for wants in wanted)


class Pull(Once):  # type: ignore[misc]
    """The backward pass, which is not differentiable itself and says so."""

    @staticmethod
    def forward(fixed: Fixed, wanted: list[bool], *tensors: Any) -> Any:
        dy, dtotal, y, total, *rest = tensors
        return tuple(
            torch.ops.regard.fused_backward(dy, dtotal, y, total, *fixed.split(rest), *fixed.rest, wanted)
        )  # fmt: skip

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no way further back."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> NoReturn:
        refuse("triton", "double backward")


# -- a call ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attended:
    """What the forward pass leaves: y (B, H, N, E), and L = log₂ Z or Z (B, H, N)."""

    y: Any
    total: Any

    def log(self, call: Call) -> Any:
        """log Z where ψ is exponential, with what was left out of it, otherwise Z."""
        if not program_of(call).is_exponential:
            return self.total
        total = whole_of(self.total)
        with torch.autocast(call.q.device.type, enabled=False):
            lost = dropped(call)
        whole = total if lost is None else total + lost
        return whole / float(LOG2E)


def attended(call: Call) -> Attended:
    """y and the totals of a call, part of PyTorch's graph."""
    with torch.autocast(call.q.device.type, enabled=False):
        check_ranges(call)
        ready = sides(call)
        tensors, fixed = _arguments(call, ready)
        wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        if wanted:
            _check_atomics(call)
        if wanted or is_transformed():
            y, total = Fused.apply(fixed, *tensors)
        else:
            y, total = torch.ops.regard.fused(*fixed.split(tensors), *fixed.rest)
        alive = life(call)
        return Attended(y if alive is None else y * alive.to(y.dtype), total)


def _arguments(call: Call, ready: Sides) -> tuple[tuple[Any, ...], Fixed]:
    """The tensors of the operators, and what stands beside them."""
    vectors = (*ready.vectors.values(), *([] if ready.sink is None else [ready.sink]))
    leaves = [leaf for leaf in program_of(call).leaves if isinstance(leaf, Read)]
    tables = (_laid_out(table, [x for x in leaves if x.table == name]) for name, table in call.tables.items())
    seed, p = (None, 0.0) if call.dropout is None else (call.dropout.seed, call.dropout.p)
    seed = torch.tensor(seed, device=call.q.device) if isinstance(seed, int) else seed
    start = (0, 0) if call.first is None else (1, call.first)
    widths = call.width, int(call.q.shape[3])
    eager = int(call.xp.known(call.q) and not is_transformed())
    sizes = [call.batch, call.heads, call.queries, call.keys, *widths, ready.highest, *start, eager]
    rest = call.start.contiguous(), seed, sizes, text_of(call.formula), p, str(chosen())
    return (*ready.lefts, *ready.rights, call.v, *vectors, *tables), Fixed(len(ready.lefts), len(vectors), rest)


def _laid_out(table: Any, leaves: list[Read]) -> Any:
    """A table that kernels read, without gaps; what repeats along b or h is there once.

    What repeats along i or j is written out for a gradient: each of its entries belongs to one pair.
    """
    if not leaves:
        return table
    wanted = table.requires_grad or is_transformed()
    pairs = {a for x in leaves if wanted and is_owned(x) for a, index in enumerate(x.indices) if index in (I, J)}
    return once(table, pairs).contiguous()


def gathered(call: Call) -> str | None:
    """A table that is read at any places of a pair: only atomic additions, not allowed here, sum its gradient."""
    if chosen().atomics or not torch.is_grad_enabled():
        return None
    read = (leaf for leaf in program_of(call).leaves if isinstance(leaf, Read) and not is_owned(leaf))
    return next((leaf.table for leaf in read if call.tables[leaf.table].requires_grad), None)


def _check_atomics(call: Call) -> None:
    table = gathered(call)
    if table is not None:
        raise EngineError(
            f"{table}: its gradient gathers pairs from many places, which fused kernels sum by atomic "
            'additions in no fixed order; allow it by "with regard.fused(atomics=True):", or ask for engine="tiled"'
        )


def gradients(call: Call, done: Attended, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, in the shapes of the arguments."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(call.q.device.type, enabled=False):
        tables = {n: _leaf(x.contiguous()) if call.xp.is_real(x) else x for n, x in call.tables.items()}
        leaves = {name: _leaf(x) for name, x in (("q", call.q), ("k", call.k), ("v", call.v))}
        again = replace(call, **leaves, tables=tables)
        _check_atomics(again)
        tensors, fixed = _arguments(again, sides(again))
        first = 2 * fixed.lefts + 1
        wanted = [bool(x.requires_grad) for x in tensors[first:]]
        alive = life(again)
        dy = dy if alive is None else dy * alive
        found = _backward(dy.to(done.y.dtype), None, done.y, done.total, *fixed.split(tensors), *fixed.rest, wanted)
        pulled = [*tensors[:first], *(x for x, wants in zip(tensors[first:], wanted, strict=True) if wants)]
        pairs = [(x, g) for x, g in zip(pulled, found, strict=True) if x.requires_grad]
        leaves |= {name: x for name, x in tables.items() if x.requires_grad}
        outputs, upstream = zip(*pairs, strict=True)
        made = torch.autograd.grad(outputs, list(leaves.values()), upstream, allow_unused=True, materialize_grads=True)
    return {name: call.fit(name, gradient) for name, gradient in zip(leaves, made, strict=True)}


def _leaf(x: Any) -> Any:
    """The same numbers, which ask for a gradient; those of inference mode are copied."""
    return (x.clone() if x.is_inference() else x.detach()).requires_grad_()
