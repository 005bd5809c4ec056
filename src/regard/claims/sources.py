"""The five texts that the claims come from. What a text does not say of itself stays empty."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A text: its letter in the ledger, its title, its author and year where it names them, and what it is about."""

    letter: str
    title: str
    about: str
    author: str | None = None
    year: int | None = None

    def __str__(self) -> str:
        made = ", ".join(str(part) for part in (self.author, self.year) if part is not None)
        return f"{self.letter}: “{self.title}”{f' ({made})' if made else ''}: {self.about}"


_TEXTS = (
    Source(
        "A",
        "Self-Attention From First Principles",
        "from the geometry of similarity to queries and keys",
        author="Madhav Prashanth Ramachandran",
        year=2026,
    ),
    Source("B", "A Close Reading of Self-Attention", "convex combinations and kernels", year=2025),
    Source(
        "C",
        "Sick of keys, queries and other cliched metaphors?",
        "self-attention as search and offer",
        author="Alexis",
    ),
    Source("D", "Attention, from first principles", "a mental model, with vision in mind"),
    Source("E", "Self Attention", "a lesson with code in three flavours"),
)

SOURCES = {source.letter: source for source in _TEXTS}
