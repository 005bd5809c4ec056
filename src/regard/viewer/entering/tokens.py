"""The texts of tokens as they are shown: a token keeps the space before it, so that they read as the text.

    offsets      "The cat sat" → "The", " cat", " sat"    each from where the last one ended to where it ends itself
    pieces       the marks of a tokenizer, where the text is not known: see `marks`
    words        a list that has no marks and no spaces is of words

A place that stands for no text, as [CLS] or a filling does, is special, and keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...algebra.errors import CallError, KindError
from ..record import Axis
from .marks import family, shown

NAMED = re.compile(r"\[[A-Z]+\d*\]|<[^<>\s]+>|<\|[^<>\s]+\|>")  # [CLS], <s>, <|endoftext|>


@dataclass(frozen=True)
class Tokens:
    """The tokens of one text."""

    labels: tuple[str, ...]
    special: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.labels)

    def axis(self, name: str) -> Axis:
        """An axis along which they stand."""
        return Axis(name, self.labels, self.special)

    def filled(self, length: int) -> Tokens:
        """As many places as the longest of a batch; those that were added are special."""
        more = length - len(self)
        return Tokens((*self.labels, *[""] * more), self.special | frozenset(range(len(self), length)))


def given(tokens: Any) -> list[Tokens]:
    """What someone handed in as tokens=: a text, a list of texts of tokens, or such a list for each batch item."""
    if isinstance(tokens, str):
        return [Tokens(tuple(split(tokens)))]
    if not isinstance(tokens, Sequence) or not tokens:
        raise KindError(f"tokens: a text, a list of strings, or one such list for each input; got {_told(tokens)}")
    if all(isinstance(one, str) for one in tokens):
        return [_listed(tokens)]
    if any(isinstance(one, str) for one in tokens) or not all(isinstance(one, Sequence) for one in tokens):
        raise KindError(f"tokens: a list of strings, or one such list for each input; got {_told(tokens)}")
    found = [one for tokens_of_one in tokens for one in given(list(tokens_of_one) or [""])]
    return [one.filled(max(map(len, found))) for one in found]


def split(text: str) -> list[str]:
    """A text cut before its spaces, which nothing drops.

    >>> split("The  cat sat ")
    ['The', '  cat', ' sat ']
    """
    found = re.findall(r"\s*\S+(?:\s+\Z)?", text)
    return found or [text]


def _listed(tokens: Sequence[str]) -> Tokens:
    special = frozenset(place for place, token in enumerate(tokens) if NAMED.fullmatch(token))
    if any(token != token.strip() for token in tokens):
        return Tokens(tuple(tokens), special)  # spaces are there already
    return Tokens(tuple(shown(tokens, special, family(tokens))), special)


# -- a tokenizer -----------------------------------------------------------------------------------------------------


def of_text(text: str, encoding: Any) -> Tokens:
    """From what a fast tokenizer says of a text: where each token begins and ends, and which stand for no text."""
    special = frozenset(place for place, is_special in enumerate(encoding.special_tokens_mask) if is_special)
    labels, end = [], 0
    rest = shown(encoding.tokens, special, family(encoding.tokens))
    for place, (first, last) in enumerate(encoding.offsets):
        if place in special or last <= max(end, first):
            labels.append(encoding.tokens[place] if place in special else rest[place].strip())
            continue
        labels.append(text[end:last])
        end = last
    return Tokens(tuple(labels), special)


def of_ids(ids: Iterable[int], tokenizer: Any, admitted: Iterable[Any] | None = None) -> Tokens:
    """From ids alone, by the tokenizer's own names of tokens; places that are not admitted are a filling."""
    ids = [int(one) for one in ids]
    pieces = [_as_text(piece) for piece in _pieces(tokenizer, ids)]
    names = _specials(tokenizer)
    special = {place for place, one in enumerate(ids) if one in names}
    if admitted is not None:
        special |= {place for place, is_admitted in enumerate(admitted) if not is_admitted}
    return Tokens(tuple(shown(pieces, special, _family_of(tokenizer, pieces))), frozenset(special))


def _pieces(tokenizer: Any, ids: list[int]) -> list[Any]:
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return list(tokenizer.convert_ids_to_tokens(ids))
    if hasattr(tokenizer, "id_to_token"):
        return [tokenizer.id_to_token(one) for one in ids]
    if hasattr(tokenizer, "pieces"):
        return list(tokenizer.pieces(ids))
    if hasattr(tokenizer, "decode"):
        return [tokenizer.decode([one]) for one in ids]
    raise KindError(
        f"tokenizer: of transformers, of tokenizers, or a vocabulary of regard.inputs; got {type(tokenizer).__name__}; "
        "pass the texts of the tokens as tokens="
    )


def _as_text(piece: Any) -> str:
    if piece is None:
        return "?"
    return piece.decode("utf-8", "replace") if isinstance(piece, bytes) else str(piece)


def _specials(tokenizer: Any) -> set[int]:
    """The ids that stand for no text; an unknown word and a hidden one do stand for some."""
    if hasattr(tokenizer, "id_to_token"):
        return {one for one, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    if hasattr(tokenizer, "specials"):
        return {tokenizer.id(name) for name in tokenizer.specials}
    names = [name for name in ("bos", "eos", "cls", "sep", "pad") if hasattr(tokenizer, f"{name}_token_id")]
    own = {getattr(tokenizer, f"{name}_token_id") for name in names} - {None}
    hidden = {getattr(tokenizer, f"{name}_token_id", None) for name in ("unk", "mask")} - own
    return (set(getattr(tokenizer, "all_special_ids", ())) | own) - hidden


def _family_of(tokenizer: Any, pieces: Sequence[str]) -> str:
    """The family of marks, from what the vocabulary holds: a short text may have none of them."""
    number = getattr(tokenizer, "token_to_id", None) or getattr(tokenizer, "convert_tokens_to_ids", None)
    if number is None:
        return "none" if hasattr(tokenizer, "pieces") else family(pieces)
    unknown = {None, getattr(tokenizer, "unk_token_id", None)}
    for name, mark in (("byte-level", "Ġ"), ("sentencepiece", "▁"), ("suffix", "a</w>"), ("wordpiece", "##s")):
        if number(mark) not in unknown:
            return name
    return family(pieces)


def _told(tokens: Any) -> str:
    kind = type(tokens).__name__
    if isinstance(tokens, Mapping):
        return f"a {kind} with {', '.join(map(str, list(tokens)[:4]))}"
    return f"{kind} {str(tokens)[:40]}"


def refuse_length(tokens: Tokens, sizes: Iterable[int]) -> None:
    """Tokens that fit no axis."""
    wanted = " or ".join(map(str, sorted(set(sizes))))
    raise CallError(f"tokens: one for each of {wanted} places; got {len(tokens)}; are special tokens among them?")
