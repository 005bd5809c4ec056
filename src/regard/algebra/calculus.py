"""Derivatives of a formula with respect to what it reads: pairs of vectors, and entries of tables.

The chain rule over our own functions, so that every convention at a kink is the function's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy

from .canonical import canonical
from .functions import FloorDiv, Log, Mod, Where
from .nodes import IsZero, Node, Pair, Read, is_truth


@lru_cache(maxsize=1024)
def partials(node: Any) -> dict[Any, Any]:
    """∂node/∂leaf for every pair and every table read that the value of `node` depends on smoothly."""
    slopes = {leaf: derivative(node, leaf) for leaf in sorted(leaves(node), key=sympy.default_sort_key)}
    return {leaf: slope for leaf, slope in slopes.items() if slope != 0}


def derivative(node: Any, leaf: Any) -> Any:
    """∂node/∂leaf."""
    return canonical(_derivative(node, leaf))


def leaves(node: Any) -> set[Any]:
    """The pairs and table reads below `node`, but for those in indices, conditions, // and %."""
    if isinstance(node, Pair | Read):
        return {node}
    if _is_fixed(node):
        return set()
    return set().union(*(leaves(child) for child in node.args))


def _derivative(node: Any, leaf: Any) -> Any:
    if node == leaf:
        return sympy.S.One
    if _is_fixed(node) or not node.args:
        return sympy.S.Zero
    inner = [_derivative(arg, leaf) for arg in node.args]
    if not any(inner):
        return sympy.S.Zero
    match node:
        case sympy.Add():
            return sympy.Add(*inner)
        case sympy.Mul():
            others = [sympy.Mul(*(arg for k, arg in enumerate(node.args) if k != place)) for place in range(len(inner))]
            return sympy.Add(*(slope * other for slope, other in zip(inner, others, strict=True)))
        case sympy.Pow():
            return _power_slope(*node.args, *inner)
        case Where():
            return Where(node.args[0], *inner[1:])
    return sympy.Add(*(node.fdiff(place + 1) * slope for place, slope in enumerate(inner) if slope != 0))


def _power_slope(x: Any, p: Any, dx: Any, dp: Any) -> Any:
    """p xᵖ⁻¹ dx + xᵖ log(x) dp; the slope of a root is taken as 0 at 0."""
    along_x = p * x ** (p - 1)
    if p.is_Number and 0 < p < 1:
        along_x = Where(IsZero(x), sympy.S.Zero, along_x)
    return along_x * dx + (x**p * Log(x) * dp if dp != 0 else sympy.S.Zero)


def _is_fixed(node: Any) -> bool:
    """Whether nothing moves smoothly inside: truths, indices of tables, // and %."""
    return is_truth(node) or isinstance(node, Read | FloorDiv | Mod) or not isinstance(node, sympy.Expr | Node)
