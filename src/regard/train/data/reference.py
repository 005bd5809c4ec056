"""A text that every Python carries: its language reference, the topics of `help()`.

Topics quote each other. A paragraph counts as told before if, spaces and line ends aside, it is one of those already
kept, or if most of its stretches of 60 characters stand in them; so what is held out has not been read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

STRETCH = 60  # characters: longer than what two texts about one thing have in common by chance


def reference() -> tuple[str, tuple[str, ...]]:
    """The topics in the order of their names, without what was told before; and a note of what was left out."""
    from pydoc_data.topics import topics

    paragraphs = [paragraph for name in sorted(topics) for paragraph in topics[name].strip().split("\n\n")]
    kept = told_once(paragraphs)
    note = f"{len(paragraphs) - len(kept)} of {len(paragraphs)} paragraphs left out: told before, in another topic"
    return "\n\n".join(kept) + "\n", (note,)


def told_once(paragraphs: Iterable[str]) -> list[str]:
    """The paragraphs without those that were told before.

    >>> told_once(["If x is true:", "Then so is y.", "If x\\n  is true:"])
    ['If x is true:', 'Then so is y.']
    """
    kept, whole, parts = [], set[str](), set[str]()
    for paragraph in paragraphs:
        plain = " ".join(paragraph.split())
        stretches = [plain[at : at + STRETCH] for at in range(len(plain) - STRETCH + 1)]
        told = sum(stretch in parts for stretch in stretches)
        if plain not in whole and 2 * told <= len(stretches):
            kept.append(paragraph)
            whole.add(plain)
            parts.update(stretches)
    return kept
