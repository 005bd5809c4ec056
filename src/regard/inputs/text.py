"""Text as characters and as words: vocabularies that list their tokens.

    characters  one token for each code point
    words       one token for each word, each other sign and each whitespace; one space between two words is understood

so that decode(encode(text)) = text wherever the tokens are known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, Self

from ..algebra.errors import CallError, KindError
from .cutting import cut_words, is_word
from .reading import read_names, read_size, read_text, read_texts, refuse_shared
from .vocabularies import Vocabulary

AROUND = 12  # characters shown on either side of one that is not known


@dataclass(frozen=True, repr=False)
class Listed(Vocabulary):
    """A vocabulary of tokens that a text is cut into."""

    learned: tuple[str, ...]
    specials: tuple[str, ...] = ()
    unknown: str | None = None

    one: ClassVar[str]  # what a token is called
    example: ClassVar[str]  # of an unknown token

    def __post_init__(self) -> None:
        object.__setattr__(self, "learned", read_names(self.learned, "learned"))
        object.__setattr__(self, "specials", read_names(self.specials, "specials"))
        if not self.learned:
            raise CallError(f"texts: at least one {self.one} to learn from; got none")
        for token in self.learned:
            if [piece for _, piece in self._cut(token)] != [token]:
                raise CallError(f"tokens: each is one {self.one}; got {token!r}")
        refuse_shared("specials", self.specials, set(self.learned))
        if self.unknown is not None:
            (name,) = read_names((read_text(self.unknown, "unknown"),), "unknown")
            refuse_shared("unknown", (name,), {*self.learned, *self.specials})

    @abstractmethod
    def _cut(self, text: str) -> Iterator[tuple[int, str]]:
        """Where each token begins, and the token."""

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Every token by id: the special ones, the unknown one, the learned."""
        return (*self.specials, *(() if self.unknown is None else (self.unknown,)), *self.learned)

    @cached_property
    def _readable(self) -> dict[str, int]:
        """The ids that a text can give."""
        first = len(self.tokens) - len(self.learned)
        return {token: first + place for place, token in enumerate(self.learned)}

    def encode(self, text: str) -> list[int]:
        """The ids of the text's tokens. One that is not known is the unknown token, or an error if there is none."""
        ids, cut = self._readable, self._cut(read_text(text))
        if self.unknown is not None:
            rest = self.id(self.unknown)
            return [ids.get(piece, rest) for _, piece in cut]
        try:
            return [ids[piece] for _, piece in cut]
        except KeyError:
            self._refuse(text)

    def _refuse(self, text: str) -> NoReturn:
        place, piece = next(found for found in self._cut(text) if found[1] not in self._readable)
        code = f" (U+{ord(piece):04X})" if len(piece) == 1 else ""
        around = text[max(0, place - AROUND) : place + len(piece) + AROUND]
        raise CallError(
            f"text: each {self.one} one of the {len(self.learned)} that were learned; got {piece!r}{code} at position "
            f"{place}, in {around!r}; learn from texts that hold it, or with unknown={self.example!r}"
        )

    def _text(self, ids: list[int]) -> str:
        return "".join(self.tokens[number] for number in ids)

    def _record(self) -> dict[str, Any]:
        return {"learned": list(self.learned), "specials": list(self.specials), "unknown": self.unknown}

    @classmethod
    def _recalled(cls, record: Mapping[str, Any]) -> Self:
        return cls(**record)


class Characters(Listed):
    """One token for each code point of the text.

    decode(encode(text)) = text if every character is known. An accent or a joiner that stands by itself in Unicode is
    a token by itself.

    >>> letters = Characters.of("hello world")
    >>> letters.encode("hello"), letters.split("hello")
    ([5, 4, 0, 0, 1], ['h', 'e', 'l', 'l', 'o'])
    >>> letters.decode([7, 1, 6, 4])
    'wore'
    >>> letters
    Characters(8 tokens: 'l', 'o', ' ', 'd', 'e', 'h', 'r', 'w')
    """

    kind = "characters"
    one, example = "character", "�"

    @classmethod
    def of(cls, texts: str | Iterable[str], *, specials: Iterable[str] = (), unknown: str | None = None) -> Self:
        """The characters of a text, or of several."""
        names = read_names(specials, "specials")
        return cls(_by_frequency(enumerate(text) for text in read_texts(texts)), names, unknown)

    def _cut(self, text: str) -> Iterator[tuple[int, str]]:
        return enumerate(text)


