"""Models that others wrote, run on a formula.

    regard.hf.use(model)                                    the model's own attention, on regard
    regard.hf.use(model, Attention(mask=window(64)))        another formula in its place
    regard.hf.use(model, lambda own: Attention(own.score, sigmoid, own.mask))
    regard.hf.rerouted(attention)                           whatever calls F.scaled_dot_product_attention

`use` is for models of transformers, which ask for their attention by name; `rerouted` for all other code of PyTorch.
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name({"handle": "Use use", "functional": "Rerouted rerouted"})

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="hf", transformers="hf")


def __dir__() -> list[str]:
    return list(__all__)
