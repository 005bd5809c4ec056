"""Products of two tensors, read as q·k or as weights times values: matmul, bmm and einsum; and orders of axes."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import torch

from .facts import Facts, Scores, Weights

Made = Callable[[torch.Tensor], bool]
Found = Scores | tuple[Weights, torch.Tensor, torch.Tensor] | None


def read_matmul(facts: Facts, made: Made, first: Any, second: Any) -> Found:
    """a @ b: scores of rows of a and columns of b; or values weighted by a, or by b from the other side."""
    if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
        return None
    if min(first.ndim, second.ndim) < 2:
        return None
    known, turned = facts.of(first), facts.of(second)
    if isinstance(known, Weights):
        return (known, first, second) if known.axis == -1 and _goes_with(made, second, first) else None
    if isinstance(turned, Weights) and turned.axis == -2 and _goes_with(made, first, second):
        return turned, second.transpose(-1, -2), first.transpose(-1, -2)
    return _scores(made, first, second.transpose(-1, -2))


def _scores(made: Made, q: torch.Tensor, k: torch.Tensor) -> Scores | None:
    if not (_goes_with(made, q, k) and _goes_with(made, k, q)) or not q.is_floating_point():
        return None
    return Scores(q, k, tuple(torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])))


def _goes_with(made: Made, tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a tensor was made by the model's run, with as many axes as another: a matrix for all is a weight."""
    return made(tensor) and (tensor.ndim == other.ndim or tensor.ndim >= 3)


# -- einsum -------------------------------------------------------------------------------------------------------


def read_einsum(facts: Facts, made: Made, arguments: Any) -> Found:
    """The same of an equation with two arrays, as "bqhd,bkhd->bhqk"."""
    if not arguments or not isinstance(arguments[0], str):
        return None
    operands = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], list | tuple) else arguments[1:]
    if len(operands) != 2 or not all(isinstance(x, torch.Tensor) for x in operands):
        return None
    letters = _letters(arguments[0], operands)
    if letters is None:
        return None
    first, second, out = letters
    for (weights, own), (values, others) in (
        ((operands[0], first), (operands[1], second)), ((operands[1], second), (operands[0], first))
    ):  # fmt: skip
        fact = facts.of(weights)
        if isinstance(fact, Weights):
            return _weighted(made, fact, weights, own, values, others, out)
    return _compared(made, operands, first, second, out)


def _letters(equation: str, operands: Any) -> tuple[str, str, str] | None:
    """The letters of the axes of both arrays and of the outcome, with an ellipsis spelt out."""
    text = equation.replace(" ", "")
    if "->" not in text or text.count(",") != 1:
        return None
    sides, out = text.split("->")
    parts = sides.split(",")
    unused = [letter for letter in string.ascii_letters if letter not in text]
    hidden = [
        x.ndim - len(part.replace("...", "")) if "..." in part else 0 for x, part in zip(operands, parts, strict=True)
    ]
    most = max(hidden)
    spelt = ["".join(unused[most - count : most]) for count in hidden]
    first, second = (part.replace("...", own) for part, own in zip(parts, spelt, strict=True))
    out = out.replace("...", "".join(unused[:most]))
    return (first, second, out) if all(len(set(part)) == len(part) for part in (first, second, out)) else None


def _compared(made: Made, operands: Any, first: str, second: str, out: str) -> Scores | None:
    both = set(first) & set(second)
    summed = [letter for letter in first if letter in both and letter not in out]
    if len(out) < 2 or len(summed) != 1:
        return None
    lead, query, key = out[:-2], out[-2], out[-1]
    if query in second:
        operands, first, second = operands[::-1], second, first
    if {query, key} & both or query not in first or key not in second:
        return None
    if set(first) - {*lead, query, *summed} or set(second) - {*lead, key, *summed}:
        return None
    q = _arranged(operands[0], first, lead + query + summed[0])
    return _scores(made, q, _arranged(operands[1], second, lead + key + summed[0]))


def _weighted(
    made: Made, fact: Weights, weights: torch.Tensor, own: str, values: torch.Tensor, others: str, out: str
) -> Found:
    key, query, lead = own[fact.axis], own[-3 - fact.axis], own[:-2]
    free = [letter for letter in others if letter not in own]
    if key not in others or key in out or query not in out or query in others or len(free) != 1 or not made(values):
        return None
    if set(others) - {*lead, key, *free}:
        return None
    placed = weights if fact.axis == -1 else weights.transpose(-1, -2)
    return fact, placed, _arranged(values, others, lead + key + free[0])


def _arranged(tensor: torch.Tensor, letters: str, order: str) -> torch.Tensor:
    """A tensor with its axes in an order; those that it lacks have size 1."""
    kept = [letters.index(letter) for letter in order if letter in letters]
    tensor = tensor.permute(kept)
    for place, letter in enumerate(order):
        if letter not in letters:
            tensor = tensor.unsqueeze(place)
    return tensor


# -- axes ---------------------------------------------------------------------------------------------------------


def axis(arguments: Any, options: Any) -> int | None:
    """The axis of a softmax."""
    found = options.get("dim", options.get("axis", arguments[1] if len(arguments) > 1 else None))
    return found if isinstance(found, int) else None


def order(function: Any, arguments: Any, options: Any) -> list[int] | None:
    """The order of axes that a function leaves; None where it does something else."""
    count = arguments[0].ndim
    places = list(range(count))
    if function.__name__ == "__get__":
        if getattr(getattr(function, "__self__", None), "__name__", "") != "mT":
            return None
        return [*places[:-2], places[-1], places[-2]]
    if function.__name__ == "permute":
        given = options.get(
            "dims", arguments[1] if len(arguments) == 2 and not isinstance(arguments[1], int) else arguments[1:]
        )
        return [place % count for place in given]
    pair = [*arguments[1:], *(options[name] for name in ("dim0", "dim1", "axis0", "axis1") if name in options)]
    if len(pair) != 2:
        return None
    first, second = (place % count for place in pair)
    places[first], places[second] = places[second], places[first]
    return places
