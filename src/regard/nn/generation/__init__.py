"""Text after text: a model says how likely each token is to come next, one is drawn, and so on.

sampling   which token is drawn: greedy, temperature, top-k, top-p
prompts    what texts begin with, and what ends them, as they were passed
texts      ids as text, as soon as it is certain;  stopping: up to the first stop text
drafts     a text that is being written;  results: one that is
rows       what the model is fed, with a cache or without;  loop: step after step
writing    generate and stream;  progress: a bar
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name(
    {
        "sampling": "Sampling greedy",
        "results": "Generation",
        "writing": "generate stream",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return list(__all__)
