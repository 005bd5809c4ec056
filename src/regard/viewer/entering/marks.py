"""What tokenizers write in place of spaces, undone.

wordpiece      play ##ing          ## goes on with the word; every other token begins one
byte-level     ĠcafÃ©  Ċ           each letter stands for a byte, Ġ for a space, Ċ for the end of a line
sentencepiece  ▁cat  <0xE2>        ▁ for a space, a byte by its number
suffix         cat</w>             </w> ends a word
none           cat                 as it is
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

CLOSING, OPENING = set(".,;:!?)]}%'’”…-–—/"), set("([{“‘'’$#-–—/")
BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def byte_alphabet() -> dict[str, int]:
    """The letter of each byte: itself where it can be seen, otherwise the next one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(others)}


ALPHABET = byte_alphabet()


def family(pieces: Sequence[str]) -> str:
    """The family that tokens belong to, by their marks.

    >>> family(["play", "##ing"]), family(["The", "Ġcat"]), family(["▁The"]), family(["a", "cat"])
    ('wordpiece', 'byte-level', 'sentencepiece', 'wordpiece')
    """
    if any("Ġ" in piece or "Ċ" in piece for piece in pieces):
        return "byte-level"
    if any("▁" in piece for piece in pieces):
        return "sentencepiece"
    if any(piece.endswith("</w>") for piece in pieces):
        return "suffix"
    return "none" if all(len(piece) == 1 for piece in pieces) else "wordpiece"


def shown(pieces: Sequence[str], special: Collection[int], family: str) -> list[str]:
    """Each token as text with the space before it; special ones as they are. A text does not begin with a space."""
    texts, before = [], ""
    for place, piece in enumerate(pieces):
        if place in special:
            texts.append(piece)
            continue
        text = FAMILIES[family](piece, before)
        texts.append(text if before or not text.strip(" ") else text.removeprefix(" "))
        before = piece
    return texts


def _wordpiece(piece: str, before: str) -> str:
    if piece.startswith("##") and len(piece) > 2:
        return piece[2:]
    joined = piece[:1] in CLOSING or before[-1:] in OPENING
    return piece if joined else f" {piece}"


def _byte_level(piece: str, before: str) -> str:  # noqa: ARG001 - every family is asked in one way
    if not all(letter in ALPHABET for letter in piece):
        return piece  # a token that was added by name
    return _decoded(bytes(ALPHABET[letter] for letter in piece))


def _sentencepiece(piece: str, before: str) -> str:  # noqa: ARG001
    byte = BYTE.fullmatch(piece)
    return _decoded(bytes([int(byte[1], 16)])) if byte else piece.replace("▁", " ")


def _suffix(piece: str, before: str) -> str:
    text = _byte_level(piece.removesuffix("</w>"), before)
    return f" {text}" if before.endswith("</w>") and piece[:1] not in CLOSING else text


def _decoded(data: bytes) -> str:
    """Bytes as text; those that are a part of a letter by their numbers.

    >>> _decoded(bytes([32, 0xC3, 0xA9])), _decoded(bytes([0xF0, 0x9F]))
    (' é', '\\\\xf0\\\\x9f')
    """
    return data.decode("utf-8", "backslashreplace")


FAMILIES: dict[str, Callable[[str, str], str]] = {
    "wordpiece": _wordpiece,
    "byte-level": _byte_level,
    "sentencepiece": _sentencepiece,
    "suffix": _suffix,
    "none": lambda piece, before: piece,
}
