"""What one call asks for, as a formula and the tables that it reads.

    s_ij = cap · tanh(scale · q_i·k_j / cap) + position_bias[b, h, i, j] + added[b, h, i, j]
    w_ij = exp(s_ij) / (exp(sink[h]) + Σ_j exp(s_ij))        over the pairs that the mask admits

Each part stands in the formula only where the call brings it, and a table is read by the axes along which it varies.
Numbers of a mask near the least of their dtype mean "not admitted" and become truths; others are added to the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..algebra.errors import CallError
from ..algebra.expressions import Expression, Mask
from ..algebra.masks import given
from ..algebra.symbols import b, d, dot, exp, h, i, j, sqrt, table, tanh
from ..algebra.weights import share, softmax
from ..attention import Attention

MASK = given("attention_mask")
AXES = {"b": b, "h": h, "i": i, "j": j}
NAMES = ("attention_mask", "position_bias", "added", "sink", "scale", "first")  # tables that a call may bring itself


_OWN: dict[Asked, Attention] = {}  # by hand: torch.compile warns of lru_cache


@dataclass(frozen=True)
class Asked:
    """What a call asks for, all but its numbers: calls that ask alike share one formula."""

    scale: float | str | None = None  # of q·k; None is 1/√d, "table" a number that the call brings
    softcap: float | None = None
    mask: Mask | None = None
    sink: bool = False
    position_bias: str | None = None  # the axes along which it varies, of "bhij"
    added: str | None = None  # numbers in the mask, likewise
    shifted: bool = False  # whether queries begin at table("first"), and tables at its row 0

    @property
    def numbers(self) -> Expression | None:
        """What the mask adds to every score, the model's or another."""
        return self.read("added", self.added)

    def read(self, name: str, axes: str | None) -> Expression | None:
        """A table, read by the axes along which it varies."""
        if axes is None:
            return None
        row = i - table("first") if self.shifted else i
        indices = tuple(row if axis == "i" else AXES[axis] for axis in axes)
        return table(name)[indices] if indices else table(name)


def own_formula(asked: Asked) -> Attention:
    """The formula of the call itself."""
    found = _OWN.get(asked)
    if found is None:
        found = _OWN[asked] = _own_formula(asked)
    return found


def _own_formula(asked: Asked) -> Attention:
    score = _scaled(asked.scale)
    score = score if asked.softcap is None else asked.softcap * tanh(score / asked.softcap)
    for numbers in (asked.read("position_bias", asked.position_bias), asked.numbers):
        score = score if numbers is None else score + numbers
    weight = share(exp, sink=exp(table("sink")[h])) if asked.sink else softmax
    return Attention(score, weight, asked.mask)


def _scaled(scale: float | str | None) -> Expression:
    if scale is None:
        return dot / sqrt(d)
    return dot * table("scale") if isinstance(scale, str) else dot * scale


def in_place_of_own(asked: Asked, attention: Attention) -> Attention:
    """Another formula: its score and weight, over the pairs that both masks admit."""
    score = attention.score if asked.numbers is None else attention.score + asked.numbers
    masks = [mask for mask in (asked.mask, attention.mask) if mask is not None]
    return Attention(score, attention.weight, None if not masks else masks[0] & masks[-1])


# -- numbers of a call -----------------------------------------------------------------------------------------


def scale_of(scale: Any, width: int, tables: dict[str, Any]) -> float | str | None:
    """A scale as part of the formula: 1/√d by that name, another number as it is, a tensor as a table."""
    if isinstance(scale, torch.Tensor):
        tables["scale"] = scale.reshape(())
        return "table"
    return None if scale is None or scale == width**-0.5 else float(scale)


def read_table(name: str, numbers: torch.Tensor, query: torch.Tensor, keys: int, tables: dict[str, Any]) -> str:
    """Enter numbers that broadcast to (…, queries, keys) as a table; the axes along which they vary."""
    four = _four_axes(name, numbers, query, keys)
    axes = "".join(axis for axis, size in zip("bhij", four.shape, strict=True) if size > 1)
    tables[name] = four.reshape([size for size in four.shape if size > 1]).to(_working_dtype(query))
    return axes


def split(mask: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """A mask as truths, and as numbers to add; None where it has no such part."""
    if mask.dtype == torch.bool:
        return mask, None
    known = getattr(mask, "_regard_parts", None)  # every layer is handed the same mask
    if known is not None:
        parts: tuple[torch.Tensor | None, torch.Tensor | None] = known
        return parts
    numbers = mask if mask.is_floating_point() else mask.float()
    admitted = numbers > torch.finfo(numbers.dtype).min / 2
    rest = numbers.masked_fill(~admitted, 0.0)
    parts = (None if bool(admitted.all()) else admitted, rest if rest.requires_grad or bool(rest.any()) else None)
    mask._regard_parts = parts
    return parts


def _working_dtype(query: torch.Tensor) -> torch.dtype:
    return torch.promote_types(query.dtype, torch.float32)


def _four_axes(name: str, numbers: torch.Tensor, query: torch.Tensor, keys: int) -> torch.Tensor:
    """(b, h, i, j) with sizes of 1 where nothing varies; three axes of q have one head, more than four flatten."""
    full = (*query.shape[:-1], keys)
    try:
        fits = torch.broadcast_shapes(numbers.shape, full) == full
    except RuntimeError:
        fits = False
    if not fits:
        raise CallError(f"{name}: broadcasts to (…, queries, keys) {full}; got shape {tuple(numbers.shape)}")
    numbers = numbers.reshape((1,) * (len(full) - numbers.ndim) + tuple(numbers.shape))
    if len(full) > 4:
        numbers = numbers.expand(*full[:-3], *numbers.shape[-3:]).flatten(0, -4)
    return numbers if len(full) >= 4 else numbers.reshape((-1, 1, *numbers.shape[-2:]))
