"""Some heads of a call, under a formula that still counts them as the model does.

    sink[h]        its table is cut to the chosen heads, and h counts those
    2^(−8(h+1)/H)  h becomes table("head")[h], the head's own number, and H the number of all heads

A formula that names no head stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch

from ...algebra.canonical import canonical
from ...algebra.expressions import Expression, Mask
from ...algebra.formula import Formula
from ...algebra.nodes import HEAD, HEADS, Pair, Read, read, symbols, walk
from ...algebra.weights import Weight
from ...attention import Attention

NUMBERS = "head"


def chosen_heads(
    formula: Attention, tables: Mapping[str, Any], heads: Sequence[int], of: int, like: torch.Tensor
) -> tuple[Attention, dict[str, Any]]:
    """The formula and its tables for some of the heads; given masks have four axes."""
    places = torch.tensor(list(heads), device=like.device)
    cut = _cut(formula)
    kept = {
        name: table.index_select(cut[name], places.to(table.device)) if name in cut and table.ndim else table
        for name, table in tables.items()
    }
    for name, rank in formula.ranks.items():
        if rank < 0 and tables[name].shape[1] > 1:
            kept[name] = tables[name].index_select(1, places.to(tables[name].device))
    renumbered = _renumbered(formula, cut, of)
    if NUMBERS in renumbered.ranks:
        kept[NUMBERS] = places
    return renumbered, kept


def _cut(formula: Formula) -> dict[str, int]:
    """The tables that are read along one axis by h alone, and by h nowhere else, with that axis."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for node in formula.nodes:
        for part in walk(node):
            if isinstance(part, Read):
                axes = [axis for axis, index in enumerate(part.indices) if HEAD in symbols(index)]
                plain = all(part.indices[axis] == HEAD for axis in axes)
                found.setdefault(part.table, set()).add(tuple(axes) if plain else (-1, -1))
    return {name: axes[0] for name, (axes, *more) in found.items() if not more and len(axes) == 1}


def _renumbered(formula: Attention, cut: Mapping[str, int], of: int) -> Attention:
    def changed(node: Any) -> Any:
        return canonical(_replaced(node, cut, of))

    def optional(kind: Any, part: Any) -> Any:
        return None if part is None else kind(changed(part.node))

    weight = formula.weight
    return Attention(
        Expression(changed(formula.score.node)),
        Weight(
            Expression(changed(weight.psi.node)), weight.over,
            optional(Expression, weight.sink), optional(Mask, weight.among),
        ),
        optional(Mask, formula.mask),
    )  # fmt: skip


def _replaced(node: Any, cut: Mapping[str, int], of: int) -> Any:
    if node == HEAD:
        return read(NUMBERS, HEAD)
    if node == HEADS:
        return sympy.Integer(of)
    if isinstance(node, Pair):
        return node if node.metric is None else Pair(node.word, _replaced(node.metric, cut, of))
    if not node.args:
        return node
    if isinstance(node, Read) and node.table in cut:
        indices = [index if index == HEAD else _replaced(index, cut, of) for index in node.indices]
        return read(node.table, *indices)
    return node.func(*(_replaced(child, cut, of) for child in node.args))
