"""What texts begin with and what ends them, as a caller passes it: read once at the door."""

from __future__ import annotations

import operator
from typing import Any

from ..._arrays import is_array, library
from ...algebra.errors import CallError, KindError
from ...inputs.vocabularies import Vocabulary
from .drafts import Ending

KINDS = "a text, a list of texts, ids, or a list of lists of ids"


def read_prompts(prompts: object, vocabulary: Vocabulary | None, argument: str) -> tuple[list[list[int]], bool]:
    """The ids of each prompt, and whether it is one prompt by itself."""
    if isinstance(prompts, str):
        return [_encoded(prompts, argument, vocabulary)], True
    nested = _nested(prompts, argument)
    if nested and all(_is_whole(entry) for entry in nested):
        return [_ids(nested, argument)], True
    if not nested:
        raise CallError(f"{argument}: at least one token to begin with; got none; pass {KINDS}")
    return [_prompt(entry, f"{argument}[{place}]", vocabulary) for place, entry in enumerate(nested)], False


def for_each(prompt: object, texts: int, vocabulary: object) -> list[list[int]]:
    """What each of so many texts begins with: one prompt for all, or a list with one for each."""
    rows, single = read_prompts(prompt, read_vocabulary(vocabulary), "prompt")
    if single:
        return rows * texts
    if len(rows) != texts:
        raise CallError(f"prompt: one for all, or one for each of {texts} sources; got a list of {len(rows)}")
    return rows


def read_ending(new: object, stop: object, end: object, vocabulary: Vocabulary | None) -> Ending:
    """When a text is complete."""
    if not _is_whole(new) or new < 1:  # type: ignore[operator]
        raise CallError(f"new: how many tokens to write at most, at least 1; got {new!r}")
    stops = _stops(stop)
    if stops and vocabulary is None:
        raise CallError(
            f"stop: texts are found by a vocabulary; got {stops[0]!r} and no vocabulary; "
            "pass vocabulary=, or end= with the ids of end tokens"
        )
    ends = end if isinstance(end, list | tuple | set | frozenset) else () if end is None else (end,)
    return Ending(operator.index(new), stops, {_end(entry, vocabulary): entry for entry in ends})  # type: ignore[arg-type]


def read_vocabulary(vocabulary: object) -> Vocabulary | None:
    """A vocabulary, or none."""
    if vocabulary is None or isinstance(vocabulary, Vocabulary):
        return vocabulary
    raise KindError(
        f"vocabulary: one of regard.inputs, such as Characters or BytePairs; got {type(vocabulary).__name__}; "
        "BytePairs.wrap takes the tokenizer of a model"
    )


# -- prompts -------------------------------------------------------------------------------------------------------


def _nested(value: object, argument: str) -> list[Any]:
    if is_array(value):
        array: Any = value
        if not library(array).is_integer(array):
            raise KindError(f"{argument}: ids are integers; got {array.dtype}")
        if array.ndim not in (1, 2):
            raise CallError(f"{argument}: ids of shape (N) or (B, N); got shape {tuple(array.shape)}")
        return list(array.tolist())
    if not isinstance(value, list | tuple):
        raise KindError(f"{argument}: {KINDS}; got {type(value).__name__}")
    return list(value)


def _prompt(entry: object, argument: str, vocabulary: Vocabulary | None) -> list[int]:
    if isinstance(entry, str):
        return _encoded(entry, argument, vocabulary)
    if _is_whole(entry):
        raise KindError(f"{argument}: {KINDS}, and not both at once; got an id beside a list or a text")
    return _ids(_nested(entry, argument), argument)


def _encoded(text: str, argument: str, vocabulary: Vocabulary | None) -> list[int]:
    if vocabulary is None:
        raise CallError(
            f"{argument}: a text needs a vocabulary to become ids; got {_short(text)} and no vocabulary; "
            "pass vocabulary=, or the ids"
        )
    ids = vocabulary.encode(text)
    if not ids:
        raise CallError(f"{argument}: at least one token to begin with; got {text!r}; begin with a special token")
    return ids


def _ids(entries: list[Any], argument: str) -> list[int]:
    if not entries:
        raise CallError(f"{argument}: at least one token to begin with; got none; begin with a special token")
    for place, entry in enumerate(entries):
        if not _is_whole(entry):
            raise KindError(f"{argument}: ids are integers; got {_short(entry)} at position {place}")
    return [operator.index(entry) for entry in entries]


# -- ends ----------------------------------------------------------------------------------------------------------


def _stops(stop: object) -> tuple[str, ...]:
    if isinstance(stop, str):
        stop = (stop,)
    if not isinstance(stop, list | tuple | set | frozenset) or not all(isinstance(text, str) for text in stop):
        raise KindError(f"stop: a text, or texts, at which to stop; got {_short(stop)}; end= takes ids")
    if "" in stop:
        raise CallError("stop: texts of at least one character; got ''; leave it out")
    return tuple(stop)


def _end(entry: object, vocabulary: Vocabulary | None) -> int:
    if _is_whole(entry) and entry >= 0:  # type: ignore[operator]
        return operator.index(entry)  # type: ignore[arg-type]
    if not isinstance(entry, str):
        raise KindError(f"end: the id of a token, or the name of a special token, or several; got {_short(entry)}")
    if vocabulary is None:
        raise CallError(
            f"end: a name is found in a vocabulary; got {entry!r} and no vocabulary; pass vocabulary= or the id"
        )
    if entry not in vocabulary.specials:
        known = ", ".join(map(repr, vocabulary.specials)) or "none"
        raise CallError(
            f"end: a special token of the vocabulary, {known}; got {entry!r}; pass stop={entry!r} if it is a text"
        )
    return vocabulary.id(entry)


# -- kinds ---------------------------------------------------------------------------------------------------------


def _is_whole(value: object) -> bool:
    """Whether it is an integer, of Python or as an array without axes."""
    if isinstance(value, bool):  # which is an integer to Python
        return False
    if is_array(value):
        array: Any = value
        return array.ndim == 0 and library(array).is_integer(array)
    return hasattr(value, "__index__")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"
