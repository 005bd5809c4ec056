"""The streaming pass as one operator of PyTorch, differentiable once.

The formula travels as its text, which the operator reads back once: a graph that was kept on disk runs in a fresh
process.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from ..._arrays import library
from ..call import Call
from ..dropout import Dropout
from ..operators import define, differentiable_once, formula_of, is_transformed, refuse, text_of
from .backward import pull
from .forward import Streamed, stream
from .ranges import check_ranges
from .run import Run

ARGUMENTS = "Tensor q, Tensor k, Tensor v, Tensor start, Tensor[] tables, Tensor? seed, str formula, float p"
BACKWARD = f"Tensor dy, Tensor? dtotal, Tensor y, Tensor shift, Tensor total, {ARGUMENTS}, bool[] wanted"
Once: Any = differentiable_once("tiled")


def _call(q: Any, k: Any, v: Any, start: Any, tables: list[Any], seed: Any | None, formula: str, p: float) -> Call:
    made = formula_of(formula)
    named = dict(zip(made.ranks, tables, strict=True))
    dropout = None if seed is None else Dropout(p, seed)
    given = {"q": q, "k": k, "v": v, **named}
    return Call(made, library(q), q, k, v, named, start, None, tuple(q.shape[:2]), given, False, dropout)


# -- the operator ----------------------------------------------------------------------------------------------


def _forward(*arguments: Any) -> tuple[Any, ...]:
    call = _call(*arguments)
    with torch.autocast(call.q.device.type, enabled=False), torch.no_grad():
        run = Run(call)
        check_ranges(run)
        done = stream(run)
    return tuple(made.contiguous() for made in (done.y, done.log(run), done.shift, done.total))


def _backward(dy: Any, dtotal: Any, y: Any, shift: Any, total: Any, *arguments: Any) -> list[Any]:
    *rest, wanted = arguments
    call = _call(*rest)
    names = frozenset(name for name, wants in zip(call.tables, wanted, strict=True) if wants)
    with torch.autocast(call.q.device.type, enabled=False), torch.no_grad():
        found = pull(Run(call), Streamed(y, shift, total), dy, dtotal, names)
    asked = {"q": call.q, "k": call.k, "v": call.v, **call.tables}
    # laid out as the compiler was told, also where q is a view whose strides a gradient would take over
    return [found[name].to(like.dtype).contiguous() for name, like in asked.items() if name in found]


def _forward_shapes(q: Any, _k: Any, v: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
    dtype = torch.promote_types(q.dtype, torch.float32)
    rows = q.new_empty((*q.shape[:3], 1), dtype=dtype)
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=dtype), rows, torch.empty_like(rows), torch.empty_like(rows)


def _backward_shapes(*arguments: Any) -> list[Any]:
    q, k, v, _, tables, _, _, _, wanted = arguments[5:]
    found = [q, k, v, *(table for table, wants in zip(tables, wanted, strict=True) if wants)]
    return [x.new_empty(x.shape) for x in found]


define("tiled", f"({ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor)", _forward, _forward_shapes)
define("tiled_backward", f"({BACKWARD}) -> Tensor[]", _backward, _backward_shapes)


# -- its gradient ----------------------------------------------------------------------------------------------


class Tiled(Once):  # type: ignore[misc]  # PyTorch's classes are Any here
    """y and log Z (or Z) of a call, and what the backward pass needs: m and Z of each row."""

    @staticmethod
    def forward(q: Any, k: Any, v: Any, start: Any, seed: Any, formula: str, p: float, *tables: Any) -> Any:
        return torch.ops.regard.tiled(q, k, v, start, list(tables), seed, formula, p)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        q, k, v, start, seed, formula, p, *tables = inputs
        y, _, shift, total = output
        ctx.mark_non_differentiable(shift, total)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y, shift, total, q, k, v, start, seed, *tables)
        ctx.formula, ctx.p = formula, p

    @staticmethod
    def backward(ctx: Any, dy: Any, dtotal: Any, *_: Any) -> Any:
        y, shift, total, q, k, v, start, seed, *tables = ctx.saved_tensors
        dy = torch.zeros_like(y) if dy is None else dy
        wanted = [bool(needs) for needs in ctx.needs_input_grad[7:]]
        found = Pull.apply(dy, dtotal, y, shift, total, q, k, v, start, seed, ctx.formula, ctx.p, wanted, *tables)
        dq, dk, dv, *rest = found
        gradients = iter(rest)
        return dq, dk, dv, None, None, None, None, *(next(gradients) if wants else None for wants in wanted)


class Pull(Once):  # type: ignore[misc]
    """The backward pass, which is not differentiable itself and says so."""

    @staticmethod
    def forward(dy: Any, dtotal: Any, y: Any, shift: Any, total: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        start, seed, formula, p, wanted, *tables = rest
        arguments = (q, k, v, start, list(tables), seed, formula, p, wanted)
        return tuple(torch.ops.regard.tiled_backward(dy, dtotal, y, shift, total, *arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no way further back."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> NoReturn:
        refuse("tiled", "double backward")


def attended(call: Call) -> tuple[Any, Any, Streamed]:
    """y and the totals of a call, part of PyTorch's graph, and what the way back needs."""
    seed, p = (None, 0.0) if call.dropout is None else (call.dropout.seed, call.dropout.p)
    if isinstance(seed, int):
        seed = torch.tensor(seed, device=call.q.device)
    q, k, v, tables, text = call.q, call.k, call.v, call.tables.values(), text_of(call.formula)
    if (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, *tables))) or is_transformed():
        y, log, shift, total = Tiled.apply(q, k, v, call.start, seed, text, p, *tables)
    else:
        y, log, shift, total = torch.ops.regard.tiled(q, k, v, call.start, list(tables), seed, text, p)
    return y, log, Streamed(y.detach(), shift, total)


def gradients(call: Call, done: Streamed, dy: Any) -> dict[str, Any]:
    """Gradients of Σ dy·y for q, k, v and every real table, in the shapes of the arguments."""
    names = frozenset(name for name, table in call.tables.items() if call.xp.is_real(table))
    with torch.autocast(call.q.device.type, enabled=False), torch.no_grad():
        found = pull(Run(call), done, dy, None, names)
    return {name: call.fit(name, gradient) for name, gradient in found.items()}
