"""FlexAttention: softmax of score_mod(scale · q·k, b, h, i, j) where mask_mod(b, h, i, j) holds.

Both functions are run on symbols, so that the formula says what they do, and a few pairs show whether it does. Where
that fails, the mask becomes an array of truths, and a score that cannot be said leaves the weights themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch

from ...algebra.errors import CallError, RegardError
from ...algebra.expressions import Mask
from ...algebra.masks import given
from ...algebra.symbols import b, d, dot, exp, h, i, j, sqrt, table
from ...algebra.weights import share, softmax
from ...attention import Attention
from .bounds import shown
from .masks import TABLE
from .reading import Kernel
from .symbolic import Symbolic, closed_over

if TYPE_CHECKING:
    from .mode import Mode

TRIED = 24  # pairs on which a formula is compared with the functions themselves
DENSE = 2**28  # pairs of a mask, at most, that are looked at one by one
PLAIN = ("_identity", "noop_mask")


def note(
    mode: Mode, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score_mod: Any, blocks: Any, scale: float, *_: Any
) -> None:
    """One call of the operator beneath flex_attention."""
    with torch.no_grad():
        q, k, v = (x.detach().expand(q.shape[0], *x.shape[1:]) for x in (q, k, v))
        _note(mode, q, k, v, score_mod, blocks[-1], scale)


def _note(
    mode: Mode, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score_mod: Any, mask_mod: Any, scale: float
) -> None:
    scaled = dot / sqrt(d) if abs(scale * q.shape[-1] ** 0.5 - 1) < 1e-9 else dot * float(scale)
    run = Symbolic(closed_over(score_mod, mask_mod))
    try:
        score = scaled if _is_plain(score_mod) else run(score_mod, scaled, b, h, i, j)
    except (RegardError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as problem:
        return _keep_weights(mode, q, k, v, score_mod, mask_mod, scale, str(problem))
    masks, tables = _said(run, mask_mod, q, k)
    weight, tables = _weight(mode, tables)
    formula = Attention(score, weight, reduce(lambda x, y: x & y, [*run.masks, *masks]) if run.masks or masks else None)
    read = {name: value for name, value in tables.items() if name in formula.ranks}
    start = 0 if formula.uses("i") else max(int(k.shape[2]) - int(q.shape[2]), 0)
    if not _agrees(formula, q, k, read, start, score_mod, mask_mod, scale):
        why = f"{formula!r}, which was read from it, gives other scores"
        return _keep_weights(mode, q, k, v, score_mod, mask_mod, scale, why)
    mode.recorder.keep(formula, q, k, v, read, start)
    return None


def _weight(mode: Mode, tables: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if mode.sink is None:
        return softmax, tables
    return share(exp, sink=exp(table("sink")[h])), {**tables, "sink": mode.sink.detach().reshape(-1)}


def _said(run: Symbolic, mask_mod: Any, q: torch.Tensor, k: torch.Tensor) -> tuple[list[Mask], dict[str, Any]]:
    """The mask as a formula, or as truths."""
    if _is_plain(mask_mod):
        return [], dict(run.tables)
    try:
        mask = run(mask_mod, b, h, i, j)
        if isinstance(mask, Mask):
            return [mask], dict(run.tables)
    except (RegardError, TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        pass
    return [given(TABLE)], {**run.tables, TABLE: _truths(mask_mod, q, k)}


def _is_plain(function: Any) -> bool:
    return function is None or getattr(function, "__name__", "") in PLAIN


# -- the functions themselves -------------------------------------------------------------------------------------


def _places(q: torch.Tensor, k: torch.Tensor) -> list[torch.Tensor]:
    return [torch.arange(size, device=q.device) for size in (*q.shape[:3], k.shape[2])]


def _everywhere(function: Callable[..., Any], scored: bool) -> Callable[..., Any]:
    """A function of one pair for all pairs, (batch, heads, queries, keys)."""
    for axis in (3, 2, 1, 0):
        places = tuple(0 if axis == own else None for own in range(4))
        function = torch.vmap(function, in_dims=(0, *places) if scored else places)
    return function


def _truths(mask_mod: Any, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    pairs = q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]
    if pairs > DENSE:
        raise CallError(f"its mask has {pairs} pairs and cannot be said shorter")
    truths: torch.Tensor = _everywhere(mask_mod, scored=False)(*_places(q, k))
    for axis in (0, 1):
        if bool((truths == truths.narrow(axis, 0, 1)).all()):
            truths = truths.narrow(axis, 0, 1)
    return truths


def _keep_weights(
    mode: Mode, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score_mod: Any, mask_mod: Any, scale: float, why: str
) -> None:
    size = 4 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]
    if size > mode.recorder.room(q.device):
        raise CallError(f"{why}; its weights would take {shown(size)}, which is more than limit= leaves")
    group = q.shape[1] // k.shape[1]
    many, values = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("bhid,bhjd->bhij", q.float(), many.float()) * scale
    places = _places(q, k)
    scores = scores if _is_plain(score_mod) else _everywhere(score_mod, scored=True)(scores, *places)
    truths = None if _is_plain(mask_mod) else _truths(mask_mod, q, k)
    scores = scores if truths is None else scores.masked_fill(~truths, -torch.inf)
    mode.recorder.keep_weights(torch.softmax(scores, -1).nan_to_num(0.0), values, why)


def _agrees(
    formula: Attention, q: torch.Tensor, k: torch.Tensor, tables: Any, start: int, score_mod: Any, mask_mod: Any,
    scale: float,
) -> bool:  # fmt: skip
    """Whether the formula and the functions give the same scores and truths, for a few pairs."""
    parts, group = formula.parts(q, k, start=start, **tables), q.shape[1] // k.shape[1]
    sizes, draw = (*q.shape[:3], k.shape[2]), torch.Generator().manual_seed(0)
    for _ in range(TRIED):
        at = [int(torch.randint(size, (), generator=draw)) for size in sizes]
        places = [torch.tensor(place, device=q.device) for place in at]
        own = (q[at[0], at[1], at[2]].float() @ k[at[0], at[1] // group, at[3]].float()) * scale
        score = own if _is_plain(score_mod) else score_mod(own, *places)
        admitted = (_is_plain(mask_mod) or bool(mask_mod(*places))) and bool(score > -torch.inf)
        part = dict(zip(("batch", "heads", "rows", "columns"), at, strict=True))
        steps = parts.steps(torch.zeros((1, 1, 1), device=q.device), **part)
        if (steps.admitted is None or bool(steps.admitted)) != admitted:
            return False
        if admitted and abs(float(steps.score) - float(score)) > 1e-4 * (1 + abs(float(score))):
            return False
    return True


# -- texts of different lengths -------------------------------------------------------------------------------------


def note_nested(mode: Mode, q: Any, k: Any, v: Any, is_causal: bool, scale: float | None) -> None:
    """A call whose texts have different lengths, side by side: padded, with a mask of the keys that are there."""
    rows, keys = ([int(text.shape[-2]) for text in x.unbind()] for x in (q, k))
    places = torch.arange(max(keys), device=q.device)
    mask = (places < torch.tensor(keys, device=q.device)[:, None])[:, None, None, :]
    arrays = [_padded(x, most) for x, most in ((q, max(rows)), (k, max(keys)), (v, max(keys)))]
    mode.keep(Kernel(scale, is_causal, mask), *arrays)


def _padded(nested: Any, most: int) -> torch.Tensor:
    texts = [torch.nn.functional.pad(text.detach(), (0, 0, 0, most - text.shape[-2])) for text in nested.unbind()]
    return torch.stack(texts)
