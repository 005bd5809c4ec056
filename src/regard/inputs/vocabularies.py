"""What all vocabularies share: text → ids → text, whatever a token is.

    encode  text → t_1 … t_N, each from 0 to V − 1
    decode  t_1 … t_N → text
    pieces  t_1 … t_N → the tokens as strings, to show beside a matrix

Ids count from 0: first the special tokens in the order given, then the unknown token if there is one, then what was
learned, the most frequent first and, of equals, in the order of their code points. The same texts give the same ids,
on every run and machine.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..algebra.errors import CallError, KindError
from . import storage
from .reading import read_ids, read_names, read_text

SHOWN = 8  # tokens in a repr


class Batch(NamedTuple):
    """Texts as one rectangle, for the mask `padding("lengths")`."""

    ids: Any  # (B, N), int64
    lengths: Any  # (B), int64


class Vocabulary(ABC):
    """Tokens and their ids. `Characters`, `Words` and `BytePairs` are vocabularies; each is a value.

    They are equal if they hold the same tokens under the same ids, can be keys of a dict, and are saved as JSON.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def tokens(self) -> tuple[str, ...]:
        """Every token as a string that can be shown, by id."""

    @property
    @abstractmethod
    def specials(self) -> tuple[str, ...]:
        """The tokens that stand for no text: a start, an end, a filling."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of the text's tokens. No text gives no ids."""

    @abstractmethod
    def _text(self, ids: list[int]) -> str:
        """The text of ids that have been checked."""

    @abstractmethod
    def _record(self) -> dict[str, Any]:
        """What is saved."""

    @classmethod
    @abstractmethod
    def _recalled(cls, record: Mapping[str, Any]) -> Self:
        """The vocabulary that a record tells of."""

    # -- ids and tokens ----------------------------------------------------------------------------------------

    def decode(self, ids: Any, *, drop: str | Iterable[str] = ()) -> str:
        """The text of one sequence of ids: integers in a list, or in an array of NumPy, PyTorch or JAX.

        Special tokens are shown by name, but for those in `drop`; `drop=vocabulary.specials` shows none.
        """
        names = read_names((drop,) if isinstance(drop, str) else drop, "drop")
        dropped = {self._special(name) for name in names}
        return self._text([number for number in read_ids(ids, len(self)) if number not in dropped])

    def pieces(self, ids: Any) -> list[str]:
        """Each token of a sequence of ids, as a string that can be shown."""
        return [self.tokens[number] for number in read_ids(ids, len(self))]

    def split(self, text: str) -> list[str]:
        """The tokens of a text, as strings that can be shown: pieces(encode(text))."""
        return self.pieces(self.encode(text))

    def id(self, token: str) -> int:
        """The id of a token, special or not."""
        name = read_text(token, "token")
        if name not in self._index:
            raise CallError(f"token: one of the vocabulary's {len(self)}, {self._sample()}; got {name!r}")
        return self._index[name]

    def batch(self, texts: Iterable[str | Any], pad: str = "<pad>") -> Batch:
        """Several texts, or sequences of ids, as ids (B, N) and lengths (B); shorter ones end with `pad`.

        N is the largest length. The token `pad` need not exist if all are of one length.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise KindError(f"texts: a list of texts; got {type(texts).__name__}; pass [text] for a batch of one")
        rows = [self.encode(item) if isinstance(item, str) else read_ids(item, len(self)) for item in texts]
        if not rows:
            raise CallError("texts: at least one text; got none")
        lengths = np.asarray([len(row) for row in rows], dtype=np.int64)
        ids = np.full((len(rows), lengths.max()), self._filling(lengths, pad), dtype=np.int64)
        for row, found in zip(ids, rows, strict=True):
            row[: len(found)] = found
        return Batch(ids, lengths)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and token in self._index

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens: {self._sample()})"

    # -- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary as JSON; a file of that name is replaced once the new one is whole."""
        storage.write(path, self.kind, self._record())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote: `Words.load` reads words, `Vocabulary.load` any kind."""
        homes = kinds()
        kind, record = storage.read(path, homes)
        if not issubclass(homes[kind], cls):
            raise KindError(
                f"path: a file that {cls.__name__} saved; got {os.fspath(path)!r}, which holds {kind}; "
                f"read it with {homes[kind].__name__}.load"
            )
        home: Any = homes[kind]
        try:
            return home._recalled(record)  # type: ignore[no-any-return]
        except (KeyError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else f"{error}"
            raise KindError(f"path: a whole vocabulary; got {os.fspath(path)!r}, where {kind} have {reason}") from None

    # -- inside ------------------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> dict[str, int]:
        """The id of each token that is used; of those that are shown alike, the first."""
        return {token: number for number, token in reversed(list(enumerate(self.tokens))) if token}

    def _special(self, name: str) -> int:
        if name not in self.specials:
            raise CallError(f"drop: special tokens, {_listed(self.specials)}; got {name!r}")
        return self._index[name]

    def _filling(self, lengths: Any, pad: str) -> int:
        if lengths.min() == lengths.max():
            return 0  # nothing is filled
        if pad not in self:
            raise CallError(
                f"pad: texts of {lengths.min()} to {lengths.max()} tokens need one to fill with; got {pad!r}, "
                f'which the vocabulary has not; learn it with specials=("<pad>",), or pass pad= one of its tokens'
            )
        return self.id(pad)

    def _sample(self) -> str:
        return _listed(self.tokens)


def kinds() -> dict[str, type[Vocabulary]]:
    """Every kind of vocabulary, by the name under which it is saved."""
    from .byte_pairs import BytePairs
    from .text import Characters, Words

    return {home.kind: home for home in (Characters, Words, BytePairs)}


def _listed(tokens: tuple[str, ...]) -> str:
    shown = [repr(token) for token in tokens[:SHOWN]]
    return ", ".join([*shown, "…"] if len(tokens) > SHOWN else shown) or "none"
