"""What a call brings to the kernel: matrices to multiply and vectors to add, made of q, k and tables by PyTorch.

All of it is part of PyTorch's graph, so that the kernels know the gradients of matrices and vectors alone:

    q·k            left = q                     right = k
    qᵀ M k         left = q M                   in half precision two matrices, of high and of low digits
    ‖q‖², 1/‖q‖    vectors of rows and columns; where directions alone are seen, lengths have no gradient (`directions`)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch

from ...algebra.fold import fold
from ...algebra.laws import Kind
from ...algebra.nodes import Pair, Read, walk
from ..call import Call
from ..reading import Reading
from ..vectors import is_constant, reading
from .extremes import Tiles
from .keeping import Kept, is_captured, starts
from .measures import Lengths, Measured, MeasuredBy, Turned, wide
from .program import LENGTHS, LOG2E, PRODUCT, ROW_STEP, SQUARES, Program, program
from .verdicts import verdicts

ANCHOR = 128  # rows that count from one place
MARGIN = 256  # differences beyond those of the call that a tile may touch


@dataclass(frozen=True)
class Sides:
    """The tensors of one call: all that a kernel reads beside its tables."""

    lefts: tuple[Any, ...]
    rights: tuple[Any, ...]
    vectors: dict[Any, Any]  # symbol: (B or 1, H or 1, length), or (H or 1, differences)
    highest: int  # the difference i − j at the first place of an offset vector; 0 where there is none
    sink: Any | None  # (B or 1, H or 1, N): log₂ of the sink where ψ is exponential


def program_of(call: Call) -> Program:
    """The inner loop of a call's formula, in its precision."""
    return program(call.formula, call.dtype != torch.float32)


def sides(call: Call) -> Sides:
    """The tensors of a call, differentiable."""
    made = program_of(call)
    q, k = _moved(call)
    directed = {symbol: _lengths(call, side, made.vectors[symbol][1]) for symbol, side in made.directions.items()}
    nodes = {symbol: (kind, node) for symbol, (kind, node) in made.vectors.items()
             if not (kind == Kind.HEAD and is_constant(node))}  # fmt: skip
    own = _own(call, made, q, k, [node for symbol, (_, node) in nodes.items() if symbol not in directed])
    products = [_product(call, pair, q, k) for pair in made.products]
    vectors = {symbol: directed[symbol] if symbol in directed else _vector(call, kind, node, own)
               for symbol, (kind, node) in nodes.items()}  # fmt: skip
    lefts, rights = zip(*products, strict=True) if products else ((), ())
    offsets = any(kind == Kind.OFFSET for kind, _ in made.vectors.values())
    return Sides(lefts, rights, vectors, _highest(call) + MARGIN if offsets else 0, _sink(call, made))


def dropped(call: Call) -> Any | None:
    """What the logarithm of Z lost, in base 2, (B or 1, H or 1, N); None where nothing was dropped."""
    made = program_of(call)
    if made.dropped == 0:
        return None
    own = _own(call, made, *_moved(call), [made.dropped])
    return _rows(_own_reading(call, Kind.ROW, own), made.dropped)


def life(call: Call) -> Any | None:
    """What y of each row is times: 0 where what was dropped is −∞, NaN where it is no number either, otherwise 1.

    (B or 1, H or 1, N, 1); None where no row can be so.
    """
    made = program_of(call)
    if made.doubtful == 0:
        return None
    with torch.no_grad():
        own = _own(call, made, *_moved(call), [made.doubtful])
        found = _rows(_own_reading(call, Kind.ROW, own), made.doubtful)[..., None]
        return torch.where(found == -torch.inf, 0.0, torch.where(found.isfinite(), 1.0, torch.nan))


def _own(call: Call, made: Program, q: Any, k: Any, nodes: list[Any]) -> dict[str, Any]:
    """What the nodes read of q and k: squares and lengths, by name."""
    named = {part.table for node in nodes for part in walk(node) if isinstance(part, Read)}
    found = _squares(call, q, k, named)
    for pair in made.products:
        if pair.word == "cross":
            found |= _metric_squares(call, pair, q, k)
    return found


