"""Derivatives of a formula with respect to what it reads: pairs of vectors, and entries of tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from .canonical import canonical
from .functions import FloorDiv, Mod
from .nodes import Pair, Read


@lru_cache(maxsize=1024)
def partials(node: Any) -> dict[Any, Any]:
    """∂node/∂leaf for every pair and every table read that the value of `node` depends on smoothly."""
    found: dict[Any, Any] = {}
    for leaf in sorted(leaves(node), key=sympy.default_sort_key):
        stand_in = sympy.Dummy(real=True)
        slope = node.xreplace({leaf: stand_in}).diff(stand_in).xreplace({stand_in: leaf})
        slope = canonical(slope)
        if slope != 0:
            found[leaf] = slope
    return found


def leaves(node: Any) -> set[Any]:
    """The pairs and table reads below `node`, but for those in indices, conditions, // and %."""
    if isinstance(node, Pair | Read):
        return {node}
    if isinstance(node, Boolean | FloorDiv | Mod):
        return set()
    return set().union(*(leaves(child) for child in node.args))
