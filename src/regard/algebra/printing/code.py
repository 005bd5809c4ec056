"""Source that computes a formula without us: plain Python, NumPy or PyTorch, as one would write it by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import FormulaError
from .flavours.module import FORMS, LIBRARIES, module

if TYPE_CHECKING:
    from ..formula import Formula


def code(formula: Formula, flavour: str, form: str) -> str:
    """Source of a module that defines `attention` (and `self_attention`, in that form)."""
    if flavour not in LIBRARIES:
        later = "; a triton kernel comes with the fused engine, which is not there yet" if flavour == "triton" else ""
        raise FormulaError(f"code: one of {', '.join(LIBRARIES)}; got {flavour!r}{later}")
    if form not in FORMS:
        raise FormulaError(f"form: one of {', '.join(FORMS)}; got {form!r}")
    return module(formula, flavour, form)
