"""Ids to vectors: row t of a table for token t.

x_n = E[t_n] = Σ_t [t = t_n] E_t        E (V, D), t_n from 0 to V − 1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np

from .._arrays import Library, as_array, is_array, library
from ..algebra.errors import CallError, KindError
from .reading import read_names, read_text
from .text import Words
from .vocabularies import Vocabulary


@dataclass(frozen=True, eq=False)
class Embedding:
    """A table of vectors, one row for each token: x_n = E[t_n].

    The table is an array of NumPy, PyTorch or JAX, or nested lists; vectors are of its library, dtype and device, and
    gradients flow into it. With a vocabulary, texts are embedded too.

    >>> embedding = Embedding([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> embedding([2, 0])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """

    table: Any  # (V, D)
    vocabulary: Vocabulary | None = None

    @classmethod
    def random(cls, tokens: Vocabulary | int, width: int, seed: int = 0, like: Any = None) -> Self:
        """Independent normal numbers of variance 1 / width, so that a vector is about 1 long.

        One row for each token of a vocabulary, or for each of so many ids. NumPy's generator draws them from the seed,
        the same for every library; `like` is an array whose library, dtype and device the table takes.
        """
        rows = len(tokens) if isinstance(tokens, Vocabulary) else _count(tokens, "tokens")
        shape = rows, _count(width, "width")
        numbers = np.random.default_rng(seed).standard_normal(shape) / math.sqrt(width)
        return cls(_converted(numbers, like), tokens if isinstance(tokens, Vocabulary) else None)

    @classmethod
    def of(
        cls,
        vectors: Mapping[str, Any],
        *,
        lower: bool = False,
        specials: Iterable[str] = (),
        unknown: str | None = None,
    ) -> Self:
        """Words with their vectors. With lower=True a word has one vector in whatever case.

        The words become a vocabulary, `Words`, with ids in their order; special tokens and the unknown one have vectors
        as well.

        >>> phrase = Embedding.of({"the": [0.3, 0.8], "cat": [1.0, 0.5], "sat": [0.7, 0.9]}, lower=True)
        >>> phrase("The cat")
        array([[0.3, 0.8],
               [1. , 0.5]])
        """
        if not isinstance(vectors, Mapping):
            raise KindError(f"vectors: a dict from words to vectors; got {type(vectors).__name__}")
        names = read_names(specials, "specials")
        rows = _by_token(vectors, lower, {*names, unknown})
        words = Words(tuple(token for token in rows if token not in {*names, unknown}), names, unknown, lower)
        missing = [token for token in words.tokens if token not in rows]
        if missing:
            raise CallError(f"vectors: one for each special or unknown token, too; got none for {missing[0]!r}")
        return cls(_stacked({token: rows[token] for token in words.tokens}), words)

    def __post_init__(self) -> None:
        table = as_array(self.table, "table")
        object.__setattr__(self, "table", table)
        if not library(table).is_real(table):
            raise KindError(f"table: real floating numbers; got dtype {table.dtype}; convert it to float32")
        if table.ndim != 2 or 0 in table.shape:
            raise CallError(f"table: (tokens, width), at least one of each; got shape {tuple(table.shape)}")
        if self.vocabulary is not None and not isinstance(self.vocabulary, Vocabulary):
            raise KindError(f"vocabulary: Characters, Words or BytePairs; got {type(self.vocabulary).__name__}")
        if self.vocabulary is not None and len(self.vocabulary) > table.shape[0]:
            raise CallError(
                f"table: a row for each of the vocabulary's {len(self.vocabulary)} tokens; got {table.shape[0]} rows"
            )

    def __call__(self, ids: Any) -> Any:
        """The vectors (…, N, D) of ids (…, N), or of a text if there is a vocabulary.

        Ids are integers in an array of the table's library or of NumPy, or in nested lists. An id outside of the table
        is an error. While a compiler traces, ids cannot be looked at: then PyTorch raises its own error when it runs,
        and JAX gives NaN.
        """
        xp, (rows, width) = library(self.table), self.table.shape
        places = self._ids(xp, ids)
        shape = tuple(places.shape)
        flat = xp.reshape(places, (-1,))
        wrong = (flat < 0) | (flat >= rows)
        if xp.is_true(xp.any(wrong)):
            _refuse(int(xp.argmax(xp.astype(wrong, xp.int32))), shape, flat, rows)
        if not xp.known(flat):  # none may count from the end
            flat = xp.where(wrong, xp.full_like(flat, rows), flat)
        return xp.reshape(xp.take(self.table, flat, axis=0), (*shape, width))

    def __len__(self) -> int:
        return int(self.table.shape[0])

    @property
    def width(self) -> int:
        """D, the numbers in a vector."""
        return int(self.table.shape[1])

    def __repr__(self) -> str:
        known = "" if self.vocabulary is None else f", {self.vocabulary!r}"
        return f"Embedding({len(self)} × {self.width}, {self.table.dtype}, {library(self.table).name}{known})"

    def _ids(self, xp: Library, ids: Any) -> Any:
        """The ids as the library's own integers, on the device of the table."""
        given: Any = self._encoded(ids) if isinstance(ids, str) else ids
        if not is_array(given):
            given = _nested(given)
        kind = library(given)
        if kind.name not in (xp.name, "numpy"):
            raise KindError(f"ids: from the library of the table, {xp.name}, or NumPy; got {kind.name}; convert them")
        if not kind.is_integer(given):
            raise KindError(f"ids: integers; got dtype {given.dtype}")
        own = given if kind.name == xp.name else xp.asarray(np.asarray(given, np.int64), device=xp.device(self.table))
        if xp.device(own) != xp.device(self.table):
            raise CallError(f"device: ids lie where the table lies, on {xp.device(self.table)}; got {xp.device(own)}")
        return xp.astype(own, xp.widest[0], copy=False)

    def _encoded(self, text: str) -> list[int]:
        if self.vocabulary is None:
            raise KindError(
                "ids: integers, since this embedding has no vocabulary; got str; pass Embedding(table, vocabulary)"
            )
        return self.vocabulary.encode(text)


def _refuse(place: int, shape: tuple[int, ...], flat: Any, rows: int) -> NoReturn:
    at = tuple(map(int, np.unravel_index(place, shape)))
    where = f" at position {at[0] if len(at) == 1 else at}" if at else ""
    raise CallError(
        f"ids: from 0 to {rows - 1}, a row of the table each; got {int(flat[place])}{where}; "
        "negative ids do not count from the end, and a larger vocabulary needs a larger table"
    )


def _nested(ids: Any) -> Any:
    """Nested lists of integers as NumPy's."""
    if not isinstance(ids, int | Sequence) or isinstance(ids, bool):
        raise KindError(f"ids: integers in an array or nested lists; got {type(ids).__name__}")
    try:
        array = np.asarray(ids) if np.size(ids) else np.zeros(np.shape(ids), np.int64)
    except ValueError:
        raise CallError(
            "ids: rows of one length; got rows of several; vocabulary.batch(texts) fills them to a rectangle"
        ) from None
    if array.dtype.kind == "U":
        raise KindError("ids: integers; got several texts; vocabulary.batch(texts) gives their ids and lengths")
    return array


def _by_token(vectors: Mapping[str, Any], lower: bool, extra: set[str | None]) -> dict[str, Any]:
    """The vectors by token: words in lower case if asked for."""
    found: dict[str, Any] = {}
    for word, vector in vectors.items():
        name = read_text(word, "vectors: each word")
        token = name.lower() if lower and name not in extra else name
        if token in found:
            raise CallError(f"vectors: one for each word, in whatever case with lower=True; got two for {token!r}")
        found[token] = vector
    if not found.keys() - extra:
        raise CallError("vectors: at least one word; got none")
    return found


def _stacked(vectors: Mapping[str, Any]) -> Any:
    """Vectors as the rows of a table."""
    rows = {token: as_array(vector, f"vectors[{token!r}]") for token, vector in vectors.items()}
    first, begun = next(iter(rows.items()))
    for token, row in rows.items():
        if library(row).name != library(begun).name:
            raise KindError(f"vectors: all from one library; got {library(begun).name} and {library(row).name}")
        if row.ndim != 1 or row.shape != begun.shape:
            told = f"{tuple(begun.shape)} for {first!r} and {tuple(row.shape)} for {token!r}"
            raise CallError(f"vectors: numbers along one axis, as many for each word; got shapes {told}")
    return library(begun).stack(list(rows.values()))


def _converted(numbers: Any, like: Any) -> Any:
    if like is None:
        return numbers
    if not is_array(like):
        raise KindError(f"like: an array of the library and dtype that the table takes; got {type(like).__name__}")
    xp = library(like)
    if not xp.is_real(like):
        raise KindError(f"like: an array of real floating numbers; got dtype {like.dtype}")
    return xp.asarray(numbers, dtype=like.dtype, device=xp.device(like))


def _count(value: object, argument: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CallError(f"{argument}: an integer of at least 1; got {value!r}")
    return value
