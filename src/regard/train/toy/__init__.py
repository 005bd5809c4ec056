"""Three matrices, learned: W_Q, W_K and W_V of one small self-attention.

task          parties of guests: who wears which name, seeks which name, holds which colour
numpy_lesson  forward, backward and descent with NumPy alone;  torch_lesson: the same, differentiated by PyTorch
record        what was learned, and what it is worth on parties that were never seen
report        both lessons side by side in a terminal;  picture: as one slide
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name(
    {
        "task": "Parties Task",
        "record": "Learned Matrices Reached",
        "numpy_lesson": "learn",
        "torch_lesson": "learn_with_torch",
        "report": "show",
        "picture": "save",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="train")


def __dir__() -> list[str]:
    return list(__all__)
