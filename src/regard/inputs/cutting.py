"""Where a text is cut into words, signs and whitespace."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator


class Kinds(dict[int, str]):
    """The kind of each code point, one letter, found when it is first asked for: a table for str.translate.

    w letter, digit or underscore; m mark that belongs to what stands before; z joiner of two signs; a apostrophe;
    b blank; s other whitespace; p every other sign
    """

    def __missing__(self, code: int) -> str:
        self[code] = found = self._found(chr(code))
        return found

    @staticmethod
    def _found(character: str) -> str:
        if character in "'’ \u200d\u200c":
            return {" ": "b", "\u200d": "z", "\u200c": "m"}.get(character, "a")
        if character == "_" or character.isalnum():
            return "w"
        if character.isspace():
            return "s"
        is_mark = unicodedata.category(character).startswith("M") or "🏻" <= character <= "🏿"
        return "m" if is_mark else "p"


KINDS = Kinds()
PIECE = re.compile(
    r"(w[wmz]*(?:aw[wmz]*)*)"  # a word, with apostrophes inside,
    r"(?:b(?=w))?"  # and the blank that is understood if a word follows;
    r"|[bs]"  # other whitespace, one by one;
    r"|[^wbs][mz]*(?:(?<=z)p[mz]*)*"  # a sign with its marks, or several that are joined
)


def cut_words(text: str) -> Iterator[tuple[int, str]]:
    """Where each word, sign and whitespace begins, and itself; a blank between two words is left out.

    No two words touch, since a word goes on as far as it can: the blank can be put back.
    """
    for found in PIECE.finditer(text.translate(KINDS)):
        start, end = found.span(1 if found.group(1) else 0)
        yield start, text[start:end]


def is_word(piece: str) -> bool:
    """Whether a piece is a word."""
    return KINDS[ord(piece[0])] == "w"
