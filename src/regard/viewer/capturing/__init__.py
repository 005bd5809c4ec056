"""What a model attends to, kept while it runs: q, k, v and the formula of every call of attention.

    with capture(model) as seen:
        model(**inputs)
    seen.layers, seen.missing, seen.notes

The model is watched and not changed: its own kernels run, on its own numbers.

    places      which module runs           asking    what models of transformers ask for
    mode        every function of PyTorch   written   attention that a module writes out itself
    recorder    what is kept, within bounds flexible  FlexAttention
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name({"watching": "Capture capture", "bounds": "foreseen"})

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="torch", transformers="hf")


def __dir__() -> list[str]:
    return list(__all__)
