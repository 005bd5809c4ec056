"""Chains of steps with one thing more in their formula."""

from __future__ import annotations

from ...algebra.symbols import b, i, j, table
from ...attention import Attention
from ..steps import Steps


def masked(steps: Steps, extra: object) -> Steps | None:
    """The chain with one more mask in its formula."""
    formula = steps.formula
    if formula is None:
        return None
    mask = extra if formula.mask is None else formula.mask & extra
    return steps.with_formula(Attention(score=formula.score, weight=formula.weight, mask=mask))


def replaced(steps: Steps, mask: object) -> Steps | None:
    """The chain with this mask in the place of its own: given one, some leave their own out."""
    formula = steps.formula
    if formula is None or formula.mask is None:
        return None
    return steps.with_formula(Attention(score=formula.score, weight=formula.weight, mask=mask))


def biased(steps: Steps) -> Steps | None:
    """The chain with a number added to every score."""
    formula = steps.formula
    if formula is None:
        return None
    score = formula.score + table("added")[b, i, j]
    return steps.with_formula(Attention(score=score, weight=formula.weight, mask=formula.mask))
