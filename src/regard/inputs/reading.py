"""What a caller passes as text, names and ids: read once at the door, refused with a reason."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .._arrays import is_array, library
from ..algebra.errors import CallError, KindError


def read_text(value: object, argument: str = "text") -> str:
    """A str of whole characters."""
    if not isinstance(value, str):
        raise KindError(f"{argument}: a str; got {_kind(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CallError(
            f"{argument}: Unicode without lone surrogates; got {value[error.start]!r} at position {error.start}; "
            "decode the bytes with errors='replace'"
        ) from None
    return value


def read_texts(texts: object) -> Iterator[str]:
    """The texts one after the other, from a str or an iterable of str, which is consumed once."""
    if isinstance(texts, str):
        yield read_text(texts, "texts")
        return
    if isinstance(texts, bytes | bytearray | os.PathLike) or not isinstance(texts, Iterable):
        raise KindError(f"texts: a str or an iterable of str; got {_kind(texts)}")
    for place, text in enumerate(texts):
        yield read_text(text, f"texts[{place}]")


def read_names(names: object, argument: str) -> tuple[str, ...]:
    """Distinct tokens that are not empty."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        hint = f"; pass ({names!r},)" if isinstance(names, str) else ""
        raise KindError(f"{argument}: a tuple of str; got {names!r}{hint}")
    found = tuple(read_text(name, f"{argument}[{place}]") for place, name in enumerate(names))
    if "" in found:
        raise CallError(f"{argument}: tokens of at least one character; got '' at position {found.index('')}")
    twice = [name for name in found if found.count(name) > 1] if len(set(found)) < len(found) else []
    if twice:
        raise CallError(f"{argument}: each token once; got {twice[0]!r} {found.count(twice[0])} times")
    return found


def refuse_shared(argument: str, names: tuple[str, ...], taken: Collection[str]) -> None:
    """No text may give a special token, so each has a name of its own."""
    for name in names:
        if name in taken:
            raise CallError(
                f"{argument}: a name of its own, such as '<start>'; got {name!r}, which is another token, too"
            )


def read_size(size: object, least: int, reason: str) -> int:
    """A number of tokens."""
    if not isinstance(size, int) or isinstance(size, bool):
        raise KindError(f"size: an integer, the number of tokens; got {size!r}")
    if size < least:
        raise CallError(f"size: at least {least}, {reason}; got {size}; pass size={least} or more")
    return size


def read_ids(ids: object, size: int) -> list[int]:
    """One sequence of ids, each from 0 to size − 1, as Python's integers."""
    numbers = _of_array(ids) if is_array(ids) else _of_sequence(ids)
    if numbers and not (min(numbers) >= 0 and max(numbers) < size):
        place = next(place for place, number in enumerate(numbers) if not 0 <= number < size)
        raise CallError(f"ids: from 0 to {size - 1}, one for each token; got {numbers[place]} at position {place}")
    return numbers


def _of_array(ids: Any) -> list[int]:
    xp = library(ids)
    if not xp.is_integer(ids):
        raise KindError(f"ids: integers; got dtype {ids.dtype}")
    if ids.ndim != 1:
        raise CallError(f"ids: one sequence, with one axis; got shape {tuple(ids.shape)}; pass one row at a time")
    if not xp.known(ids):
        raise CallError("ids: numbers that can be read; got an array that a compiler traces; do this outside of it")
    return list(map(int, ids.tolist()))


def _of_sequence(ids: object) -> list[int]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        hint = "; encode it first" if isinstance(ids, str) else ", as in [5]" if isinstance(ids, int) else ""
        raise KindError(f"ids: a sequence of integers; got {type(ids).__name__}{hint}")
    numbers = list(ids)
    if set(map(type, numbers)) <= {int}:  # by far the most frequent, and long
        return numbers
    return [_integer(number, place) for place, number in enumerate(numbers)]


def _integer(number: Any, place: int) -> int:
    if not isinstance(number, bool):  # which is an integer to Python
        with contextlib.suppress(TypeError):
            return operator.index(number)
    raise KindError(f"ids: a sequence of integers; got {number!r} at position {place}")


def _kind(value: object) -> str:
    """The name of its type, and what turns it into text."""
    name = type(value).__name__
    if isinstance(value, bytes | bytearray):
        return f"{name}; decode it first: value.decode('utf-8')"
    if isinstance(value, os.PathLike):
        return f"{name}; read the file first: path.read_text(encoding='utf-8')"
    return name
