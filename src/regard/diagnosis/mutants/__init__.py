"""How each bug of the catalogue is made: small changes of the right implementation.

`MUTANTS[name]` holds the forms in which the mistake is met; each takes the right chain of steps and gives the wrong
one, or None where it cannot be made there.
"""

from __future__ import annotations

from . import behaviour, formulas, heads, masks, numbers, positions, projections, weights  # noqa: F401 - they enter
from .registry import MUTANTS, VISIBLE, Mutant

__all__ = ["MUTANTS", "VISIBLE", "Mutant"]
