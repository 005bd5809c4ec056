"""What operators of PyTorch share: one library of them, formulas that travel as text, and what none can do."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

import torch

from ..algebra.errors import EngineError
from ..algebra.formula import Formula
from ..algebra.parsing import parse as parsed

LIBRARY = torch.library.Library("regard", "DEF")
FORMULAS: dict[str, Formula] = {}


@lru_cache(maxsize=4096)
def text_of(formula: Formula) -> str:
    """The text of a formula, under which an operator finds it again, also in a fresh process."""
    text = repr(formula)
    FORMULAS[text] = formula
    return text


def formula_of(text: str) -> Formula:
    """The formula of a text, read back once."""
    if text not in FORMULAS:
        made = parsed(text)
        assert isinstance(made, Formula)
        FORMULAS[text] = made
    return FORMULAS[text]


def define(name: str, signature: str, run: Any, shapes: Any) -> None:
    """An operator: what it computes, and the shapes that it gives, by which a compiler keeps it whole in its graph."""
    LIBRARY.define(f"{name}{signature}")
    LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"regard::{name}", shapes, lib=LIBRARY)


def refuse(engine: str, what: str) -> NoReturn:
    """Say that an engine is differentiable once."""
    raise EngineError(f'{what}: {engine} and its backward pass are differentiable once; ask for engine="dense"')


def differentiable_once(engine: str) -> type:
    """The class of an engine's functions, which torch.func cannot map, nor differentiate forwards."""

    class Once(torch.autograd.Function):  # type: ignore[misc]  # PyTorch's classes are Any here
        @staticmethod
        def vmap(*_: Any) -> NoReturn:
            refuse(engine, "vmap")

        @staticmethod
        def jvp(*_: Any) -> NoReturn:
            refuse(engine, "jvp")

    return Once


def is_transformed() -> bool:
    """Whether torch.func is at work, which differentiates tensors that ask for no gradient."""
    return bool(torch._C._are_functorch_transforms_active())