# -- matrices --------------------------------------------------------------------------------------------------


def _moved(call: Call) -> tuple[Any, Any]:
    """q and k; where distances alone are asked for, with the keys' mean taken out, as far as digits allow."""
    only = {pair.word for pair in call.formula.pairs} == {"sqdist"}
    if not only or call.dtype != torch.float32 or not call.keys:
        return call.q, call.k
    with torch.no_grad():
        origin = mean_of_read(call)
    return call.q - origin.repeat_interleave(call.group, dim=1), call.k - origin


def mean_of_read(call: Call) -> Any:
    """The mean of the keys that some row may read: others, as those behind a text's end, may lie anywhere."""
    if call.formula.mask is None:
        return call.k.mean(2, keepdim=True, dtype=torch.float32)
    _, possible = verdicts(Tiles(call, call.queries, 1))
    heads = possible.expand(-1, call.heads, -1, -1).unflatten(1, (-1, call.group))
    read = heads.any(2).mT  # (B or 1, G, n, 1)
    total = torch.where(read, call.k, 0.0).sum(2, keepdim=True, dtype=torch.float32)
    return total / read.sum(2, keepdim=True).clamp(min=1)


def _product(call: Call, pair: Pair, q: Any, k: Any) -> tuple[Any, Any]:
    if pair == PRODUCT:
        return q, k
    metric = reading(call, Kind.HEAD).metric(pair)
    metric = metric + metric.mT if pair.word.endswith("cross") else metric
    left = Turned.apply(wide(q), metric.to(wide(q).dtype))
    high = left.to(q.dtype)
    return ((left - high).detach().to(q.dtype) if pair.word.startswith("low_") else high), k


def _squares(call: Call, q: Any, k: Any, named: set[str]) -> dict[str, Any]:
    """‖q‖², ‖k‖² and 1/‖q‖, 1/‖k‖ as (B, H, N, 1) and (B, H, 1, n): those that are asked for."""
    sides = ("q", q), ("k", k)
    return {
        read[side].table: _along(call, side, Measured.apply(x, power))
        for power, read in ((2, SQUARES), (-1, LENGTHS))
        for side, x in sides
        if read[side].table in named
    }


def _metric_squares(call: Call, pair: Pair, q: Any, k: Any) -> dict[str, Any]:
    metric = reading(call, Kind.HEAD).metric(pair)
    made = {}
    for side, x in (("q", wide(q)), ("k", wide(_repeated(call, k)))):  # the metric may differ from head to head
        square = MeasuredBy.apply(x, metric.to(x.dtype))
        made[f"{SQUARES[side].table} {pair.metric}"] = square if side == "q" else square.mT
    return made


def _lengths(call: Call, side: str, node: Any) -> Any:
    """c/‖q‖ or c/‖k‖, (B, H, length), without a gradient: the kernels give q and k the whole of theirs."""
    found = Lengths.apply(call.q if side == "q" else call.k)
    scale = float(node.as_coeff_Mul()[0])
    found = found if scale == 1.0 else scale * found
    return found if side == "q" else _repeated(call, found)


def _along(call: Call, side: str, x: Any) -> Any:
    """Numbers of vectors, (B, heads, length, 1), along the axis of queries or of keys, for every head."""
    return x if side == "q" else _repeated(call, x.mT)


def _repeated(call: Call, k: Any) -> Any:
    return k if call.group == 1 else k.repeat_interleave(call.group, dim=1)


# -- vectors ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OwnReading(Reading):
    """A reading in which the vectors that q and k make are tables."""

    own: Mapping[str, Any] = field(default_factory=dict)

    def read(self, node: Read, indices: list[Any]) -> Any:
        return self._where_live(self.own[node.table]) if node.table in self.own else super().read(node, indices)

    def pair(self, pair: Pair) -> Any:
        """i − anchor, which `dropped` counts with."""
        assert pair == ROW_STEP
        return (torch.arange(self.call.queries, device=self.device) % ANCHOR)[None, None, :, None]


