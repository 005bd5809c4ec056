"""Elements to vectors: what stands before attention.

images      an image as a matrix, one row for each patch, and back;  grid: where each patch stands
text        a text as integers: characters, words;  byte_pairs: or pieces of words, learned
embeddings  integers to vectors
positions   where an element stands: added to the vectors, applied to q and k, or added to the score
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "images": "Patches class_token patches pixels unit",
    "grid": "Grid",
    "pillow": "picture",
    "text": "Characters Words",
    "byte_pairs": "BytePairs",
    "vocabularies": "Batch Vocabulary",
    "embeddings": "Embedding",
    "positions": "ALiBi Buckets Learned NoPosition Offsets Position Relative Rotary Sinusoidal",
}
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name == "positions":
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'regard.inputs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "positions"]
