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
        known, advice = ", ".join(LIBRARIES), '; ask an Attention: regard.parse(repr(formula)).code("triton")'
        raise FormulaError(
            f"code: one of {known} and, of an Attention, triton; got {flavour!r}{advice * (flavour == 'triton')}"
        )
    check_form(form)
    return module(formula, flavour, form)


def check_form(form: str) -> None:
    """Refuse a form that is not there."""
    if form not in FORMS:
        raise FormulaError(f"form: one of {', '.join(FORMS)}; got {form!r}")