def _own_reading(call: Call, kind: Kind, own: Mapping[str, Any]) -> _OwnReading:
    part = reading(call, kind)
    return _OwnReading(call, part.symbols, part.shape, dtype=call.xp.float64, own=own)


def _vector(call: Call, kind: Kind, node: Any, own: Mapping[str, Any]) -> Any:
    if not any(isinstance(part, Read) for part in walk(node)):
        return _fixed(call, kind, node)
    return _flat(kind, _value(_own_reading(call, kind, own), node))


def _value(part: _OwnReading, node: Any) -> Any:
    """The value for every place; one that is not finite, as a logarithm that no pair reads, has no gradient."""
    if is_linear(node):
        return part.array(part.real(fold(node, part, part.memo)))
    with torch.no_grad():
        found = part.array(part.real(fold(node, part)))
    live = replace(part, live=found.isfinite(), memo={})
    return torch.where(live.live, live.array(live.real(fold(node, live, live.memo))), found)


@lru_cache(maxsize=1024)
def is_linear(node: Any) -> bool:
    """Whether tables are summed and multiplied by numbers alone: no place then spoils the gradient of another."""
    if isinstance(node, Read) or not node.has(Read):
        return True
    reads = [part for part in node.args if part.has(Read)]
    if not all(map(is_linear, reads)):
        return False
    return bool(node.is_Add or (node.is_Mul and len(reads) == 1 and all(map(is_constant, set(node.args) - set(reads)))))


FIXED: Kept[Any] = Kept(256)


def _fixed(call: Call, kind: Kind, node: Any) -> Any:
    """A vector that sizes and positions alone decide: for calls that are alike in them, made once."""

    def made() -> Any:
        with torch.inference_mode(False):  # kept for calls that are differentiated
            return _flat(kind, _value(_own_reading(call, kind, {}), node))

    if not call.xp.known(call.q) or is_captured(call.q.device):  # a compiler's tensors are not kept
        return made()
    sizes = call.batch, call.heads, call.queries, call.keys, call.width, call.first
    return FIXED.get((kind, node, sizes), call.q.device, starts(call), made)


def _flat(kind: Kind, value: Any) -> Any:
    """(B or 1, H or 1, N or 1, n or 1) as (B or 1, H or 1, length), float32 and without gaps; offsets without b."""
    value = value.reshape((1,) * (4 - value.ndim) + tuple(value.shape)).to(torch.float32)
    flat = value.reshape(*value.shape[:2], value.shape[3 if kind == Kind.COLUMN else 2])
    return torch.nn.functional.pad(flat[0], (MARGIN, MARGIN)) if kind == Kind.OFFSET else flat.contiguous()


def _rows(part: _OwnReading, node: Any) -> Any:
    value = _flat(Kind.ROW, _value(part, node))
    return value.expand(*value.shape[:2], part.call.queries)


def _highest(call: Call) -> int:
    """The highest i − j of a call; where its batches start apart, this waits for the device."""
    first = call.first if call.first is not None else max(call.start.tolist(), default=0)
    return first + call.queries - 1


def _sink(call: Call, made: Program) -> Any | None:
    """What is added to Z: its logarithm in base 2 where ψ is exponential."""
    weight = call.formula.weight
    if weight.sink is None:
        return None
    part = _own_reading(call, Kind.ROW, {})
    if not made.is_exponential:
        return _rows(part, weight.sink.node).contiguous()
    logs = [_log2(part, r) + float(LOG2E) * part.array(part.real(fold(a, part, part.memo)))
            for r, a in weight.sink_terms]  # fmt: skip
    total = logs[0]
    for other in logs[1:]:
        total = torch.logaddexp2(total, other)
    flat = _flat(Kind.ROW, total)
    return flat.expand(*flat.shape[:2], call.queries).contiguous()


def _log2(part: _OwnReading, node: Any) -> Any:
    return part.array(part.real(fold(node, part, part.memo))).log2()


__all__ = ["ANCHOR", "MARGIN", "Sides", "dropped", "life", "mean_of_read", "program_of", "sides"]
