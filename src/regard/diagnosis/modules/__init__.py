"""Somebody's `torch.nn.Module`, or object that holds arrays, read without knowing it.

construction   an instance, from the names of the constructor's arguments;  usual: what such names usually mean
inspection     heads, lengths, norms, dropout, and the roles of forward's arguments
search         where W_Q, W_K, W_V, W_O lie among the parameters;  tensors: all tensors by path;  layouts: their axes
places         those places as plain values, to be written and read
preparation    a copy in evaluation, and its norms set aside
plain          the same for objects of no library: NumPy arrays, lists
instance       how to make what is called, and fill it with matrices;  describing: all of the above, of one module
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name(
    {
        "construction": "construct",
        "known": "Facts",
        "inspection": "facts",
        "describing": "projections",
        "places": "Place Projections Slot",
        "preparation": "prepared set_aside",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="torch")


def __dir__() -> list[str]:
    return list(__all__)
