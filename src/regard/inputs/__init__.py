"""Elements to vectors: what stands before attention.

images      an image as a matrix, one row for each patch, and back;  grid: where each patch stands
text        a text as integers: characters, words;  byte_pairs: or pieces of words, learned
embeddings  integers to vectors
positions   where an element stands: added to the vectors, applied to q and k, or added to the score
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "images": "Patches class_token patches pixels unit",
        "grid": "Grid",
        "pillow": "picture",
        "text": "Characters Words",
        "byte_pairs": "BytePairs",
        "vocabularies": "Batch Vocabulary",
        "embeddings": "Embedding",
        "positions": "ALiBi Buckets Learned NoPosition Offsets Position Relative Rotary Sinusoidal",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return list(__all__)
