"""What is known of a bug: how it shows, why it hides, how to mend it, where it has happened.

The bugs themselves stand in `catalogue`, one file for each part of attention; how each is made stands in `mutants`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..algebra.errors import KindError

if TYPE_CHECKING:
    from .mutants.registry import Mutant

SEVERITIES = ("error", "warning")

RELATED = {"jax": "numpy", "python": "numpy"}
"""Whose line to show where a library has none of its own."""


@dataclass(frozen=True)
class Reference:
    """A public place where the mistake was made: what happened, in our words, and its address."""

    title: str
    where: str


@dataclass(frozen=True)
class Bug:
    """A mistake that implementations of attention are found with.

    name:     its key everywhere
    wrong:    what the numbers do
    hides:    why the loss falls all the same
    advice:   what to change, and what usually causes it
    mend:     library ("torch", "numpy", "jax", "python", or "any") -> the lines that are right
    seen:     where it has happened
    near:     regular expression; it finds the lines where this mistake is usually made
    severity: "warning" where ordinary inputs come out right and some legitimate ones do not
    """

    name: str
    wrong: str
    hides: str
    advice: str
    mend: Mapping[str, str] = field(hash=False)
    seen: Reference
    near: str
    severity: str = "error"

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise KindError(f"severity: {' or '.join(SEVERITIES)}; got {self.severity!r} for {self.name!r}")

    def mended(self, library: str) -> str:
        """The right lines in a library's words, or in those of the nearest one that has any."""
        known = (library, RELATED.get(library, library), "any", *self.mend)
        return next((self.mend[name] for name in known if name in self.mend), "")

    @property
    def mutant(self) -> tuple[Mutant, ...]:
        """The forms in which the mistake is made on purpose; none where only a law shows it."""
        from .mutants import MUTANTS

        return MUTANTS.get(self.name, ())


# -- lines of code, as regular expressions -------------------------------------------------------------------------

PRODUCT = r"(@|\b(matmul|einsum|bmm|dot|inner|tensordot)\(|\bsum\().*\b[kK](eys?)?(_\w+)?\b"
ROOT = r"sqrt|\*\*\s*\(?\s*-?\s*(0?\.5\b|1\s*/\s*2)|\b(scale|scaling|softmax_scale|scale_factor)\b"
SOFTMAX = r"[sS]oftmax|\bexp\("
MASKED = r"masked_fill|\bwhere\(|\btri[lu]\(|is_causal|[-+*/@]=?\s*\w*mask|\w*mask\w*\s*([*+&|]|=[^=]|==)"
CUT = r"^(?!.*(transpose|permute|swapaxes|moveaxis|rearrange)).*\b(view|reshape|flatten|unflatten)\("
RESHAPED = r"\b(view|reshape|transpose|permute|swapaxes|moveaxis|flatten|unflatten|rearrange)\("
PROJECTED = r"\b(self\.)?\w*(W|w|proj|lin|linear|fc|query|key|value|to)_?\w*\(\s*\w+\s*\)|@\s*(self\.)?[Ww]_?\w+"
PLACED = r"\b\w*(rot(ary|ate)|rope)\w*\b"
