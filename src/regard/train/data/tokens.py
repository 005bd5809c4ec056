"""The text as integers: a vocabulary learned from the training part alone, and the ids of the whole text.

    text = … training | held out | training | …   →   t_1 … t_N, with the same spans, now of ids

The parts are encoded piece by piece, so no token reaches from one into another. What the training part does not hold is
the unknown token in the rest; byte pairs know every text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ...algebra.errors import CallError, KindError
from ...inputs.text import Characters, Words
from ...inputs.vocabularies import Vocabulary
from .splits import Span, Split

PIECE = 1 << 20  # characters that are encoded at once: lists of Python's integers are large
UNKNOWN = "�", "<?>"  # the second for texts that hold the first


# -- vocabularies ----------------------------------------------------------------------------------------------


def vocabulary_of(texts: str | Iterable[str], kind: str = "characters") -> Vocabulary:
    """A vocabulary of the kind, learned from the texts: "characters", "words:5000", "bytepairs:1024".

    The number counts the tokens, the unknown one among them. Without it, all words or 1024 byte pairs are learned.

    >>> vocabulary_of("hello world", "characters")
    Characters(9 tokens: '�', 'l', 'o', ' ', 'd', 'e', 'h', 'r', …)
    >>> vocabulary_of("to be or not to be", "words:4")
    Words(4 tokens: '<?>', 'be', 'to', 'not')
    >>> vocabulary_of("hello world", "syllables")
    Traceback (most recent call last):
        ...
    regard.algebra.errors.CallError: kind: "characters", "words:5000" or "bytepairs:1024"; got 'syllables'
    """
    name, size = _kind(kind)
    return KINDS[name]([texts] if isinstance(texts, str) else list(texts), size)


def _characters(texts: list[str], size: int | None) -> Vocabulary:
    if size is not None:
        raise CallError(f'kind: "characters", as many as the text holds; got "characters:{size}"; leave out ":{size}"')
    return Characters.of(texts, unknown=UNKNOWN[any(UNKNOWN[0] in text for text in texts)])


def _words(texts: list[str], size: int | None) -> Vocabulary:
    return Words.of(texts, size, unknown=UNKNOWN[1])


def _byte_pairs(texts: list[str], size: int | None) -> Vocabulary:
    from ...inputs.byte_pairs import BytePairs

    return BytePairs.of(texts, 1024 if size is None else size)


KINDS: dict[str, Callable[[list[str], int | None], Vocabulary]] = {
    "characters": _characters,
    "words": _words,
    "bytepairs": _byte_pairs,
}


def _kind(kind: object) -> tuple[str, int | None]:
    """The name of a kind, and its size if it was given."""
    if not isinstance(kind, str):
        raise KindError(f'kind: a str such as "words:5000"; got {kind!r}')
    name, colon, size = kind.partition(":")
    digits = size.replace("_", "")
    if name not in KINDS or (colon and not (digits.isascii() and digits.isdigit())):
        raise CallError(f'kind: "characters", "words:5000" or "bytepairs:1024"; got {kind!r}')
    return name, int(digits) if colon else None


# -- ids -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tokens:
    """A divided text as ids.

    ids:      of the whole text, in its order, as integers of 16 bits where that is enough
    training: spans of ids to learn from
    held_out: spans of ids to be measured on
    split:    the text that they come from
    """

    ids: Any
    training: tuple[Span, ...]
    held_out: tuple[Span, ...]
    split: Split
    vocabulary: Vocabulary

    def __repr__(self) -> str:
        learned = sum(stop - start for start, stop in self.training)
        return f"Tokens({learned} to learn from, {self.held_out_count} held out, of {self.vocabulary!r})"

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are to choose from."""
        return len(self.vocabulary)

    @property
    def training_ids(self) -> list[Any]:
        """The ids of each span to learn from."""
        return [self.ids[start:stop] for start, stop in self.training]

    def held_out_ids(self, before: int = 0) -> list[Any]:
        """The ids of each span that is held out, after so many ids that stand before it."""
        if before > self.held_out[0].start:
            raise CallError(f"before: at most {self.held_out[0].start}, as many as there are; got {before}")
        return [self.ids[start - before : stop] for start, stop in self.held_out]

    @property
    def held_out_count(self) -> int:
        """How many tokens are held out: each is predicted once."""
        return sum(stop - start for start, stop in self.held_out)

    @property
    def held_out_characters(self) -> int:
        """Of how many characters they are: the sum of their nats by this is in nats for each character."""
        return sum(stop - start for start, stop in self.split.held_out)

    @property
    def unknown_held_out(self) -> int:
        """How many held-out tokens are unknown, which costs a model little where they are many."""
        unknown = getattr(self.vocabulary, "unknown", None)
        if unknown is None:
            return 0
        return sum(int((part == self.vocabulary.id(unknown)).sum()) for part in self.held_out_ids())

    def character(self, position: int) -> int:
        """Where in the text a token begins. Beside unknown words, and inside of a character, it is an estimate."""
        spans = sorted(zip([*self.training, *self.held_out], [*self.split.training, *self.split.held_out], strict=True))
        ids, text = next(pair for pair in reversed(spans) if pair[0].start <= position)
        return text.start + len(self.vocabulary.decode(self.ids[ids.start : position]))


def encoded(split: Split, vocabulary: Vocabulary) -> Tokens:
    """The whole text of a split as ids.

    >>> from regard.train.data import read_text, split
    >>> parts = split(read_text())
    >>> tokens = encoded(parts, vocabulary_of(parts.training_texts))
    >>> tokens.ids.dtype, len(tokens.ids) == len(parts.corpus)
    (dtype('uint16'), True)
    """
    spans = sorted([*split.training, *split.held_out])
    parts = [_ids(split.corpus.text[start:stop], vocabulary) for start, stop in spans]
    ends = [0, *accumulate(map(len, parts))]
    place = {span: Span(*between) for span, between in zip(spans, pairwise(ends), strict=True)}
    training, held_out = (tuple(place[span] for span in part) for part in (split.training, split.held_out))
    return Tokens(np.concatenate(parts), training, held_out, split, vocabulary)


def _ids(text: str, vocabulary: Vocabulary) -> Any:
    """The ids of a text in the smallest integers that hold them all."""
    dtype = np.uint16 if len(vocabulary) <= 1 << 16 else np.int32
    pieces = [vocabulary.encode(text[at : at + PIECE]) for at in range(0, len(text), PIECE)]
    return np.concatenate([np.asarray(piece, dtype=dtype) for piece in pieces])
