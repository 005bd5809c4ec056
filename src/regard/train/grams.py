"""The k-grams of texts of ids: numbered, counted, and found again.

Every k-gram has a number, its rank among all k-grams of the texts, and is found by what it is made of:

    k-gram ending at i = (t_{i−k+1}, (k−1)-gram ending at i)          context = (k−1)-gram ending at i − 1

so that each level is one sort of integers, of whatever vocabulary, and no id is touched in a loop of Python. Texts
stand in one stream, START before each; no gram reaches over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.errors import CallError, KindError

START = -1  # stands before each text, and is no id; also: a gram that was never seen


@dataclass(frozen=True, eq=False)
class Level:
    """All k-grams hw of some texts, for one k, in the order of their codes.

    codes:    left id × number of (k−1)-grams + the (k−1)-gram that remains without it
    counts:   c(hw)
    before:   N_1+(·hw), where the start of a text counts as one id; None for the longest
    contexts: which (k−1)-gram h is
    shorter:  how many (k−1)-grams there are
    """

    codes: Any
    counts: Any
    before: Any
    contexts: Any
    shorter: int

    def total(self, numbers: Any = None) -> Any:
        """The sum over w, for each context h; without numbers, how many different w there are."""
        return np.bincount(self.contexts, numbers, minlength=self.shorter)


# -- counting --------------------------------------------------------------------------------------------------


def all_levels(stream: Any, order: int) -> tuple[Level, ...]:
    """The k-grams of a stream, for k = 1 … order."""
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 1:
        raise CallError(f"order: an integer of at least 1, how many ids a gram has; got {order!r}")
    levels, shorter, size = list[Level](), np.zeros(len(stream), np.int64), 1  # there is one 0-gram
    for k in range(1, order + 1):
        left = _shifted(stream, k - 1)
        here = np.flatnonzero((left != START) & (shorter != START))
        if not len(here):
            raise CallError(f"order: at most {k - 1}, the length of the longest text; got {order}")
        codes, ranks, some = _ranked(left[here] * size + shorter[here])
        if levels:
            opening = np.unique(shorter[(left == START) & (shorter != START)])  # these begin a text
            before = np.bincount(codes % size, minlength=size)
            before[opening] += 1
            levels[-1] = replace(levels[-1], before=before)
        levels.append(Level(codes, np.bincount(ranks), None, shorter[here[some] - 1], size))
        shorter = np.full(len(stream), START)
        shorter[here], size = ranks, len(codes)
    return tuple(levels)


def _ranked(codes: Any) -> tuple[Any, Any, Any]:
    """The different codes in order, the rank of each code among them, and one place of each."""
    order = np.argsort(codes)
    ordered = codes[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    ranks = np.empty_like(order)
    ranks[order] = np.cumsum(new) - 1
    return ordered[new], ranks, order[new]


# -- looking up ------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """For each id of a stream: which k-gram ends there, and which (k−1)-gram before it; START if none was seen."""

    grams: Any
    contexts: Any


def looked_up(levels: tuple[Level, ...], stream: Any) -> Iterator[Found]:
    """What a stream holds of each level, from the shortest grams to the longest."""
    shorter = np.zeros(len(stream), np.int64)
    for k, level in enumerate(levels, start=1):
        left = _shifted(stream, k - 1)
        codes = left * level.shorter + shorter
        place = np.minimum(np.searchsorted(level.codes, codes), len(level.codes) - 1)
        seen = (level.codes[place] == codes) & (left != START) & (shorter != START)
        grams = np.where(seen, place, START)
        yield Found(grams, _shifted(shorter, 1))
        shorter = grams


def _shifted(stream: Any, by: int) -> Any:
    """What stands so many places before."""
    return np.concatenate([np.full(min(by, len(stream)), START), stream[: max(0, len(stream) - by)]])


# -- reading ---------------------------------------------------------------------------------------------------


def sequences(ids: Any, argument: str) -> list[Any]:
    """One sequence of integers, or several, as arrays."""
    single = hasattr(ids, "ndim") or not len(ids) or all(isinstance(one, int | np.integer) for one in ids)
    texts = [np.asarray(text) for text in ([ids] if single else ids)]
    wrong = [text for text in texts if text.ndim != 1 or (text.dtype.kind not in "iu" and len(text))]
    if wrong:
        raise KindError(
            f"{argument}: integers, in one sequence or in several; got dtype {wrong[0].dtype} and shape "
            f"{wrong[0].shape}; encode the text first"
        )
    return texts


def measured(texts: list[Any], first: int) -> Any:
    """Which entries of their stream are measured: not START, nor the first ids of a text."""
    return np.concatenate([np.arange(-1, len(text)) >= max(0, first) for text in texts])


def joined(texts: list[Any], size: int, argument: str) -> Any:
    """All texts in one array, START before each."""
    for text in texts:
        if len(text) and not (text.min() >= 0 and text.max() < size):
            wrong = text.min() if text.min() < 0 else text.max()
            raise CallError(f"{argument}: from 0 to {size - 1}, vocabulary_size − 1; got {wrong}")
    return np.concatenate([part for text in texts for part in ([START], text.astype(np.int64))])
