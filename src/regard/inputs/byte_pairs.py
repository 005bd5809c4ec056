"""Text as byte pairs: pieces of UTF-8 that were often found side by side, learned by the `tokenizers` package.

    256 bytes, then merges: the most frequent pair of neighbours becomes a token, again and again

Every text can be written in bytes, so no character is unknown. Inside of `tokenizers` each byte is written as one
visible character (a space is Ġ); here tokens are shown as the text that they stand for, and bytes that are only a part
of a character as <0xE2>.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from ..algebra.errors import CallError, KindError, MissingExtra
from .reading import read_names, read_size, read_text, read_texts, refuse_shared
from .vocabularies import Vocabulary

PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # bytes that are written as themselves
HIDDEN = sorted({*range(256)} - {*PRINTED})  # and those written as the characters from U+0100 on
BYTES = {chr(byte): byte for byte in PRINTED} | {chr(256 + place): byte for place, byte in enumerate(HIDDEN)}


@dataclass(frozen=True, repr=False)
class BytePairs(Vocabulary):
    """Byte pairs, learned with `BytePairs.of`, or the tokenizer of a model, with `BytePairs.wrap`.

    What was learned: decode(encode(text)) = text for every text, and no text gives a special token. What was wrapped
    does as it was made to do: it may change the text, add special tokens, or find them in it. Ids that cut a character
    in two decode to �.

    >>> pairs = BytePairs.of("the cat sat on the mat, the cat on the hat", size=270, specials=("<pad>",))
    >>> pairs.split("the mat 🙂")
    ['the', ' ', 'm', 'at', ' ', '<0xF0>', '<0x9F>', '<0x99>', '<0x82>']
    >>> pairs.decode(pairs.encode("the mat 🙂"))
    'the mat 🙂'
    """

    kind = "byte pairs"

    state: str  # as a tokenizer.json holds it
    literal: bool = True  # whether the name of a special token in a text is text like any other

    @classmethod
    def of(cls, texts: str | Iterable[str], size: int = 1024, *, specials: Iterable[str] = ()) -> Self:
        """Learned from a text, or several: at most `size` tokens, of which 256 are bytes.

        Ids: special tokens, then bytes, then pairs in the order in which they were learned: the most frequent first.
        A pair that is found once is not learned, so there may be fewer than `size`.
        """
        names = read_names(specials, "specials")
        room = read_size(size, 256 + len(names), f"256 bytes and {len(names)} special tokens") - len(names)
        return cls(json.dumps(_with_specials(_learned(texts, room), names)))

    @classmethod
    def wrap(cls, source: Any) -> Self:
        """The tokenizer of a model, whatever its kind: a `tokenizers.Tokenizer`, a fast tokenizer of transformers, or
        the path of a tokenizer.json or of its folder. It is copied, without truncation and padding.
        """
        tokenizer = _tokenizer_of(source)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(tokenizer.to_str(), literal=False)

    def __post_init__(self) -> None:
        if not isinstance(self.literal, bool):
            raise KindError(f"literal: True or False; got {self.literal!r}")
        object.__setattr__(self, "state", self.tokenizer.to_str())  # one way to write it, so that equals are equal

    @cached_property
    def tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer` itself, with the same ids: `tokenizer.save` writes a tokenizer.json."""
        tokenizer = _from_state(read_text(self.state, "state").encode(), "state: what a tokenizer.json holds")
        tokenizer.encode_special_tokens = self.literal
        return tokenizer

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Every token by id, as the text that it stands for; '' where an id is not used."""
        vocabulary = self.tokenizer.get_vocab(with_added_tokens=True)
        shown = _in_bytes if "ByteLevel" in _types(json.loads(self.state)["decoder"]) else _in_text
        tokens = [""] * (1 + max(vocabulary.values()))
        for token, number in vocabulary.items():
            tokens[number] = token if number in self._added else shown(token)
        return tuple(tokens)

    @property
    def specials(self) -> tuple[str, ...]:
        """The tokens that stand for no text, in the order of their ids."""
        return tuple(self._specials.values())

    def encode(self, text: str) -> list[int]:
        """The ids of the text's tokens. No text gives no ids, unless what was wrapped adds some."""
        return list(self.tokenizer.encode(read_text(text)).ids)

    def _text(self, ids: list[int]) -> str:
        runs = groupby(ids, key=self._specials.get)  # `tokenizers` would read the names of special tokens as bytes
        return "".join(
            name * len([*run]) if name else self.tokenizer.decode([*run], skip_special_tokens=False)
            for name, run in runs
        )

    # -- inside ------------------------------------------------------------------------------------------------

    @cached_property
    def _added(self) -> dict[int, Any]:
        return dict(sorted(self.tokenizer.get_added_tokens_decoder().items()))

    @cached_property
    def _specials(self) -> dict[int, str]:
        return {number: token.content for number, token in self._added.items() if token.special}

    def __reduce__(self) -> tuple[type[Self], tuple[str, bool]]:
        return type(self), (self.state, self.literal)  # a copied `tokenizers.Tokenizer` forgets what is literal

    def _record(self) -> dict[str, Any]:
        return {"literal": self.literal, "tokenizer": json.loads(self.state)}

    @classmethod
    def _recalled(cls, record: Mapping[str, Any]) -> Self:
        return cls(json.dumps(record["tokenizer"]), record["literal"])


