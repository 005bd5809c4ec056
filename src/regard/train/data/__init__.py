"""What is learned from: every batch is a function of (seed, step), and what is held out is never learned from.

corpora    a file, a folder or Python's own reference as one text;  reference: the last of these
splits     which characters are learned from, and which are held out
tokens     the text as integers, by a vocabulary that was learned from the training part alone
windows    batches of windows to learn from;  held-out windows in which every token is predicted once
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name(
    {
        "corpora": "Corpus read_text",
        "splits": "Span Split characters_needed split",
        "tokens": "Tokens encoded vocabulary_of",
        "windows": "HeldOutWindows TextBatches Windows",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, torch="train")


def __dir__() -> list[str]:
    return list(__all__)
