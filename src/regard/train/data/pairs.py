"""Pairs of texts, a source and what it is to become, to learn from and held out.

From a file with two columns or, without one, dates as people write them and as ISO does. No source is on both sides:
what is held out is new to a model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...algebra.errors import CallError, KindError
from ...inputs.text import Characters, Words
from ...inputs.vocabularies import Vocabulary
from .dates import date_pairs
from .holding_out import check_share, grouped
from .pair_files import Pair, pair_paths, read_tsv
from .skipped import counted
from .tokens import _kind

PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<?>"
SPECIALS = (PAD, START, END)
LONGEST = 256  # characters a side


@dataclass(frozen=True)
class Texts:
    """Sources and their targets, row by row."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class Pairs:
    """Pairs to learn from and pairs held out, and notes on what was done to them."""

    training: Texts
    held_out: Texts
    name: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Pairs({self.name!r}: {len(self.training)} and {len(self.held_out)} held out)"


def read_pairs(
    source: str | os.PathLike[str] | None = None, *, held_out: float = 0.1, longest: int = LONGEST, seed: int = 0
) -> Pairs:
    """Pairs from a file or, without a source, 20 000 dates.

    source:    a file in UTF-8 with a line source<tab>target for each pair, or a folder with train.tsv and test.tsv
    held_out:  the share of the sources that is held out, where there is no test.tsv; drawn from the seed
    longest:   pairs with a side of more characters are left out

    Lines that are no pair are skipped and counted in the notes; if they are most, that is an error.

    >>> pairs = read_pairs()
    >>> pairs
    Pairs('dates': 18000 and 2000 held out)
    >>> pairs.held_out.sources[0], pairs.held_out.targets[0]
    ('21st july 09', '2009-07-21')
    """
    share = check_share(held_out)
    if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
        raise CallError(f"longest: a number of characters, at least 1; got {longest!r}")
    if source is None:
        return _divided(date_pairs(seed=seed), share, seed, "dates", ())
    if not isinstance(source, str | os.PathLike):
        raise KindError(f"source: a file of pairs, or None for dates; got {type(source).__name__}")
    first, second = pair_paths(Path(source))
    found, notes = read_tsv(first, longest)
    if second is None:
        return _divided(found, share, seed, first.stem, notes)
    return _given(found, notes, *read_tsv(second, longest), name=Path(source).resolve().name)


def pair_vocabulary(pairs: Pairs, kind: str = "characters") -> Vocabulary:
    """One vocabulary for sources and targets, learned from the pairs to learn from: with <pad>, <start> and <end>.

    kind: "characters", "words:5000" or "bytepairs:1024"; the number counts all tokens

    >>> pair_vocabulary(read_pairs())
    Characters(62 tokens: '<pad>', '<start>', '<end>', '<?>', ' ', '0', '1', '2', …)
    """
    texts, (name, size) = (*pairs.training.sources, *pairs.training.targets), _kind(kind)
    if name == "words":
        return Words.of(texts, size, specials=SPECIALS, unknown=UNKNOWN)
    if name == "bytepairs":
        return _byte_pairs(texts, size or 1024)
    return Characters.of(texts, specials=SPECIALS, unknown=UNKNOWN)


def _byte_pairs(texts: Iterable[str], size: int) -> Vocabulary:
    from ...inputs.byte_pairs import BytePairs

    return BytePairs.of(texts, size, specials=SPECIALS)


# -- parts -----------------------------------------------------------------------------------------------------


def _divided(found: list[Pair], held_out: float, seed: int, name: str, notes: tuple[str, ...]) -> Pairs:
    sources = [source for source, _ in found]
    if len(set(sources)) < 2:
        raise CallError(f"source: at least two different sources, one to hold out; got {len(set(sources))} in {name!r}")
    training, held = (_texts([found[row] for row in rows]) for rows in grouped(sources, held_out, seed))
    return Pairs(training, held, name, notes)


def _given(found: list[Pair], notes: Any, held: list[Pair], held_notes: Any, name: str) -> Pairs:
    """Two files as they are, but for sources to learn from that are held out."""
    tested = {source for source, _ in held}
    kept = [pair for pair in found if pair[0] not in tested]
    if not kept:
        raise CallError(f"source: sources to learn from that are not held out; got none in {name!r}; divide it anew")
    both = len(found) - len(kept)
    shared = (f"{counted(both, 'pair')} not learned from, with a source that is held out",) if both else ()
    return Pairs(_texts(kept), _texts(held), name, (*notes, *(f"held out: {note}" for note in held_notes), *shared))


def _texts(found: list[Pair]) -> Texts:
    return Texts(tuple(source for source, _ in found), tuple(target for _, target in found))