@dataclass(frozen=True, repr=False)
class Words(Listed):
    """One token for each word, each other sign and each whitespace; one space between two words is understood.

    A word is a run of letters, digits and underscores, with marks and apostrophes inside. Any other whitespace is a
    token, one for each character, so decode(encode(text)) = text if every token is known. With lower=True it is
    text.lower(). In decoding, the unknown token counts as a word. Text without spaces between words is one long word;
    `Characters` and `BytePairs` are for that.

    >>> words = Words.of("The cat sat. Don't!", specials=("<pad>",), unknown="<?>")
    >>> words.split("The cat sat. Don't!")
    ['The', 'cat', 'sat', '.', ' ', "Don't", '!']
    >>> words.decode(words.encode("The cat sat. The dog!"))
    'The cat sat. The <?>!'
    >>> ids, lengths = words.batch(["The cat", "cat!", "sat"])
    >>> ids.tolist(), lengths.tolist()
    ([[6, 7], [7, 3], [8, 0]], [2, 2, 1])
    """

    kind = "words"
    one, example = "word, sign or whitespace", "<?>"

    lower: bool = False

    @classmethod
    def of(
        cls,
        texts: str | Iterable[str],
        size: int | None = None,
        *,
        lower: bool = False,
        specials: Iterable[str] = (),
        unknown: str | None = None,
    ) -> Self:
        """The words of a text, or of several: all, or so many of the most frequent that there are `size` tokens."""
        learned = _by_frequency(cut_words(text.lower() if lower else text) for text in read_texts(texts))
        names = read_names(specials, "specials")
        if size is not None and learned:
            extra = len(names) + (unknown is not None)
            room = read_size(size, extra + 1, "one word beside special and unknown tokens") - extra
            if room < len(learned) and unknown is None:
                raise CallError(
                    f"size: without an unknown token all {len(learned)} words, signs and whitespaces of the texts, and "
                    f"{extra} special tokens; got {size}; pass unknown={cls.example!r} or size={len(learned) + extra}"
                )
            learned = learned[:room]
        return cls(learned, names, unknown, lower)

    def __post_init__(self) -> None:
        if not isinstance(self.lower, bool):
            raise KindError(f"lower: True or False; got {self.lower!r}")
        super().__post_init__()
        cased = [token for token in self.learned if self.lower and token != token.lower()]
        if cased:
            raise CallError(f"tokens: words in lower case with lower=True; got {cased[0]!r}")

    def encode(self, text: str) -> list[int]:
        """The ids of the text's tokens. One that is not known is the unknown token, or an error if there is none."""
        text = read_text(text)
        return super().encode(text.lower() if self.lower else text)

    def _cut(self, text: str) -> Iterator[tuple[int, str]]:
        return cut_words(text)

    @cached_property
    def _is_word(self) -> tuple[bool, ...]:
        first = len(self.tokens) - len(self.learned)
        return tuple(
            token == self.unknown or (number >= first and is_word(token)) for number, token in enumerate(self.tokens)
        )

    def _text(self, ids: list[int]) -> str:
        blanks = ["", *(" " if self._is_word[one] and self._is_word[other] else "" for one, other in pairwise(ids))]
        return "".join(blank + self.tokens[number] for blank, number in zip(blanks, ids, strict=False))

    def _record(self) -> dict[str, Any]:
        return {**super()._record(), "lower": self.lower}


# -- learning --------------------------------------------------------------------------------------------------


def _by_frequency(cuts: Iterable[Iterable[tuple[int, str]]]) -> tuple[str, ...]:
    """The most frequent token first; of equals, in the order of their code points."""
    counts = Counter(piece for cut in cuts for _, piece in cut)
    return tuple(sorted(counts, key=lambda token: (-counts[token], token)))
