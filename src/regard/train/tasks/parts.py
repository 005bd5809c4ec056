"""The parts of a model from settings: formula, position, style, tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ...algebra.errors import CallError, KindError
from ...algebra.expressions import Expression
from ...attention import Attention, parse
from ...inputs.positions import ALiBi, Learned, NoPosition, Offsets, Position, Relative, Rotary, Sinusoidal
from ...nn.models import drawn_seed
from ...nn.style import LLAMA, Style
from ..settings import Shape

STYLES = {"llama": LLAMA, "gpt": Style()}
POSITIONS: dict[str, Callable[[int, int, int], Position]] = {
    "rotary": lambda rows, dim, heads: Rotary(),
    "alibi": lambda rows, dim, heads: ALiBi(),
    "sinusoidal": lambda rows, dim, heads: Sinusoidal(),
    "learned": lambda rows, dim, heads: Learned.random(rows, dim, seed=drawn_seed()),
    "relative": lambda rows, dim, heads: Relative.random(heads, Offsets(rows - 1), seed=drawn_seed()),
    "none": lambda rows, dim, heads: NoPosition(),
}


def formula_of(text: str) -> Attention:
    """A formula from its text; a bare expression is the score of a softmax."""
    found = parse(text)
    if isinstance(found, Expression):
        return Attention(score=found)
    if not isinstance(found, Attention):
        raise KindError(f"attention: a formula, as in softmax(dot / sqrt(d), mask=j <= i); got {text!r}")
    return found


def parts_of(shape: Shape, rows: int) -> dict[str, Any]:
    """What models are made with: attention, position and style, dropout of the residuals alone, and tables.

    Weights are not dropped: the fast kernels of a processor know no dropout, and it brings little beside the other.
    """
    attention = formula_of(shape.attention)
    made: dict[str, Any] = {
        "attention": attention,
        "position": _chosen("position", shape.position, POSITIONS)(rows, shape.dim, shape.heads),
        "style": replace(_chosen("style", shape.style, STYLES), dropout=shape.dropout),
        "dropout": 0.0,
    }
    tables = {name: nn.Parameter(torch.zeros(sizes)) for name, sizes in map(_table, shape.table)}
    _check_tables(attention, tables)
    return {**made, "tables": tables} if tables else made


def _chosen(name: str, given: str, among: dict[str, Any]) -> Any:
    if given not in among:
        raise CallError(f"{name}: one of {', '.join(among)}; got {given!r}")
    return among[given]


def _table(text: str) -> tuple[str, tuple[int, ...]]:
    """The name and shape of a table, from "bias=4x255"."""
    name, equal, sizes = text.partition("=")
    parts = sizes.split("x") if sizes else []
    if not equal or not name.isidentifier() or not all(part.isdigit() and int(part) for part in parts):
        raise CallError(f'table: a name and a shape, as in "bias=4x255"; got {text!r}')
    return name, tuple(int(part) for part in parts)


def _check_tables(attention: Attention, tables: dict[str, Any]) -> None:
    missing = sorted(attention.ranks.keys() - tables.keys())
    if missing:
        name = missing[0]
        sizes = "x".join(["8"] * attention.ranks[name])
        raise CallError(
            f"attention: {attention!r} reads the table {name!r}, which the model is to learn; "
            f"say its shape, as in --table {name}={sizes}"
        )
