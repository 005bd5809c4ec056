"""The questions that texts about attention leave open, answered by training.

    regard experiment recall

Each experiment is a module: a question, `run` that measures and `draw` that shows. Its outcome is plain data: a table,
numbers that the ledger of claims reads, and the series behind the picture.
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "record": "Experiment Outcome Scale Table",
        "registry": "EXPERIMENTS find",
        "store": "NotMeasured outcome",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return list(__all__)
