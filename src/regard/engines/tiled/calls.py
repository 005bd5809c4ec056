"""What a step of a tape may be beside a function of PyTorch: each writes into `out`, or returns where there is none.

A truth is a pattern of bits, all ones or all zeros, as wide as a number: `x & truth` is x or 0 exactly, whatever
stood there, NaN too, and costs a tenth of `torch.where`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..._arrays import library

BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def nothing(*_: Any, out: Any) -> None:
    """A reader that does nothing."""


def spread(*arguments: Any, out: Any, kernel: Callable[..., Any], options: dict[str, Any]) -> None:
    result = kernel(*arguments, out=None, **options)
    (out if result.dtype == out.dtype else bits_of(out)).copy_(result)


def bits_of(x: Any) -> Any:
    return x.view(BITS[x.dtype]) if x is not None and x.dtype in BITS else x


def both(x: Any, y: Any, out: Any) -> Any:
    return torch.bitwise_and(bits_of(x), bits_of(y), out=bits_of(out))


def either(x: Any, y: Any, out: Any) -> Any:
    return torch.bitwise_or(bits_of(x), bits_of(y), out=bits_of(out))


def hide(x: Any, truth: Any, out: Any) -> Any:
    """x where the truth holds, −∞ elsewhere."""
    held = bits_of(truth)
    rest = held.bitwise_not().bitwise_and_(bits_of(torch.full((), -math.inf, dtype=x.dtype, device=x.device)))
    found = torch.bitwise_and(bits_of(x), held, out=bits_of(out))
    return torch.bitwise_or(found, rest, out=bits_of(out))


def negation(x: Any, out: Any) -> Any:
    return torch.bitwise_not(bits_of(x), out=bits_of(out))


def compare(x: Any, y: Any, out: Any, relation: Any) -> Any:
    bits = bits_of(out)
    if bits is None:
        return relation(x, y).to(BITS[x.dtype]).neg_()
    relation(x, y, out=bits)  # 0 or 1
    return torch.neg(bits, out=bits)


def flushed(x: Any, out: Any, lowest: float) -> Any:
    """x, or −∞ where it is so low that 2^x would be a denormal number, which processors compute slowly."""
    return torch.threshold_(out if x is out else out.copy_(x), lowest, float("-inf"))


def whole(*arguments: Any, out: Any, function: Any) -> Any:
    result = function.array(library(arguments[0]), *arguments)
    return result if out is None else out.copy_(result)


def gather(table: Any, *indices: Any, out: Any) -> Any:
    places = [index.long().clamp_(0, size - 1) for index, size in zip(indices, table.shape, strict=True)]
    return table[tuple(places)] if out is None else out.copy_(table[tuple(places)])