# -- tokens as text --------------------------------------------------------------------------------------------


def _in_bytes(token: str) -> str:
    """A token of bytes as text, as far as its bytes are whole characters."""
    if not all(character in BYTES for character in token):
        return token
    text = bytes(BYTES[character] for character in token).decode("utf-8", "surrogateescape")
    return "".join(f"<0x{ord(c) - 0xDC00:02X}>" if "\udc80" <= c <= "\udcff" else c for c in text)


def _in_text(token: str) -> str:
    """A token of another kind as text: SentencePiece writes a space as ▁."""
    return token.replace("▁", " ")


def _types(part: Any) -> set[str]:
    """The types named in a part of a tokenizer's state."""
    if isinstance(part, list):
        return {name for entry in part for name in _types(entry)}
    if not isinstance(part, dict):
        return set()
    return {str(part.get("type"))} | {name for entry in part.values() for name in _types(entry)}


# -- the package -----------------------------------------------------------------------------------------------


def _package() -> ModuleType:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("tokenizers", "inputs") from None
    return tokenizers


def _learned(texts: str | Iterable[str], size: int) -> dict[str, Any]:
    """The state of a tokenizer of bytes and pairs."""
    package, seen = _package(), [0]

    def counted() -> Iterator[str]:
        for text in read_texts(texts):
            seen[0] += len(text)
            yield text

    byte_level = package.pre_tokenizers.ByteLevel
    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = package.decoders.ByteLevel()
    trainer = package.trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(counted(), trainer)
    if not seen[0]:
        raise CallError("texts: at least one character to learn from; got none")
    return dict(json.loads(tokenizer.to_str()))


def _with_specials(state: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The state with special tokens before all others. Learning with them would give theirs to words of that name."""
    model, vocabulary = state["model"], state["model"]["vocab"]
    refuse_shared("specials", names, {*vocabulary, *map(_in_bytes, vocabulary)})
    ids = {name: number for number, name in enumerate(names)}
    moved = {token: number + len(names) for token, number in vocabulary.items()}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": number, "content": name, **flags} for name, number in ids.items()]
    return {**state, "added_tokens": added, "model": {**model, "vocab": {**ids, **moved}}}


def _tokenizer_of(source: Any) -> Any:
    """A tokenizer of its own, copied from what was given."""
    package = _package()
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _from_state(
            (path / "tokenizer.json" if path.is_dir() else path).read_bytes(), "source: a tokenizer.json"
        )
    inner = getattr(source, "backend_tokenizer", getattr(source, "_tokenizer", source))
    if not isinstance(inner, package.Tokenizer):
        raise KindError(
            "source: a tokenizers.Tokenizer, a fast tokenizer of transformers or the path of a tokenizer.json; "
            f"got {type(source).__name__}"
        )
    return _tried(lambda: package.Tokenizer.from_str(inner.to_str()), "source: a tokenizer that can be saved")


def _from_state(state: bytes, rule: str) -> Any:
    package = _package()
    return _tried(lambda: package.Tokenizer.from_buffer(state), rule)


def _tried(make: Callable[[], Any], rule: str) -> Any:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - `tokenizers` raises nothing narrower
        raise KindError(f"{rule}; got something else: {error}") from None
